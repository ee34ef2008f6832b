//! Accepted revisions of a source: history, diff, rollback, suspend.

pub use crate::revision_error::{RecordFault, RevisionError};
use jiff::Timestamp;
use podstead_artifact::CommitSummary;
use podstead_pod::Revision;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Reason why a source keeps its set in force, whatever it delivers. Survives restarts; ends with `podstead resume`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// Kind of the hold.
    pub kind: HoldKind,
    /// Start of the hold.
    pub since: Timestamp,
    /// The command that did it.
    pub command: String,
}

/// Kind of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HoldKind {
    /// It stays at what was in force then.
    Suspended,
    /// An earlier revision was put in force.
    RolledBack,
}

impl HoldKind {
    /// `suspended` or `rolled back`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Suspended => "suspended",
            Self::RolledBack => "rolled back",
        }
    }
}

/// Refused objects that are recorded with a revision.
pub const MAX_REFUSED: usize = 50;

/// Result of accepting a revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RevisionState {
    /// All of it.
    #[default]
    Accepted,
    /// Some objects were refused; their last good versions stayed.
    PartlyRefused,
    /// Nothing changed, because everything that was new in it was refused.
    Refused,
    /// All of it, when it was put in force again by a rollback.
    Restored,
}

impl RevisionState {
    /// `accepted`, `partly rejected`, `rejected`, `restored`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::PartlyRefused => "partly rejected",
            Self::Refused => "rejected",
            Self::Restored => "restored",
        }
    }
}

/// An object of a revision that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedObject {
    /// Kind, namespace and name; nothing where the file could not be read so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// `FILE:LINE:COLUMN` of the first fault.
    pub place: String,
    /// The first fault.
    pub message: String,
}

/// One accepted revision.
///
/// One type because it is plain data of one line of the history, on disk and in answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Counts what was put in force, from 1; never used twice.
    pub number: u64,
    /// The revision.
    pub revision: Revision,
    /// Time at which it was put in force.
    pub accepted_at: Timestamp,
    /// The entry whose content it has, where it was put in force by going back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<u64>,
    /// Result of accepting the revision.
    #[serde(default)]
    pub state: RevisionState,
    /// The objects of the revision that were refused, the first [`MAX_REFUSED`] of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedObject>,
    /// The commit's subject and author, for a git source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitSummary>,
    /// True if it is in force.
    pub in_force: bool,
    /// Number of pods in it.
    pub pods: usize,
    /// Number of config maps in it.
    pub config_maps: usize,
    /// Number of secrets in it.
    pub secrets: usize,
    /// Number of claims of persistent volumes in it.
    #[serde(default)]
    pub claims: usize,
    /// Number of Deployments, StatefulSets, Jobs and the like.
    #[serde(default)]
    pub workloads: usize,
    /// Number of Services and other objects that say how pods are reached.
    #[serde(default)]
    pub network_objects: usize,
}

impl HistoryEntry {
    /// Number of objects in it.
    pub fn objects(&self) -> usize {
        self.pods + self.config_maps + self.secrets + self.claims + self.workloads + self.network_objects
    }
}

/// Accepted revisions of a source that are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// Newest first; the first one is in force.
    pub revisions: Vec<HistoryEntry>,
    /// Kept earlier revisions that cannot be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// Difference between an earlier revision and the one in force. Without the content of Secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionDiff {
    /// The earlier revision.
    pub from: HistoryEntry,
    /// The revision in force.
    pub to: HistoryEntry,
    /// By kind, namespace and name.
    pub objects: Vec<ObjectChange>,
}

/// One object that is not the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectChange {
    /// `Pod` and so on.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name, without the host's.
    pub name: String,
    /// The change.
    pub change: Change,
}

/// Change of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// It is in force and was not there.
    Added,
    /// It was there and is not in force.
    Removed,
    /// These fields differ.
    Changed(Vec<FieldChange>),
}

/// One field that is not the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// The field, e.g. `spec.containers[web].image`: items of lists by their name where they have one.
    pub field: String,
    /// Earlier value; none if the field was not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Present value; none if the field is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The effect of a resume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resumed {
    /// The hold that ended.
    #[serde(flatten)]
    pub hold: Hold,
    /// The difference between the set in force before and the one after; nothing where none was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<RevisionDiff>,
}

/// Result of a rollback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolledBack {
    /// The revision that is in force now.
    pub revision: Revision,
    /// Pods in it.
    pub pods: usize,
    /// The revision that was in force before.
    pub before: Revision,
    /// That it stays so.
    pub hold: Hold,
}
