//! The manifests of a commit.
//!
//! All files below the path whose names end in `.yaml`, `.yml` or `.json`, in subdirectories too; what begins with a dot is left out, with
//! all below it. A path that names a file takes any name.
//!
//! Where one of them makes a kustomization of its directory, all other files are read as well, after the manifests and within the same
//! limits. Such a file that is too large cannot be read; the source goes on. The same holds for directories of the commit outside of the path
//! that the kustomizations refer to.

use super::{Objects, oid};
use crate::around::gather;
use crate::git::error::GitError;
use crate::git::protocol::ObjectId;
use crate::tree_rules::{MAX_DEPTH, ReadLimits, TreeFiles, is_lfs_pointer, is_manifest, resolved};
use git2::{ObjectType, Oid, Tree, TreeEntry};
use podstead_artifact::{FileContent, is_kustomization};
use std::collections::BTreeMap;
use std::path::Path;

const MODE: i32 = 0o170_000;
const SYMLINK: i32 = 0o120_000;

pub(in crate::git) const SUBMODULE: &str = "is a submodule; submodules are not fetched";
pub(in crate::git) const IS_SYMLINK: &str = "is a symlink; symlinks are not followed, commit the file itself";
pub(in crate::git) const IS_LFS: &str = "is a Git LFS pointer; LFS objects are not fetched, commit the file itself";

impl Objects {
    /// The manifests of `commit` at `path` (`/` between components, none at the ends; empty for the whole repository), by path relative to
    /// it. Empty when the path is there without manifests.
    pub(in crate::git) fn files(&self, commit: ObjectId, path: &str, limits: &ReadLimits) -> Result<TreeFiles, GitError> {
        let tree =
            self.repository.find_commit(oid(commit)).and_then(|commit| commit.tree()).map_err(|error| self.damaged(error))?;
        let mut reading = Reading {
            objects: self,
            limits,
            commit,
            tree: &tree,
            root: path,
            names: 0,
            bytes: 0,
            count: 0,
            files: BTreeMap::new(),
            others: BTreeMap::new(),
        };
        if path.is_empty() {
            reading.directory(&tree, "", 0)?;
            return reading.finish();
        }
        let entry = self.entry(&tree, commit, path)?;
        let bad = |reason: &str| GitError::BadPath { commit, path: path.to_owned(), reason: reason.to_owned() };
        match entry.kind() {
            Some(ObjectType::Tree) => {
                let tree = self.repository.find_tree(entry.id()).map_err(|error| self.damaged(error))?;
                reading.directory(&tree, "", 0)?;
            }
            Some(ObjectType::Blob) if entry.filemode() & MODE != SYMLINK => {
                let name = path.rsplit('/').next().unwrap_or(path);
                // A single file has nothing around it.
                reading.root = "";
                reading.file(name.to_owned(), entry.id())?;
            }
            Some(ObjectType::Blob) => return Err(bad("is a symlink; symlinks are not followed, set path to its target")),
            Some(ObjectType::Commit) => return Err(bad(SUBMODULE)),
            Some(ObjectType::Any | ObjectType::Tag) | None => return Err(bad("is neither a directory nor a file")),
        }
        reading.finish()
    }

    /// Component by component, so that the error can name the component that is not a directory.
    fn entry(&self, root: &Tree<'_>, commit: ObjectId, path: &str) -> Result<TreeEntry<'static>, GitError> {
        let mut tree = root.clone();
        let mut components = path.split('/').peekable();
        let mut walked = String::new();
        while let Some(component) = components.next() {
            let at = if walked.is_empty() { component.to_owned() } else { format!("{walked}/{component}") };
            let Some(entry) = tree.get_name_bytes(component.as_bytes()).map(|entry| entry.to_owned()) else {
                return Err(GitError::NoPath { commit, path: path.to_owned() });
            };
            if components.peek().is_none() {
                return Ok(entry);
            }
            let reason = match entry.kind() {
                Some(ObjectType::Tree) => {
                    tree = self.repository.find_tree(entry.id()).map_err(|error| self.damaged(error))?;
                    walked = at;
                    continue;
                }
                Some(ObjectType::Commit) => SUBMODULE,
                Some(ObjectType::Blob) if entry.filemode() & MODE == SYMLINK => {
                    "is a symlink; symlinks are not followed, set path to its target"
                }
                Some(ObjectType::Blob | ObjectType::Any | ObjectType::Tag) | None => "is not a directory",
            };
            return Err(GitError::BadPath { commit, path: at, reason: reason.to_owned() });
        }
        Err(GitError::NoPath { commit, path: path.to_owned() })
    }
}

struct Reading<'a> {
    objects: &'a Objects,
    limits: &'a ReadLimits,
    commit: ObjectId,
    /// Of the whole commit.
    tree: &'a Tree<'a>,
    /// Path of the source in it.
    root: &'a str,
    names: usize,
    bytes: u64,
    /// Files that were read or refused.
    count: usize,
    files: BTreeMap<String, FileContent>,
    /// Files that are no manifests; `None` for symlinks.
    others: BTreeMap<String, Option<Oid>>,
}

impl Reading<'_> {
    fn directory(&mut self, tree: &Tree<'_>, below: &str, depth: usize) -> Result<(), GitError> {
        if depth > MAX_DEPTH {
            return Err(self.limit(format!("more than {MAX_DEPTH} levels of directories")));
        }
        for entry in tree {
            self.names += 1;
            if self.names > self.limits.max_names {
                return Err(self.limit(format!("more than {} files and directories", self.limits.max_names)));
            }
            let name = String::from_utf8_lossy(entry.name_bytes()).into_owned();
            if name.starts_with('.') {
                continue;
            }
            let path = format!("{below}{name}");
            match entry.kind() {
                Some(ObjectType::Tree) => {
                    let tree = self.objects.repository.find_tree(entry.id()).map_err(|error| self.objects.damaged(error))?;
                    self.directory(&tree, &format!("{path}/"), depth + 1)?;
                }
                Some(ObjectType::Commit) => self.refuse(path, SUBMODULE)?,
                Some(ObjectType::Blob) if entry.filemode() & MODE == SYMLINK => self.symlink(path, &name, entry.id())?,
                Some(ObjectType::Blob) if is_manifest(&name) => self.file(path, entry.id())?,
                Some(ObjectType::Blob) => {
                    self.others.insert(path, Some(entry.id()));
                }
                Some(ObjectType::Any | ObjectType::Tag) | None => {}
            }
        }
        Ok(())
    }

    /// A symlink matters if it looks like a manifest, or if manifests may lie behind it.
    fn symlink(&mut self, path: String, name: &str, id: Oid) -> Result<(), GitError> {
        if is_manifest(name) || self.leads_to_directory(&path, id)? {
            self.refuse(path, IS_SYMLINK)?;
        } else {
            self.others.insert(path, None);
        }
        Ok(())
    }

    fn leads_to_directory(&self, path: &str, id: Oid) -> Result<bool, GitError> {
        let target = self.objects.repository.find_blob(id).map_err(|error| self.objects.damaged(error))?;
        let target = String::from_utf8_lossy(target.content());
        let full = if self.root.is_empty() { path.to_owned() } else { format!("{}/{path}", self.root) };
        let Some(place) = resolved(&full, &target) else { return Ok(false) };
        if place.is_empty() {
            return Ok(true);
        }
        let entry = self.tree.get_path(Path::new(&place));
        Ok(entry.is_ok_and(|entry| entry.kind() == Some(ObjectType::Tree)))
    }

    /// Reads the other files where a kustomization may need them.
    fn finish(mut self) -> Result<TreeFiles, GitError> {
        let files = std::mem::take(&mut self.files);
        let others = std::mem::take(&mut self.others);
        if !files.keys().any(|path| is_kustomization(path.rsplit('/').next().unwrap_or(path))) {
            return Ok(TreeFiles { files, ..TreeFiles::default() });
        }
        let beside = self.others(others)?;
        let path = std::mem::take(&mut self.root);
        let around = gather(path, &files, |directory| self.directory_of_tree(directory))?;
        Ok(TreeFiles { files, beside, around })
    }

    /// All files in a directory of the commit and below, by path from the root of the tree; none when there is no such directory.
    fn directory_of_tree(&mut self, path: &str) -> Result<BTreeMap<String, FileContent>, GitError> {
        let found = match path {
            "" => Some(self.tree.clone()),
            path => match self.tree.get_path(Path::new(path)) {
                Ok(entry) if entry.kind() == Some(ObjectType::Tree) => {
                    Some(self.objects.repository.find_tree(entry.id()).map_err(|error| self.objects.damaged(error))?)
                }
                Ok(_) | Err(_) => None,
            },
        };
        let Some(tree) = found else { return Ok(BTreeMap::new()) };
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.directory(&tree, &prefix, 0)?;
        let others = std::mem::take(&mut self.others);
        let mut files = self.others(others)?;
        files.append(&mut self.files);
        Ok(files)
    }

    /// The content of files that are no manifests.
    fn others(&mut self, others: BTreeMap<String, Option<Oid>>) -> Result<BTreeMap<String, FileContent>, GitError> {
        let mut read = BTreeMap::new();
        for (path, id) in others {
            let content = match id {
                Some(id) if self.count < self.limits.max_files => self.other(id)?,
                Some(_) => Err(format!("the source has more than {} files", self.limits.max_files)),
                None => Err(IS_SYMLINK.to_owned()),
            };
            self.count += 1;
            read.insert(path, content);
        }
        Ok(read)
    }

    /// The content of a file that is no manifest.
    fn other(&mut self, id: Oid) -> Result<FileContent, GitError> {
        let odb = self.objects.repository.odb().map_err(|error| self.objects.damaged(error))?;
        let (size, _) = odb.read_header(id).map_err(|error| self.objects.damaged(error))?;
        if let Some(reason) = self.limits.refusal(size as u64, self.bytes) {
            return Ok(Err(reason));
        }
        self.bytes += size as u64;
        let object = odb.read(id).map_err(|error| self.objects.damaged(error))?;
        Ok(if is_lfs_pointer(object.data()) { Err(IS_LFS.to_owned()) } else { Ok(object.data().into()) })
    }

    fn file(&mut self, path: String, id: Oid) -> Result<(), GitError> {
        let odb = self.objects.repository.odb().map_err(|error| self.objects.damaged(error))?;
        let (size, _) = odb.read_header(id).map_err(|error| self.objects.damaged(error))?;
        if size as u64 > self.limits.max_file_bytes {
            let reason = format!("has {size} bytes; a manifest may have at most {}", self.limits.max_file_bytes);
            return self.refuse(path, &reason);
        }
        self.bytes += size as u64;
        if self.bytes > self.limits.max_total_bytes {
            return Err(self.limit(format!("more than {} bytes of manifests", self.limits.max_total_bytes)));
        }
        let object = odb.read(id).map_err(|error| self.objects.damaged(error))?;
        if is_lfs_pointer(object.data()) {
            return self.refuse(path, IS_LFS);
        }
        let content = object.data().into();
        self.add(path, Ok(content))
    }

    fn refuse(&mut self, path: String, reason: &str) -> Result<(), GitError> {
        self.add(path, Err(reason.to_owned()))
    }

    fn add(&mut self, path: String, content: FileContent) -> Result<(), GitError> {
        if self.count >= self.limits.max_files {
            return Err(self.limit(format!("more than {} manifests", self.limits.max_files)));
        }
        self.count += 1;
        self.files.insert(path, content);
        Ok(())
    }

    fn limit(&self, what: String) -> GitError {
        GitError::Limit(format!("commit {} has {what}", self.commit))
    }
}
