//! Messages between the daemon and the job.

use super::super::format::Kind;
use super::super::protocol::ObjectId;
use podstead_job::confine::Rlimits;
use serde::{Deserialize, Serialize};
use std::error::Error;

/// Ids in one question at most: well below the limit of a message.
pub(super) const MAX_IDS: usize = 1000;
/// Bytes of the objects in one answer, unless the first object alone is larger.
pub(super) const MAX_ANSWER: u64 = 16 << 20;
/// The largest object.
pub(super) const MAX_OBJECT: u64 = 256 << 20;

/// Work of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Work {
    /// Index a pack in the directory. Its bytes come by the descriptor.
    Index,
    /// Answer questions about the objects in the directory. Their bytes go by the descriptor.
    Read,
    /// As `Read`, of files that are not podstead's.
    ReadForeign,
    /// Write a pack with a commit and its files to the descriptor.
    Pack(ObjectId),
}

/// The first message to the job. With it come the directory, and a stream of bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// The work.
    pub(super) work: Work,
    /// Limits of the process.
    pub(super) rlimits: Rlimits,
    /// The user that it becomes.
    pub(super) uid: u32,
    /// Its group.
    pub(super) gid: u32,
}

/// A question to a job that reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum Question {
    /// Kind and size of these objects.
    Headers(Vec<ObjectId>),
    /// These objects, in this order: all, or as many of the first ones as fit into an answer. Of one with more bytes than `each` only kind and size.
    Get {
        /// The objects.
        ids: Vec<ObjectId>,
        /// Size of the largest that is wanted.
        each: u64,
    },
    /// The history of these commits, in some order: what fits into an answer, without what was answered before. The first commit comes in any case.
    Walk {
        /// The commits.
        from: Vec<ObjectId>,
        /// Forget what was answered before.
        anew: bool,
    },
}

/// An object in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum Item {
    /// It is not here.
    Missing,
    /// Its kind and size; its content, if that was asked for, follows by the stream.
    Object(Kind, u64),
    /// Its kind and size; it is larger than what was asked for.
    Large(Kind, u64),
}

/// A message of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum Message {
    /// Steps that were done so far.
    Progress(u64),
    /// Name of the pack that was indexed; `None` for one without objects. The last message.
    Indexed(Option<String>),
    /// The pack was written. The last message.
    Packed,
    /// The answer to a question.
    Objects(Vec<Item>),
    /// It failed. The last message.
    Failed(Failed),
}

/// Reason why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Failed {
    /// Its kind.
    pub(super) kind: FailedKind,
    /// For a person.
    pub(super) text: String,
}

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FailedKind {
    /// The job could not give its rights up, and did not begin.
    Confine,
    /// The pack is not one.
    Pack,
    /// The pack is beyond a limit.
    TooMuch,
    /// The pack was cut off.
    Cut,
    /// The disk.
    Disk,
    /// The objects in the directory are damaged.
    Damaged,
    /// The job's own error.
    Panic,
}

/// The message of a failure: `error` and its causes.
pub(super) fn failed(kind: FailedKind, error: &(dyn Error + 'static)) -> Message {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    Message::Failed(Failed { kind, text })
}
