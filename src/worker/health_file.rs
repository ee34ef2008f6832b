//! Probe state of a pod's runs, saved below the run directory for the next daemon: a restart of the daemon does not make a container
//! unready, and a slow starter is not probed for liveness too early. On a tmpfs, and gone with the sandbox, as the runs are.

use super::health::RunState;
use podstead_container::{ContainerState, ObservedPod};
use podstead_pod::{ContainerId, PodUid};
use podstead_probe::ProbeKind;
use podstead_sys::atomic_file::write_atomic;
use podstead_sys::layout::Paths;
use podstead_sys_async::clock::Now;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::{fs, io};

/// Saved state of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    is_started: bool,
    is_ready: bool,
    /// Name of the probe that wants it stopped.
    #[serde(default)]
    failed: Option<String>,
}

/// Saved state of a pod.
pub(super) type KeptHealth = BTreeMap<ContainerId, Kept>;

/// The state to save.
pub(super) fn to_keep(health: &BTreeMap<ContainerId, RunState>) -> KeptHealth {
    let keep = |known: &RunState| Kept {
        is_started: known.is_started,
        is_ready: known.is_ready,
        failed: known.failed.map(|kind| kind.to_string()),
    };
    health.iter().map(|(id, known)| (id.clone(), keep(known))).collect()
}

/// Writes it.
pub(super) fn write(paths: &Paths, uid: &PodUid, health: &KeptHealth) -> io::Result<()> {
    write_atomic(&paths.pod_health(uid), &serde_json::to_vec(health)?, 0o600)
}

/// Reads what an earlier daemon kept of the runs that are still there. `None` if that cannot be read: then the age of a run decides.
pub(super) fn read(paths: &Paths, uid: &PodUid, observed: &ObservedPod, now: Now) -> Option<BTreeMap<ContainerId, RunState>> {
    let mut kept: KeptHealth = serde_json::from_slice(&fs::read(paths.pod_health(uid)).ok()?).ok()?;
    let runs = observed.containers.iter().filter_map(|run| {
        let since = match &run.state {
            ContainerState::Running { started_at, .. } => *started_at,
            ContainerState::Created | ContainerState::Exited { .. } | ContainerState::Unknown { .. } => run.created_at,
        };
        let Kept { is_started, is_ready, failed } = kept.remove(&run.id)?;
        let failed = ProbeKind::ALL.into_iter().find(|kind| failed.as_ref() == Some(&kind.to_string()));
        Some((run.id.clone(), RunState { is_started, is_ready, failed, ..RunState::unprobed(now.moment_of(since)) }))
    });
    Some(runs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use podstead_sys_async::clock::{Clock, Moment};

    #[test]
    fn what_is_kept_of_runs_that_are_there_is_read_again() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { run: root.path().to_owned(), ..Paths::default() };
        let uid = PodUid::new("uid");
        fs::create_dir_all(paths.pod_run(&uid)).unwrap();
        let now = Clock::starting_at(Timestamp::UNIX_EPOCH).now();
        let known = RunState { is_ready: false, failed: Some(ProbeKind::Liveness), ..RunState::unprobed(Moment::default()) };
        let health = BTreeMap::from([(ContainerId::new("gone"), known)]);
        let empty = ObservedPod { uid: uid.clone(), sandbox: None, containers: Vec::new(), given: BTreeMap::new() };
        assert_eq!(read(&paths, &uid, &empty, now), None);
        write(&paths, &uid, &to_keep(&health)).unwrap();
        assert_eq!(read(&paths, &uid, &empty, now), Some(BTreeMap::new()));
        fs::write(paths.pod_health(&uid), "{").unwrap();
        assert_eq!(read(&paths, &uid, &empty, now), None);
    }
}
