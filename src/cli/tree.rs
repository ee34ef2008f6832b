//! A directory of manifests with all below it, as a source delivers a repository.

use crate::source::{Artifact, FileContent, Revision, dir};
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The manifests of `root`, a file or a directory, and of all directories below it, by path relative to it.
pub(super) fn read_tree(root: &Path) -> anyhow::Result<Artifact> {
    let mut files: BTreeMap<String, FileContent> = BTreeMap::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(below) = directories.pop() {
        // Joined with nothing, a path gets a slash at its end, which a file must not have.
        let path = if below.as_os_str().is_empty() { root.to_owned() } else { root.join(&below) };
        let found = dir::read_once(&path)?.files;
        files.extend(found.into_iter().map(|(name, content)| (below.join(name).display().to_string(), content)));
        if path.is_dir() {
            let deeper = subdirectories(&path).with_context(|| format!("list {}", path.display()))?;
            directories.extend(deeper.iter().filter_map(|path| path.file_name()).map(|name| below.join(name)));
        }
    }
    Ok(Artifact { revision: Revision(String::new()), place: None, files })
}

/// Hidden ones and symlinks are left out: a symlink may lead back.
pub(super) fn subdirectories(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && !entry.file_name().as_encoded_bytes().starts_with(b".") {
            found.push(entry.path());
        }
    }
    Ok(found)
}
