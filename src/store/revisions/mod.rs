//! Accepted revisions as people see them: which one is meant, and what is different. **Pure**.

mod diff;
mod select;

pub(super) use diff::diff;
pub(super) use select::select;

use super::AcceptedObject;
use super::last_good::Record;
use super::undelta::in_use;
use crate::source::history::HistoryEntry;

/// A record as an entry of the history.
pub(super) fn entry(record: &Record, in_force: bool) -> HistoryEntry {
    let (mut pods, mut config_maps, mut secrets, mut claims) = (0, 0, 0, 0);
    for object in in_use(&record.files).into_values() {
        match &object.object {
            AcceptedObject::Pod(_) => pods += 1,
            AcceptedObject::ConfigMap(_) => config_maps += 1,
            AcceptedObject::Secret(_) => secrets += 1,
            AcceptedObject::PersistentVolumeClaim(_) => claims += 1,
        }
    }
    HistoryEntry {
        number: record.stamp.number,
        revision: record.stamp.revision.clone(),
        accepted_at: record.stamp.accepted_at,
        restored_from: record.stamp.restored_from,
        in_force,
        pods,
        config_maps,
        secrets,
        claims,
    }
}
