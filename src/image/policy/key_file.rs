//! Files of the public keys that may sign images.

use super::super::registry::login::guarded_file;
use podstead_trust::image::ImageKey;
use std::path::{Path, PathBuf};

/// Most keys of a rule: each signature is tried with each key.
const KEYS_MAX: usize = 64;

/// A key and the file that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileKey {
    pub(super) path: PathBuf,
    pub(super) key: ImageKey,
}

/// Reads all keys of the files. An error names the file: with a part of the keys, a threshold would mean something else.
pub(super) fn read_keys(paths: &[PathBuf]) -> Result<Vec<FileKey>, String> {
    let mut keys: Vec<FileKey> = Vec::new();
    for path in paths {
        let found = read(path).map_err(|problem| format!("{}: {problem}", path.display()))?;
        // Written in two files, it is one key all the same.
        let is_new = |key: &ImageKey| !keys.iter().any(|known| known.key == *key);
        let new: Vec<ImageKey> = found.into_iter().filter(is_new).collect();
        keys.extend(new.into_iter().map(|key| FileKey { path: path.clone(), key }));
    }
    if keys.len() > KEYS_MAX {
        return Err(format!("{} keys in all, more than {KEYS_MAX}", keys.len()));
    }
    Ok(keys)
}

fn read(path: &Path) -> Result<Vec<ImageKey>, String> {
    let content = guarded_file(path)?.ok_or_else(|| "it does not exist".to_owned())?;
    ImageKey::parse_file(&content).map_err(|problem| problem.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn unusable_files_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.pub");
        let error = |path: &Path| read_keys(&[path.to_owned()]).unwrap_err();
        assert_eq!(error(&path), format!("{}: it does not exist", path.display()));
        std::fs::write(&path, "hello").unwrap();
        assert!(error(&path).contains("a.pub: line 1: it is not PEM"), "{}", error(&path));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(error(&path).contains("a.pub: others may write to it"), "{}", error(&path));
        assert!(error(directory.path()).contains("not a regular file"));
    }
}
