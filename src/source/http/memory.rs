//! The last fetched body on disk, with its validators for conditional requests, signature and serial.
//!
//! Written when another body was found good, before it is reported. After a start an answer "not modified" then means this body, which is
//! reported again: whether the daemon ended before it was accepted does not matter, and what is wrong in it is told again. When the file
//! is lost or damaged, the next request is unconditional, and the next serial is taken as it is.
//!
//! A line that names the format, a nonce, and ChaCha20-Poly1305 ciphertext of a line of JSON and the body: it may hold Secrets, and is
//! sealed with this host's key as those of the last good set are. The URL is authenticated with it, so that what was fetched elsewhere
//! does not count. What cannot be opened is as if it were not there.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use podstead_sys::atomic_file;
use podstead_sys::machine_key::MachineKey;
use reqwest::Url;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const FILE: &str = "fetched";
const FORMAT: &[u8] = b"podstead fetched 1\n";
const PURPOSE: &str = "podstead fetched bodies at rest 1";
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

fn cipher(key: &MachineKey) -> io::Result<LessSafeKey> {
    let key = UnboundKey::new(&CHACHA20_POLY1305, &key.derive(PURPOSE)).map_err(|_| io::Error::other("set up the cipher"))?;
    Ok(LessSafeKey::new(key))
}

/// Reads what was fetched from `url`; `None` for nothing, and for what cannot be used.
pub(super) fn load(state: &Path, url: &Url, key: &MachineKey) -> Option<Fetched> {
    let mut bytes = Vec::new();
    File::open(path(state)).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)).ok()?;
    let (nonce, sealed) = bytes.strip_prefix(FORMAT)?.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut sealed = sealed.to_vec();
    let length = cipher(key).ok()?.open_in_place(nonce, Aad::from(url.as_str()), &mut sealed).ok()?.len();
    sealed.truncate(length);
    let end = memchr::memchr(b'\n', &sealed)?;
    let Head { validators, signature, binary_signature, serial } = serde_json::from_slice(&sealed[..end]).ok()?;
    let signature = match (signature, binary_signature) {
        (Some(text), _) => Some(text.into_bytes()),
        (None, Some(binary)) => Some(STANDARD.decode(binary).ok()?),
        (None, None) => None,
    };
    Some(Fetched { body: Bytes::from(sealed).slice(end + 1..), validators, signature, serial })
}

/// Replaces it durably.
pub(super) fn save(state: &Path, url: &Url, key: &MachineKey, fetched: &Fetched) -> io::Result<()> {
    let Fetched { body, validators, signature, serial } = fetched;
    let mut nonce = [0; NONCE_LEN];
    SystemRandom::new().fill(&mut nonce).map_err(|_| io::Error::other("get random bytes"))?;
    let (signature, binary_signature) = match signature.clone().map(String::from_utf8) {
        Some(Ok(text)) => (Some(text), None),
        Some(Err(error)) => (None, Some(STANDARD.encode(error.as_bytes()))),
        None => (None, None),
    };
    let mut text = serde_json::to_vec(&Head { validators: validators.clone(), signature, binary_signature, serial: *serial })?;
    text.push(b'\n');
    text.extend_from_slice(body);
    cipher(key)?
        .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(url.as_str()), &mut text)
        .map_err(|_| io::Error::other("encrypt the fetched body"))?;
    let bytes = [FORMAT, &nonce, &text].concat();
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
