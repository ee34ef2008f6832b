//! Messages between the daemon and the job.

use super::super::limits::{Exceeded, Limits, Used};
use super::super::unpack::Unpacked;
use podstead_container::digest::Digest;
use podstead_job::confine::Rlimits;
use serde::{Deserialize, Serialize};

/// Bytes of names in one message at most, as JSON may write them: well below the limit of a message.
const NAMES: usize = 32 << 10;

/// Checksums in one message, each of which is at most 34 bytes as JSON.
const SUMS: usize = 1024;

/// The only message to the job. With it come the tree and the bytes of the layer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// Limits of a layer.
    pub(super) limits: Limits,
    /// Limits of the process.
    pub(super) rlimits: Rlimits,
    /// The user that it becomes.
    pub(super) uid: u32,
    /// Its group.
    pub(super) gid: u32,
}

/// A message of the job. Names are bytes, each of which is written as the character with its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum Message {
    /// Amounts taken so far.
    Progress(Used),
    /// Some of [`Unpacked::implicit`].
    Implicit(Vec<String>),
    /// Some of [`Unpacked::opaque`].
    Opaque(Vec<String>),
    /// Some of [`Unpacked::sums`].
    Sums(Vec<(u64, u32)>),
    /// The layer is unpacked. The last message.
    Done(Done),
    /// It is not. The last message.
    Failed(Failed),
}

/// Results of the work, without the lists that came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Done {
    /// Amounts taken in all.
    pub(super) used: Used,
    /// Digest of the archive inside.
    pub(super) diff_id: Digest,
    /// Entries of the archive.
    pub(super) entries: u64,
    /// Bytes of content of all files.
    pub(super) bytes: u64,
    /// Nothing below the layer shows.
    pub(super) opaque_root: bool,
    /// Extended attributes that were not stored.
    pub(super) lost_xattrs: u64,
}

/// Reason why the layer is not unpacked.
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
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum FailedKind {
    /// The job could not give its rights up, and did not begin.
    Confine,
    /// The layer is beyond a limit.
    Limit(Exceeded),
    /// Its compression.
    Decompress,
    /// Its archive.
    Unpack,
    /// The disk is full.
    Full,
    /// The job's own error.
    Panic,
}

/// The messages that tell of a result.
pub(super) fn messages(unpacked: Unpacked, diff_id: Digest, used: Used) -> Vec<Message> {
    let Unpacked { entries, bytes, implicit, opaque, opaque_root, lost_xattrs, sums } = unpacked;
    let mut messages: Vec<Message> = parts(implicit).into_iter().map(Message::Implicit).collect();
    messages.extend(parts(opaque).into_iter().map(Message::Opaque));
    let sums: Vec<(u64, u32)> = sums.into_iter().collect();
    messages.extend(sums.chunks(SUMS).map(|sums| Message::Sums(sums.to_vec())));
    messages.push(Message::Done(Done { used, diff_id, entries, bytes, opaque_root, lost_xattrs }));
    messages
}

fn parts(names: Vec<Vec<u8>>) -> Vec<Vec<String>> {
    let mut parts = Vec::new();
    let (mut part, mut length) = (Vec::new(), 0);
    for name in names {
        length += name.len();
        part.push(name.into_iter().map(char::from).collect());
        if length >= NAMES || part.len() >= NAMES / 16 {
            parts.push(std::mem::take(&mut part));
            length = 0;
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// A name as bytes; `None` for characters that stand for none.
pub(super) fn name_of(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_job::frame::{FROM_JOB, encode};
    use std::collections::BTreeMap;

    #[test]
    fn all_names_fit_into_messages_and_come_back() {
        let long: Vec<Vec<u8>> = (0..300_u32).map(|number| [number.to_string().as_bytes(), &[1; 4000]].concat()).collect();
        let all = [long, (0..=255_u8).map(|byte| vec![byte]).collect(), vec![b"a".to_vec(); 10_000]].concat();
        let unpacked = Unpacked { implicit: all.clone(), ..Unpacked::default() };
        let sent = messages(unpacked, Digest::of(b""), Used::default());
        let mut found = Vec::new();
        for message in &sent {
            encode(message, FROM_JOB).unwrap();
            if let Message::Implicit(names) = message {
                found.extend(names.iter().map(|name| name_of(name).unwrap()));
            }
        }
        assert_eq!(found, all);
        let sums: BTreeMap<u64, u32> = (0..5000).map(|number| (u64::MAX - number, u32::MAX)).collect();
        let sent = messages(Unpacked { sums, ..Unpacked::default() }, Digest::of(b""), Used::default());
        assert!(sent.iter().all(|message| encode(message, FROM_JOB).is_ok_and(|bytes| bytes.len() <= NAMES * 2)));
        assert_eq!(name_of("\u{100}"), None);
    }
}
