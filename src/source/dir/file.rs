//! Reading one file without being blocked, flooded or given half of it.

use podstead_artifact::FileBytes;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// File attributes that the kernel changes with a file's content. `touch` and `cp -p` cannot set the change time back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)),
            changed: (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(0)),
        }
    }

    /// Time from the last change to `now`; `None` if the change lies in the future, which says that the clocks disagree.
    pub(super) fn age(&self, now: SystemTime) -> Option<Duration> {
        let (seconds, nanoseconds) = (u64::try_from(self.changed.0).ok()?, u32::try_from(self.changed.1).ok()?);
        now.duration_since(UNIX_EPOCH + Duration::new(seconds, nanoseconds)).ok()
    }
}

/// Kind of file at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A regular file, symlinks followed.
    File(Stamp),
    /// A directory.
    Directory,
    /// Nothing.
    Absent,
    /// A file that cannot be read as a manifest, with the reason.
    Unusable(String),
}

/// Looks at `name` in `directory` without opening it: opening a device may already do something.
pub(super) fn look(directory: BorrowedFd<'_>, name: &Path) -> Seen {
    match rustix::fs::statat(directory, name, AtFlags::empty()) {
        Ok(stat) => seen(&stat),
        // A symlink that leads nowhere is not an absence: what it stood for is only out of reach.
        Err(Errno::NOENT) => match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Seen::Unusable("is a dangling symlink".to_owned()),
            Err(Errno::NOENT) => Seen::Absent,
            Err(errno) => Seen::Unusable(io::Error::from(errno).to_string()),
        },
        Err(errno) => Seen::Unusable(io::Error::from(errno).to_string()),
    }
}

fn seen(stat: &Stat) -> Seen {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Seen::File(Stamp::of(stat)),
        FileType::Directory => Seen::Directory,
        FileType::Fifo => Seen::Unusable("is a FIFO, not a regular file".to_owned()),
        FileType::Socket => Seen::Unusable("is a socket, not a regular file".to_owned()),
        FileType::CharacterDevice | FileType::BlockDevice => Seen::Unusable("is a device, not a regular file".to_owned()),
        FileType::Symlink | FileType::Unknown => Seen::Unusable("is not a regular file".to_owned()),
    }
}

/// Result of reading a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// The whole content and its stamp.
    Whole(FileBytes, Stamp),
    /// The file was written to while it was read.
    Unstable,
    /// The file was removed while it was read.
    Absent,
    /// The file cannot be read, with the reason.
    Unusable(String),
}

/// Reads `name` in `directory`, at most `max_bytes`.
pub(super) fn read(directory: BorrowedFd<'_>, name: &Path, max_bytes: u64) -> Reading {
    // Without O_NONBLOCK a FIFO that took the file's place would block for ever.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Reading::Absent,
        Err(errno) => return Reading::Unusable(io::Error::from(errno).to_string()),
    };
    read_open(&file, max_bytes).unwrap_or_else(|error| Reading::Unusable(error.to_string()))
}

fn read_open(file: &File, max_bytes: u64) -> io::Result<Reading> {
    let before = match seen(&rustix::fs::fstat(file)?) {
        Seen::File(stamp) => stamp,
        Seen::Unusable(reason) => return Ok(Reading::Unusable(reason)),
        Seen::Directory | Seen::Absent => return Ok(Reading::Unstable),
    };
    if before.size > max_bytes {
        return Ok(Reading::Unusable(format!("has {} bytes; a manifest may have at most {max_bytes}", before.size)));
    }
    let mut content = Vec::with_capacity(usize::try_from(before.size).unwrap_or(0).saturating_add(1));
    // One byte more than there should be shows that it grew.
    file.take(before.size + 1).read_to_end(&mut content)?;
    let after = seen(&rustix::fs::fstat(file)?);
    if after != Seen::File(before) || content.len() as u64 != before.size {
        return Ok(Reading::Unstable);
    }
    Ok(Reading::Whole(content.into(), before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn open(directory: &Path) -> File {
        File::open(directory).unwrap()
    }

    #[test]
    fn a_regular_file_is_read_wholly() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("p.yaml"), "kind: Pod").unwrap();
        let fd = open(directory.path());
        let Seen::File(stamp) = look(fd.as_fd(), Path::new("p.yaml")) else { panic!() };
        assert_eq!(read(fd.as_fd(), Path::new("p.yaml"), 9), Reading::Whole(b"kind: Pod".as_slice().into(), stamp));
    }

    #[test]
    fn a_file_above_the_limit_is_refused_with_both_numbers() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("p.yaml"), "kind: Pod").unwrap();
        let fd = open(directory.path());
        let Reading::Unusable(reason) = read(fd.as_fd(), Path::new("p.yaml"), 8) else { panic!() };
        assert!(reason.contains("9 bytes") && reason.contains('8'), "{reason}");
    }

    #[test]
    fn what_is_no_regular_file_is_refused_without_blocking() {
        let directory = tempfile::tempdir().unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, directory.path().join("fifo"), FileType::Fifo, 0o600.into(), 0).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(directory.path().join("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", directory.path().join("device")).unwrap();
        std::os::unix::fs::symlink("nothing", directory.path().join("dangling")).unwrap();
        std::os::unix::fs::symlink("loop", directory.path().join("loop")).unwrap();
        let fd = open(directory.path());
        for (name, word) in [
            ("fifo", "FIFO"),
            ("socket", "socket"),
            ("device", "device"),
            ("dangling", "is a dangling symlink"),
            ("loop", "symbolic links"),
        ] {
            let Seen::Unusable(reason) = look(fd.as_fd(), Path::new(name)) else { panic!("{name}") };
            assert!(reason.contains(word), "{name}: {reason}");
        }
        for name in ["fifo", "device"] {
            assert!(matches!(read(fd.as_fd(), Path::new(name), 10), Reading::Unusable(_)), "{name}");
        }
        assert_eq!(look(fd.as_fd(), Path::new("nothing")), Seen::Absent);
        assert_eq!(read(fd.as_fd(), Path::new("nothing"), 10), Reading::Absent);
    }

    #[test]
    fn a_change_that_keeps_size_and_modification_time_is_another_stamp() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("p.yaml");
        std::fs::write(&path, "one").unwrap();
        let fd = open(directory.path());
        let before = look(fd.as_fd(), Path::new("p.yaml"));
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        // A new inode, as an editor makes it, with the old time.
        std::fs::write(directory.path().join("q"), "two").unwrap();
        std::fs::rename(directory.path().join("q"), &path).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        assert_ne!(look(fd.as_fd(), Path::new("p.yaml")), before);
    }
}
