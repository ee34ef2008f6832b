//! Lists of directories for those who look again and again.

use rustix::fs::{Dir, Mode, OFlags, open};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Paths of all that is in a directory, in no order. The look leaves nothing to be written: the kernel would note the time of the first one after each
/// change, and of one in each day.
pub fn paths_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = match open(directory, flags | OFlags::NOATIME, Mode::empty()) {
        // It belongs to somebody else, and this process may not do everything.
        Err(Errno::PERM) => open(directory, flags, Mode::empty())?,
        opened => opened?,
    };
    let mut paths = Vec::new();
    for entry in Dir::new(opened)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            paths.push(directory.join(OsStr::from_bytes(name)));
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn look_leaves_no_time_of_access() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a", ".b"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        // Older than any change: the next ordinary look would be noted.
        let old = rustix::fs::Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
        let times = rustix::fs::Timestamps { last_access: old, last_modification: old };
        rustix::fs::utimensat(rustix::fs::CWD, directory.path(), &times, rustix::fs::AtFlags::empty()).unwrap();
        let mut found = paths_in(directory.path()).unwrap();
        found.sort();
        assert_eq!(found, [".b", "a"].map(|name| directory.path().join(name)));
        assert_eq!(directory.path().metadata().unwrap().atime(), 1_000_000_000);
        assert_eq!(paths_in(&directory.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(paths_in(&directory.path().join("a")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }
}
