//! Devices that go and come back while their container runs.
//!
//! What a container has is kept in a file under the run directory. A change writes down first what it may leave behind when it is interrupted, so that
//! the next one takes that away.

use super::{Inner, blocking, failed};
use crate::RuntimeError;
use podstead_container::cgroup::{Cgroups, DeviceChange};
use podstead_container::{ContainerSpec, ContainerState, GivenDevice};
use podstead_pod::{ContainerId, PodUid};
use podstead_sys::atomic_file::write_atomic;
use podstead_sys::device_node::{self, Changes};
use podstead_sys::pidfd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A container with the right to mount may let a change wait for ever.
const PATIENCE: Duration = Duration::from_secs(20);
const DEV: &str = "/dev";

/// Devices of one container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plugged {
    /// Devices that may be unplugged, as the container has them.
    pub(super) devices: Vec<GivenDevice>,
    /// Those that an interrupted change may have given it.
    leftover: Vec<GivenDevice>,
    /// Devices that it has as long as it runs.
    fixed: Vec<GivenDevice>,
    /// No device is refused to it.
    is_privileged: bool,
}

impl Plugged {
    /// Those of a container that is about to start, if it has such devices.
    pub(super) fn of(spec: &ContainerSpec) -> Option<Self> {
        let devices = spec.devices.plugged.clone()?;
        let (fixed, is_privileged) = (spec.devices.nodes.clone(), spec.security.privileged);
        Some(Self { devices, leftover: Vec::new(), fixed, is_privileged })
    }

    fn before(&self) -> Vec<GivenDevice> {
        self.devices.iter().chain(&self.leftover).cloned().collect()
    }

    /// While the change is made.
    fn changing(&self, wanted: &[GivenDevice]) -> Self {
        Self { leftover: self.leftover.iter().chain(wanted).cloned().collect(), ..self.clone() }
    }

    /// When it was made.
    fn changed(&self, wanted: &[GivenDevice]) -> Self {
        Self { devices: wanted.to_vec(), leftover: Vec::new(), ..self.clone() }
    }

    /// What has to be done below the container's `/dev`.
    fn nodes(&self, wanted: &[GivenDevice], first_host_id: Option<u32>) -> Changes {
        let place = |device: &GivenDevice| device.path.strip_prefix(DEV).map(PathBuf::from).ok();
        let is_in_place = |device: &GivenDevice| self.leftover.is_empty() && self.devices.contains(device);
        let is_wanted = |device: &GivenDevice| wanted.iter().any(|wanted| wanted.path == device.path);
        let removed = self.before().iter().filter(|device| !is_wanted(device)).filter_map(place).collect();
        let placed = wanted.iter().filter(|device| !is_in_place(device));
        Changes { removed, placed: placed.filter_map(|device| Some((place(device)?, device.node(first_host_id)))).collect() }
    }
}

/// Takes note of the devices of a container that is about to start.
pub(super) async fn note(inner: &Arc<Inner>, spec: &ContainerSpec) -> Result<(), RuntimeError> {
    match Plugged::of(spec) {
        Some(plugged) => write(inner, &spec.pod, &spec.id, plugged).await,
        None => Ok(()),
    }
}

/// Gives a running container these devices and no others of those that may be unplugged.
pub(super) async fn plug(inner: &Arc<Inner>, uid: &PodUid, id: &ContainerId, wanted: &[GivenDevice]) -> Result<(), RuntimeError> {
    let not_found = || RuntimeError::NotFound(format!("container {id}"));
    let (plugged, cgroup, first_host_id, pid, guard) = {
        let mut pods = inner.pods();
        let pod = pods.get_mut(uid).filter(|pod| pod.connection.is_some()).ok_or_else(not_found)?;
        let plugged = pod.plugged.get(id).cloned().ok_or_else(not_found)?;
        let found = pod.containers.iter().find(|container| container.id == *id);
        let Some(ContainerState::Running { pid, .. }) = found.map(|container| container.state.clone()) else {
            return Err(not_found());
        };
        let first_host_id = pod.sandbox.as_ref().and_then(|sandbox| sandbox.spec.first_host_id);
        if !pod.plugging.insert(id.clone()) {
            let reason = "an earlier change of its devices is still waiting for a file system of the container".to_owned();
            return Err(RuntimeError::Failed { operation: "change devices".to_owned(), reason });
        }
        let guard = Guard { inner: Arc::clone(inner), uid: uid.clone(), id: id.clone() };
        (plugged, Cgroups::container(&pod.cgroup, id), first_host_id, pid, guard)
    };
    let changing = plugged.changing(wanted);
    write(inner, uid, id, changing).await?;
    let (worker, before, after) = (Arc::clone(inner), plugged.clone(), wanted.to_vec());
    let (scratch, name) = (inner.paths().pod_run(uid), id.clone());
    let change = blocking("change devices", move || {
        let _until_done = guard;
        let process = pidfd::open(pid).map_err(|error| failed("open the container's first process", &error))?;
        // By now another process may have the id.
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        if !groups.lines().any(|line| line.ends_with(&format!("/{name}"))) {
            return Err(RuntimeError::NotFound(format!("container {name}")));
        }
        if !before.is_privileged {
            let change = DeviceChange { fixed: &before.fixed, before: &before.before(), after: &after };
            worker
                .cgroups
                .change_devices(&cgroup, &change)
                .map_err(|error| failed("change the container's device rules", &error))?;
        }
        let nodes = before.nodes(&after, first_host_id);
        device_node::change(&process, &nodes, first_host_id, &scratch).map_err(|error| failed("change device nodes", &error))
    });
    match tokio::time::timeout(PATIENCE, change).await {
        Ok(changed) => changed?,
        Err(_) => {
            let reason = "a file system of the container does not answer".to_owned();
            return Err(RuntimeError::Failed { operation: "change devices".to_owned(), reason });
        }
    }
    write(inner, uid, id, plugged.changed(wanted)).await
}

/// Marks a container whose devices are being changed.
#[derive(Debug)]
struct Guard {
    inner: Arc<Inner>,
    uid: PodUid,
    id: ContainerId,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(pod) = self.inner.pods().get_mut(&self.uid) {
            pod.plugging.remove(&self.id);
        }
    }
}

/// Takes note, in memory and on disk.
async fn write(inner: &Arc<Inner>, uid: &PodUid, id: &ContainerId, plugged: Plugged) -> Result<(), RuntimeError> {
    let all = match inner.pods().get_mut(uid) {
        Some(pod) => {
            pod.plugged.insert(id.clone(), plugged);
            let containers = &pod.containers;
            pod.plugged.retain(|known, _| known == id || containers.iter().any(|container| container.id == *known));
            pod.plugged.clone()
        }
        None => return Ok(()),
    };
    let path = inner.paths().plugged(uid);
    blocking("record devices", move || {
        let text = serde_json::to_vec(&all).map_err(|error| failed("encode devices", &error))?;
        write_atomic(&path, &text, 0o600).map_err(|error| failed(&format!("write {}", path.display()), &error))
    })
    .await
}

/// Reads the recorded devices of containers. Without them, nothing is changed until the containers start anew.
pub(super) fn read(path: &Path) -> BTreeMap<ContainerId, Plugged> {
    let read = std::fs::read(path).and_then(|text| serde_json::from_slice(&text).map_err(io::Error::from));
    match read {
        Ok(plugged) => plugged,
        Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read the recorded devices of containers: they keep what they have until they restart");
            BTreeMap::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(path: &str, minor: u32) -> GivenDevice {
        let permissions = "rw".to_owned();
        GivenDevice { path: path.into(), block: false, major: 188, minor, mode: 0o660, uid: 1, gid: 2, permissions }
    }

    fn shown(changes: &Changes) -> String {
        let removed: Vec<String> = changes.removed.iter().map(|place| format!("-{}", place.display())).collect();
        let placed = changes.placed.iter().map(|(place, node)| format!("+{}:{} of {}", place.display(), node.minor, node.uid));
        removed.into_iter().chain(placed).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_what_differs_is_changed() {
        let plugged = Plugged { devices: vec![device("/dev/a", 0), device("/dev/b", 1)], ..Plugged::default() };
        let nodes = |wanted: &[GivenDevice]| shown(&plugged.nodes(wanted, Some(1000)));
        assert_eq!(nodes(&[device("/dev/a", 0), device("/dev/b", 1)]), "");
        assert_eq!(nodes(&[device("/dev/a", 5), device("/dev/c", 6)]), "-b +a:5 of 1001 +c:6 of 1001");
    }

    #[test]
    fn interrupted_change_is_made_anew_and_its_rest_goes() {
        let plugged = Plugged { devices: vec![device("/dev/a", 0)], ..Plugged::default() };
        let interrupted = plugged.changing(&[device("/dev/a", 1), device("/dev/b", 2)]);
        assert_eq!(interrupted.devices, plugged.devices, "not taken for done");
        assert_eq!(shown(&interrupted.nodes(&[device("/dev/a", 0)], None)), "-b +a:0 of 1");
        assert_eq!(interrupted.before().len(), 3);
        let done = interrupted.changed(&[device("/dev/a", 0)]);
        assert_eq!((done.devices.len(), done.leftover.len()), (1, 0));
    }
}
