//! The working tree of a clone on this machine: the files that a commit of all that is there would have.
//!
//! Reads by the rules of a source (see `tree_rules.rs`), so that a command run in a clone sees what the source will see.

use super::objects::{IS_LFS, IS_SYMLINK, SUBMODULE};
use crate::around::gather;
use crate::tree_rules::{MAX_DEPTH, ReadLimits, is_lfs_pointer, is_manifest};
use crate::webhook::same_repository;
use podstead_artifact::{Artifact, FileContent, Surroundings, is_kustomization};
use podstead_pod::Revision;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTree {
    /// The top directory.
    pub root: PathBuf,
    /// The URLs of its remotes.
    remotes: Vec<String>,
}

/// Reason why a working tree cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum WorkTreeError {
    /// A directory or file cannot be read.
    #[error("read {path}")]
    Read {
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// More than a source reads of a commit.
    #[error("limit reached at {path}: more than {limit}")]
    Limit {
        /// The path.
        path: PathBuf,
        /// The limit, in words.
        limit: String,
    },
}

impl WorkTree {
    /// The clone that `path` lies in, if it lies in one.
    pub fn containing(path: &Path) -> Option<Self> {
        podstead_libgit2::initialise();
        let repository = git2::Repository::discover(path).ok()?;
        let root = repository.workdir()?.canonicalize().ok()?;
        let names = repository.remotes().ok()?;
        let names = names.iter().filter_map(|name| name.ok().flatten());
        let remotes = names
            .filter_map(|name| repository.find_remote(name).ok())
            .filter_map(|remote| remote.url().ok().map(str::to_owned))
            .collect();
        Some(Self { root, remotes })
    }

    /// The branch and the commit that are checked out, as revisions of git sources are written, with `-dirty` if files differ from the commit.
    pub fn revision(&self) -> Option<String> {
        let repository = git2::Repository::open(&self.root).ok()?;
        let head = repository.head().ok()?;
        let commit = head.peel_to_commit().ok()?.id();
        let branch = head.shorthand().ok().filter(|_| head.is_branch()).map(|branch| format!("{branch}@")).unwrap_or_default();
        let mut options = git2::StatusOptions::new();
        let changed = repository.statuses(Some(options.include_untracked(true))).ok()?;
        let dirty = if changed.is_empty() { "" } else { "-dirty" };
        Some(format!("{branch}sha1:{commit}{dirty}"))
    }

    /// Reports whether one of its remotes is the repository at `url`.
    pub fn is_clone_of(&self, url: &str) -> bool {
        let is_same = |remote: &String| same_repository(remote, url) || is_same_path(&self.root, remote, url);
        self.remotes.iter().any(is_same)
    }
}

/// Compares repositories on this machine, by path or `file://`.
fn is_same_path(root: &Path, remote: &str, url: &str) -> bool {
    let path = |text: &str| root.join(text.strip_prefix("file://").unwrap_or(text)).canonicalize().ok();
    path(remote).is_some_and(|remote| path(url) == Some(remote))
}

/// The manifests at `path`, a directory or a file, as a git source reads them from a commit: subdirectories included, names that begin with a
/// dot left out, symlinks and submodules refused.
///
/// Kustomizations may refer to directories anywhere below `top`, the top directory of the clone; without one, to none outside of `path`.
pub fn read(path: &Path, top: Option<&Path>, limits: &ReadLimits) -> Result<Artifact, WorkTreeError> {
    let mut reading = Reading::new(limits);
    let found = fs::metadata(path).map_err(|source| WorkTreeError::Read { path: path.to_owned(), source })?;
    if found.is_dir() {
        reading.directory(path, "", 0)?;
    } else {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        reading.file(path, name)?;
    }
    let files = std::mem::take(&mut reading.files);
    let others = std::mem::take(&mut reading.others);
    let (mut beside, mut around) = (BTreeMap::new(), Surroundings::default());
    if files.keys().any(|path| is_kustomization(path.rsplit('/').next().unwrap_or(path))) {
        beside = reading.others(others)?;
        if let (Some(top), true) = (top, found.is_dir()) {
            around = reading.around(top, path, &files)?;
        }
    }
    Ok(Artifact { revision: Revision(String::new()), place: None, commit: None, files, beside, around })
}

/// The files around the directory `path`, whose own files are `files`: in directories that its kustomizations refer to, which may be anywhere
/// below `top`.
pub fn surroundings(
    top: &Path,
    path: &Path,
    files: &BTreeMap<String, FileContent>,
    limits: &ReadLimits,
) -> Result<Surroundings, WorkTreeError> {
    Reading::new(limits).around(top, path, files)
}

struct Reading<'a> {
    limits: &'a ReadLimits,
    names: usize,
    bytes: u64,
    /// Files that were read or refused.
    count: usize,
    files: BTreeMap<String, FileContent>,
    /// Files that are no manifests; `None` for symlinks.
    others: BTreeMap<String, Option<PathBuf>>,
}

impl<'a> Reading<'a> {
    fn new(limits: &'a ReadLimits) -> Self {
        Self { limits, names: 0, bytes: 0, count: 0, files: BTreeMap::new(), others: BTreeMap::new() }
    }

    fn directory(&mut self, path: &Path, below: &str, depth: usize) -> Result<(), WorkTreeError> {
        let failed = |source| WorkTreeError::Read { path: path.to_owned(), source };
        if depth > MAX_DEPTH {
            return Err(limit(path, format!("{MAX_DEPTH} levels of directories")));
        }
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            self.names += 1;
            if self.names > self.limits.max_names {
                return Err(limit(path, format!("{} files and directories", self.limits.max_names)));
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let kind = entry.file_type().map_err(failed)?;
            let relative = format!("{below}{name}");
            if kind.is_symlink() {
                // As in a commit: one that leads to a directory may hide manifests.
                if is_manifest(&name) || fs::metadata(entry.path()).is_ok_and(|found| found.is_dir()) {
                    self.add(path, relative, Err(IS_SYMLINK.to_owned()))?;
                } else {
                    self.others.insert(relative, None);
                }
            } else if kind.is_dir() && fs::symlink_metadata(entry.path().join(".git")).is_ok() {
                self.add(path, relative, Err(SUBMODULE.to_owned()))?;
            } else if kind.is_dir() {
                self.directory(&entry.path(), &format!("{relative}/"), depth + 1)?;
            } else if kind.is_file() && is_manifest(&name) {
                self.file(&entry.path(), relative)?;
            } else if kind.is_file() {
                self.others.insert(relative, Some(entry.path()));
            }
        }
        Ok(())
    }

    /// See [`surroundings`].
    fn around(&mut self, top: &Path, path: &Path, files: &BTreeMap<String, FileContent>) -> Result<Surroundings, WorkTreeError> {
        let real = |path: &Path| fs::canonicalize(path).map_err(|source| WorkTreeError::Read { path: path.to_owned(), source });
        let (top, path) = (real(top)?, real(path)?);
        let Some(root) = path.strip_prefix(&top).ok().and_then(Path::to_str) else { return Ok(Surroundings::default()) };
        gather(root, files, |directory| self.directory_of_tree(&top, directory))
    }

    /// All files in a directory and below, by path from `top`; none when there is no such directory. Directories of the machine with files of the
    /// kernel, which may never end, are none.
    fn directory_of_tree(&mut self, top: &Path, path: &str) -> Result<BTreeMap<String, FileContent>, WorkTreeError> {
        let first = path.split('/').next().unwrap_or_default();
        if top == Path::new("/") && ["", "proc", "sys", "dev"].contains(&first) {
            return Ok(BTreeMap::new());
        }
        let mut directory = top.to_owned();
        for step in path.split('/').filter(|step| !step.is_empty()) {
            directory.push(step);
            if !fs::symlink_metadata(&directory).is_ok_and(|found| found.is_dir()) {
                return Ok(BTreeMap::new());
            }
        }
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.directory(&directory, &prefix, 0)?;
        let others = std::mem::take(&mut self.others);
        let mut files = self.others(others)?;
        files.append(&mut self.files);
        Ok(files)
    }

    /// The content of files that are no manifests.
    fn others(&mut self, others: BTreeMap<String, Option<PathBuf>>) -> Result<BTreeMap<String, FileContent>, WorkTreeError> {
        let mut read = BTreeMap::new();
        for (name, path) in others {
            let content = match path {
                Some(path) if self.count < self.limits.max_files => self.other(&path)?,
                Some(_) => Err(format!("the source has more than {} files", self.limits.max_files)),
                None => Err(IS_SYMLINK.to_owned()),
            };
            self.count += 1;
            read.insert(name, content);
        }
        Ok(read)
    }

    /// The content of a file that is no manifest.
    fn other(&mut self, path: &Path) -> Result<FileContent, WorkTreeError> {
        let failed = |source| WorkTreeError::Read { path: path.to_owned(), source };
        let size = fs::metadata(path).map_err(failed)?.len();
        if let Some(reason) = self.limits.refusal(size, self.bytes) {
            return Ok(Err(reason));
        }
        self.bytes += size;
        let content = fs::read(path).map_err(failed)?;
        Ok(if is_lfs_pointer(&content) { Err(IS_LFS.to_owned()) } else { Ok(content.into()) })
    }

    fn file(&mut self, path: &Path, name: String) -> Result<(), WorkTreeError> {
        let failed = |source| WorkTreeError::Read { path: path.to_owned(), source };
        let size = fs::metadata(path).map_err(failed)?.len();
        if size > self.limits.max_file_bytes {
            let reason = format!("has {size} bytes; a manifest may have at most {}", self.limits.max_file_bytes);
            return self.add(path, name, Err(reason));
        }
        self.bytes += size;
        if self.bytes > self.limits.max_total_bytes {
            return Err(limit(path, format!("{} bytes of manifests", self.limits.max_total_bytes)));
        }
        let content = fs::read(path).map_err(failed)?;
        let content = if is_lfs_pointer(&content) { Err(IS_LFS.to_owned()) } else { Ok(content.into()) };
        self.add(path, name, content)
    }

    fn add(&mut self, path: &Path, name: String, content: FileContent) -> Result<(), WorkTreeError> {
        if self.count >= self.limits.max_files {
            return Err(limit(path, format!("{} manifests", self.limits.max_files)));
        }
        self.count += 1;
        self.files.insert(name, content);
        Ok(())
    }
}

fn limit(path: &Path, limit: String) -> WorkTreeError {
    WorkTreeError::Limit { path: path.to_owned(), limit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn clone_of(url: &str) -> (tempfile::TempDir, WorkTree) {
        podstead_libgit2::initialise();
        let directory = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init(directory.path()).unwrap();
        repository.remote("origin", url).unwrap();
        fs::create_dir_all(directory.path().join("deploy/edge")).unwrap();
        let tree = WorkTree::containing(&directory.path().join("deploy/edge")).unwrap();
        assert_eq!(tree.root, directory.path().canonicalize().unwrap());
        (directory, tree)
    }

    #[test]
    fn clone_is_recognised_by_its_remote() {
        let (_kept, tree) = clone_of("git@git.lan:shop/edge.git");
        assert!(tree.is_clone_of("https://git.lan/shop/edge"));
        assert!(!tree.is_clone_of("https://git.lan/shop/other"));
        let origin = tempfile::tempdir().unwrap();
        let (_kept, tree) = clone_of(&format!("file://{}", origin.path().display()));
        assert!(tree.is_clone_of(&origin.path().display().to_string()));
    }

    #[test]
    fn directory_outside_of_clones_is_none() {
        assert_eq!(WorkTree::containing(tempfile::tempdir().unwrap().path()), None);
    }

    #[test]
    fn other_files_are_read_beside_kustomizations() {
        let (directory, tree) = clone_of("https://git.lan/a/b");
        let put = |name: &str, content: &str| fs::write(directory.path().join(name), content).unwrap();
        put("app.conf", "a");
        put("big.bin", &"x".repeat(100));
        put(".hidden", "b");
        symlink("app.conf", directory.path().join("link.conf")).unwrap();
        let limits = ReadLimits { max_file_bytes: 50, ..ReadLimits::default() };
        assert!(read(&tree.root, None, &limits).unwrap().beside.is_empty());
        put("deploy/edge/Kustomization", "resources: [web.yaml]");
        let found = read(&tree.root, None, &limits).unwrap();
        assert_eq!(found.files.keys().collect::<Vec<_>>(), ["deploy/edge/Kustomization"]);
        let seen: Vec<(&str, bool)> = found.beside.iter().map(|(name, content)| (name.as_str(), content.is_ok())).collect();
        assert_eq!(seen, [("app.conf", true), ("big.bin", false), ("link.conf", false)]);
        let few = ReadLimits { max_total_bytes: 21, max_files: 2, ..ReadLimits::default() };
        let found = read(&tree.root, None, &few).unwrap().beside;
        assert!(found["app.conf"].is_err(), "the manifests alone reach the limit");
    }

    #[test]
    fn files_of_the_kernel_are_not_around() {
        let directory = tempfile::tempdir().unwrap();
        let up = "../".repeat(directory.path().components().count());
        for written in ["", "proc", "proc/self", "sys/kernel"] {
            let content: FileContent = Ok(format!("resources: [{up}{written}]\n").into_bytes().into());
            let files = BTreeMap::from([("kustomization.yaml".to_owned(), content)]);
            let found = surroundings(Path::new("/"), directory.path(), &files, &ReadLimits::default());
            assert!(found.unwrap().files.is_empty(), "{written}");
        }
    }

    #[test]
    fn tree_is_read_as_a_commit_is() {
        let (directory, tree) = clone_of("https://git.lan/a/b");
        let put = |name: &str, content: &str| fs::write(directory.path().join(name), content).unwrap();
        put("web.yaml", "a");
        put("deploy/edge/db.yml", "b");
        put("README.md", "c");
        put(".hidden.yaml", "d");
        put("big.json", "version https://git-lfs.github.com/spec/v1");
        symlink("web.yaml", directory.path().join("link.yaml")).unwrap();
        symlink("deploy", directory.path().join("also")).unwrap();
        symlink("README.md", directory.path().join("text")).unwrap();
        fs::create_dir_all(directory.path().join("module/.git")).unwrap();
        let files = read(&tree.root, None, &ReadLimits::default()).unwrap().files;
        let seen: Vec<(&str, bool)> = files.iter().map(|(name, content)| (name.as_str(), content.is_ok())).collect();
        assert_eq!(
            seen,
            [
                ("also", false),
                ("big.json", false),
                ("deploy/edge/db.yml", true),
                ("link.yaml", false),
                ("module", false),
                ("web.yaml", true)
            ]
        );
        let one = read(&tree.root.join("web.yaml"), None, &ReadLimits::default()).unwrap().files;
        assert_eq!(one.keys().collect::<Vec<_>>(), ["web.yaml"]);
        let few = ReadLimits { max_files: 2, ..ReadLimits::default() };
        assert!(matches!(read(&tree.root, None, &few), Err(WorkTreeError::Limit { .. })));
    }
}
