//! `fsGroup`: volumes that belong to a group, as the kubelet gives them (rule of `SetVolumeOwnership`).

use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, chownat, fchmod, fchown, fstat, openat};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

const ANYBODY: u32 = 0o777;
const SET_GROUP: u32 = 0o2000;
/// Minimum mode bits of the group for a directory and for a file.
const GROUP_ENTERS: u32 = SET_GROUP | 0o770;
const GROUP_WRITES: u32 = 0o660;
/// Directories opened inside each other; what lies deeper keeps its owner.
const MAX_DEPTH: usize = 256;

/// `fsGroupChangePolicy`: when the content of a volume is given to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangePolicy {
    /// Each time.
    Always,
    /// Only if the volume itself is not the group's.
    OnRootMismatch,
}

/// Lets everybody into a volume that was made just now.
pub(super) fn open_to_all(directory: &Path) -> io::Result<()> {
    allow(directory, ANYBODY)
}

/// Gives the volume to a group, inherited by what is made in it. Modes are only added to. The content goes first and the volume itself
/// last: after a crash in between the volume is not the group's yet, and all of it is done again.
pub(super) fn own(directory: &Path, group: u32, policy: ChangePolicy) -> io::Result<()> {
    let metadata = fs::metadata(directory)?;
    let is_groups = metadata.gid() == group && metadata.mode() & GROUP_ENTERS == GROUP_ENTERS;
    if is_groups && policy == ChangePolicy::OnRootMismatch {
        return Ok(());
    }
    let top = File::open(directory)?.into();
    give_content(&top, Gid::from_raw(group), 0)?;
    if metadata.gid() != group {
        fchown(&top, None, Some(Gid::from_raw(group)))?;
    }
    // Changing the owner may take the mode's set-group bit away.
    allow(directory, GROUP_ENTERS)
}

/// Adds bits to a directory's mode.
fn allow(directory: &Path, bits: u32) -> io::Result<()> {
    let mode = fs::metadata(directory)?.mode() & 0o7777;
    if mode & bits == bits { Ok(()) } else { fs::set_permissions(directory, fs::Permissions::from_mode(mode | bits)) }
}

/// Gives what is in a directory to the group, by descriptors and without following symlinks. What is right already is not written.
fn give_content(directory: &OwnedFd, group: Gid, depth: usize) -> io::Result<()> {
    let mut entries = Dir::read_from(directory)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let found = match openat(directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => continue,
            found => found?,
        };
        let stat = fstat(&found)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if !matches!(kind, FileType::Directory | FileType::RegularFile) {
            if stat.st_gid != group.as_raw() {
                chownat(&found, c"", None, Some(group), AtFlags::EMPTY_PATH)?;
            }
            continue;
        }
        // Only what was found to be no device: opening one acts on it, and a container may put one there at any moment.
        let by_descriptor = format!("/proc/self/fd/{}", found.as_raw_fd());
        let opened = openat(CWD, by_descriptor, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let is_directory = kind == FileType::Directory;
        if is_directory && depth < MAX_DEPTH {
            give_content(&opened, group, depth + 1)?;
        }
        if stat.st_gid != group.as_raw() {
            fchown(&opened, None, Some(group))?;
        }
        let mode = (stat.st_mode & 0o7777) | if is_directory { GROUP_ENTERS } else { GROUP_WRITES };
        if mode != stat.st_mode & 0o7777 || (is_directory && stat.st_gid != group.as_raw()) {
            fchmod(&opened, Mode::from_raw_mode(mode))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn seen(path: &Path) -> (u32, u32) {
        fs::symlink_metadata(path).map(|metadata| (metadata.gid(), metadata.mode() & 0o7777)).unwrap()
    }

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("v/a")).unwrap();
        fs::write(root.path().join("v/a/file"), "x").unwrap();
        fs::set_permissions(root.path().join("v/a/file"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(root.path().join("outside"), "x").unwrap();
        symlink("../outside", root.path().join("v/link")).unwrap();
        root
    }

    #[test]
    fn device_and_fifo_are_given_without_being_opened() {
        let root = tree();
        let volume = root.path().join("v");
        // A node of no driver: opening it fails.
        let (kind, mode) = (FileType::CharacterDevice, Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(CWD, volume.join("device"), kind, mode, rustix::fs::makedev(60, 255)).unwrap();
        // Opening it would wait for a writer.
        rustix::fs::mknodat(CWD, volume.join("fifo"), FileType::Fifo, mode, 0).unwrap();
        own(&volume, 4321, ChangePolicy::Always).unwrap();
        assert_eq!((seen(&volume.join("device")), seen(&volume.join("fifo"))), ((4321, 0o600), (4321, 0o600)));
    }

    #[test]
    fn everything_is_given_to_the_group_and_nothing_outside() {
        let root = tree();
        let volume = root.path().join("v");
        let outside = seen(&root.path().join("outside"));
        fs::set_permissions(&volume, fs::Permissions::from_mode(0o1711)).unwrap();
        own(&volume, 4321, ChangePolicy::OnRootMismatch).unwrap();
        assert_eq!(
            (seen(&volume), seen(&volume.join("a")), seen(&volume.join("a/file"))),
            ((4321, 0o3771), (4321, 0o2775), (4321, 0o660))
        );
        assert_eq!((seen(&volume.join("link")).0, seen(&root.path().join("outside"))), (4321, outside));
    }

    #[test]
    fn the_policy_says_whether_content_is_looked_at_again() {
        let root = tree();
        let volume = root.path().join("v");
        own(&volume, 4321, ChangePolicy::Always).unwrap();
        fs::write(volume.join("late"), "x").unwrap();
        rustix::fs::chown(volume.join("late"), None, Some(Gid::from_raw(1))).unwrap();
        // More than the group needs is no mismatch, less is.
        for (mode, gid, after) in [(0o3771, 1, 0o3771), (0o2750, 4321, 0o2770)] {
            fs::set_permissions(&volume, fs::Permissions::from_mode(mode)).unwrap();
            own(&volume, 4321, ChangePolicy::OnRootMismatch).unwrap();
            assert_eq!((seen(&volume.join("late")).0, seen(&volume).1), (gid, after));
        }
        rustix::fs::chown(volume.join("late"), None, Some(Gid::from_raw(1))).unwrap();
        own(&volume, 4321, ChangePolicy::Always).unwrap();
        assert_eq!(seen(&volume.join("late")).0, 4321);
        own(&volume, 99, ChangePolicy::OnRootMismatch).unwrap();
        assert_eq!((seen(&volume).0, seen(&volume.join("late")).0), (99, 99));
    }

    #[test]
    fn a_volume_of_any_depth_is_given_without_harm() {
        let root = tree();
        let mut innermost: OwnedFd = File::open(root.path().join("v/a")).unwrap().into();
        for _ in 0..20_000 {
            rustix::fs::mkdirat(&innermost, "d", Mode::from_raw_mode(0o700)).unwrap();
            innermost = openat(&innermost, "d", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        }
        drop(innermost);
        own(&root.path().join("v"), 4321, ChangePolicy::Always).unwrap();
        assert_eq!((seen(&root.path().join("v/a/d/d/d")).0, seen(&root.path().join("v/a/file")).0), (4321, 4321));
        // The standard library would need a stack as deep.
        podstead_sys::remove_tree::remove_tree(&root.path().join("v")).unwrap();
    }

    #[test]
    fn what_a_crash_left_half_done_is_done_again() {
        let root = tree();
        let volume = root.path().join("v");
        // The content was given, the volume itself not yet.
        give_content(&File::open(&volume).unwrap().into(), Gid::from_raw(4321), 0).unwrap();
        fs::write(volume.join("missed"), "x").unwrap();
        own(&volume, 4321, ChangePolicy::OnRootMismatch).unwrap();
        assert_eq!(seen(&volume.join("missed")).0, 4321);
    }
}
