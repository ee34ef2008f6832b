//! Rules for reading a tree of manifests, wherever it comes from: which files count, and how many and how large they may be. **Pure**.

use podstead_artifact::{FileContent, Surroundings, is_kustomization};
use std::collections::BTreeMap;
use std::path::Path;

/// Limits for reading a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Size of the largest manifest.
    pub max_file_bytes: u64,
    /// Size of all manifests together.
    pub max_total_bytes: u64,
    /// Number of manifests.
    pub max_files: usize,
    /// Number of names below the path, manifests or not.
    pub max_names: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { max_file_bytes: 10 << 20, max_total_bytes: 64 << 20, max_files: 10_000, max_names: 200_000 }
    }
}

impl ReadLimits {
    /// Reason why a file of this size that is no manifest is not read after that many bytes.
    pub(crate) fn refusal(&self, size: u64, before: u64) -> Option<String> {
        if size > self.max_file_bytes {
            return Some(format!("has {size} bytes; a file may have at most {}", self.max_file_bytes));
        }
        (before + size > self.max_total_bytes).then(|| format!("the source has more than {} bytes of files", self.max_total_bytes))
    }
}

/// Nesting depth of directories.
pub(crate) const MAX_DEPTH: usize = 64;

/// A pointer of Git LFS is a small file that begins so.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The files of a source at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeFiles {
    /// The manifests and kustomizations.
    pub(crate) files: BTreeMap<String, FileContent>,
    /// The other files, where there is a kustomization.
    pub(crate) beside: BTreeMap<String, FileContent>,
    /// Files outside of the source's path that its kustomizations refer to.
    pub(crate) around: Surroundings,
}

/// Resolves a symlink at `path` by its text alone; `None` if it leads out of the repository.
pub(crate) fn resolved(path: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let mut components: Vec<&str> = path.split('/').collect();
    components.pop();
    for component in target.split('/').filter(|component| !component.is_empty() && *component != ".") {
        if component == ".." {
            components.pop()?;
        } else {
            components.push(component);
        }
    }
    Some(components.join("/"))
}

/// Reports whether the content is a pointer of Git LFS.
pub(crate) fn is_lfs_pointer(content: &[u8]) -> bool {
    content.starts_with(LFS)
}

/// Reports whether a file of this name is a manifest or a kustomization.
pub(crate) fn is_manifest(name: &str) -> bool {
    is_kustomization(name)
        || Path::new(name)
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symlink_is_resolved_within_the_repository() {
        for (path, target, expected) in [
            ("a/link", "b", Some("a/b")),
            ("a/link", "../base/", Some("base")),
            ("a/link", "..", Some("")),
            ("link", "./x/../y", Some("y")),
            ("link", "..", None),
            ("link", "/etc", None),
        ] {
            assert_eq!(resolved(path, target).as_deref(), expected, "{path} {target}");
        }
    }
}
