//! Limits of a build, the files that it reads, and the code of its findings. **Pure**.

use crate::Limits;
use std::collections::BTreeMap;

/// Class of the problems of a kustomization.
pub(in super::super) const CODE: &str = "kustomization";

/// The files of a source, read-only.
pub trait Files {
    /// Content of a file; `None` when there is no file at the path. The error is a message for the user.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String>;

    /// Reports whether there is a directory at a path; the empty path is the root.
    fn is_directory(&self, path: &str) -> bool;

    /// Name that people see for a path, in problems and origins.
    fn shown(&self, path: &str) -> String {
        path.to_owned()
    }
}

/// Files by path.
impl Files for BTreeMap<String, Vec<u8>> {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(self.get(path).cloned())
    }

    fn is_directory(&self, path: &str) -> bool {
        if path.is_empty() {
            return true;
        }
        let prefix = format!("{path}/");
        self.range(prefix.clone()..).next().is_some_and(|(known, _)| known.starts_with(&prefix))
    }
}

/// Limits of a build. The defaults fit any repository that a person writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildLimits {
    /// Limits of each file, and of each object after its patches.
    pub manifest: Limits,
    /// Files that are read.
    pub max_files: usize,
    /// Bytes of all files together.
    pub max_bytes: usize,
    /// Objects, those that patches remove included.
    pub max_objects: usize,
    /// Kustomizations inside of each other.
    pub max_depth: usize,
    /// Objects that patches and other transformers look at, each time counted.
    pub max_visits: usize,
}

impl Default for BuildLimits {
    fn default() -> Self {
        Self {
            manifest: Limits::default(),
            max_files: 5000,
            max_bytes: 64 << 20,
            max_objects: 5000,
            max_depth: 32,
            max_visits: 2_000_000,
        }
    }
}
