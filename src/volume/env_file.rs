//! Reading a file that an init container left in an emptyDir volume.

use podstead_sys::beneath::open_beneath;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::Path;

/// As the kubelet's limit for env files.
const MAX_BYTES: u64 = 64 * 1024;

/// The file's content, `None` when it is not there. Nothing outside of `volume` is read, and nothing is waited for (there may be a FIFO).
pub(super) fn read(volume: &Path, path: &Path) -> io::Result<Option<Vec<u8>>> {
    let base = rustix::fs::open(volume, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let found = match open_beneath(&base, path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
        found => found?,
    };
    if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    // Opened by descriptor: the name may lead elsewhere by now.
    let file = File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
    let mut content = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {MAX_BYTES} bytes")));
    }
    Ok(Some(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_of_the_volume_are_read() {
        let root = tempfile::tempdir().unwrap();
        let volume = root.path().join("v");
        fs::create_dir(&volume).unwrap();
        fs::write(root.path().join("outside"), "secret").unwrap();
        fs::write(volume.join("file"), "A='1'").unwrap();
        symlink("file", volume.join("link")).unwrap();
        symlink("../outside", volume.join("out")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, volume.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        fs::write(volume.join("large"), vec![b'#'; 70_000]).unwrap();
        for name in ["file", "link"] {
            assert_eq!(read(&volume, Path::new(name)).unwrap().as_deref(), Some(&b"A='1'"[..]));
        }
        assert_eq!(read(&volume, Path::new("none")).unwrap(), None);
        for name in ["out", "fifo", "large", "."] {
            read(&volume, Path::new(name)).unwrap_err();
        }
    }
}
