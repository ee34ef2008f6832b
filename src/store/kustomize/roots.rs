//! The kustomizations of a source that are built for themselves.
//!
//! * A layer that names a directory with a kustomization, or the kustomization file, is a root.
//! * Of the directories below `path/**`, and of all directories of a source without layers, those are roots that no other one of these
//!   refers to, directly or through others. Of kustomizations that refer to each other in a circle one is a root: its build reports the
//!   circle.

use super::{View, is_kustomization_file, parent};
use podstead_artifact::Layers;
use podstead_manifest::kustomize::{Files as _, References, references};
use std::collections::{BTreeMap, BTreeSet};

/// One directory with a kustomization.
#[derive(Debug)]
struct Kustomization {
    /// Path of the file; the first one in lexical order if there are several.
    file: String,
    /// `None` when it cannot be read.
    references: Option<References>,
}

/// All kustomizations of a source and around it, by directory. All paths are those of the tree.
#[derive(Debug)]
pub(super) struct Kustomizations(BTreeMap<String, Kustomization>);

/// Directories to build.
#[derive(Debug, Default)]
pub(super) struct Roots {
    pub(super) directories: BTreeSet<String>,
    /// Those of them that a layer names.
    pub(super) named: BTreeSet<String>,
    /// Kustomization files among the candidates, or below, that cannot be read.
    pub(super) unreadable: BTreeSet<String>,
}

impl Kustomizations {
    pub(super) fn find(view: &View<'_>) -> Self {
        let mut found: BTreeMap<String, Kustomization> = BTreeMap::new();
        for file in view.paths().filter(|path| is_kustomization_file(path)) {
            let directory = parent(&file).to_owned();
            if found.get(&directory).is_none_or(|known| file < known.file) {
                let bytes = view.read(&file).ok().flatten();
                let references = bytes.and_then(|bytes| references(&directory, &bytes, view.limits));
                found.insert(directory, Kustomization { file, references });
            }
        }
        Self(found)
    }

    pub(super) fn file(&self, directory: &str) -> Option<&str> {
        self.0.get(directory).map(|found| found.file.as_str())
    }

    pub(super) fn is_component(&self, directory: &str) -> bool {
        self.references(directory).is_some_and(|references| references.is_component)
    }

    fn references(&self, directory: &str) -> Option<&References> {
        self.0.get(directory)?.references.as_ref()
    }

    /// The directory itself, and those that its kustomization refers to, directly or through others.
    pub(super) fn reached_from(&self, directory: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        self.reach(directory, &mut reached);
        reached
    }

    fn reach<'a>(&'a self, directory: &str, reached: &mut BTreeSet<&'a str>) {
        let mut open = vec![directory];
        while let Some(directory) = open.pop() {
            let Some((directory, _)) = self.0.get_key_value(directory) else { continue };
            if reached.insert(directory) {
                open.extend(self.references(directory).iter().flat_map(|references| &references.paths).map(String::as_str));
            }
        }
    }

    /// The directories to build; `candidates` are the names of the kustomization files that are files of the source.
    pub(super) fn roots(&self, candidates: &[String], view: &View<'_>, layers: &Layers) -> Roots {
        let mut roots = Roots::default();
        let mut others = BTreeSet::new();
        for file in candidates.iter().filter(|file| layers.is_empty() || layers.rank(file).is_some()) {
            let path = view.around.path_of(file);
            let directory = parent(&path).to_owned();
            if layers.paths().any(|(path, below)| !below && (path == parent(file) || path == *file)) {
                roots.named.insert(directory);
            } else {
                others.insert(directory);
            }
        }
        roots.directories.clone_from(&roots.named);
        let mut all = BTreeSet::new();
        others.iter().chain(&roots.named).for_each(|directory| self.reach(directory, &mut all));
        roots.unreadable = all
            .iter()
            .filter(|directory| self.references(directory).is_none())
            .filter_map(|directory| self.file(directory))
            .map(str::to_owned)
            .collect();
        let referred: BTreeSet<&str> = all
            .iter()
            .flat_map(|directory| {
                self.references(directory).into_iter().flat_map(|found| &found.paths).filter(move |path| path != directory)
            })
            .map(String::as_str)
            .collect();
        let (inner, outer): (Vec<&String>, Vec<&String>) =
            others.iter().partition(|directory| referred.contains(directory.as_str()));
        let mut covered = BTreeSet::new();
        roots.named.iter().for_each(|directory| self.reach(directory, &mut covered));
        for directory in outer.into_iter().chain(inner) {
            if !covered.contains(directory.as_str()) {
                self.reach(directory, &mut covered);
                roots.directories.insert(directory.clone());
            }
        }
        roots
    }
}
