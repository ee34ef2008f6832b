//! Manifests on this machine, read as a source reads its place.
//!
//! `plan`, `render` and `validate --source` all read here, so that they see what the daemon sees.

use anyhow::{anyhow, bail};
use podstead_artifact::layers::NoLayer;
use podstead_artifact::{Artifact, Layers};
use podstead_config::{Config, SourceConfig, SourcePlace};
use podstead_source::dir;
use podstead_source::git::ReadLimits;
use podstead_source::git::work_tree::{self, WorkTree};
use podstead_store::{CheckContext, Prepared, UndeltaStore, prepare};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

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
        SourcePlace::Http(_) | SourcePlace::Oci(_) | SourcePlace::Bundle(_) => false,
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
        SourcePlace::Directory { .. } | SourcePlace::Http(_) | SourcePlace::Oci(_) | SourcePlace::Bundle(_) => path.to_owned(),
    }
}

/// The files that a source would report if its place were `root` (see [`root_of`]); those of other layers may be among them.
pub(super) fn read_source(place: &SourcePlace, layers: &Arc<Layers>, root: &Path) -> anyhow::Result<Artifact> {
    match place {
        SourcePlace::Git(_) | SourcePlace::Oci(_) | SourcePlace::Bundle(_) => {
            // What the repository has is what the source has; a directory alone stands for the whole of it.
            let top = WorkTree::containing(root).map(|clone| clone.root);
            Ok(work_tree::read(root, top.as_deref(), &ReadLimits::default())?)
        }
        SourcePlace::Directory { .. } | SourcePlace::Http(_) => read_directory(layers, root),
    }
}

/// The files that a source of a bundle would report, where the bundle has this directory and nothing around it.
pub(super) fn read_tree(root: &Path) -> anyhow::Result<Artifact> {
    Ok(work_tree::read(root, None, &ReadLimits::default())?)
}

/// The files that a directory source would report: without layers, the manifests directly in the directory. A single file has no layers.
pub(super) fn read_directory(layers: &Arc<Layers>, root: &Path) -> anyhow::Result<Artifact> {
    Ok(if root.is_dir() { dir::read_layers_once(root, layers)? } else { dir::read_once(root)? })
}

/// The same, with what kustomizations refer to anywhere in the clone that `root` lies in, as a git source with this path has it; outside of
/// clones, anywhere on this machine.
pub(super) fn read_with_surroundings(layers: &Arc<Layers>, root: &Path) -> anyhow::Result<Artifact> {
    let mut artifact = read_directory(layers, root)?;
    if root.is_dir() {
        let top = WorkTree::containing(root).map_or_else(|| PathBuf::from("/"), |clone| clone.root);
        artifact.around = work_tree::surroundings(&top, root, &artifact.files, &ReadLimits::default())?;
    }
    Ok(artifact)
}

/// The path of a file that is named `file` in a source at `root`, as short as names allow: `..` takes a component away.
pub(super) fn path_of(root: &Path, file: &str) -> PathBuf {
    let mut path = root.to_owned();
    let mut rest = file;
    while let Some(below) = rest.strip_prefix("../") {
        match path.components().next_back() {
            Some(Component::Normal(_)) => path.pop(),
            Some(Component::CurDir) => {
                path.clear();
                break;
            }
            _ => break,
        };
        rest = below;
    }
    path.join(rest)
}

/// The files of `artifact`, which was read at `root`, ready to be checked. A single file is no directory that could be built.
pub(super) fn prepared(
    artifact: &Artifact,
    root: &Path,
    before: &UndeltaStore,
    context: &CheckContext,
) -> Result<Prepared, NoLayer> {
    if root.is_dir() {
        return prepare(artifact, before, context);
    }
    Ok(Prepared::without_kustomizations(context.layers.select(artifact)?))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_as_short_as_names_allow() {
        for (root, file, path) in [
            ("apps/overlays/dev", "web.yaml", "apps/overlays/dev/web.yaml"),
            ("apps/overlays/dev", "../../base/web.yaml", "apps/base/web.yaml"),
            ("apps", "../../web.yaml", "../web.yaml"),
            ("/srv/apps", "../web.yaml", "/srv/web.yaml"),
            ("./apps", "web.yaml", "./apps/web.yaml"),
            (".", "../web.yaml", "../web.yaml"),
            ("", "../web.yaml", "../web.yaml"),
            ("../apps", "../../web.yaml", "../../web.yaml"),
        ] {
            assert_eq!(path_of(Path::new(root), file), Path::new(path), "{root} {file}");
        }
    }
}
