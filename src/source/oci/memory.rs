//! The last delivered artifact on disk, with its manifest and signatures.
//!
//! Written when another artifact was found good, before it is reported. After a start the same digest then means this artifact, which is
//! verified and reported again: whether the daemon ended before it was accepted does not matter, and what is wrong in it is told again. It is
//! also the record that no lower version may follow. When the file is lost or damaged, the artifact is fetched again, and the next version
//! is taken as it is.
//!
//! A line of JSON and the layer, [sealed](crate::sealed) with this host's key as the last good set is. What cannot be opened is as if it were
//! not there.

use crate::sealed::Seal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use podstead_sys::atomic_file;
use podstead_sys::machine_key::MachineKey;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const FILE: &str = "artifact";
const SEAL: Seal = Seal { format: b"podstead artifact 1\n", purpose: "podstead fetched artifacts at rest 1" };
/// A layer, and a line that is smaller: a manifest and its signatures.
const MAX_BYTES: u64 = super::options::MAX_LAYER + (16 << 20);

/// A delivered artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) label: Label,
    /// As the registry has it: its digest is the digest of the artifact.
    pub(super) manifest: Bytes,
    /// Its signatures, where these are required.
    pub(super) signatures: Option<Vec<u8>>,
    pub(super) layer: Bytes,
}

/// The name that led to an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Label {
    /// Repository, and the artifact to follow, in words.
    pub(super) what: String,
    /// The tag, unless a digest is followed.
    pub(super) tag: Option<String>,
    /// Its version, where versions are followed.
    pub(super) version: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    label: Label,
    manifest: String,
    signatures: Option<String>,
}

pub(super) fn path(state: &Path) -> PathBuf {
    state.join(FILE)
}

/// Reads what was delivered from `repository`; `None` for nothing, and for what cannot be used. Blocks.
pub(super) fn load(state: &Path, repository: &str, key: &MachineKey) -> Option<Kept> {
    let mut bytes = Vec::new();
    File::open(path(state)).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)).ok()?;
    let text = SEAL.open(key, repository, &bytes)?;
    let end = memchr::memchr(b'\n', &text)?;
    let Head { label, manifest, signatures } = serde_json::from_slice(&text[..end]).ok()?;
    let signatures = signatures.map(|text| STANDARD.decode(text)).transpose().ok()?;
    let manifest = STANDARD.decode(manifest).ok()?.into();
    Some(Kept { label, manifest, signatures, layer: Bytes::from(text).slice(end + 1..) })
}

/// Replaces it durably. Blocks.
pub(super) fn save(state: &Path, repository: &str, key: &MachineKey, kept: &Kept) -> io::Result<()> {
    let Kept { label, manifest, signatures, layer } = kept;
    let signatures = signatures.as_ref().map(|record| STANDARD.encode(record));
    let mut text = serde_json::to_vec(&Head { label: label.clone(), manifest: STANDARD.encode(manifest), signatures })?;
    text.push(b'\n');
    text.extend_from_slice(layer);
    let bytes = SEAL.seal(key, repository, text)?;
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

    fn kept() -> Kept {
        let label = Label { what: "a version in 1".into(), tag: Some("v1.2.0".into()), version: Some("1.2.0".into()) };
        let (manifest, layer) = (Bytes::from_static(b"{\n\"schemaVersion\": 2}"), Bytes::from_static(b"\x1f\x8b\nkind: Pod"));
        Kept { label, manifest, signatures: Some(vec![1, 0xff]), layer }
    }

    #[test]
    fn artifact_is_loaded_for_its_repository_only() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("sources/fleet");
        assert_eq!(load(&state, "oci://r.lan/a", &KEY), None);
        save(&state, "oci://r.lan/a", &KEY, &kept()).unwrap();
        assert_eq!(load(&state, "oci://r.lan/a", &KEY), Some(kept()));
        assert_eq!(load(&state, "oci://r.lan/b", &KEY), None);
        assert_eq!(load(&state, "oci://r.lan/a", &MachineKey::new([8; 32])), None);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&state), mode(&path(&state))), (0o700, 0o600));
        let bytes = std::fs::read(path(&state)).unwrap();
        assert!(memchr::memmem::find(&bytes, b"kind: Pod").is_none(), "it is sealed");
    }

    #[test]
    fn damaged_artifact_is_as_if_absent() {
        let directory = tempfile::tempdir().unwrap();
        save(directory.path(), "r", &KEY, &kept()).unwrap();
        let whole = std::fs::read(path(directory.path())).unwrap();
        for end in 0..whole.len() {
            std::fs::write(path(directory.path()), &whole[..end]).unwrap();
            assert_eq!(load(directory.path(), "r", &KEY), None, "cut at {end}");
        }
    }
}
