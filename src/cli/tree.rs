//! Manifests on this machine, read as a source reads its place.
//!
//! `plan`, `render` and `validate --source` all read here, so that they see what the daemon sees.

use anyhow::{Context as _, anyhow, bail};
use podstead_artifact::{Artifact, FileContent, Layers};
use podstead_config::{Config, SourceConfig, SourcePlace};
use podstead_pod::Revision;
use podstead_source::dir;
use podstead_source::git::ReadLimits;
use podstead_source::git::work_tree::{self, WorkTree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The source with this name.
pub(super) fn named_source<'a>(name: &str, config: &'a Config) -> anyhow::Result<&'a SourceConfig> {
    let found = config.sources.iter().find(|source| source.name.as_str() == name);
    found.ok_or_else(|| anyhow!("no source {name:?} is configured"))
}

/// The source that reads from `path`: its directory, or the repository that `path` is a clone of; otherwise the only source.
pub(super) fn source_at<'a>(path: &Path, config: &'a Config) -> anyhow::Result<&'a SourceConfig> {
    let canonical = std::fs::canonicalize(path).ok();
    let clone = WorkTree::containing(path);
    let is_here = |source: &&SourceConfig| match &source.place {
        SourcePlace::Directory { path: configured, .. } => {
            *configured == path || (canonical.is_some() && std::fs::canonicalize(configured).ok() == canonical)
        }
        SourcePlace::Git(place) => clone.as_ref().is_some_and(|clone| clone.is_clone_of(&place.url.to_string())),
        SourcePlace::Http(_) => false,
    };
    let found: Vec<&SourceConfig> = config.sources.iter().filter(is_here).collect();
    match (found.as_slice(), config.sources.as_slice()) {
        ([source], _) => Ok(source),
        ([], [source]) => Ok(source),
        ([], []) => bail!("no source is configured"),
        ([], _) => bail!("several sources are configured and {} belongs to none of them: name one with --source", path.display()),
        (several, _) => {
            let names: Vec<&str> = several.iter().map(|source| source.name.as_str()).collect();
            bail!("several sources ({}) use {}: name one with --source", names.join(", "), path.display())
        }
    }
}

/// The directory or file below which a source would read, when `path` stands for its place. For a clone of a git source's repository this is
/// the source's `path` in it, wherever in the clone `path` is; any other directory stands for the source's `path` itself.
pub(super) fn root_of(place: &SourcePlace, path: &Path) -> PathBuf {
    match place {
        SourcePlace::Git(git) => match WorkTree::containing(path) {
            Some(clone) if clone.is_clone_of(&git.url.to_string()) => clone.root.join(&git.path),
            Some(_) | None => path.to_owned(),
        },
        SourcePlace::Directory { .. } | SourcePlace::Http(_) => path.to_owned(),
    }
}

/// The manifests that a source would deliver if its place were `root` (see [`root_of`]), those of its layers only.
pub(super) fn read_source(place: &SourcePlace, layers: &Layers, root: &Path) -> anyhow::Result<Artifact> {
    let all = match place {
        SourcePlace::Git(_) => work_tree::read(root, &ReadLimits::default())?,
        SourcePlace::Directory { .. } | SourcePlace::Http(_) => return read_directory(layers, root),
    };
    Ok(layers.select(&all)?)
}

/// The manifests that a directory source would deliver: without layers, those directly in the directory.
pub(super) fn read_directory(layers: &Layers, root: &Path) -> anyhow::Result<Artifact> {
    let all = if layers.is_empty() { dir::read_once(root)? } else { read_tree(root)? };
    Ok(layers.select(&all)?)
}

/// The manifests of `root`, a file or a directory, and of all directories below it, by path relative to it.
fn read_tree(root: &Path) -> anyhow::Result<Artifact> {
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
    Ok(Artifact { revision: Revision(String::new()), place: None, commit: None, files })
}

/// The subdirectories, without hidden ones and symlinks: a symlink may lead back.
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
