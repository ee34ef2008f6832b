//! Removes a tree whose content nobody vouches for.

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// Removes `name` in `directory` and everything below it, following no symlink. NotFound is success.
///
/// Needs one open directory per level: layers are not deeper than [`super::Limits::depth`].
pub(super) fn remove_at(directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        Err(Errno::NOENT) => return Ok(()),
        result => return result,
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(directory, name, flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&opened)? {
        let entry = entry?;
        match entry.file_name().to_bytes() {
            b"." | b".." => {}
            name => names.push(name.to_vec()),
        }
    }
    for name in names {
        remove_at(opened.as_fd(), &name)?;
    }
    unlinkat(directory, name, AtFlags::REMOVEDIR)
}

/// Removes the tree at `path`. NotFound is success.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    match std::fs::File::open(parent) {
        Ok(parent) => Ok(remove_at(parent.as_fd(), name.as_bytes())?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
