//! Writing of bundles.

use super::archive::{BLOBS, DOCUMENT, SIGNATURE};
use super::document::BundleDocument;
use podstead_container::digest::Digest;
use podstead_image::document::{Descriptor, OCI_INDEX};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tar_core::EntryType;
use tar_core::builder::EntryBuilder;

const BLOCK: u64 = 512;

/// Content of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobSource {
    /// In memory.
    Bytes(Vec<u8>),
    /// In a file.
    File(PathBuf),
}

/// The parts of a bundle.
#[derive(Clone, Debug)]
pub struct BundleParts {
    /// The document.
    pub document: BundleDocument,
    /// The document as it is signed.
    pub bytes: Vec<u8>,
    /// Its signature.
    pub signature: Option<Vec<u8>>,
    /// Targets of the references of the images, and the manifests of signatures, for other readers of the layout.
    pub index: Vec<Descriptor>,
    /// Content by digest: documents, then the rest.
    pub blobs: Vec<(Digest, BlobSource)>,
}

/// Writes a tar archive with these entries, all of them files. Everything in it is root's and has the same time, so that the same files make the
/// same bytes.
pub fn write_tar<'a>(out: &mut impl Write, files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> io::Result<()> {
    for (name, content) in files {
        add(out, name, content.len() as u64, content)?;
    }
    out.write_all(&[0; 2 * BLOCK as usize])
}

/// Writes a bundle.
pub fn write_bundle(out: &mut impl Write, parts: &BundleParts) -> io::Result<()> {
    let BundleParts { document, bytes, signature, index, blobs } = parts;
    add(out, DOCUMENT, bytes.len() as u64, &bytes[..])?;
    if let Some(signature) = signature {
        add(out, SIGNATURE, signature.len() as u64, &signature[..])?;
    }
    let layout = json!({"imageLayoutVersion": "1.0.0"}).to_string();
    add(out, "oci-layout", layout.len() as u64, layout.as_bytes())?;
    let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": index}).to_string();
    add(out, "index.json", index.len() as u64, index.as_bytes())?;
    let sizes: BTreeMap<Digest, u64> = document.blobs.iter().map(|blob| (blob.digest, blob.size)).collect();
    for (digest, source) in blobs {
        let (name, size) = (format!("{BLOBS}{}", digest.hex()), sizes.get(digest).copied().unwrap_or_default());
        match source {
            BlobSource::Bytes(bytes) => add(out, &name, size, &bytes[..])?,
            BlobSource::File(path) => add(out, &name, size, open(path)?)?,
        }
    }
    out.write_all(&[0; 2 * BLOCK as usize])
}

fn open(path: &Path) -> io::Result<File> {
    File::open(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn add(out: &mut impl Write, name: &str, size: u64, content: impl Read) -> io::Result<()> {
    let mut entry = EntryBuilder::new_gnu();
    entry.path(name).entry_type(EntryType::Regular);
    entry.mode(0o644).map_err(io::Error::other)?;
    entry.uid(0).map_err(io::Error::other)?;
    entry.gid(0).map_err(io::Error::other)?;
    entry.size(size).map_err(io::Error::other)?;
    entry.mtime(0).map_err(io::Error::other)?;
    out.write_all(&entry.finish_bytes())?;
    if io::copy(&mut content.take(size), out)? != size {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{name} is shorter than {size} bytes")));
    }
    out.write_all(&[0; BLOCK as usize][..usize::try_from(size.next_multiple_of(BLOCK) - size).unwrap_or_default()])
}
