//! The files of an artifact: read from its archive in memory, by the rules for the tree of a commit. Nothing is unpacked on the disk.
//!
//! The archive is read twice: once for the names, which decide what is needed, then for the content of that. Limits hold for everything
//! that is decompressed.

use crate::around::gather;
use crate::tree_rules::{MAX_DEPTH, ReadLimits, TreeFiles, is_lfs_pointer, is_manifest, resolved};
use podstead_artifact::{FileContent, is_kustomization};
use podstead_image::Limits;
use podstead_image::compression::Decoder;
use podstead_image::tar::{Entry, EntryKind, Streamed, TarError, TarReader};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

/// Most bytes of an archive after decompression: manifests, and files beside them that no source reads.
const UNPACKED_MAX: u64 = 256 << 20;
/// Most directories outside of the source's path that its kustomizations may refer to.
const DIRECTORIES_MAX: usize = 100;
/// Most bytes of all names.
const NAMES_MAX: usize = 32 << 20;
/// Largest window of zstd: what its levels up to 19 need.
const ZSTD_WINDOW: u64 = 8 << 20;

const SYMLINK: &str = "is a symlink; symlinks are not followed, put the file itself into the artifact";
const HARD_LINK: &str = "is a hard link; hard links are not followed, put the file itself into the artifact";
const SPARSE: &str = "is a sparse file";
const IS_LFS: &str = "is a Git LFS pointer; LFS objects are not fetched, put the file itself into the artifact";

/// Reason why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TreeError {
    /// The archive itself.
    #[error("read the archive of the artifact")]
    Archive(#[from] TarError),
    /// It does not begin.
    #[error("decompress the archive of the artifact")]
    Decompress(#[source] io::Error),
    /// An entry that an artifact cannot have.
    #[error("entry {path:?} of the artifact {reason}")]
    Entry {
        /// Its path.
        path: String,
        /// The reason.
        reason: &'static str,
    },
    /// Nothing in it.
    #[error("the archive of the artifact is empty; to run no pods, push a List without items")]
    Empty,
    /// More than a source reads.
    #[error("the artifact has {0}")]
    Limit(String),
    /// The configured path.
    #[error("the artifact has no {0:?} (path)")]
    NoPath(String),
    /// The configured path leads through something else than directories.
    #[error("{path:?} of the artifact {reason} (path)")]
    BadPath {
        /// The part of the path.
        path: String,
        /// The reason.
        reason: &'static str,
    },
}

/// Reads the files below `path` (`/` between components, none at the ends; empty for the whole artifact) of a layer, by path relative to
/// it. Empty when the path is there without manifests.
pub(crate) fn read(layer: &[u8], path: &str, limits: &ReadLimits) -> Result<TreeFiles, TreeError> {
    let names = Names::of(layer, limits)?;
    names.check(path)?;
    let mut plan = Plan::new(limits);
    if let Some(Kind::File { size }) = names.0.get(path) {
        let name = path.rsplit('/').next().unwrap_or(path);
        plan.file(name.to_owned(), path, *size)?;
        let (files, _) = plan.take(layer)?;
        return Ok(TreeFiles { files, ..TreeFiles::default() });
    }
    let others = plan.directory(&names, path, path)?;
    if !plan.files.keys().any(|file| is_kustomization(file.rsplit('/').next().unwrap_or(file))) {
        let (files, _) = plan.take(layer)?;
        return Ok(TreeFiles { files, ..TreeFiles::default() });
    }
    others.into_iter().for_each(|(name, full, kind)| plan.other(name, full, kind));
    let (files, beside) = plan.take(layer)?;
    let mut directories = 0;
    let around = gather(path, &files, |directory| {
        directories += 1;
        // Each one is another walk through the archive.
        if directories > DIRECTORIES_MAX {
            let what = format!("kustomizations that refer to more than {DIRECTORIES_MAX} directories outside of the path");
            return Err(TreeError::Limit(what));
        }
        let others = plan.directory(&names, directory, "")?;
        others.into_iter().for_each(|(name, full, kind)| plan.other(name, full, kind));
        let (mut files, mut beside) = plan.take(layer)?;
        files.append(&mut beside);
        Ok(files)
    })?;
    Ok(TreeFiles { files, beside, around })
}

type Files = BTreeMap<String, FileContent>;

/// The type of a name in an archive, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Directory,
    File {
        size: u64,
    },
    /// A file that is not read, for this reason.
    Unreadable(&'static str),
    /// A symlink to this target, as written.
    Symlink(String),
}

/// All names of an archive, with directories that have no entry of their own.
struct Names(BTreeMap<String, Kind>);

impl Names {
    fn of(layer: &[u8], limits: &ReadLimits) -> Result<Self, TreeError> {
        let mut names = BTreeMap::new();
        let mut reader = reader(layer)?;
        let (mut is_empty, mut bytes) = (true, 0);
        while let Some(entry) = reader.next_entry()? {
            is_empty = false;
            let path = clean(&entry)?;
            let refused = |reason| TreeError::Entry { path: path.clone(), reason };
            let kind = match entry.kind {
                EntryKind::Directory => Kind::Directory,
                EntryKind::File if entry.sparse.is_some() => Kind::Unreadable(SPARSE),
                EntryKind::File => Kind::File { size: entry.size },
                EntryKind::Symlink => Kind::Symlink(String::from_utf8_lossy(&entry.link).into_owned()),
                EntryKind::HardLink => Kind::Unreadable(HARD_LINK),
                EntryKind::CharDevice | EntryKind::BlockDevice => return Err(refused("is a device")),
                EntryKind::Fifo => return Err(refused("is a named pipe")),
            };
            if path.is_empty() && kind != Kind::Directory {
                return Err(refused("has no name"));
            }
            for (slash, _) in path.match_indices('/') {
                let above = &path[..slash];
                match names.get(above) {
                    Some(Kind::Directory) => {}
                    Some(Kind::File { .. } | Kind::Unreadable(_) | Kind::Symlink(_)) => {
                        return Err(refused("lies below something that is not a directory"));
                    }
                    None => {
                        bytes += above.len();
                        names.insert(above.to_owned(), Kind::Directory);
                    }
                }
            }
            bytes += path.len() + entry.link.len();
            match names.insert(path.clone(), kind.clone()) {
                None => {}
                Some(Kind::Directory) if kind == Kind::Directory => {}
                Some(_) => return Err(refused("is there twice")),
            }
            if names.len() > limits.max_names {
                return Err(TreeError::Limit(format!("more than {} files and directories", limits.max_names)));
            }
            if bytes > NAMES_MAX {
                return Err(TreeError::Limit(format!("more than {} MiB of names", NAMES_MAX >> 20)));
            }
        }
        reader.drain()?;
        match is_empty {
            true => Err(TreeError::Empty),
            false => Ok(Self(names)),
        }
    }

    /// Checks that the configured path is a directory or a file.
    fn check(&self, path: &str) -> Result<(), TreeError> {
        let bad = |path: &str, reason| TreeError::BadPath { path: path.to_owned(), reason };
        for (slash, _) in path.match_indices('/') {
            match self.0.get(&path[..slash]) {
                Some(Kind::Directory) => {}
                Some(Kind::Symlink(_)) => return Err(bad(&path[..slash], "is a symlink; set path to its target")),
                Some(Kind::File { .. } | Kind::Unreadable(_)) => return Err(bad(&path[..slash], "is not a directory")),
                None => return Err(TreeError::NoPath(path.to_owned())),
            }
        }
        match self.0.get(path) {
            _ if path.is_empty() => Ok(()),
            Some(Kind::Directory | Kind::File { .. }) => Ok(()),
            Some(Kind::Symlink(_)) => Err(bad(path, "is a symlink; set path to its target")),
            Some(Kind::Unreadable(reason)) => Err(bad(path, reason)),
            None => Err(TreeError::NoPath(path.to_owned())),
        }
    }

    fn leads_to_directory(&self, path: &str, target: &str) -> bool {
        let place = resolved(path, target);
        place.is_some_and(|place| place.is_empty() || self.0.get(&place) == Some(&Kind::Directory))
    }
}

/// A file of the source.
enum Planned {
    /// Its content is that of this name in the archive.
    Read { full: String },
    /// It cannot be read.
    Refused(String),
}

/// Files to read, by name.
struct Plan<'a> {
    limits: &'a ReadLimits,
    files: BTreeMap<String, Planned>,
    beside: BTreeMap<String, Planned>,
    /// Names in the archive whose content is needed.
    wanted: BTreeSet<String>,
    /// Files so far, those that were taken included.
    count: usize,
    bytes: u64,
}

/// A file that is no manifest: its name, its path in the archive and its type.
type Other<'n> = (&'n str, &'n str, &'n Kind);

impl<'a> Plan<'a> {
    fn new(limits: &'a ReadLimits) -> Self {
        Self { limits, files: BTreeMap::new(), beside: BTreeMap::new(), wanted: BTreeSet::new(), count: 0, bytes: 0 }
    }

    /// Adds the manifests in a directory and below, and returns the other files. Names are relative to `root`, a directory above or the same.
    fn directory<'n>(&mut self, names: &'n Names, directory: &str, root: &str) -> Result<Vec<Other<'n>>, TreeError> {
        let prefix = |path: &str| if path.is_empty() { String::new() } else { format!("{path}/") };
        let (root, directory) = (prefix(root), prefix(directory));
        let mut others = Vec::new();
        for (full, kind) in names.0.range(directory.clone()..) {
            let Some(below) = full.strip_prefix(&directory) else { break };
            // Names that begin with a dot, and all below them, are left out.
            if below.is_empty() || below.split('/').any(|component| component.starts_with('.')) {
                continue;
            }
            let name = full.strip_prefix(&root).unwrap_or(full);
            let is_manifest = is_manifest(name.rsplit('/').next().unwrap_or(name));
            match kind {
                Kind::Directory => {}
                Kind::File { size } if is_manifest => self.file(name.to_owned(), full, *size)?,
                Kind::Unreadable(reason) if is_manifest => self.refuse(name.to_owned(), reason)?,
                Kind::Symlink(target) if is_manifest || names.leads_to_directory(full, target) => {
                    self.refuse(name.to_owned(), SYMLINK)?;
                }
                Kind::File { .. } | Kind::Unreadable(_) | Kind::Symlink(_) => others.push((name, full.as_str(), kind)),
            }
        }
        Ok(others)
    }

    /// Reads what was added: the manifests, and the other files.
    fn take(&mut self, layer: &[u8]) -> Result<(Files, Files), TreeError> {
        let mut contents = contents(layer, &std::mem::take(&mut self.wanted))?;
        let mut content = |name: &str| match contents.remove(name) {
            Some(bytes) if is_lfs_pointer(&bytes) => Err(IS_LFS.to_owned()),
            Some(bytes) => Ok(bytes.into()),
            None => Err("is missing in the artifact".to_owned()),
        };
        let mut read = |found: BTreeMap<String, Planned>| -> Files {
            let read = |(name, planned)| match planned {
                Planned::Read { full } => (name, content(&full)),
                Planned::Refused(reason) => (name, Err(reason)),
            };
            found.into_iter().map(read).collect()
        };
        Ok((read(std::mem::take(&mut self.files)), read(std::mem::take(&mut self.beside))))
    }

    fn file(&mut self, name: String, full: &str, size: u64) -> Result<(), TreeError> {
        if size > self.limits.max_file_bytes {
            return self.refuse(name, &format!("has {size} bytes; a manifest may have at most {}", self.limits.max_file_bytes));
        }
        self.bytes += size;
        if self.bytes > self.limits.max_total_bytes {
            return Err(TreeError::Limit(format!("more than {} bytes of manifests", self.limits.max_total_bytes)));
        }
        self.wanted.insert(full.to_owned());
        self.add(name, Planned::Read { full: full.to_owned() })
    }

    fn refuse(&mut self, name: String, reason: &str) -> Result<(), TreeError> {
        self.add(name, Planned::Refused(reason.to_owned()))
    }

    fn add(&mut self, name: String, planned: Planned) -> Result<(), TreeError> {
        if self.count >= self.limits.max_files {
            return Err(TreeError::Limit(format!("more than {} manifests", self.limits.max_files)));
        }
        self.count += 1;
        self.files.insert(name, planned);
        Ok(())
    }

    /// A file that is no manifest, which a kustomization may need.
    fn other(&mut self, name: &str, full: &str, kind: &Kind) {
        let planned = match kind {
            Kind::Directory => return,
            _ if self.count >= self.limits.max_files => {
                Planned::Refused(format!("the source has more than {} files", self.limits.max_files))
            }
            Kind::Symlink(_) => Planned::Refused(SYMLINK.to_owned()),
            Kind::Unreadable(reason) => Planned::Refused((*reason).to_owned()),
            Kind::File { size } => match self.limits.refusal(*size, self.bytes) {
                Some(reason) => Planned::Refused(reason),
                None => {
                    self.bytes += size;
                    self.wanted.insert(full.to_owned());
                    Planned::Read { full: full.to_owned() }
                }
            },
        };
        self.count += 1;
        self.beside.insert(name.to_owned(), planned);
    }
}

/// The content of these files.
fn contents(layer: &[u8], wanted: &BTreeSet<String>) -> Result<BTreeMap<String, Vec<u8>>, TreeError> {
    let mut contents = BTreeMap::new();
    let mut reader = reader(layer)?;
    while contents.len() < wanted.len() {
        let Some(entry) = reader.next_entry()? else { break };
        let path = clean(&entry)?;
        if entry.kind == EntryKind::File && wanted.contains(&path) {
            let mut content = Vec::new();
            // Within the limits, by which it was chosen.
            loop {
                let chunk = reader.chunk(u64::MAX)?;
                if chunk.is_empty() {
                    break;
                }
                content.extend_from_slice(chunk);
            }
            contents.insert(path, content);
        }
    }
    Ok(contents)
}

/// The path of an entry relative to the root of the artifact; empty for the root itself.
fn clean(entry: &Entry) -> Result<String, TreeError> {
    let shown = || String::from_utf8_lossy(&entry.path).into_owned();
    let refused = |reason| TreeError::Entry { path: shown(), reason };
    let path = std::str::from_utf8(&entry.path).map_err(|_| refused("has a name that is not UTF-8"))?;
    if path.starts_with('/') {
        return Err(refused("has an absolute path"));
    }
    let components: Vec<&str> = path.split('/').filter(|component| !matches!(*component, "" | ".")).collect();
    if components.contains(&"..") {
        return Err(refused("leads out of the artifact"));
    }
    if path.contains('\0') {
        return Err(refused("has a NUL byte in its name"));
    }
    if components.len() > MAX_DEPTH + 1 {
        return Err(TreeError::Limit(format!("more than {MAX_DEPTH} levels of directories")));
    }
    Ok(components.join("/"))
}

fn reader(layer: &[u8]) -> Result<TarReader<Streamed<Bounded<'_>>>, TreeError> {
    let limits = Limits { zstd_window: ZSTD_WINDOW, ratio: u64::MAX, ..Limits::default() };
    let decoder = Decoder::new(layer, &limits).map_err(TreeError::Decompress)?;
    Ok(TarReader::new(Streamed(Bounded { decoder, left: UNPACKED_MAX })))
}

/// A decompressed stream that ends with an error at its limit.
struct Bounded<'a> {
    decoder: Decoder<&'a [u8]>,
    left: u64,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.decoder.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => {
                self.left = left;
                Ok(count)
            }
            None => Err(io::Error::other(format!("it has more than {UNPACKED_MAX} bytes after decompression"))),
        }
    }
}

#[cfg(test)]
mod tests;
