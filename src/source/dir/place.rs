//! Identity of a directory, independent of its path.

use podstead_artifact::Place;
use rustix::fs::{AtFlags, StatxFlags};
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Device and inode, for seeing quickly that something else stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Identity of the file at `path`, symlinks followed; `None` if it cannot be determined.
    pub(super) fn at(path: &Path) -> Option<Self> {
        rustix::fs::stat(path).ok().map(|stat| Self { device: stat.st_dev, inode: stat.st_ino })
    }

    /// Identity of an open file.
    pub(super) fn of(file: BorrowedFd<'_>) -> rustix::io::Result<Self> {
        rustix::fs::fstat(file).map(|stat| Self { device: stat.st_dev, inode: stat.st_ino })
    }
}

/// The place of an open directory. Device and inode alone do not distinguish a directory from its successor: ext4 gives the inode of a
/// removed directory to the next one that is made. The time of birth does, where the file system knows it.
pub(super) fn place_of(directory: BorrowedFd<'_>) -> rustix::io::Result<Place> {
    let stat = rustix::fs::statx(directory, "", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::BTIME)?;
    let (major, minor, inode) = (stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino);
    let birth = if StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME) {
        format!("{}.{:09}", stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)
    } else {
        "unknown".to_owned()
    };
    Ok(Place(format!("device {major}:{minor} inode {inode} born {birth}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::fd::AsFd;

    fn place(path: &Path) -> Place {
        place_of(File::open(path).unwrap().as_fd()).unwrap()
    }

    #[test]
    fn a_directory_keeps_its_place_when_its_content_or_its_name_changes() {
        let base = tempfile::tempdir().unwrap();
        let (one, two) = (base.path().join("one"), base.path().join("two"));
        fs::create_dir(&one).unwrap();
        let before = place(&one);
        fs::write(one.join("p.yaml"), "x").unwrap();
        fs::rename(&one, &two).unwrap();
        assert_eq!(place(&two), before);
    }

    #[test]
    fn a_directory_made_anew_is_another_place() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("manifests");
        fs::create_dir(&path).unwrap();
        let before = place(&path);
        // Births within one tick of the kernel's clock are the same time.
        let birth = |place: &Place| place.0.rsplit_once(' ').unwrap().1.to_owned();
        let (probe, deadline) = (base.path().join("probe"), std::time::Instant::now() + std::time::Duration::from_secs(30));
        let born_now = || {
            fs::create_dir(&probe).unwrap();
            let now = birth(&place(&probe));
            fs::remove_dir(&probe).unwrap();
            now
        };
        while born_now() == birth(&before) {
            assert!(std::time::Instant::now() < deadline, "the file system knows no time of birth");
        }
        fs::remove_dir(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_ne!(place(&path), before);
    }
}
