//! The bytes of one file. **Pure**.

use super::changes::Changes;
use super::{LastGoodError, State};
use podstead_pod::SourceId;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// The format of a file with a whole set.
pub(super) const WHOLE: u32 = 2;

/// The format of a file with changes.
pub(super) const CHANGES: u32 = 3;

/// The first line; these three fields are the same in every version.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    version: u32,
    source: SourceId,
    /// Of the second line.
    pub(super) sha256: String,
    /// Number of the set that the changes are to; `None` in a file with a whole set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<u64>,
}

/// Content of a file.
#[derive(Debug)]
pub(super) enum Body {
    /// A whole set, with the hash of the file.
    Whole(Box<State>, String),
    /// Changes to another file.
    Changes(Box<Changes>),
}

/// A file to be written.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    /// See [`Head::sha256`].
    pub(super) sha256: String,
}

/// The file of `source` that holds `state`.
pub(super) fn encode(state: &State, source: &SourceId) -> io::Result<Encoded> {
    join(&serde_json::to_vec(state)?, WHOLE, source, None)
}

/// The file of `source` that holds `changes`.
pub(super) fn encode_changes(changes: &Changes, source: &SourceId) -> io::Result<Encoded> {
    join(&serde_json::to_vec(changes)?, CHANGES, source, Some(changes.base.number))
}

fn join(body: &[u8], version: u32, source: &SourceId, base: Option<u64>) -> io::Result<Encoded> {
    let sha256 = sha256(body);
    let mut bytes = serde_json::to_vec(&Head { version, source: source.clone(), sha256: sha256.clone(), base })?;
    bytes.push(b'\n');
    bytes.extend(body);
    Ok(Encoded { bytes, sha256 })
}

/// Parses the first line of a file, and nothing else.
pub(super) fn head(line: &[u8]) -> Option<Head> {
    serde_json::from_slice(line).ok()
}

/// Parses the output of [`encode`] or [`encode_changes`] for the same source; `path` is named in errors.
pub(super) fn decode(bytes: &[u8], path: &Path, source: &SourceId) -> Result<Body, LastGoodError> {
    let path = path.to_owned();
    let parse = |source| LastGoodError::Parse { path: path.clone(), source };
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (head, body) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    let head: Head = serde_json::from_slice(head).map_err(parse)?;
    if ![WHOLE, CHANGES].contains(&head.version) {
        return Err(LastGoodError::Version { path, found: head.version });
    }
    if head.source != *source {
        return Err(LastGoodError::OtherSource { path, found: head.source });
    }
    if head.sha256 != sha256(body) {
        return Err(LastGoodError::Damaged(path));
    }
    match head.version {
        CHANGES => serde_json::from_slice(body).map(Body::Changes).map_err(parse),
        _ => serde_json::from_slice(body).map(|state| Body::Whole(Box::new(state), head.sha256)).map_err(parse),
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(ring::digest::digest(&ring::digest::SHA256, bytes))
}
