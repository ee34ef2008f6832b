//! Deleting a directory whose content somebody else controls: without following a symlink, without leaving the file system mount,
//! with bounded memory, descriptors and stack whatever the depth.

use super::beneath::open_directory;
use rustix::fs::{AtFlags, Dir, FileType, renameat, unlinkat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Directories opened inside each other before what lies deeper is moved up to the top first.
const MAX_DEPTH: usize = 64;

/// Deletes `directory` and all in it. NotFound is success. Something mounted in it is left alone, with all that is around it, and
/// reported as EBUSY or EXDEV.
pub fn remove_tree(directory: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "path has no file name"));
    };
    let parent = match File::open(parent) {
        Ok(parent) => parent,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    remove_directory(parent.as_fd(), &CString::new(name.as_encoded_bytes())?)
}

/// Deletes `name` in `parent`, of any type; a directory as [`remove_tree`] does. NotFound is success.
pub fn remove_at(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    let name = CString::new(name)?;
    match unlinkat(parent, &name, AtFlags::empty()) {
        Err(Errno::ISDIR) => remove_directory(parent, &name),
        result => ignore_absent(result),
    }
}

fn remove_directory(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let top = match open_directory(parent, name) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut moved = 0;
    // Directories that are too deep are moved to the top, for one more round.
    while !empty(&top, &top, 0, &mut moved)? {}
    ignore_absent(unlinkat(parent, name, AtFlags::REMOVEDIR))
}

/// Empties one directory. False when something was moved to `top` instead of being deleted.
fn empty(directory: &OwnedFd, top: &OwnedFd, depth: usize, moved: &mut u64) -> io::Result<bool> {
    let mut complete = true;
    let mut entries = Dir::read_from(directory)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let is_directory = match entry.file_type() {
            FileType::Directory => true,
            // Not every file system tells.
            FileType::Unknown => open_directory(directory, name).is_ok(),
            _ => false,
        };
        if !is_directory {
            ignore_absent(unlinkat(directory, name, AtFlags::empty()))?;
        } else if depth >= MAX_DEPTH {
            move_up(directory, name, top, moved)?;
            complete = false;
        } else {
            let child = open_directory(directory, name)?;
            complete &= empty(&child, top, depth + 1, moved)?;
            drop(child);
            ignore_absent(unlinkat(directory, name, AtFlags::REMOVEDIR))?;
        }
    }
    Ok(complete)
}

/// Moves a directory that lies too deep to the top, under a name that is free.
fn move_up(directory: &OwnedFd, name: &CStr, top: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    loop {
        *moved += 1;
        match renameat(directory, name, top, format!(".removing-{moved}")) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            other => return ignore_absent(other),
        }
    }
}

fn ignore_absent(result: Result<(), Errno>) -> io::Result<()> {
    match result {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_private_mounts;
    use rustix::fs::Mode;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn all_kinds_of_entries_are_removed_and_symlinks_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (tree, outside) = (root.path().join("tree"), root.path().join("outside"));
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        fs::write(tree.join("a/file"), "x").unwrap();
        symlink(&outside, tree.join("a/link")).unwrap();
        symlink("../outside/kept", tree.join("file-link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, tree.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.try_exists().unwrap());
        assert_eq!(fs::read(outside.join("kept")).unwrap(), b"x");
        remove_tree(&tree).unwrap();
        remove_tree(&root.path().join("no/where")).unwrap();
    }

    #[test]
    fn a_symlink_in_place_of_the_tree_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("outside")).unwrap();
        fs::write(root.path().join("outside/kept"), "x").unwrap();
        symlink("outside", root.path().join("tree")).unwrap();
        remove_tree(&root.path().join("tree")).unwrap_err();
        assert!(root.path().join("outside/kept").try_exists().unwrap());
    }

    #[test]
    fn a_tree_that_is_deeper_than_any_path_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let tree = root.path().join("tree");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join(".removing-1"), "a name that the removal wants").unwrap();
        let mut directory: OwnedFd = File::open(&tree).unwrap().into();
        for _ in 0..20_000 {
            rustix::fs::mkdirat(&directory, "deep", Mode::from_raw_mode(0o700)).unwrap();
            directory = open_directory(&directory, c"deep").unwrap();
        }
        drop(directory);
        remove_tree(&tree).unwrap();
        assert!(!tree.try_exists().unwrap());
    }

    #[test]
    fn a_name_is_removed_whatever_it_is() {
        let root = tempfile::tempdir().unwrap();
        let parent = File::open(root.path()).unwrap();
        fs::create_dir_all(root.path().join("directory/below")).unwrap();
        fs::write(root.path().join("file"), "x").unwrap();
        symlink("file", root.path().join("link")).unwrap();
        for name in ["link", "directory", "absent"] {
            remove_at(parent.as_fd(), name.as_bytes()).unwrap();
        }
        let left: Vec<_> = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["file"]);
    }

    #[test]
    fn what_is_mounted_in_the_tree_is_left_alone() {
        in_private_mounts("remove_tree::tests::what_is_mounted_in_the_tree_is_left_alone", || {
            let root = tempfile::tempdir().unwrap();
            let (tree, outside) = (root.path().join("tree"), root.path().join("outside"));
            fs::create_dir_all(tree.join("bound")).unwrap();
            fs::create_dir(&outside).unwrap();
            fs::write(outside.join("kept"), "x").unwrap();
            // The same file system, so that only the mount tells them apart.
            crate::mounts::bind_descriptor(File::open(&outside).unwrap(), &tree.join("bound")).unwrap();
            let error = remove_tree(&tree).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EXDEV), "{error}");
            assert_eq!(fs::read(outside.join("kept")).unwrap(), b"x");
        });
    }
}
