//! One pass over an archive: documents are kept, layers are unpacked into staging.

use super::super::compression;
use super::super::layer::{Bounds, Expected, LayerError, StagedLayer, stage_layer};
use super::super::limits::{Bound, Limits, check};
use super::super::list_job::{Form, Listed, ListedKind, Listing};
use super::super::staging::Staging;
use super::ImportError;
use podstead_container::digest::{Digest, Hasher};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Largest document that is kept, and how much all of them may be.
const DOCUMENT_MAX: u64 = 8 << 20;
const DOCUMENTS_MAX: u64 = 64 << 20;
/// Bytes read at once.
const READ: usize = 256 << 10;

/// An archive file.
pub(super) struct Archive {
    path: PathBuf,
    seekable: bool,
}

/// Entries that a pass unpacks.
pub(super) enum Want {
    /// Nothing.
    Documents,
    /// All entries that look like a layer.
    Everything,
    /// These files.
    Paths(BTreeSet<String>),
    /// Nothing, and the digests of these files.
    Digests(BTreeSet<String>),
}

/// Result of a pass.
#[derive(Default)]
pub(super) struct Pass {
    pub(super) documents: Documents,
    pub(super) staged: BTreeMap<String, StagedLayer>,
}

/// The small files of an archive, and where the others are.
#[derive(Debug, Default)]
pub(super) struct Documents {
    /// Content by path.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Links by path: `docker save` links layers that images share.
    pub(super) links: BTreeMap<String, String>,
    /// Sizes of all files.
    pub(super) sizes: BTreeMap<String, u64>,
    /// Files that are compressed.
    compressed: BTreeSet<String>,
    /// Digests of compressed files: by what is in them they cannot be told apart.
    pub(super) digests: BTreeMap<String, Digest>,
}

impl Archive {
    pub(super) fn open(path: &Path) -> Result<Self, ImportError> {
        let mut file = open_file(path)?;
        let start = file.fill_buf().map_err(ImportError::Open)?;
        Ok(Self { path: path.to_owned(), seekable: !compression::is_gzip(start) && !compression::is_zstd(start) })
    }

    /// Returns true if reading the documents first costs little.
    pub(super) fn is_seekable(&self) -> bool {
        self.seekable
    }

    /// Adds the digests of compressed files, as `docker save` does not write them: of those that are not unpacked yet another pass finds them out.
    pub(super) fn add_digests(&self, pass: &mut Pass, staging: &Staging, bounds: &Bounds) -> Result<(), ImportError> {
        let known = |path: &String| pass.staged.get(path).map(|layer| layer.blob).or_else(|| digest_in(path));
        let (mut digests, mut unknown) = (BTreeMap::new(), BTreeSet::new());
        for path in &pass.documents.compressed {
            match known(path) {
                Some(digest) => drop(digests.insert(path.clone(), digest)),
                None => drop(unknown.insert(path.clone())),
            }
        }
        if !unknown.is_empty() {
            digests.extend(self.read(&Want::Digests(unknown), staging, bounds)?.documents.digests);
        }
        pass.documents.digests = digests;
        Ok(())
    }

    pub(super) fn read(&self, want: &Want, staging: &Staging, bounds: &Bounds) -> Result<Pass, ImportError> {
        let file = open_file(&self.path)?.into_inner();
        let form = if self.seekable { Form::Plain } else { Form::Compressed };
        let mut listing = staging.list(file, form, &bounds.limits)?;
        let mut pass = Pass::default();
        let mut kept = 0;
        let mut listed = Totals::default();
        while let Some(entry) = listing.next_entry()? {
            listed.add(&entry, &bounds.limits)?;
            let path = normal(&entry.path, "");
            match entry.kind {
                ListedKind::File => {}
                ListedKind::Symlink => {
                    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
                    pass.documents.links.insert(path.clone(), normal(&entry.link, directory));
                    continue;
                }
                ListedKind::HardLink => {
                    pass.documents.links.insert(path, normal(&entry.link, ""));
                    continue;
                }
                ListedKind::Other => continue,
            }
            pass.documents.sizes.insert(path.clone(), entry.size);
            let start = listing.start();
            let is_compressed = compression::is_gzip(start) || compression::is_zstd(start);
            if let Want::Digests(paths) = want {
                if paths.contains(&path) {
                    pass.documents.digests.insert(path, digest(&mut listing)?);
                }
                continue;
            }
            if is_compressed {
                pass.documents.compressed.insert(path.clone());
            }
            if is_document(start) && entry.size <= DOCUMENT_MAX {
                kept += entry.size;
                if kept > DOCUMENTS_MAX {
                    return Err(ImportError::Documents(DOCUMENTS_MAX));
                }
                let mut content = Vec::new();
                listing.read_to_end(&mut content).map_err(ImportError::Open)?;
                pass.documents.files.insert(path, content);
                continue;
            }
            let wanted = match want {
                Want::Documents | Want::Digests(_) => false,
                Want::Everything => is_compressed || compression::is_tar(start),
                Want::Paths(paths) => paths.contains(&path),
            };
            if wanted {
                let staged = staging.directory().map_err(LayerError::Stage);
                let expected = Expected { blob: digest_in(&path), diff_id: None };
                let staged = staged.and_then(|directory| stage_layer(&mut listing, directory, expected, bounds));
                pass.staged.insert(path.clone(), staged.map_err(|source| ImportError::Layer { path, source })?);
            }
        }
        Ok(pass)
    }
}

/// The digest of the present file's content.
fn digest(listing: &mut Listing) -> Result<Digest, ImportError> {
    let (mut hasher, mut buffer) = (Hasher::default(), vec![0; READ]);
    loop {
        match listing.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(count) => hasher.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ImportError::Open(error)),
        }
    }
}

/// Recorded entries of an archive.
#[derive(Default)]
struct Totals {
    entries: u64,
    path_memory: u64,
}

impl Totals {
    fn add(&mut self, entry: &Listed, limits: &Limits) -> Result<(), ImportError> {
        /// Of a map's node.
        const OVERHEAD: u64 = 96;
        self.entries += 1;
        check(Bound::Entries, self.entries, limits.entries)?;
        // Kept by path and size, or by path and target.
        self.path_memory += (entry.path.len() + entry.link.len()) as u64 + OVERHEAD;
        Ok(check(Bound::PathMemory, self.path_memory, limits.path_memory)?)
    }
}

fn open_file(path: &Path) -> Result<BufReader<File>, ImportError> {
    use std::os::unix::fs::OpenOptionsExt;
    // Opening a FIFO would wait for a writer.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(nonblocking).open(path).map_err(ImportError::Open)?;
    match file.metadata().map_err(ImportError::Open)?.is_file() {
        true => Ok(BufReader::with_capacity(READ, file)),
        false => Err(ImportError::NotAFile),
    }
}

fn is_document(start: &[u8]) -> bool {
    matches!(start.iter().find(|byte| !byte.is_ascii_whitespace()), Some(b'{' | b'['))
}

/// Digest that the path of a blob of an OCI layout promises.
fn digest_in(path: &str) -> Option<Digest> {
    Digest::from_hex(path.strip_prefix("blobs/sha256/")?).ok()
}

/// A path relative to the archive's root, seen from `directory`.
fn normal(path: &str, directory: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = if absolute { Vec::new() } else { directory.split('/').filter(|part| !part.is_empty()).collect() };
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_in_one_form() {
        for (path, directory, wanted) in [
            ("./a/b", "", "a/b"),
            ("../x/layer.tar", "abc", "x/layer.tar"),
            ("/a", "b", "a"),
            ("../../..", "a", ""),
            ("l", "a/b", "a/b/l"),
        ] {
            assert_eq!(normal(path, directory), wanted, "{path} in {directory}");
        }
    }
}
