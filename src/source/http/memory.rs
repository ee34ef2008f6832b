//! The last fetched body on disk, with its validators for conditional requests, signature and serial.
//!
//! Written when another body was found good, before it is reported. After a start an answer "not modified" then means this body, which is
//! reported again: whether the daemon ended before it was accepted does not matter, and what is wrong in it is told again. When the file
//! is lost or damaged, the next request is unconditional, and the next serial is taken as it is.
//!
//! A line of JSON and the body, [sealed](crate::sealed) with this host's key as the last good set is. What cannot be opened is as if it were
//! not there.

use crate::sealed::Seal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use podstead_sys::atomic_file;
use podstead_sys::machine_key::MachineKey;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const FILE: &str = "fetched";
const SEAL: Seal = Seal { format: b"podstead fetched 1\n", purpose: "podstead fetched bodies at rest 1" };
/// A body, and a line that is far smaller.
const MAX_BYTES: u64 = super::MAX_BODY + (1 << 20);

/// A fetched body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    pub(super) body: Bytes,
    pub(super) validators: Validators,
    /// As it was found beside the body, where one is required.
    pub(super) signature: Option<Vec<u8>>,
    pub(super) serial: Option<u64>,
}

/// Validators of a conditional request.
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
    validators: Validators,
    /// In armour.
    signature: Option<String>,
    /// One that is not text, in base64.
    #[serde(default)]
    binary_signature: Option<String>,
    serial: Option<u64>,
}

pub(super) fn path(state: &Path) -> PathBuf {
    state.join(FILE)
}

/// Reads what was fetched from `url`; `None` for nothing, and for what cannot be used.
pub(super) fn load(state: &Path, url: &Url, key: &MachineKey) -> Option<Fetched> {
    let mut bytes = Vec::new();
    File::open(path(state)).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)).ok()?;
    let text = SEAL.open(key, url.as_str(), &bytes)?;
    let end = memchr::memchr(b'\n', &text)?;
    let Head { validators, signature, binary_signature, serial } = serde_json::from_slice(&text[..end]).ok()?;
    let signature = match (signature, binary_signature) {
        (Some(text), _) => Some(text.into_bytes()),
        (None, Some(binary)) => Some(STANDARD.decode(binary).ok()?),
        (None, None) => None,
    };
    Some(Fetched { body: Bytes::from(text).slice(end + 1..), validators, signature, serial })
}

/// Replaces it durably.
pub(super) fn save(state: &Path, url: &Url, key: &MachineKey, fetched: &Fetched) -> io::Result<()> {
    let Fetched { body, validators, signature, serial } = fetched;
    let (signature, binary_signature) = match signature.clone().map(String::from_utf8) {
        Some(Ok(text)) => (Some(text), None),
        Some(Err(error)) => (None, Some(STANDARD.encode(error.as_bytes()))),
        None => (None, None),
    };
    let mut text = serde_json::to_vec(&Head { validators: validators.clone(), signature, binary_signature, serial: *serial })?;
    text.push(b'\n');
    text.extend_from_slice(body);
    let bytes = SEAL.seal(key, url.as_str(), text)?;
    if !path(state).try_exists()? {
        atomic_file::make_directories(state, 0o700)?;
    }
    atomic_file::write_durable(&path(state), &bytes, 0o600)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const KEY: MachineKey = MachineKey::new([7; 32]);

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
        assert_eq!(load(&state, &url, &KEY), None);
        save(&state, &url, &KEY, &fetched()).unwrap();
        assert_eq!(load(&state, &url, &KEY), Some(fetched()));
        assert_eq!(load(&state, &other, &KEY), None);
        let binary = Fetched { signature: Some(vec![0x89, 1, 0xff]), ..fetched() };
        save(&state, &url, &KEY, &binary).unwrap();
        assert_eq!(load(&state, &url, &KEY), Some(binary));
        save(&state, &url, &KEY, &fetched()).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&state), mode(&path(&state))), (0o700, 0o600));
        let bytes = std::fs::read(path(&state)).unwrap();
        for secret in [b"geheim".as_slice(), b"kind: Pod"] {
            assert!(memchr::memmem::find(&bytes, secret).is_none(), "it is sealed");
        }
        assert_eq!(load(&state, &url, &MachineKey::new([8; 32])), None, "with another key it is unknown");
    }

    #[test]
    fn what_is_damaged_is_as_if_it_were_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let url = "https://h/a".parse().unwrap();
        save(directory.path(), &url, &KEY, &fetched()).unwrap();
        let whole = std::fs::read(path(directory.path())).unwrap();
        for end in 0..whole.len() {
            std::fs::write(path(directory.path()), &whole[..end]).unwrap();
            assert_eq!(load(directory.path(), &url, &KEY), None, "cut at {end}");
        }
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        std::fs::write(path(directory.path()), flipped).unwrap();
        assert_eq!(load(directory.path(), &url, &KEY), None);
    }
}
