//! The bytes of one file. **Pure**.

use super::{LastGoodError, State, VERSION};
use podstead_pod::SourceId;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// The first line; the same in every version.
#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    source: SourceId,
    /// Of the second line.
    sha256: String,
}

/// The file of `source` that holds `state`.
pub(super) fn encode(state: &State, source: &SourceId) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(state)?;
    let mut bytes = serde_json::to_vec(&Head { version: VERSION, source: source.clone(), sha256: sha256(&body) })?;
    bytes.push(b'\n');
    bytes.extend(body);
    Ok(bytes)
}

/// Parses the output of [`encode`] for the same source; `path` is named in errors.
pub(super) fn decode(bytes: &[u8], path: &Path, source: &SourceId) -> Result<State, LastGoodError> {
    let path = path.to_owned();
    let parse = |source| LastGoodError::Parse { path: path.clone(), source };
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (head, body) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    let head: Head = serde_json::from_slice(head).map_err(parse)?;
    if head.version != VERSION {
        return Err(LastGoodError::Version { path, found: head.version });
    }
    if head.source != *source {
        return Err(LastGoodError::OtherSource { path, found: head.source });
    }
    if head.sha256 != sha256(body) {
        return Err(LastGoodError::Damaged(path));
    }
    serde_json::from_slice(body).map_err(parse)
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(ring::digest::digest(&ring::digest::SHA256, bytes))
}
