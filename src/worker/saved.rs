//! Files that a worker saves for the next daemon beside the pod record: a restart of the daemon is no change of a pod. None of them decides
//! more than what is shown and which check or hook is repeated; one that is missing or damaged counts as empty.
//!
//! * Conditions ([`Paths::pod_conditions`]): since when each is as it is. Written when one changes, without waiting for the disk: after a
//!   power cut the file may be an older one or none, and what it does not know has changed when the daemon started.
//! * Health ([`Paths::pod_health`]): probe results of runs, so that a container does not become unready, and a slow starter is not probed for
//!   liveness too early. On a tmpfs, and gone with the sandbox, as the runs are.
//! * Hook marks ([`Paths::hook_marks`]): progress of the hooks, one small file per container with a hook, in the same place. A hook whose
//!   end nobody saw is run again, and one that is done is not.

use super::state::health::RunState;
use super::state::{PostStart, Runs};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use podstead_container::{ContainerState, ObservedPod};
use podstead_pod::{ContainerId, ContainerName, PodUid};
use podstead_probe::ProbeKind;
use podstead_sys::atomic_file::write_atomic;
use podstead_sys::layout::Paths;
use podstead_sys_async::clock::Now;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// Runs `write` beside the turns. Returns true if the file is there; a failure is logged, with `what` as its name.
pub(super) async fn save(uid: &PodUid, what: &'static str, write: impl FnOnce() -> io::Result<()> + Send + 'static) -> bool {
    match tokio::task::spawn_blocking(write).await {
        Ok(Ok(())) => true,
        // The pod's directory is not there yet or any more: nothing is to be saved.
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => false,
        Ok(Err(error)) => {
            tracing::warn!(pod_uid = %uid, %error, "cannot save {what}");
            false
        }
        // The daemon is going.
        Err(_) => false,
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// One condition on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedCondition {
    r#type: String,
    status: String,
    since: Timestamp,
}

/// The part of a status that is saved: types, values and times of its conditions.
pub(super) fn conditions_to_save(status: &PodStatus) -> PodStatus {
    let save = |condition: &PodCondition| PodCondition {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        last_transition_time: condition.last_transition_time.clone(),
        ..PodCondition::default()
    };
    PodStatus { conditions: Some(status.conditions.iter().flatten().map(save).collect()), ..PodStatus::default() }
}

/// Writes what [`conditions_to_save`] returned.
pub(super) fn write_conditions(paths: &Paths, uid: &PodUid, conditions: &PodStatus) -> io::Result<()> {
    let save = |condition: &PodCondition| {
        let since = condition.last_transition_time.as_ref()?.0;
        Some(SavedCondition { r#type: condition.type_.clone(), status: condition.status.clone(), since })
    };
    let saved: Vec<SavedCondition> = conditions.conditions.iter().flatten().filter_map(save).collect();
    write_atomic(&paths.pod_conditions(uid), &serde_json::to_vec(&saved)?, 0o600)
}

/// Reads the conditions that an earlier daemon saved. `None` where they cannot be read.
pub(super) fn read_conditions(paths: &Paths, uid: &PodUid) -> Option<PodStatus> {
    let saved: Vec<SavedCondition> = read_json(&paths.pod_conditions(uid))?;
    let conditions = saved.into_iter().map(|SavedCondition { r#type, status, since }| PodCondition {
        type_: r#type,
        status,
        last_transition_time: Some(Time(since)),
        ..PodCondition::default()
    });
    Some(PodStatus { conditions: Some(conditions.collect()), ..PodStatus::default() })
}

/// Probe results of one run on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedRun {
    is_started: bool,
    is_ready: bool,
    /// Name of the probe that wants it stopped.
    #[serde(default)]
    failed: Option<String>,
}

/// Probe results of a pod on disk.
pub(super) type SavedHealth = BTreeMap<ContainerId, SavedRun>;

/// The probe results to save.
pub(super) fn health_to_save(runs: &Runs) -> SavedHealth {
    let save = |known: &RunState| SavedRun {
        is_started: known.is_started,
        is_ready: known.is_ready,
        failed: known.failed.map(|kind| kind.to_string()),
    };
    runs.iter().filter_map(|(id, run)| Some((id.clone(), save(run.health.known()?)))).collect()
}

/// Writes what [`health_to_save`] returned.
pub(super) fn write_health(paths: &Paths, uid: &PodUid, health: &SavedHealth) -> io::Result<()> {
    write_atomic(&paths.pod_health(uid), &serde_json::to_vec(health)?, 0o600)
}

/// Reads the probe results that an earlier daemon saved of the runs that are still there. `None` if they cannot be read: then the age of a
/// run decides.
pub(super) fn read_health(
    paths: &Paths,
    uid: &PodUid,
    observed: &ObservedPod,
    now: Now,
) -> Option<BTreeMap<ContainerId, RunState>> {
    let mut saved: SavedHealth = read_json(&paths.pod_health(uid))?;
    let runs = observed.containers.iter().filter_map(|run| {
        let since = match &run.state {
            ContainerState::Running { started_at, .. } => *started_at,
            ContainerState::Created | ContainerState::Exited { .. } | ContainerState::Unknown { .. } => run.created_at,
        };
        let SavedRun { is_started, is_ready, failed } = saved.remove(&run.id)?;
        let failed = ProbeKind::ALL.into_iter().find(|kind| failed.as_ref() == Some(&kind.to_string()));
        Some((run.id.clone(), RunState { is_started, is_ready, failed, ..RunState::unprobed(now.moment_of(since)) }))
    });
    Some(runs.collect())
}

/// Progress of the hooks of a container's newest run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum HookMark {
    /// Its postStart hook is not done.
    OwesPostStart(ContainerId),
    /// Its preStop hook is over.
    PreStopDone(ContainerId),
}

/// Saves a mark, or removes it. A failure does not stop anything: at worst the hook is run twice.
pub(super) async fn set_hook_mark(paths: &Paths, uid: &PodUid, container: &ContainerName, mark: Option<HookMark>) {
    let (directory, name) = (paths.hook_marks(uid), container.to_string());
    let write = move || {
        let path = directory.join(name);
        match mark {
            Some(mark) => {
                fs::create_dir_all(&directory)?;
                write_atomic(&path, &serde_json::to_vec(&mark)?, 0o600)
            }
            None => fs::remove_file(&path),
        }
    };
    save(uid, "the progress of a hook", write).await;
}

/// Applies the marks that an earlier daemon saved to the containers that still run.
pub(super) fn inherit_hook_marks(runs: &mut Runs, paths: &Paths, observed: &ObservedPod) {
    let is_running = |id: &ContainerId| {
        observed.containers.iter().any(|run| run.id == *id && matches!(run.state, ContainerState::Running { .. }))
    };
    for mark in read_hook_marks(paths, &observed.uid) {
        match mark {
            HookMark::OwesPostStart(id) if is_running(&id) => runs.set_post_start(&id, PostStart::Owed),
            HookMark::PreStopDone(id) if is_running(&id) => runs.set_pre_stop_done(&id),
            HookMark::OwesPostStart(_) | HookMark::PreStopDone(_) => {}
        }
    }
}

fn read_hook_marks(paths: &Paths, uid: &PodUid) -> Vec<HookMark> {
    let entries = fs::read_dir(paths.hook_marks(uid)).into_iter().flatten().flatten();
    entries.filter_map(|entry| read_json(&entry.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_sys_async::clock::{Clock, Moment};

    #[test]
    fn saved_conditions_are_read_again() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().to_owned(), ..Paths::default() };
        let uid = PodUid::new("uid");
        let condition = PodCondition {
            type_: "Ready".into(),
            status: "False".into(),
            reason: Some("ContainersNotReady".into()),
            last_transition_time: Some(Time("2026-01-02T03:04:05.678901Z".parse().unwrap())),
            ..PodCondition::default()
        };
        let status = PodStatus { conditions: Some(vec![condition]), phase: Some("Running".into()), ..PodStatus::default() };
        let saved = conditions_to_save(&status);
        assert_eq!(saved.phase, None);
        assert_eq!(write_conditions(&paths, &uid, &saved).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::create_dir_all(paths.pod(&uid)).unwrap();
        assert_eq!(read_conditions(&paths, &uid), None);
        write_conditions(&paths, &uid, &saved).unwrap();
        assert_eq!(read_conditions(&paths, &uid), Some(saved));
        // A power cut.
        fs::write(paths.pod_conditions(&uid), "").unwrap();
        assert_eq!(read_conditions(&paths, &uid), None);
    }

    #[test]
    fn health_of_present_runs_is_read_again() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { run: root.path().to_owned(), ..Paths::default() };
        let uid = PodUid::new("uid");
        fs::create_dir_all(paths.pod_run(&uid)).unwrap();
        let now = Clock::starting_at(Timestamp::UNIX_EPOCH).now();
        let saved = SavedRun { is_started: true, is_ready: false, failed: Some(ProbeKind::Liveness.to_string()) };
        let saved = BTreeMap::from([(ContainerId::new("gone"), saved)]);
        let empty = ObservedPod {
            uid: uid.clone(),
            sandbox: None,
            containers: Vec::new(),
            given: BTreeMap::new(),
            plugged: BTreeMap::new(),
        };
        assert_eq!(read_health(&paths, &uid, &empty, now), None);
        write_health(&paths, &uid, &saved).unwrap();
        assert_eq!(read_health(&paths, &uid, &empty, now), Some(BTreeMap::new()));
        fs::write(paths.pod_health(&uid), "{").unwrap();
        assert_eq!(read_health(&paths, &uid, &empty, now), None);
    }

    #[test]
    fn health_is_saved_of_probed_runs() {
        let mut runs = Runs::default();
        let (web, other) = (ContainerId::new("web"), ContainerId::new("other"));
        runs.set_post_start(&other, PostStart::Owed);
        let failed = RunState { failed: Some(ProbeKind::Liveness), ..RunState::unprobed(Moment::default()) };
        runs.entry(&web).health = super::super::state::health::Health::Known(failed);
        let saved = SavedRun { is_started: true, is_ready: true, failed: Some("Liveness".to_owned()) };
        assert_eq!(health_to_save(&runs), BTreeMap::from([(web, saved)]));
    }

    #[tokio::test]
    async fn last_hook_mark_counts_until_removed() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
        let (uid, web) = (PodUid::new("u"), ContainerName::new("web"));
        assert_eq!(read_hook_marks(&paths, &uid), []);
        for mark in [HookMark::OwesPostStart(ContainerId::new("1")), HookMark::PreStopDone(ContainerId::new("1"))] {
            set_hook_mark(&paths, &uid, &web, Some(mark.clone())).await;
            assert_eq!(read_hook_marks(&paths, &uid), [mark]);
        }
        set_hook_mark(&paths, &uid, &web, None).await;
        set_hook_mark(&paths, &uid, &web, None).await;
        assert_eq!(read_hook_marks(&paths, &uid), []);
    }
}
