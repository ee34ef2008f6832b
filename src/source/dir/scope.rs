//! The directories to read: the path itself, or those of the layers below it.
//!
//! Where one of these has a kustomization, all directories below the path are read, with all files: it may refer to any of them.

use super::DirectoryError;
use super::file::{self, Seen};
use super::names::{is_hidden, is_manifest};
use super::place::Identity;
use podstead_artifact::{KUSTOMIZATIONS, Layers};
use rustix::fs::CWD;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directories that one source may read.
const MAX_DIRECTORIES: usize = 1024;

/// Directories of a source.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) root: PathBuf,
    pub(super) layers: Arc<Layers>,
}

/// A path that is read and watched, and the identity of the file there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) path: PathBuf,
    /// Goes before the names of files in it.
    pub(super) prefix: PathBuf,
    pub(super) identity: Option<Identity>,
    /// Files of any name are read, for kustomizations.
    pub(super) whole: bool,
}

impl Spot {
    fn at(path: PathBuf, prefix: PathBuf) -> Self {
        let identity = Identity::at(&path);
        Self { path, prefix, identity, whole: false }
    }

    /// Reports whether the path leads to another file now.
    fn moved(&self) -> bool {
        Identity::at(&self.path) != self.identity
    }
}

/// Reports whether one of these paths leads to another file than before.
pub(super) fn any_moved(spots: &[Spot]) -> bool {
    spots.iter().any(Spot::moved)
}

impl Scope {
    /// The path itself, whatever is there; with layers also every directory of them, there or not, in lexical order.
    pub(super) fn spots(&self) -> Result<Vec<Spot>, DirectoryError> {
        let root = Spot::at(self.root.clone(), PathBuf::new());
        let mut spots = BTreeMap::new();
        for (layer, below) in self.layers.paths() {
            let path = self.root.join(layer);
            // Joined with nothing, a path gets a slash at its end.
            let path = if layer.is_empty() { self.root.clone() } else { path };
            let prefix = match (file::look(CWD, &path), Path::new(layer).parent()) {
                // Of the directory of a single file, the other files do not count.
                (Seen::File(_), Some(parent)) => parent.to_owned(),
                (Seen::File(_), None) | (Seen::Directory | Seen::Absent | Seen::Unusable(_), _) => PathBuf::from(layer),
            };
            self.add(&mut spots, prefix.clone())?;
            if below && path.is_dir() {
                self.add_below(&mut spots, prefix)?;
            }
        }
        let has_kustomization = self.has_kustomization(&root) || spots.values().any(|spot| self.has_kustomization(spot));
        if has_kustomization {
            self.add_below(&mut spots, PathBuf::new())?;
        }
        spots.remove(Path::new(""));
        let spots = [root].into_iter().chain(spots.into_values());
        Ok(spots.map(|spot| Spot { whole: has_kustomization, ..spot }).collect())
    }

    /// Reports whether the file of this name is a manifest or a kustomization of the source, and not only beside them.
    pub(super) fn is_of_source(&self, prefix: &Path, name: &OsStr) -> bool {
        let is_read = if self.layers.is_empty() {
            prefix.as_os_str().is_empty()
        } else {
            self.layers.rank(&prefix.join(name).display().to_string()).is_some()
        };
        is_read && is_manifest(name)
    }

    fn has_kustomization(&self, spot: &Spot) -> bool {
        let is_there = |name: &&str| {
            self.is_of_source(&spot.prefix, OsStr::new(name)) && matches!(file::look(CWD, &spot.path.join(name)), Seen::File(_))
        };
        KUSTOMIZATIONS.iter().any(is_there)
    }

    /// Like [`Self::spots`], or only the path when the directories cannot be listed.
    pub(super) fn spots_or_root(&self) -> Vec<Spot> {
        self.spots().unwrap_or_else(|_| vec![Spot::at(self.root.clone(), PathBuf::new())])
    }

    fn add(&self, spots: &mut BTreeMap<PathBuf, Spot>, prefix: PathBuf) -> Result<(), DirectoryError> {
        let path = if prefix.as_os_str().is_empty() { self.root.clone() } else { self.root.join(&prefix) };
        spots.insert(prefix.clone(), Spot::at(path, prefix));
        if spots.len() > MAX_DIRECTORIES {
            let reason = format!("has more than {MAX_DIRECTORIES} directories to read");
            return Err(DirectoryError::Unusable { path: self.root.clone(), reason });
        }
        Ok(())
    }

    /// Hidden directories and symlinks are left out: a symlink may lead back.
    fn add_below(&self, spots: &mut BTreeMap<PathBuf, Spot>, top: PathBuf) -> Result<(), DirectoryError> {
        let mut open = vec![top];
        while let Some(prefix) = open.pop() {
            let path = self.root.join(&prefix);
            let fail = |source: io::Error| DirectoryError::List { path: path.clone(), source };
            let entries = match std::fs::read_dir(&path) {
                Ok(entries) => entries,
                // Gone meanwhile: the next pass sees what there is then.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(fail(error)),
            };
            for entry in entries {
                let entry = entry.map_err(fail)?;
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_hidden(&entry.file_name()) {
                    let below = prefix.join(entry.file_name());
                    self.add(spots, below.clone())?;
                    open.push(below);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_lead_to_directories_and_a_file_to_that_which_it_is_in() {
        let root = tempfile::tempdir().unwrap();
        for directory in ["base/deeper", "apps/a/b", "apps/.git", "hosts"] {
            std::fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        std::fs::write(root.path().join("hosts/edge.yaml"), "x").unwrap();
        std::os::unix::fs::symlink("..", root.path().join("apps/loop")).unwrap();
        let prefixes = |layers: &[&str]| {
            let layers: Vec<String> = layers.iter().map(|layer| (*layer).to_owned()).collect();
            let scope = Scope { root: root.path().to_owned(), layers: Arc::new(Layers::parse(&layers).unwrap()) };
            let spots = scope.spots().unwrap();
            assert_eq!(spots[0].path, root.path());
            spots[1..].iter().map(|spot| spot.prefix.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(prefixes(&[]), [""; 0]);
        assert_eq!(prefixes(&["base", "hosts/edge.yaml", "none"]), ["base", "hosts", "none"]);
        assert_eq!(prefixes(&["apps/**"]), ["apps", "apps/a", "apps/a/b"]);
        assert_eq!(prefixes(&["."]), [""; 0]);
    }
}
