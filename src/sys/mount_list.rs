//! What is mounted in this mount namespace.

use nix::mount::{MntFlags, umount2};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Detaches every mount below `directory`, the latest first. The directory itself stays as it is.
pub fn detach_below(directory: &Path) -> io::Result<()> {
    let list = fs::read("/proc/self/mountinfo")?;
    for target in targets_below(&list, directory).into_iter().rev() {
        match umount2(&target, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW) {
            // Gone in between, or with a mount above it.
            Ok(()) | Err(nix::Error::EINVAL | nix::Error::ENOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn targets_below(list: &[u8], directory: &Path) -> Vec<PathBuf> {
    let field = |line: &[u8]| line.split(|byte| *byte == b' ').nth(4).map(unescape);
    let targets = list.split(|byte| *byte == b'\n').filter_map(field).map(|target| PathBuf::from(OsString::from_vec(target)));
    targets.filter(|target| target.starts_with(directory) && target != directory).collect()
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let octal =
            tail.first_chunk::<3>().filter(|digits| *first == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        match octal {
            Some([a, b, c]) => {
                bytes.push(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'));
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mounts_below_the_directory_are_named_also_with_odd_characters() {
        let list = b"22 1 8:1 / /run rw - ext4 /dev/sda rw\n\
            30 22 0:4 net:[1] /run/pods/a/ns/net rw - nsfs nsfs rw\n\
            31 22 0:5 / /run/pods/a rw - tmpfs tmpfs rw\n\
            32 22 0:6 / /run/pods/a/with\\040space rw - tmpfs tmpfs rw\n\
            33 22 0:7 / /run/pods/ab rw - tmpfs tmpfs rw\n";
        assert_eq!(
            targets_below(list, Path::new("/run/pods/a")),
            [PathBuf::from("/run/pods/a/ns/net"), PathBuf::from("/run/pods/a/with space")]
        );
    }
}
