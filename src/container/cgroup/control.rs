//! Reading and writing the files of a cgroup. NotFound on reading is `None`: the group, or the controller, is not there.

use super::CgroupError;
use std::fs;
use std::io;
use std::path::Path;

/// Writes one value in one write(2), as the kernel wants it.
pub(super) fn write(path: &Path, value: &str) -> Result<(), CgroupError> {
    // Not `fs::write`: that would create a regular file in a fake root and truncate, which the kernel ignores.
    let failed = |source| CgroupError::Write { path: path.to_owned(), value: value.to_owned(), source };
    let mut file = fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
    io::Write::write_all(&mut file, value.as_bytes()).map_err(failed)
}

/// Reads a file whole.
pub(super) fn read(path: &Path) -> Result<Option<String>, CgroupError> {
    match fs::read_to_string(path) {
        Ok(content) => Ok(Some(content)),
        // ENODEV: the group was removed while the file was open.
        Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(nix::libc::ENODEV) => Ok(None),
        Err(source) => Err(CgroupError::Read { path: path.to_owned(), source }),
    }
}

/// Reads a number; `max` is `None`, as is what is not there.
pub(super) fn number(path: &Path) -> Result<Option<u64>, CgroupError> {
    Ok(read(path)?.and_then(|content| content.trim().parse().ok()))
}

/// Reads the number behind `key` in a file of `key value` lines.
pub(super) fn keyed(path: &Path, key: &str) -> Result<Option<u64>, CgroupError> {
    let content = read(path)?.unwrap_or_default();
    Ok(content
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == key)
        .and_then(|(_, value)| value.trim().parse().ok()))
}

/// Makes one directory; returns false if it was there.
pub(super) fn make(path: &Path) -> Result<bool, CgroupError> {
    match fs::create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(CgroupError::Make { path: path.to_owned(), source }),
    }
}

/// Names of the directories in `path`; empty when it is not there.
pub(super) fn children(path: &Path) -> Result<Vec<String>, CgroupError> {
    entries(path, |kind| kind.is_dir())
}

/// Names of the files in `path`; empty when it is not there.
pub(super) fn files(path: &Path) -> Result<Vec<String>, CgroupError> {
    entries(path, |kind| kind.is_file())
}

fn entries(path: &Path, is_wanted: fn(&fs::FileType) -> bool) -> Result<Vec<String>, CgroupError> {
    let failed = |source| CgroupError::Read { path: path.to_owned(), source };
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => break,
            Err(source) => return Err(failed(source)),
        };
        if is_wanted(&entry.file_type().map_err(failed)?) {
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}
