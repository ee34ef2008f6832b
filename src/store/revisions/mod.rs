//! Accepted revisions for operators: selection and differences. **Pure**.

mod diff;
mod select;

pub(super) use diff::diff;
pub(super) use select::select;

use super::AcceptedObject;
use super::last_good::Record;
use super::undelta::in_use;
use crate::history::{HistoryEntry, MAX_REFUSED, RefusedObject, RevisionState};
use podstead_manifest::{ObjectKey, Problem};
use podstead_pod::Severity;
use std::collections::BTreeSet;

/// The refused objects among the problems of a set, each once with its first fault; all of a file that could not be read count as one.
pub(super) fn refused(problems: &[Problem]) -> Vec<RefusedObject> {
    let mut seen: BTreeSet<(&str, Option<&ObjectKey>)> = BTreeSet::new();
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    let first = errors.filter(|problem| seen.insert((&problem.file, problem.object.as_ref())));
    first
        .map(|problem| RefusedObject {
            object: problem.object.as_ref().map(|key| format!("{} {}/{}", key.kind, key.namespace, key.name)),
            place: match problem.position {
                Some(position) => format!("{}:{}:{}", problem.file, position.line, position.column),
                None => problem.file.clone(),
            },
            message: match problem.field.as_str() {
                "" => problem.message.clone(),
                field => format!("{field}: {}", problem.message),
            },
        })
        .collect()
}

/// As [`refused`], with the state of the revision; `unchanged`: it left every object as it was. Fit for the disk: bounded, and
/// without words about the content of Secrets.
pub(super) fn outcome(problems: &[Problem], unchanged: impl FnOnce() -> bool) -> (RevisionState, Vec<RefusedObject>) {
    let mut refused = refused(problems);
    refused.truncate(MAX_REFUSED);
    for secret in refused.iter_mut().filter(|refused| refused.object.as_ref().is_some_and(|object| object.starts_with("Secret "))) {
        "podstead status shows the reason while the revision is in force".clone_into(&mut secret.message);
    }
    let state = if refused.is_empty() {
        RevisionState::Accepted
    } else if unchanged() {
        RevisionState::Refused
    } else {
        RevisionState::PartlyRefused
    };
    (state, refused)
}

/// A record as an entry of the history.
pub(super) fn entry(record: &Record, in_force: bool) -> HistoryEntry {
    let (mut pods, mut config_maps, mut secrets, mut claims, mut workloads, mut network_objects) = (0, 0, 0, 0, 0, 0);
    for object in in_use(&record.files).into_values() {
        match &object.object {
            AcceptedObject::Pod(_) => pods += 1,
            AcceptedObject::ConfigMap(_) => config_maps += 1,
            AcceptedObject::Secret(_) => secrets += 1,
            AcceptedObject::PersistentVolumeClaim(_) => claims += 1,
            AcceptedObject::Workload(_) => workloads += 1,
            AcceptedObject::Network(_) => network_objects += 1,
        }
    }
    HistoryEntry {
        number: record.stamp.number,
        revision: record.stamp.revision.clone(),
        accepted_at: record.stamp.accepted_at,
        restored_from: record.stamp.restored_from,
        state: match record.stamp.restored_from {
            Some(_) if record.stamp.state == RevisionState::Accepted => RevisionState::Restored,
            Some(_) | None => record.stamp.state,
        },
        refused: record.stamp.refused.clone(),
        commit: record.stamp.commit.clone(),
        in_force,
        pods,
        config_maps,
        secrets,
        claims,
        workloads,
        network_objects,
    }
}
