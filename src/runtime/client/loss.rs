//! A connection has ended: was it meant to, and if not, is the shim dead?

use super::view::PodView;
use super::{Inner, blocking, launch};
use crate::RuntimeError;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use podstead_container::record::{ContainerRecord, Durability, SandboxRecord};
use podstead_container::{ContainerState, ContainerStatus, PodLifecycleEvent, PodLifecycleEventKind, SandboxState};
use podstead_pod::{ContainerId, PodUid};
use podstead_telemetry::error_chain;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Time for killed processes to leave the kernel before the loss is reported; a process that hangs in the kernel must not hide it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Called once for every connection, when it has ended. Boxed, since it may open the next connection, which ends here too.
pub(super) fn connection_ended(inner: Arc<Inner>, uid: PodUid, number: u64) -> BoxFuture<'static, ()> {
    Box::pin(async move { find_out(&inner, &uid, number).await })
}

async fn find_out(inner: &Arc<Inner>, uid: &PodUid, number: u64) {
    let is_current = |inner: &Inner| {
        inner.pods().get(uid).and_then(|pod| pod.connection.as_ref()).is_some_and(|connection| connection.number == number)
    };
    // A stop of the sandbox takes the connection out of the view first.
    if !is_current(inner) {
        return;
    }
    // A shim that cut off a client lives.
    if let Ok((connection, hello, status)) = launch::connect(inner, uid).await {
        let mut events = Vec::new();
        if let Some(pod) = inner.pods().get_mut(uid) {
            for container in status.containers {
                events.push(PodLifecycleEventKind::ContainerDied(container.id.clone()));
                pod.note(container);
            }
            pod.connection = Some(connection.release());
        }
        tracing::warn!(pod_uid = %uid, shim_pid = hello.pid, "reconnected to the shim");
        // The worker's next observation finds the missed events.
        for kind in events {
            inner.tell(PodLifecycleEvent { uid: uid.clone(), kind });
        }
        return;
    }
    if is_current(inner) {
        sandbox_lost(inner, uid).await;
    }
}

async fn sandbox_lost(inner: &Arc<Inner>, uid: &PodUid) {
    tracing::warn!(pod_uid = %uid, "the shim died: killing its containers");
    let (worker, lost_uid) = (Arc::clone(inner), uid.clone());
    let done = blocking("clean up after a lost shim", move || {
        let cgroup = worker.pods().get(&lost_uid).map(|pod| pod.cgroup.clone());
        if let Some(cgroup) = cgroup {
            kill(&worker, &lost_uid, &cgroup);
        }
        mark_lost(&worker, &lost_uid)
    })
    .await;
    if let Err(error) = done {
        tracing::error!(pod_uid = %uid, error = %error_chain(&error), "cannot record the loss of a sandbox");
    }
    inner.tell(PodLifecycleEvent { uid: uid.clone(), kind: PodLifecycleEventKind::SandboxLost });
}

/// Kills everything in the pod's cgroup and what is left of its shim and helpers. Errors are reported: removal tries again.
pub(super) fn kill(inner: &Inner, uid: &PodUid, cgroup: &Path) {
    for group in [cgroup, &inner.cgroups.shim(uid)] {
        if let Err(error) = inner.cgroups.kill(group, PATIENCE) {
            tracing::warn!(pod_uid = %uid, error = %error_chain(&error), "cannot kill the cgroup of a lost sandbox");
        }
    }
}

/// Marks the sandbox lost and its containers unknown, in memory first: the records may be on a full disk.
pub(super) fn mark_lost(inner: &Inner, uid: &PodUid) -> Result<(), RuntimeError> {
    let sandbox = {
        let mut pods = inner.pods();
        let Some(pod) = pods.get_mut(uid) else { return Ok(()) };
        pod.connection = None;
        if let Some(sandbox) = &mut pod.sandbox {
            sandbox.state = SandboxState::Lost;
            sandbox.shim_pid = None;
        }
        pod.sandbox.clone().map(|status| SandboxRecord::new(status, inner.boot_id.clone(), pod.cgroup.clone()))
    };
    lose_containers(inner, uid)?;
    match sandbox {
        Some(record) => record
            .write(&inner.paths().sandbox_record(uid), Durability::ProcessDeath)
            .map_err(|error| RuntimeError::failed("record the loss of a sandbox", error)),
        None => Ok(()),
    }
}

/// Nobody is left who could see the pod's containers end: what its shim recorded of their ends counts, the others are lost, durably. Returns
/// those that were thought to be alive. Blocks; the shim has to be dead.
pub(super) fn lose_containers(inner: &Inner, uid: &PodUid) -> Result<Vec<ContainerId>, RuntimeError> {
    let alive = inner.pods().get(uid).map(PodView::alive).unwrap_or_default();
    // The last that a shim told may not have been heard.
    let ends = alive.iter().filter_map(|id| ContainerRecord::read(&inner.paths().container_record(uid, id)).ok());
    let ends: Vec<_> =
        ends.map(|record| record.status).filter(|status| matches!(status.state, ContainerState::Exited { .. })).collect();
    let lost = {
        let mut pods = inner.pods();
        let Some(pod) = pods.get_mut(uid) else { return Ok(Vec::new()) };
        ends.into_iter().for_each(|status| pod.note(status));
        pod.lose_containers(Timestamp::now())
    };
    write_lost(inner, uid, &lost)?;
    Ok(alive)
}

/// Makes it durable that containers were lost.
pub(super) fn write_lost(inner: &Inner, uid: &PodUid, lost: &[ContainerStatus]) -> Result<(), RuntimeError> {
    for status in lost {
        let path = inner.paths().container_record(uid, &status.id);
        let record = ContainerRecord::new(status.clone());
        record.write(&path, Durability::PowerCut).map_err(|error| RuntimeError::failed("record the loss of a container", error))?;
    }
    Ok(())
}
