//! File systems on media that this process mounts for itself, to read them.
//!
//! The mount has no place in any tree of mounts: nobody else sees it, there is nothing to clean up, and it ends with the last open file on it. It is
//! read-only, and without device nodes, symbolic links, and programs that gain rights. The kernel still interprets what somebody wrote on the medium.

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen,
};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Bytes of a medium that tell the type of its file system.
const START: u64 = 2048;

/// Mounts the vfat, exfat or ext file system of a block device; returns the directory at its top.
pub fn mount_medium(device: &Path) -> io::Result<OwnedFd> {
    // Opening a device may wait for it, as for a modem.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let opened = File::options().read(true).custom_flags(flags).open(device)?;
    if !opened.metadata()?.file_type().is_block_device() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a block device"));
    }
    let mut start = Vec::new();
    opened.take(START).read_to_end(&mut start)?;
    let kind = kind_of(&start)
        .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "its file system is none of vfat, exfat, ext2, ext3 and ext4"))?;
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", device)?;
    fsconfig_set_flag(&context, "ro")?;
    if kind == "ext4" {
        // Else the journal would be written back, also to a medium that is mounted read-only.
        fsconfig_set_flag(&context, "noload")?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC
        | MountAttrFlags::MOUNT_ATTR_NOATIME
        | MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// The driver for the file system that begins so (pure). That for ext4 reads ext2 and ext3, too.
fn kind_of(start: &[u8]) -> Option<&'static str> {
    let is = |at: usize, magic: &[u8]| start.get(at..at + magic.len()) == Some(magic);
    if is(3, b"EXFAT   ") {
        Some("exfat")
    } else if is(510, &[0x55, 0xaa]) && (is(54, b"FAT") || is(82, b"FAT32")) {
        Some("vfat")
    } else if is(1080, &[0x53, 0xef]) {
        Some("ext4")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_media_are_told_apart() {
        let with = |parts: &[(usize, &[u8])]| {
            let mut start = vec![0; 2048];
            for (at, bytes) in parts {
                start[*at..*at + bytes.len()].copy_from_slice(bytes);
            }
            start
        };
        let boot: (usize, &[u8]) = (510, &[0x55, 0xaa]);
        assert_eq!(kind_of(&with(&[(3, b"EXFAT   "), boot])), Some("exfat"));
        assert_eq!(kind_of(&with(&[(82, b"FAT32   "), boot])), Some("vfat"));
        assert_eq!(kind_of(&with(&[(54, b"FAT16   "), boot])), Some("vfat"));
        assert_eq!(kind_of(&with(&[(1080, &[0x53, 0xef])])), Some("ext4"));
        // A table of partitions.
        assert_eq!(kind_of(&with(&[boot])), None);
        assert_eq!(kind_of(b"short"), None);
    }

    #[test]
    fn what_is_no_block_device_is_not_mounted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(mount_medium(file.path()).unwrap_err().to_string(), "it is not a block device");
        assert_eq!(mount_medium(Path::new("/dev/null")).unwrap_err().to_string(), "it is not a block device");
    }
}
