//! Resizing of running pods and containers, and the record of their resources.
//!
//! What containers were given last is kept in a file under the run directory: it means something as long as they live, and no longer.

use super::{Inner, blocking};
use crate::RuntimeError;
use podstead_container::cgroup::Cgroups;
use podstead_container::record::{Durability, SandboxRecord};
use podstead_container::{ContainerResources, SandboxSpec, SandboxStatus};
use podstead_pod::{ContainerId, PodUid};
use podstead_sys::atomic_file::write_atomic;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Applies `spec.resources` to the pod's cgroup and to the sandbox's record.
pub(super) async fn update_sandbox(inner: &Arc<Inner>, spec: &SandboxSpec) -> Result<SandboxStatus, RuntimeError> {
    let (mut status, cgroup) = inner
        .pods()
        .get(&spec.uid)
        .and_then(|pod| Some((pod.sandbox.clone()?, pod.cgroup.clone())))
        .ok_or_else(|| RuntimeError::NotFound(format!("sandbox of pod {}", spec.full_name)))?;
    status.spec.resources = spec.resources.clone();
    let (worker, stored) = (Arc::clone(inner), status.clone());
    blocking("update sandbox", move || {
        require_room(&worker, "pod", &cgroup, stored.spec.resources.memory_limit)?;
        worker
            .cgroups
            .update(&cgroup, &stored.spec.resources)
            .map_err(|error| RuntimeError::failed("limit the pod's cgroup", error))?;
        let path = worker.paths().sandbox_record(&stored.spec.uid);
        let record = SandboxRecord::new(stored, worker.boot_id.clone(), cgroup);
        record.write(&path, Durability::PowerCut).map_err(|error| RuntimeError::failed("record sandbox", error))
    })
    .await?;
    if let Some(sandbox) = inner.pods().get_mut(&spec.uid).and_then(|pod| pod.sandbox.as_mut()) {
        sandbox.spec.resources = status.spec.resources.clone();
    }
    Ok(status)
}

/// Changes what a running container is given.
pub(super) async fn resize_container(
    inner: &Arc<Inner>,
    uid: &PodUid,
    id: &ContainerId,
    resources: &ContainerResources,
) -> Result<(), RuntimeError> {
    let cgroup = inner.pods().get(uid).filter(|pod| pod.connection.is_some()).map(|pod| Cgroups::container(&pod.cgroup, id));
    let cgroup = cgroup.ok_or_else(|| RuntimeError::NotFound(format!("container {id}")))?;
    let (worker, limits) = (Arc::clone(inner), resources.cgroup.clone());
    blocking("resize container", move || {
        require_room(&worker, "container", &cgroup, limits.memory_limit)?;
        worker
            .cgroups
            .resize_container(&cgroup, &limits)
            .map_err(|error| RuntimeError::failed("limit the container's cgroup", error))
    })
    .await?;
    note(inner, uid, id, resources.clone()).await
}

/// Takes note, in memory and on disk, of what a container is given.
pub(super) async fn note(
    inner: &Arc<Inner>,
    uid: &PodUid,
    id: &ContainerId,
    resources: ContainerResources,
) -> Result<(), RuntimeError> {
    let given = match inner.pods().get_mut(uid) {
        Some(pod) => {
            pod.given.insert(id.clone(), Box::new(resources));
            let containers = &pod.containers;
            pod.given.retain(|known, _| known == id || containers.iter().any(|container| container.id == *known));
            pod.given.clone()
        }
        None => return Ok(()),
    };
    let path = inner.paths().given(uid);
    blocking("record resources", move || {
        let text = serde_json::to_vec(&given).map_err(|error| RuntimeError::failed("encode resources", error))?;
        write_atomic(&path, &text, 0o600).map_err(|error| RuntimeError::failed(format!("write {}", path.display()), error))
    })
    .await
}

/// Reads the recorded resources of containers. A file that cannot be read tells nothing: they are given the same again.
pub fn read(path: &Path) -> BTreeMap<ContainerId, Box<ContainerResources>> {
    match std::fs::read(path).map(|text| serde_json::from_slice(&text)) {
        Ok(Ok(given)) => given,
        Ok(Err(error)) => {
            tracing::warn!(path = %path.display(), %error, "cannot read the recorded resources of containers: applying them again");
            BTreeMap::new()
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read the recorded resources of containers: applying them again");
            BTreeMap::new()
        }
    }
}

/// A limit below what is in use would kill: it waits, in the kubelet's words.
fn require_room(inner: &Inner, what: &str, cgroup: &Path, limit: Option<i64>) -> Result<(), RuntimeError> {
    let Some(limit) = limit.and_then(|limit| u64::try_from(limit).ok()) else { return Ok(()) };
    let usage = inner.cgroups.usage(cgroup).map_err(|error| RuntimeError::failed("read the memory usage", error))?;
    if usage.working_set_bytes <= limit {
        return Ok(());
    }
    let reason = format!("attempting to set {what} memory limit ({limit}) below current usage ({})", usage.working_set_bytes);
    Err(RuntimeError::failed(format!("resize {what}"), reason))
}
