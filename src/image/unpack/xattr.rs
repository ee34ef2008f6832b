//! Extended attributes of a layer: the ones to set, and the handling of failures.

use rustix::fs::{XattrFlags, fsetxattr, lsetxattr};
use rustix::io::Errno;
use std::io;
use std::os::fd::BorrowedFd;

/// overlayfs's mark that nothing below a directory shows.
pub const OPAQUE: &str = "trusted.overlay.opaque";

/// Target of attributes.
pub(super) enum Target<'a> {
    /// An open file or directory.
    Open(BorrowedFd<'a>),
    /// A path whose last component is not followed.
    Path(&'a [u8]),
}

/// Sets what a layer may set; returns how many the file system cannot store.
pub(super) fn set(target: &Target<'_>, xattrs: &[(Vec<u8>, Vec<u8>)]) -> io::Result<u64> {
    let mut lost = 0;
    for (name, value) in xattrs.iter().filter(|(name, _)| is_allowed(name)) {
        let result = match target {
            Target::Open(fd) => fsetxattr(fd, &name[..], value, XattrFlags::empty()),
            Target::Path(path) => lsetxattr(*path, &name[..], value, XattrFlags::empty()),
        };
        match result {
            Ok(()) => {}
            // user.* on a symlink or device is EPERM on every file system.
            Err(Errno::OPNOTSUPP | Errno::PERM) => lost += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(lost)
}

/// Not overlayfs's own, which would let a layer redirect or hide what is below it, and not this host's labels.
fn is_allowed(name: &[u8]) -> bool {
    let refused: [&[u8]; 3] = [b"trusted.overlay.", b"user.overlay.", b"security.selinux"];
    !refused.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlayfs_own_attributes_are_not_a_layers_to_set() {
        for name in ["trusted.overlay.opaque", "trusted.overlay.redirect", "user.overlay.metacopy", "security.selinux"] {
            assert!(!is_allowed(name.as_bytes()), "{name}");
        }
        for name in ["security.capability", "user.x", "trusted.x", "system.posix_acl_access"] {
            assert!(is_allowed(name.as_bytes()), "{name}");
        }
    }
}
