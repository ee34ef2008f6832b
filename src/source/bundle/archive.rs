//! A bundle as a file: an uncompressed tar archive with the document first, its signature second, and an OCI layout behind them.
//!
//! Before the signature is verified, nothing but the first two entries is read; after that only content that the document names, each piece
//! compared with its digest. Entries are [listed](Lists) elsewhere: for the daemon by a job.

use super::document::{BundleDocument, DocumentError, MAX_DOCUMENT};
use podstead_container::digest::{Digest, Hasher};
use podstead_image::compression::{is_gzip, is_zstd};
use podstead_image::list_job::{ListError, Listed, ListedKind, Listing, Lists};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
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
/// Bytes read at once.
const READ: usize = 256 << 10;

/// Reason why a file is no bundle, or a damaged one.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The disk.
    #[error("read the bundle")]
    Read(#[source] io::Error),
    /// Not a tar archive, or one that ends early.
    #[error("it is not a bundle, or it is truncated")]
    List(#[source] ListError),
    /// It cannot be listed.
    #[error("list the files of the bundle")]
    Job(#[source] ListError),
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
        match self {
            Self::Read(_) => false,
            Self::Job(error) => error.is_of_the_content(),
            _ => true,
        }
    }
}

impl From<ListError> for ArchiveError {
    fn from(error: ListError) -> Self {
        match error {
            ListError::Read(error) => Self::Read(error),
            error @ ListError::Archive(_) => Self::List(error),
            error @ ListError::Job(_) => Self::Job(error),
        }
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
pub fn read_head(file: &File, lists: &dyn Lists) -> Result<Head, ArchiveError> {
    let mut listing = list(file, lists)?;
    let Some(first) = listing.next_entry()? else { return Err(ArchiveError::NoDocument) };
    if !is_file(&first, DOCUMENT) {
        return Err(ArchiveError::NoDocument);
    }
    let bytes = content(&mut listing, &first, "document", MAX_DOCUMENT)?;
    let signature = match listing.next_entry()? {
        Some(second) if is_file(&second, SIGNATURE) => Some(content(&mut listing, &second, "signature", MAX_SIGNATURE)?),
        Some(_) | None => None,
    };
    Ok(Head { document: BundleDocument::parse(&bytes)?, bytes, signature })
}

/// Reads a small piece of content. Blocks.
pub fn read_blob(file: &File, lists: &dyn Lists, document: &BundleDocument, digest: Digest) -> Result<Vec<u8>, ArchiveError> {
    let (name, size) = (format!("{BLOBS}{}", digest.hex()), document.size_of(digest));
    let mut listing = list(file, lists)?;
    for _ in 0..MAX_ENTRIES {
        let Some(entry) = listing.next_entry()? else { return Err(ArchiveError::Missing(digest)) };
        if is_file(&entry, &name) {
            if entry.size != size {
                return Err(ArchiveError::Damaged(digest));
            }
            let bytes = content(&mut listing, &entry, "manifests", size)?;
            return if Digest::of(&bytes) == digest { Ok(bytes) } else { Err(ArchiveError::Damaged(digest)) };
        }
    }
    Err(ArchiveError::TooMany)
}

/// Reads all content and compares it with the document. Blocks.
pub fn verify_content(file: &File, lists: &dyn Lists, document: &BundleDocument) -> Result<(), ArchiveError> {
    let wanted = document.blobs.iter().filter(|blob| !blob.left_out);
    let mut wanted: BTreeMap<String, Digest> = wanted.map(|blob| (format!("{BLOBS}{}", blob.digest.hex()), blob.digest)).collect();
    let (mut listing, mut buffer) = (list(file, lists)?, vec![0; READ]);
    for _ in 0..MAX_ENTRIES {
        let Some(entry) = listing.next_entry()? else {
            return wanted.into_values().next().map_or(Ok(()), |digest| Err(ArchiveError::Missing(digest)));
        };
        let Some(digest) = wanted.remove(&entry.path).filter(|_| is_content(&entry)) else { continue };
        let mut hasher = Hasher::default();
        loop {
            match listing.read(&mut buffer).map_err(ArchiveError::Read)? {
                0 => break,
                count => hasher.update(&buffer[..count]),
            }
        }
        if entry.size != document.size_of(digest) || hasher.finish() != digest {
            return Err(ArchiveError::Damaged(digest));
        }
    }
    Err(ArchiveError::TooMany)
}

fn list(file: &File, lists: &dyn Lists) -> Result<Listing, ArchiveError> {
    let mut start = [0; 4];
    let count = file.read_at(&mut start, 0).map_err(ArchiveError::Read)?;
    if is_gzip(&start[..count]) || is_zstd(&start[..count]) {
        return Err(ArchiveError::Compressed);
    }
    Ok(lists.list(file)?)
}

fn is_content(entry: &Listed) -> bool {
    entry.kind == ListedKind::File && !entry.is_sparse
}

fn is_file(entry: &Listed, name: &str) -> bool {
    is_content(entry) && entry.path == name
}

fn content(listing: &mut Listing, entry: &Listed, what: &'static str, most: u64) -> Result<Vec<u8>, ArchiveError> {
    if entry.size > most {
        return Err(ArchiveError::TooLarge(what, most));
    }
    let mut bytes = Vec::new();
    listing.read_to_end(&mut bytes).map_err(ArchiveError::Read)?;
    Ok(bytes)
}
