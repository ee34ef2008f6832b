//! Mounts held by a file descriptor (open_tree, mount_setattr), which no path can race with.
#![expect(unsafe_code, reason = "mount_setattr has no safe wrapper")]

use nix::errno::Errno;
use rustix::fs::{AtFlags, StatxFlags, statx};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag, fsmount, fsopen,
};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

/// Handling of the mounts below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submounts {
    /// Only the mount itself.
    Leave,
    /// All below too.
    Take,
}

/// Propagation of mount events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFlow {
    /// Neither in nor out.
    Private,
    /// In.
    Slave,
}

/// As the kernel's `struct mount_attr`, version 0.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Clones the mount at `path` (relative to `directory`), without attaching it anywhere; it goes when the descriptor and what was
/// opened through it are closed. A clone of a shared mount is its peer.
pub fn clone_mount(directory: impl AsFd, path: impl AsRef<Path>, submounts: Submounts) -> nix::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    if submounts == Submounts::Take {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    rustix::mount::open_tree(directory, path.as_ref(), flags).map_err(errno)
}

/// As [`clone_mount`], of what a descriptor names, whatever its path is or has become.
pub fn clone_descriptor(origin: impl AsFd, submounts: Submounts) -> nix::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    if submounts == Submounts::Take {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    rustix::mount::open_tree(origin, "", flags).map_err(errno)
}

/// A detached file system with an empty directory that nobody can put anything into.
pub fn empty_directory() -> nix::Result<OwnedFd> {
    let make = || {
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_flag(&context, "ro")?;
        fsconfig_create(&context)?;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)
    };
    make().map_err(errno)
}

/// Makes a cloned mount read-only, without device nodes and set-user-id bits.
pub fn set_read_only(tree: &OwnedFd) -> nix::Result<()> {
    forbid(tree, libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV, Submounts::Leave)
}

/// Makes a mount read-only for who comes by it.
pub fn forbid_writing(tree: &OwnedFd, submounts: Submounts) -> nix::Result<()> {
    forbid(tree, libc::MOUNT_ATTR_RDONLY, submounts)
}

/// Nothing can be executed by way of the mount.
pub fn forbid_execution(tree: &OwnedFd) -> nix::Result<()> {
    forbid(tree, libc::MOUNT_ATTR_NOEXEC, Submounts::Leave)
}

/// Sets flags of a mount. With one of the kinds of access times, the mount's own kind is replaced.
pub fn set_flags(tree: &OwnedFd, flags: MountAttrFlags, submounts: Submounts) -> nix::Result<()> {
    let times = MountAttrFlags::MOUNT_ATTR_NOATIME | MountAttrFlags::MOUNT_ATTR_STRICTATIME;
    let clear = if flags.intersects(times) { libc::MOUNT_ATTR__ATIME } else { 0 };
    let set = u64::from(flags.bits());
    set_attributes(tree, &MountAttributes { set, clear, propagation: 0, userns_fd: 0 }, submounts)
}

fn forbid(tree: &OwnedFd, set: u64, submounts: Submounts) -> nix::Result<()> {
    set_attributes(tree, &MountAttributes { set, clear: 0, propagation: 0, userns_fd: 0 }, submounts)
}

/// Mount and inode that a descriptor names: no two places have both in common.
pub fn identity(descriptor: impl AsFd) -> nix::Result<(u64, u64)> {
    let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
    let found = statx(descriptor, "", AtFlags::EMPTY_PATH, wanted).map_err(errno)?;
    Ok((found.stx_mnt_id, found.stx_ino))
}

/// Attaches a detached tree at the file or directory `name` in `directory`.
pub fn attach_in(tree: &OwnedFd, directory: impl AsFd, name: impl AsRef<Path>) -> nix::Result<()> {
    rustix::mount::move_mount(tree, "", directory, name.as_ref(), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).map_err(errno)
}

/// Sets how events travel between a cloned tree, submounts included, and its origin.
pub fn set_event_flow(tree: &OwnedFd, flow: EventFlow) -> nix::Result<()> {
    let propagation = match flow {
        EventFlow::Private => libc::MS_PRIVATE,
        EventFlow::Slave => libc::MS_SLAVE,
    };
    set_attributes(tree, &MountAttributes { set: 0, clear: 0, propagation, userns_fd: 0 }, Submounts::Take)
}

/// Makes the ids of a cloned tree, submounts as they are taken, those of a user namespace: 0 on disk is what is 0 in it. EINVAL where the kernel
/// or a file system cannot.
pub fn map_ids(tree: &OwnedFd, user_namespace: &OwnedFd, submounts: Submounts) -> nix::Result<()> {
    let descriptor = u64::try_from(user_namespace.as_raw_fd()).map_err(|_| Errno::EBADF)?;
    let attributes = MountAttributes { set: libc::MOUNT_ATTR_IDMAP, clear: 0, propagation: 0, userns_fd: descriptor };
    set_attributes(tree, &attributes, submounts)
}

/// Attaches a detached tree at `target`, an existing file or directory as the tree's root is.
pub fn attach(tree: &OwnedFd, target: &Path) -> nix::Result<()> {
    rustix::mount::move_mount(tree, "", rustix::fs::CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).map_err(errno)
}

/// Moves a tree, detached or mounted here, to the file or directory that `point` names, above what is mounted there. EINVAL for a tree
/// below a mount that has peers.
pub fn move_to(tree: &OwnedFd, point: &OwnedFd) -> nix::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(tree, "", point, "", flags).map_err(errno)
}

fn set_attributes(tree: &OwnedFd, attributes: &MountAttributes, submounts: Submounts) -> nix::Result<()> {
    let flags = match submounts {
        Submounts::Leave => libc::AT_EMPTY_PATH,
        Submounts::Take => libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
    };
    // SAFETY: the path is a static string, `attributes` is a live struct of the size given, and the descriptor is open.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size_of::<MountAttributes>(),
        )
    };
    Errno::result(result).map(drop)
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}
