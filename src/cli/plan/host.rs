//! State of this host, read from records on disk, without the daemon and without changes.

use jiff::Timestamp;
use podstead_container::record::{ContainerRecord, SandboxRecord};
use podstead_container::{ContainerState, ObservedPod, SandboxState};
use podstead_pod::PodUid;
use podstead_runtime::client::resize;
use podstead_sys::boot::boot_id;
use podstead_sys::layout::Paths;
use podstead_worker::record::{PodRecord, RecordError, read_all};
use std::collections::BTreeMap;
use std::fs;

/// A pod with a record.
#[derive(Debug)]
pub(super) struct HostPod {
    /// The record of the pod.
    pub(super) record: PodRecord,
    /// Its recorded state. A container that ended unobserved still counts as running.
    pub(super) observed: ObservedPod,
}

/// All pods of this host that are not being removed.
pub(super) fn pods(paths: &Paths) -> Result<Vec<HostPod>, RecordError> {
    let boot = boot_id().unwrap_or_default();
    let records = read_all(paths)?.records.into_iter().filter(|record| !record.is_removed);
    Ok(records
        .map(|record| {
            let observed = observe(paths, &record.desired.uid, &boot);
            HostPod { record, observed }
        })
        .collect())
}

/// A record that cannot be read counts as absent: the daemon finds it out, and a plan is only a forecast.
fn observe(paths: &Paths, uid: &PodUid, boot: &str) -> ObservedPod {
    let mut sandbox = SandboxRecord::read(&paths.sandbox_record(uid)).ok().map(|record| {
        let mut status = record.status;
        if record.boot_id != boot && status.state == SandboxState::Ready {
            status.state = SandboxState::Lost;
        }
        status
    });
    let entries = fs::read_dir(paths.container_records(uid)).into_iter().flatten().filter_map(Result::ok);
    let is_record = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.ends_with(".json") && !name.starts_with('.'));
    let mut containers: Vec<_> = entries
        .filter(|entry| is_record(&entry.file_name()))
        .filter_map(|entry| ContainerRecord::read(&entry.path()).ok())
        .map(|record| record.status)
        .collect();
    containers.sort_by_key(|container| (container.attempt, container.created_at));
    if sandbox.as_ref().is_some_and(|sandbox| sandbox.state == SandboxState::Lost) {
        for container in &mut containers {
            if let ContainerState::Running { started_at, .. } = container.state {
                container.state = ContainerState::Unknown { started_at: Some(started_at), found_at: Timestamp::now() };
            }
        }
    }
    if let Some(sandbox) = &mut sandbox {
        sandbox.shim_pid = None;
    }
    let given = resize::read(&paths.given(uid));
    ObservedPod { uid: uid.clone(), sandbox, containers, given, plugged: BTreeMap::new() }
}
