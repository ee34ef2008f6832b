//! At start: what is left of earlier daemons' pods.

use super::plugged::Plugged;
use super::view::PodView;
use super::{Inner, blocking, id_ranges, launch, link_logs, loss, plug, resize, teardown};
use crate::RuntimeError;
use futures_util::StreamExt;
use futures_util::stream;
use podstead_container::record::{ContainerRecord, RecordError, SandboxRecord};
use podstead_container::{
    ContainerResources, ContainerState, ContainerStatus, ObservedPod, PodLifecycleEvent, PodLifecycleEventKind, SandboxState,
    SandboxStatus,
};
use podstead_pod::{ContainerId, PodUid};
use podstead_sys::namespaces::Namespace;
use podstead_telemetry::error_chain;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Shims that are asked at once.
const AT_ONCE: usize = 32;

/// Finds all pods by their directories and cgroups, connects to living shims, kills what dead ones left running.
pub(super) async fn recover(inner: &Arc<Inner>) -> Result<Vec<ObservedPod>, RuntimeError> {
    let looker = Arc::clone(inner);
    let found = blocking("list sandboxes", move || {
        let mut uids = directories(&looker.paths().pods_run())?;
        uids.extend(directories(&looker.paths().pods())?);
        let groups = looker.cgroups.list().map_err(|error| RuntimeError::failed("list cgroups of pods", error))?;
        uids.extend(groups.into_iter().map(|(uid, _)| uid));
        Ok(uids)
    })
    .await?;
    let pods: Vec<Option<ObservedPod>> =
        stream::iter(found).map(|uid| recover_pod(inner, uid)).buffer_unordered(AT_ONCE).collect().await;
    let mut pods: Vec<ObservedPod> = pods.into_iter().flatten().collect();
    pods.sort_by(|a, b| a.uid.cmp(&b.uid));
    Ok(pods)
}

/// `None` for a pod without sandbox and containers.
async fn recover_pod(inner: &Arc<Inner>, uid: PodUid) -> Option<ObservedPod> {
    let (reader, read_uid) = (Arc::clone(inner), uid.clone());
    let records = blocking("read records", move || Ok(read_records(&reader, &read_uid))).await;
    let (sandbox, containers, given, plugged) = records.unwrap_or_default();
    {
        let mut pods = inner.pods();
        let pod = pods.entry(uid.clone()).or_default();
        if let Some(record) = &sandbox {
            pod.cgroup = record.cgroup.clone();
        }
        pod.sandbox = sandbox.as_ref().map(|record| record.status.clone());
        pod.containers.clear();
        containers.into_iter().for_each(|container| pod.note(container));
        pod.given = given;
        pod.plugged = plugged;
    }
    match launch::connect(inner, &uid).await {
        Ok((connection, hello, shim)) => {
            let cgroup = inner.cgroups.pod(hello.spec.qos, &uid);
            let status = sandbox.map(|record| record.status).filter(|status| status.spec.attempt == hello.spec.attempt);
            let status = status.unwrap_or_else(|| SandboxStatus {
                spec: hello.spec.clone(),
                state: SandboxState::Ready,
                created_at: hello.created_at,
                shim_pid: Some(hello.pid),
                netns: (!hello.spec.namespaces.host_network)
                    .then(|| inner.paths().namespaces(&uid).join(Namespace::Net.file_name())),
            });
            let living: BTreeSet<ContainerId> = shim.containers.iter().map(|container| container.id.clone()).collect();
            let logged = shim.containers.iter().filter(|container| matches!(container.state, ContainerState::Running { .. }));
            // A daemon that died after the start, or an earlier version, may not have made them.
            let logged = logged.cloned().collect();
            launch::adopt(inner, &uid, status, cgroup, connection, &hello, shim);
            lose_unknown(inner, &uid, &living).await;
            link_logs(inner, &uid, logged).await;
            tell_exits(inner, &uid);
        }
        Err(_) => {
            let (worker, dead_uid) = (Arc::clone(inner), uid.clone());
            let done = blocking("clean up after a dead shim", move || {
                kill_remains(&worker, &dead_uid);
                let was_stopped = worker.pods().get(&dead_uid).is_some_and(PodView::was_stopped);
                if was_stopped { teardown::sweep(&worker, &dead_uid) } else { loss::mark_lost(&worker, &dead_uid) }
            })
            .await;
            if let Err(error) = done {
                tracing::warn!(pod_uid = %uid, error = %error_chain(&error), "cannot clean up the remains of a sandbox");
            }
        }
    }
    id_ranges::found(inner, &uid);
    let mut pods = inner.pods();
    let observed = pods.get(&uid).map(|pod| pod.observed(&uid))?;
    if observed.sandbox.is_none() && observed.containers.is_empty() {
        pods.remove(&uid);
        return None;
    }
    Some(observed)
}

impl PodView {
    fn was_stopped(&self) -> bool {
        self.connection.is_none() && self.sandbox.as_ref().is_none_or(|sandbox| sandbox.state == SandboxState::Stopped)
    }
}

/// Kills by the existing groups, regardless of records: the record may be gone.
fn kill_remains(inner: &Inner, uid: &PodUid) {
    match inner.cgroups.list() {
        Ok(groups) => {
            for (_, group) in groups.into_iter().filter(|(owner, _)| owner == uid) {
                loss::kill(inner, uid, &group);
            }
        }
        Err(error) => tracing::warn!(pod_uid = %uid, error = %error_chain(&error), "cannot list cgroups"),
    }
}

/// Containers that have a record of being alive but that the living shim does not know: an earlier shim's.
async fn lose_unknown(inner: &Arc<Inner>, uid: &PodUid, living: &BTreeSet<ContainerId>) {
    let lost: Vec<ContainerStatus> = {
        let mut pods = inner.pods();
        let Some(pod) = pods.get_mut(uid) else { return };
        let now = jiff::Timestamp::now();
        let strangers = pod.containers.iter_mut().filter(|container| !living.contains(&container.id));
        strangers
            .filter_map(|container| {
                container.state = super::view::lost_state(&container.state, now)?;
                Some(container.clone())
            })
            .collect()
    };
    let (worker, uid) = (Arc::clone(inner), uid.clone());
    if let Err(error) = blocking("record lost containers", move || loss::write_lost(&worker, &uid, &lost)).await {
        tracing::warn!(error = %error_chain(&error), "cannot record the loss of containers");
    }
}

/// Exits may have happened while no daemon was there to be told.
fn tell_exits(inner: &Inner, uid: &PodUid) {
    let dead: Vec<ContainerId> = match inner.pods().get(uid) {
        Some(pod) => {
            let exited = pod.containers.iter().filter(|container| matches!(container.state, ContainerState::Exited { .. }));
            exited.map(|container| container.id.clone()).collect()
        }
        None => Vec::new(),
    };
    for id in dead {
        inner.tell(PodLifecycleEvent { uid: uid.clone(), kind: PodLifecycleEventKind::ContainerDied(id) });
    }
}

type Records =
    (Option<SandboxRecord>, Vec<ContainerStatus>, BTreeMap<ContainerId, Box<ContainerResources>>, BTreeMap<ContainerId, Plugged>);

fn read_records(inner: &Inner, uid: &PodUid) -> Records {
    let sandbox = usable(&inner.paths().sandbox_record(uid), SandboxRecord::read);
    let mut containers = Vec::new();
    match fs::read_dir(inner.paths().container_records(uid)) {
        Ok(entries) => {
            for path in entries.flatten().map(|entry| entry.path()).filter(|path| is_record(path)) {
                containers.extend(usable(&path, ContainerRecord::read).map(|record| record.status));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(pod_uid = %uid, %error, "cannot read the records of containers"),
    }
    // A sandbox of another boot cannot live, even if something listens on its socket's path.
    (sandbox, containers, resize::read(&inner.paths().given(uid)), plug::read(&inner.paths().plugged(uid)))
}

fn is_record(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".json") && !name.starts_with('.')
}

/// A record that cannot be used is set aside, for people to look at; what it said is learnt again from shims and kernel.
fn usable<T>(path: &Path, read: impl FnOnce(&Path) -> Result<T, RecordError>) -> Option<T> {
    match read(path) {
        Ok(record) => Some(record),
        Err(RecordError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
        // One that did not have to outlive a power cut did not.
        Err(RecordError::Decode { .. }) if fs::metadata(path).is_ok_and(|file| file.len() == 0) => {
            tracing::debug!(path = %path.display(), "empty record");
            fs::remove_file(path).ok();
            None
        }
        Err(error) => {
            let mut aside = path.as_os_str().to_owned();
            aside.push(".broken");
            let set_aside = fs::rename(path, &aside).is_ok();
            tracing::error!(error = %error_chain(&error), set_aside, "record is unusable");
            None
        }
    }
}

/// The pods that have a directory in `parent`.
fn directories(parent: &Path) -> Result<BTreeSet<PodUid>, RuntimeError> {
    let error = |error: io::Error| RuntimeError::failed(format!("list {}", parent.display()), error);
    let entries = match fs::read_dir(parent) {
        Ok(entries) => entries,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(other) => return Err(error(other)),
    };
    let mut uids = BTreeSet::new();
    for entry in entries {
        let entry = entry.map_err(error)?;
        if entry.file_type().map_err(error)?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
        {
            uids.insert(PodUid::new(name));
        }
    }
    Ok(uids)
}
