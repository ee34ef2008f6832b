//! Since when a pod's conditions are as they are, kept in its directory for the next daemon: a restart of the daemon is no change of a pod.
//!
//! Written when a condition changes, which is an event of the pod, and without waiting for the disk: after a power cut the file may be an
//! older one or none, and what it does not know has changed when the daemon started.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use podstead_pod::PodUid;
use podstead_sys::atomic_file::write_atomic;
use podstead_sys::layout::Paths;
use serde::{Deserialize, Serialize};
use std::{fs, io};

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    r#type: String,
    status: String,
    since: Timestamp,
}

/// The part of a status that is saved: types, values and times of its conditions.
pub(super) fn to_keep(status: &PodStatus) -> PodStatus {
    let keep = |condition: &PodCondition| PodCondition {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        last_transition_time: condition.last_transition_time.clone(),
        ..PodCondition::default()
    };
    PodStatus { conditions: Some(status.conditions.iter().flatten().map(keep).collect()), ..PodStatus::default() }
}

/// Writes what [`to_keep`] made.
pub(super) fn write(paths: &Paths, uid: &PodUid, kept: &PodStatus) -> io::Result<()> {
    let keep = |condition: &PodCondition| {
        let since = condition.last_transition_time.as_ref()?.0;
        Some(Kept { r#type: condition.type_.clone(), status: condition.status.clone(), since })
    };
    let kept: Vec<Kept> = kept.conditions.iter().flatten().filter_map(keep).collect();
    write_atomic(&paths.pod_conditions(uid), &serde_json::to_vec(&kept)?, 0o600)
}

/// Reads what an earlier daemon kept. `None` where that cannot be read.
pub(super) fn read(paths: &Paths, uid: &PodUid) -> Option<PodStatus> {
    let kept: Vec<Kept> = serde_json::from_slice(&fs::read(paths.pod_conditions(uid)).ok()?).ok()?;
    let conditions = kept.into_iter().map(|Kept { r#type, status, since }| PodCondition {
        type_: r#type,
        status,
        last_transition_time: Some(Time(since)),
        ..PodCondition::default()
    });
    Some(PodStatus { conditions: Some(conditions.collect()), ..PodStatus::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_what_is_damaged_is_nothing() {
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
        let kept = to_keep(&status);
        assert_eq!(kept.phase, None);
        assert_eq!(write(&paths, &uid, &kept).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::create_dir_all(paths.pod(&uid)).unwrap();
        assert_eq!(read(&paths, &uid), None);
        write(&paths, &uid, &kept).unwrap();
        assert_eq!(read(&paths, &uid), Some(kept));
        // A power cut.
        fs::write(paths.pod_conditions(&uid), "").unwrap();
        assert_eq!(read(&paths, &uid), None);
    }
}
