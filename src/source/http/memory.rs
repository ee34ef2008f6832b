//! What was fetched last, on disk: the body, the validators of a conditional request, signature and serial.
//!
//! Written when another body was found good, before it is reported. After a start an answer "not modified" then means this body, which is
//! reported again: whether the daemon ended before it was accepted does not matter, and what is wrong in it is told again. When the file
//! is lost or damaged, the next request is unconditional, and the next serial is taken as it is.
//!
//! A line of JSON, then the body. It may hold secrets: the file is root's alone.

use crate::sys::atomic_file;
use bytes::Bytes;
use reqwest::Url;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const FILE: &str = "fetched";
const VERSION: u32 = 1;
/// A body, and a line that is far smaller.
const MAX_BYTES: u64 = super::MAX_BODY + (1 << 20);

/// What was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    pub(super) body: Bytes,
    pub(super) validators: Validators,
    /// As it was found beside the body, where one is required.
    pub(super) signature: Option<String>,
    pub(super) serial: Option<u64>,
}

/// What a conditional request is made with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Validators {
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
}

impl Validators {
    pub(super) fn is_empty(&self) -> bool {
        let Self { etag, last_modified } = self;
        etag.is_none() && last_modified.is_none()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    version: u32,
    /// Hash of the URL, which may hold secrets.
    url: String,
    /// Hash of the body.
    sha256: String,
    validators: Validators,
    signature: Option<String>,
    serial: Option<u64>,
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(digest(&SHA256, bytes))
}

pub(super) fn path(state: &Path) -> PathBuf {
    state.join(FILE)
}

/// Reads what was fetched from `url`; `None` for nothing, and for what cannot be used.
pub(super) fn load(state: &Path, url: &Url) -> Option<Fetched> {
    let mut bytes = Vec::new();
    File::open(path(state)).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)).ok()?;
    let end = memchr::memchr(b'\n', &bytes)?;
    let head: Head = serde_json::from_slice(&bytes[..end]).ok()?;
    let body = Bytes::from(bytes).slice(end + 1..);
    let usable = head.version == VERSION && head.url == hash(url.as_str().as_bytes()) && head.sha256 == hash(&body);
    let Head { version: _, url: _, sha256: _, validators, signature, serial } = head;
    usable.then_some(Fetched { body, validators, signature, serial })
}

/// Replaces it durably.
pub(super) fn save(state: &Path, url: &Url, fetched: &Fetched) -> io::Result<()> {
    let Fetched { body, validators, signature, serial } = fetched;
    let head = Head {
        version: VERSION,
        url: hash(url.as_str().as_bytes()),
        sha256: hash(body),
        validators: validators.clone(),
        signature: signature.clone(),
        serial: *serial,
    };
    let mut bytes = serde_json::to_vec(&head)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(body);
    DirBuilder::new().recursive(true).mode(0o700).create(state)?;
    atomic_file::write_durable(&path(state), &bytes, 0o600)?;
    // The directory itself may be new.
    atomic_file::sync_parent(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn fetched() -> Fetched {
        Fetched {
            body: Bytes::from_static(b"kind: Pod\nx\n"),
            validators: Validators { etag: Some("\"a\"".into()), last_modified: None },
            signature: Some("-----BEGIN\n".into()),
            serial: Some(3),
        }
    }

    #[test]
    fn what_was_saved_is_loaded_for_the_same_url_only() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("sources/web");
        let (url, other) = ("https://h/a?token=geheim".parse().unwrap(), "https://h/b".parse().unwrap());
        assert_eq!(load(&state, &url), None);
        save(&state, &url, &fetched()).unwrap();
        assert_eq!(load(&state, &url), Some(fetched()));
        assert_eq!(load(&state, &other), None);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&state), mode(&path(&state))), (0o700, 0o600));
        assert!(!String::from_utf8(std::fs::read(path(&state)).unwrap()).unwrap().contains("geheim"));
    }

    #[test]
    fn what_is_damaged_is_as_if_it_were_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let url = "https://h/a".parse().unwrap();
        save(directory.path(), &url, &fetched()).unwrap();
        let whole = std::fs::read(path(directory.path())).unwrap();
        for end in 0..whole.len() {
            std::fs::write(path(directory.path()), &whole[..end]).unwrap();
            assert_eq!(load(directory.path(), &url), None, "cut at {end}");
        }
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        std::fs::write(path(directory.path()), flipped).unwrap();
        assert_eq!(load(directory.path(), &url), None);
    }
}
