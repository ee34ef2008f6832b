//! A root directory of a process's own: in memory, with nothing of the host's files but what is put there.

use rustix::fs::{CWD, Mode, mkdirat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    move_mount, unmount,
};
use rustix::process::{chdir, fchdir, pivot_root};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The most that may be written there. The environment of a container alone may have megabytes.
const SIZE: &str = "64m";
const INODES: &str = "4096";

/// Mounts a new root with empty `directories` at `target`, an existing directory in the caller's own mount namespace. All users may pass it.
pub fn make(target: &Path, directories: &[&str]) -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in [("source", "podstead"), ("mode", "0755"), ("size", SIZE), ("nr_inodes", INODES)] {
        fsconfig_set_string(&context, name, value)?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    // Before Linux 6.15 nothing can be mounted on a detached mount.
    move_mount(&root, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    for directory in directories {
        mkdirat(&root, *directory, Mode::from_raw_mode(0o755))?;
    }
    Ok(root)
}

/// Makes `root` the root directory of this process, which must have one thread and a mount namespace of its own without shared mounts. The old root
/// is gone from the namespace.
pub fn enter(root: &OwnedFd) -> io::Result<()> {
    fchdir(root)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

/// Takes CAP_SYS_PTRACE out of the effective capabilities: `/proc/PID/root` of a process with more rights can then not be
/// followed.
pub fn forgo_tracing() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.effective.remove(CapabilitySet::SYS_PTRACE);
    Ok(set_capabilities(None, sets)?)
}

/// Makes all permitted capabilities effective.
pub fn use_all_capabilities() -> io::Result<()> {
    let now = capabilities(None)?;
    Ok(set_capabilities(None, CapabilitySets { effective: now.permitted, ..now })?)
}
