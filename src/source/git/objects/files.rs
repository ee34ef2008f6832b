//! The manifests of a commit.
//!
//! All files below the path whose names end in `.yaml`, `.yml` or `.json`, in subdirectories too; what begins with a dot is left out, with
//! all below it. A path that names a file takes any name.
//!
//! Where one of them makes a kustomization of its directory, all other files are read as well, after the manifests and within the same
//! limits. Such a file that is too large cannot be read; the source goes on. The same holds for directories of the commit outside of the path
//! that the kustomizations refer to.

use super::Objects;
use crate::around::gather;
use crate::git::error::GitError;
use crate::git::format::{Entry, EntryKind, Tree};
use crate::git::protocol::ObjectId;
use crate::tree_rules::{MAX_DEPTH, ReadLimits, TreeFiles, is_lfs_pointer, is_manifest, resolved};
use podstead_artifact::{FileContent, is_kustomization};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Length of the target of a symlink that is looked at.
const MAX_TARGET: u64 = 4096;
/// Names of directories that are kept while symlinks are followed.
const MAX_KEPT: usize = 200_000;

pub(in crate::git) const SUBMODULE: &str = "is a submodule; submodules are not fetched";
pub(in crate::git) const IS_SYMLINK: &str = "is a symlink; symlinks are not followed, commit the file itself";
pub(in crate::git) const IS_LFS: &str = "is a Git LFS pointer; LFS objects are not fetched, commit the file itself";

impl Objects {
    /// The manifests of `commit` at `path` (`/` between components, none at the ends; empty for the whole repository), by path relative to
    /// it. Empty when the path is there without manifests.
    pub(in crate::git) fn files(&self, commit: ObjectId, path: &str, limits: &ReadLimits) -> Result<TreeFiles, GitError> {
        let tree = Arc::new(self.tree(self.commit(commit)?.tree)?);
        let mut reading = Reading {
            objects: self,
            limits,
            commit,
            tree: tree.clone(),
            root: path,
            names: 0,
            bytes: 0,
            count: 0,
            files: BTreeMap::new(),
            others: BTreeMap::new(),
            kept: HashMap::new(),
            kept_names: 0,
        };
        if path.is_empty() {
            reading.directory(tree, "")?;
            return reading.finish();
        }
        let entry = self.entry(&tree, commit, path)?;
        let bad = |reason: &str| GitError::BadPath { commit, path: path.to_owned(), reason: reason.to_owned() };
        match entry.kind {
            EntryKind::Directory => reading.directory(Arc::new(self.tree(entry.id)?), "")?,
            EntryKind::File => {
                let name = path.rsplit('/').next().unwrap_or(path);
                // A single file has nothing around it.
                reading.root = "";
                reading.manifests(BTreeMap::from([(name.to_owned(), entry.id)]))?;
            }
            EntryKind::Symlink => return Err(bad("is a symlink; symlinks are not followed, set path to its target")),
            EntryKind::Submodule => return Err(bad(SUBMODULE)),
        }
        reading.finish()
    }

    /// Component by component, so that the error can name the component that is not a directory.
    fn entry(&self, root: &Tree, commit: ObjectId, path: &str) -> Result<Entry, GitError> {
        let (mut below, mut tree) = (None, root);
        let mut components = path.split('/').peekable();
        let mut walked = String::new();
        while let Some(component) = components.next() {
            let at = if walked.is_empty() { component.to_owned() } else { format!("{walked}/{component}") };
            let Some(entry) = tree.get(component) else {
                return Err(GitError::NoPath { commit, path: path.to_owned() });
            };
            if components.peek().is_none() {
                return Ok(entry);
            }
            let reason = match entry.kind {
                EntryKind::Directory => {
                    tree = below.insert(self.tree(entry.id)?);
                    walked = at;
                    continue;
                }
                EntryKind::Submodule => SUBMODULE,
                EntryKind::Symlink => "is a symlink; symlinks are not followed, set path to its target",
                EntryKind::File => "is not a directory",
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
    tree: Arc<Tree>,
    /// Path of the source in it.
    root: &'a str,
    names: usize,
    bytes: u64,
    /// Files that were read or refused.
    count: usize,
    files: BTreeMap<String, FileContent>,
    /// Files that are no manifests; `None` for symlinks.
    others: BTreeMap<String, Option<ObjectId>>,
    /// Directories that symlinks led to.
    kept: HashMap<ObjectId, Arc<Tree>>,
    kept_names: usize,
}

/// Files of a directory and below that are looked into.
#[derive(Default)]
struct Seen {
    manifests: BTreeMap<String, ObjectId>,
    /// Symlinks that may lead to a directory.
    links: BTreeMap<String, ObjectId>,
}

impl Reading<'_> {
    /// Reads a directory level by level: all directories of one level are asked for at once.
    fn directory(&mut self, tree: Arc<Tree>, below: &str) -> Result<(), GitError> {
        let mut seen = Seen::default();
        let mut level = vec![(below.to_owned(), tree)];
        self.names += level.iter().map(|(_, tree)| tree.iter().count()).sum::<usize>();
        self.check_names()?;
        for depth in 0.. {
            if level.is_empty() {
                break;
            }
            if depth > MAX_DEPTH {
                return Err(self.limit(format!("more than {MAX_DEPTH} levels of directories")));
            }
            let deeper = self.level(&level, &mut seen)?;
            level = self.directories(deeper)?;
        }
        self.links(seen.links)?;
        self.manifests(seen.manifests)
    }

    /// Sorts the entries of directories; returns the directories among them.
    fn level(&mut self, level: &[(String, Arc<Tree>)], seen: &mut Seen) -> Result<Vec<(String, ObjectId)>, GitError> {
        let mut deeper = Vec::new();
        for (below, tree) in level {
            for (name, entry) in tree.iter() {
                let name = String::from_utf8_lossy(name);
                if name.starts_with('.') {
                    continue;
                }
                let path = format!("{below}{name}");
                match entry.kind {
                    EntryKind::Directory => deeper.push((path, entry.id)),
                    EntryKind::Submodule => self.refuse(path, SUBMODULE)?,
                    EntryKind::Symlink if is_manifest(&name) => self.refuse(path, IS_SYMLINK)?,
                    EntryKind::Symlink => {
                        seen.links.insert(path, entry.id);
                    }
                    EntryKind::File if is_manifest(&name) => {
                        seen.manifests.insert(path, entry.id);
                    }
                    EntryKind::File => {
                        self.others.insert(path, Some(entry.id));
                    }
                }
            }
        }
        Ok(deeper)
    }

    fn directories(&mut self, named: Vec<(String, ObjectId)>) -> Result<Vec<(String, Arc<Tree>)>, GitError> {
        // One directory may stand in many places.
        let mut ids: Vec<ObjectId> = named.iter().map(|(_, id)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        let uses = named.iter().fold(HashMap::<ObjectId, usize>::new(), |mut uses, (_, id)| {
            *uses.entry(*id).or_default() += 1;
            uses
        });
        let mut found = HashMap::new();
        self.objects.trees(&ids, |at, tree| {
            // Counted while they come: one of them may have more names than all may have.
            let more = tree.iter().count().saturating_mul(uses.get(&ids[at]).copied().unwrap_or(1));
            self.names = self.names.saturating_add(more);
            self.check_names()?;
            found.insert(ids[at], Arc::new(tree));
            Ok(())
        })?;
        Ok(named.into_iter().filter_map(|(path, id)| Some((format!("{path}/"), found.get(&id)?.clone()))).collect())
    }

    fn check_names(&self) -> Result<(), GitError> {
        if self.names > self.limits.max_names {
            return Err(self.limit(format!("more than {} files and directories", self.limits.max_names)));
        }
        Ok(())
    }

    /// A symlink matters if manifests may lie behind it.
    fn links(&mut self, links: BTreeMap<String, ObjectId>) -> Result<(), GitError> {
        let ids: Vec<ObjectId> = links.values().copied().collect();
        let mut targets = Vec::with_capacity(ids.len());
        self.objects.contents(&ids, MAX_TARGET, |_, content| {
            targets.push(content.ok());
            Ok(())
        })?;
        for (path, target) in links.into_keys().zip(targets) {
            if let Some(target) = target
                && self.leads_to_directory(&path, &target)?
            {
                self.refuse(path, IS_SYMLINK)?;
            } else {
                self.others.insert(path, None);
            }
        }
        Ok(())
    }

    fn leads_to_directory(&mut self, path: &str, target: &[u8]) -> Result<bool, GitError> {
        let full = if self.root.is_empty() { path.to_owned() } else { format!("{}/{path}", self.root) };
        let Some(place) = resolved(&full, &String::from_utf8_lossy(target)) else { return Ok(false) };
        Ok(self.place(&place)?.is_some())
    }

    /// The directory at a path from the root of the commit; `None` when there is none.
    fn place(&mut self, path: &str) -> Result<Option<Arc<Tree>>, GitError> {
        let mut tree = self.tree.clone();
        for component in path.split('/').filter(|component| !component.is_empty()) {
            let Some(Entry { kind: EntryKind::Directory, id }) = tree.get(component) else { return Ok(None) };
            tree = match self.kept.get(&id) {
                Some(kept) => kept.clone(),
                None => self.keep(id)?,
            };
        }
        Ok(Some(tree))
    }

    fn keep(&mut self, id: ObjectId) -> Result<Arc<Tree>, GitError> {
        let tree = Arc::new(self.objects.tree(id)?);
        if self.kept_names > MAX_KEPT {
            self.kept.clear();
            self.kept_names = 0;
        }
        self.kept_names += tree.iter().count() + 1;
        self.kept.insert(id, tree.clone());
        Ok(tree)
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
        let Some(tree) = self.place(path)? else { return Ok(BTreeMap::new()) };
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.directory(tree, &prefix)?;
        let others = std::mem::take(&mut self.others);
        let mut files = self.others(others)?;
        files.append(&mut self.files);
        Ok(files)
    }

    /// The content of files that are no manifests.
    fn others(&mut self, others: BTreeMap<String, Option<ObjectId>>) -> Result<BTreeMap<String, FileContent>, GitError> {
        let left = self.limits.max_files.saturating_sub(self.count);
        let asked: Vec<ObjectId> = others.values().take(left).filter_map(|id| *id).collect();
        let mut sizes = self.objects.sizes(&asked)?.into_iter();
        let (mut read, mut paths, mut ids, mut wanted) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        for (path, id) in others {
            let refusal = match id {
                Some(id) if self.count < self.limits.max_files => {
                    let size = sizes.next().flatten().ok_or_else(|| self.objects.missing(id))?;
                    let refusal = self.limits.refusal(size, self.bytes);
                    if refusal.is_none() {
                        self.bytes += size;
                        paths.push(path.clone());
                        ids.push(id);
                        wanted.push(size);
                    }
                    refusal
                }
                Some(_) => Some(format!("the source has more than {} files", self.limits.max_files)),
                None => Some(IS_SYMLINK.to_owned()),
            };
            self.count += 1;
            if let Some(refusal) = refusal {
                read.insert(path, Err(refusal));
            }
        }
        self.objects.contents(&ids, self.limits.max_file_bytes, |at, content| {
            let content = content.ok().filter(|content| content.len() as u64 == wanted[at]);
            // It would be beyond the limits otherwise.
            let content = content.ok_or_else(|| self.objects.lied())?;
            let content = if is_lfs_pointer(&content) { Err(IS_LFS.to_owned()) } else { Ok(content.into()) };
            read.insert(std::mem::take(&mut paths[at]), content);
            Ok(())
        })?;
        Ok(read)
    }

    fn manifests(&mut self, manifests: BTreeMap<String, ObjectId>) -> Result<(), GitError> {
        if self.count.saturating_add(manifests.len()) > self.limits.max_files {
            return Err(self.limit(format!("more than {} manifests", self.limits.max_files)));
        }
        let (mut paths, ids): (Vec<String>, Vec<ObjectId>) = manifests.into_iter().unzip();
        let objects = self.objects;
        objects.contents(&ids, self.limits.max_file_bytes, |at, content| {
            let path = std::mem::take(&mut paths[at]);
            let content = match content {
                Ok(content) => content,
                Err(size) => {
                    let reason = format!("has {size} bytes; a manifest may have at most {}", self.limits.max_file_bytes);
                    return self.refuse(path, &reason);
                }
            };
            self.bytes += content.len() as u64;
            if self.bytes > self.limits.max_total_bytes {
                return Err(self.limit(format!("more than {} bytes of manifests", self.limits.max_total_bytes)));
            }
            if is_lfs_pointer(&content) {
                return self.refuse(path, IS_LFS);
            }
            self.add(path, Ok(content.into()))
        })
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
