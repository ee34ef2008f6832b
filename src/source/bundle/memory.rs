//! The last bundle on disk: its document, its signature and its manifests.
//!
//! Written when the images of another bundle are in the store, before it is reported. After a start it is verified and reported again, without the
//! medium. It is also the record that no bundle with a lower serial may follow. When the file is lost or damaged, the last good set stays, and the
//! next bundle is taken as it is.
//!
//! A line of JSON and the manifests, [sealed](crate::sealed) with this host's key as the last good set is. What cannot be opened is as if it were
//! not there.

use super::document::{BundleDocument, MAX_DOCUMENT, MAX_MANIFESTS};
use crate::sealed::Seal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use podstead_container::digest::Digest;
use podstead_sys::atomic_file;
use podstead_sys::machine_key::MachineKey;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const FILE: &str = "bundle";
const SEAL: Seal = Seal { format: b"podstead bundle 1\n", purpose: "podstead bundles at rest 1" };
/// The origin of the file: the directory of the source says the rest.
const ORIGIN: &str = "bundle";
/// Manifests, and a line with document and signature.
const MAX_BYTES: u64 = MAX_MANIFESTS + 2 * MAX_DOCUMENT;

/// A bundle that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// The document as it is signed.
    pub(super) document: Vec<u8>,
    pub(super) signature: Option<Vec<u8>>,
    /// The archive of manifests.
    pub(super) manifests: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    document: String,
    signature: Option<String>,
}

pub(super) fn path(state: &Path) -> PathBuf {
    state.join(FILE)
}

/// Reads the last bundle; `None` for nothing, and for what cannot be used. Blocks.
pub(super) fn load(state: &Path, key: &MachineKey) -> Option<(Kept, BundleDocument)> {
    let mut bytes = Vec::new();
    File::open(path(state)).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)).ok()?;
    let text = SEAL.open(key, ORIGIN, &bytes)?;
    let end = memchr::memchr(b'\n', &text)?;
    let Line { document, signature } = serde_json::from_slice(&text[..end]).ok()?;
    let signature = signature.map(|text| STANDARD.decode(text)).transpose().ok()?;
    let kept = Kept { document: STANDARD.decode(document).ok()?, signature, manifests: text[end + 1..].to_vec() };
    let document = BundleDocument::parse(&kept.document).ok()?;
    (document.manifests == Digest::of(&kept.manifests)).then_some((kept, document))
}

/// Replaces it durably. Blocks.
pub(super) fn save(state: &Path, key: &MachineKey, kept: &Kept) -> io::Result<()> {
    let Kept { document, signature, manifests } = kept;
    let line = Line { document: STANDARD.encode(document), signature: signature.as_ref().map(|bytes| STANDARD.encode(bytes)) };
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    text.extend_from_slice(manifests);
    let bytes = SEAL.seal(key, ORIGIN, text)?;
    if !path(state).try_exists()? {
        atomic_file::make_directories(state, 0o700)?;
    }
    atomic_file::write_durable(&path(state), &bytes, 0o600)
}
