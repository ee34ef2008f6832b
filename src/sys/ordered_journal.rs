//! File systems whose journal keeps the order of changes, and what may be left to it.
//!
//! On these, a name becomes durable together with all names that were changed before it, and with their files as far as they have been written
//! back. So content that is written back before a rename needs no sync of its own: one sync after the rename makes everything durable, and whatever
//! part of it a power cut finds on disk, the name leads to the old or to the new content.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Reports whether the file system of `path` has a journal that keeps the order of changes: XFS has, and ext4 unless it was made without a journal.
/// Others, such as btrfs and F2FS, may keep what was synced alone. False if the kernel does not tell.
pub fn keeps_order(path: &Path) -> bool {
    const EXT4: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    match rustix::fs::statfs(path).map(|system| system.f_type as u64) {
        Ok(XFS) => true,
        Ok(EXT4) => fs::metadata(path).is_ok_and(|metadata| has_journal(metadata.dev())),
        Ok(_) | Err(_) => false,
    }
}

/// Reports whether the ext4 on a device has a journal: then a thread of the kernel writes it.
fn has_journal(device: u64) -> bool {
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let task = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).and_then(|device| {
        let name = device.file_name().ok_or(io::ErrorKind::NotFound)?;
        fs::read_to_string(Path::new("/sys/fs/ext4").join(name).join("journal_task"))
    });
    task.is_ok_and(|task| task.trim().parse::<u32>().is_ok())
}

/// Writes the content of a file to its place on disk, and waits for it. Neither the size of the file nor its name are durable then; both are with the
/// next change that is synced, if the file system [keeps the order](keeps_order).
///
/// # Errors
///
/// Errors of the disk, each reported once for all descriptors of this file: a later sync may succeed in spite of it.
pub(crate) fn write_back(file: &File) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    match sync_file_range(file.as_fd(), flags) {
        // Refused before anything was written, by a filter of system calls for example.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EINVAL)) => file.sync_all(),
        other => other,
    }
}

/// Waits for what of a file is being written to its place on disk, and has the kernel begin to write the rest.
///
/// # Errors
///
/// Errors of the disk, each reported once for this descriptor.
pub fn write_back_next(file: BorrowedFd<'_>) -> io::Result<()> {
    sync_file_range(file, libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE)
}

#[expect(unsafe_code, reason = "no crate wraps sync_file_range")]
fn sync_file_range(file: BorrowedFd<'_>, flags: libc::c_uint) -> io::Result<()> {
    let (start, to_the_end) = (0, 0);
    // SAFETY: the call takes numbers only; the descriptor is open during the call.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), start, to_the_end, flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn memory_keeps_no_order() {
        assert!(!keeps_order(Path::new("/proc")));
        assert!(!keeps_order(Path::new("/dev/shm")));
        assert!(!keeps_order(Path::new("/nowhere")));
    }

    #[test]
    fn device_without_ext4_has_no_journal() {
        assert!(!has_journal(nix::sys::stat::makedev(0, 0)));
    }

    #[test]
    fn content_is_written_back() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"content").unwrap();
        write_back_next(file.as_fd()).unwrap();
        write_back(&file).unwrap();
        // A pipe has no place on disk.
        let (reader, _writer) = io::pipe().unwrap();
        write_back(&File::from(std::os::fd::OwnedFd::from(reader))).unwrap_err();
    }
}
