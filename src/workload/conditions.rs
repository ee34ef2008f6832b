//! Conditions of a workload, which keep their times while they stay as they are.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One condition, as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Its type.
    pub kind: String,
    /// True or false.
    pub status: bool,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
    /// The time of the last change of its reason or message.
    pub updated: Timestamp,
    /// The time of the last change of its status.
    pub changed: Timestamp,
}

/// The conditions of one workload, in the order in which they are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Conditions(Vec<Condition>);

impl Conditions {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Condition> {
        self.0.iter()
    }

    /// The one of this type.
    pub fn find(&self, kind: &str) -> Option<&Condition> {
        self.0.iter().find(|condition| condition.kind == kind)
    }

    /// Sets one. Returns true if its status or its reason is another one than before.
    pub fn set(&mut self, kind: &str, status: bool, reason: &str, message: &str, now: Timestamp) -> bool {
        let known = self.0.iter_mut().find(|condition| condition.kind == kind);
        let Some(known) = known else {
            let (kind, reason, message) = (kind.to_owned(), reason.to_owned(), message.to_owned());
            self.0.push(Condition { kind, status, reason, message, updated: now, changed: now });
            return true;
        };
        let is_other = known.status != status || known.reason != reason;
        if known.status != status {
            known.changed = now;
        }
        if is_other || known.message != message {
            known.updated = now;
        }
        known.status = status;
        reason.clone_into(&mut known.reason);
        message.clone_into(&mut known.message);
        is_other
    }

    /// Removes one.
    pub fn remove(&mut self, kind: &str) {
        self.0.retain(|condition| condition.kind != kind);
    }
}
