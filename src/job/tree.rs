//! The only files that a job sees: one directory.

use podstead_sys::mount_tree::{self, EventFlow, Submounts};
use rustix::mount::MountAttrFlags;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Use that a job may make of its files, apart from their owners and modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads them.
    Read,
    /// It makes and changes them, too.
    Write,
}

/// The mount of `tree` alone, from which nothing can be executed and no device opened.
pub fn detached(tree: &Path, access: Access) -> io::Result<OwnedFd> {
    let mount = mount_tree::clone_mount(rustix::fs::CWD, tree, Submounts::Leave)?;
    mount_tree::set_event_flow(&mount, EventFlow::Private)?;
    let mut flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    if access == Access::Read {
        flags |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    mount_tree::set_flags(&mount, flags, Submounts::Leave)?;
    Ok(mount)
}
