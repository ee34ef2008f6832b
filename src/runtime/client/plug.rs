//! Devices that go and come back while their container runs.
//!
//! The devices of a container are recorded in a file under the run directory. A change records first what it may leave behind when it is
//! interrupted, so that the next one removes that.

use super::plugged::Plugged;
use super::{Inner, blocking};
use crate::RuntimeError;
use podstead_container::cgroup::{Cgroups, DeviceChange};
use podstead_container::{ContainerSpec, ContainerState, GivenDevice};
use podstead_pod::{ContainerId, PodUid};
use podstead_sys::atomic_file::write_atomic;
use podstead_sys::device_node;
use podstead_sys::pidfd;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A container with the right to mount may let a change wait for ever.
const PATIENCE: Duration = Duration::from_secs(20);

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
            let reason = "an earlier change of its devices is still waiting for a file system of the container";
            return Err(RuntimeError::failed("change devices", reason));
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
        let process = pidfd::open(pid).map_err(|error| RuntimeError::failed("open the container's first process", error))?;
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
                .map_err(|error| RuntimeError::failed("change the container's device rules", error))?;
        }
        let nodes = before.nodes(&after, first_host_id);
        device_node::change(&process, &nodes, first_host_id, &scratch)
            .map_err(|error| RuntimeError::failed("change device nodes", error))
    });
    match tokio::time::timeout(PATIENCE, change).await {
        Ok(changed) => changed?,
        Err(_) => {
            let reason = "a file system of the container does not answer";
            return Err(RuntimeError::failed("change devices", reason));
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
        let text = serde_json::to_vec(&all).map_err(|error| RuntimeError::failed("encode devices", error))?;
        write_atomic(&path, &text, 0o600).map_err(|error| RuntimeError::failed(format!("write {}", path.display()), error))
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
