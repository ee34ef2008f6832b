//! A bundle as a file: an uncompressed tar archive with the document first, its signature second, and an OCI layout behind them.
//!
//! Before the signature is verified, nothing but the first two entries is read; after that only content that the document names, each piece
//! compared with its digest.

use super::document::{BundleDocument, DocumentError, MAX_DOCUMENT};
use podstead_container::digest::{Digest, Hasher};
use podstead_image::compression::{is_gzip, is_zstd};
use podstead_image::tar::{Entry, EntryKind, Seekable, TarError, TarReader};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;

/// Name of the first entry.
pub const DOCUMENT: &str = "podstead-bundle.json";
/// Name of the second one.
pub const SIGNATURE: &str = "podstead-bundle.json.sig";
/// Folder of content, by digest.
pub const BLOBS: &str = "blobs/sha256/";
/// Largest signature, in bytes.
const MAX_SIGNATURE: u64 = 64 << 10;
/// Entries of an archive: those of content, and a few more.
const MAX_ENTRIES: usize = 30_000;

/// Reason why a file is no bundle, or a damaged one.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The disk.
    #[error("read the bundle")]
    Read(#[source] io::Error),
    /// Not a tar archive, or one that ends early.
    #[error("it is not a bundle, or it is truncated")]
    Tar(#[from] TarError),
    /// Compressed as a whole.
    #[error("it is compressed; a bundle is an uncompressed tar archive")]
    Compressed,
    /// Another archive.
    #[error("it is not a bundle: its first file is not {DOCUMENT}")]
    NoDocument,
    /// Its document or signature is larger than any.
    #[error("its {0} has more than {1} bytes")]
    TooLarge(&'static str, u64),
    /// The document.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// More entries than a bundle has.
    #[error("it has more than {MAX_ENTRIES} files")]
    TooMany,
    /// Content is missing.
    #[error("{0} is missing from it")]
    Missing(Digest),
    /// Content is not what the document says.
    #[error("its {0} is damaged: its digest does not match its name, or its size does not match the document")]
    Damaged(Digest),
}

impl ArchiveError {
    /// Reports whether the file itself is to blame, and not the disk that it is on.
    pub fn is_of_the_content(&self) -> bool {
        !matches!(self, Self::Read(_) | Self::Tar(TarError::Read(_)))
    }
}

/// The first two entries of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The document, checked.
    pub document: BundleDocument,
    /// The document as it is signed.
    pub bytes: Vec<u8>,
    /// Its signature, if there is one.
    pub signature: Option<Vec<u8>>,
}

impl Head {
    /// Digest of the document, which is the revision of the bundle.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }
}

/// Reads the first two entries. Blocks.
pub fn read_head(file: &File) -> Result<Head, ArchiveError> {
    let mut reader = reader(file)?;
    let Some(first) = reader.next_entry()? else { return Err(ArchiveError::NoDocument) };
    if !is_file(&first, DOCUMENT) {
        return Err(ArchiveError::NoDocument);
    }
    let bytes = content(&mut reader, &first, "document", MAX_DOCUMENT)?;
    let signature = match reader.next_entry()? {
        Some(second) if is_file(&second, SIGNATURE) => Some(content(&mut reader, &second, "signature", MAX_SIGNATURE)?),
        Some(_) | None => None,
    };
    Ok(Head { document: BundleDocument::parse(&bytes)?, bytes, signature })
}

/// Reads a small piece of content. Blocks.
pub fn read_blob(file: &File, document: &BundleDocument, digest: Digest) -> Result<Vec<u8>, ArchiveError> {
    let (name, size) = (format!("{BLOBS}{}", digest.hex()), document.size_of(digest));
    let mut reader = reader(file)?;
    for _ in 0..MAX_ENTRIES {
        let Some(entry) = reader.next_entry()? else { return Err(ArchiveError::Missing(digest)) };
        if is_file(&entry, &name) {
            if entry.size != size {
                return Err(ArchiveError::Damaged(digest));
            }
            let bytes = content(&mut reader, &entry, "manifests", size)?;
            return if Digest::of(&bytes) == digest { Ok(bytes) } else { Err(ArchiveError::Damaged(digest)) };
        }
    }
    Err(ArchiveError::TooMany)
}

/// Reads all content and compares it with the document. Blocks.
pub fn verify_content(file: &File, document: &BundleDocument) -> Result<(), ArchiveError> {
    let wanted = document.blobs.iter().filter(|blob| !blob.left_out);
    let mut wanted: BTreeMap<String, Digest> = wanted.map(|blob| (format!("{BLOBS}{}", blob.digest.hex()), blob.digest)).collect();
    let mut reader = reader(file)?;
    for _ in 0..MAX_ENTRIES {
        let Some(entry) = reader.next_entry()? else {
            return wanted.into_values().next().map_or(Ok(()), |digest| Err(ArchiveError::Missing(digest)));
        };
        let Some(digest) = wanted.remove(&*String::from_utf8_lossy(&entry.path)).filter(|_| is_content(&entry)) else { continue };
        let mut hasher = Hasher::default();
        loop {
            match reader.chunk(u64::MAX)? {
                [] => break,
                chunk => hasher.update(chunk),
            }
        }
        if entry.size != document.size_of(digest) || hasher.finish() != digest {
            return Err(ArchiveError::Damaged(digest));
        }
    }
    Err(ArchiveError::TooMany)
}

fn reader(mut file: &File) -> Result<TarReader<Seekable>, ArchiveError> {
    file.seek(SeekFrom::Start(0)).map_err(ArchiveError::Read)?;
    let mut start = [0; 4];
    let count = file.read_at(&mut start, 0).map_err(ArchiveError::Read)?;
    if is_gzip(&start[..count]) || is_zstd(&start[..count]) {
        return Err(ArchiveError::Compressed);
    }
    let shared = file.try_clone().map_err(ArchiveError::Read)?;
    Ok(TarReader::new(Seekable::new(shared).map_err(ArchiveError::Read)?))
}

fn is_content(entry: &Entry) -> bool {
    entry.kind == EntryKind::File && entry.sparse.is_none()
}

fn is_file(entry: &Entry, name: &str) -> bool {
    is_content(entry) && entry.path == name.as_bytes()
}

fn content(reader: &mut TarReader<Seekable>, entry: &Entry, what: &'static str, most: u64) -> Result<Vec<u8>, ArchiveError> {
    if entry.size > most {
        return Err(ArchiveError::TooLarge(what, most));
    }
    let mut bytes = Vec::new();
    loop {
        match reader.chunk(u64::MAX)? {
            [] => return Ok(bytes),
            chunk => bytes.extend_from_slice(chunk),
        }
    }
}
