//! Detection of writers of a file.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Returns true if some process has `file` open for writing. `file` itself must be open for reading only. Where the file system has no
/// leases (network file systems, some FUSE ones) the answer is `false`.
///
/// The kernel grants a read lease only when there is no writer; it is given back at once.
#[expect(unsafe_code, reason = "neither nix nor rustix has leases")]
pub fn is_open_for_writing(file: &File) -> io::Result<bool> {
    let control = |command: libc::c_int, argument: libc::c_int| {
        // SAFETY: these commands take an integer and touch no memory; the descriptor is open as long as `file` lives.
        match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // A writer that comes while the lease is held is announced by a signal: by SIGIO, which kills, unless another one is chosen.
    // SIGURG does nothing.
    control(F_SETSIG, libc::SIGURG)?;
    match control(libc::F_SETLEASE, F_RDLCK) {
        Ok(()) => control(libc::F_SETLEASE, F_UNLCK).map(|()| false),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EACCES | libc::EOPNOTSUPP)) => Ok(false),
        Err(error) => Err(error),
    }
}

const F_RDLCK: libc::c_int = libc::F_RDLCK as libc::c_int;
const F_UNLCK: libc::c_int = libc::F_UNLCK as libc::c_int;
/// Missing in `libc` for Linux; the same on all its architectures.
const F_SETSIG: libc::c_int = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_to_until_its_last_writer_closes_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let writer = File::create(&path).unwrap();
        let reader = File::open(&path).unwrap();
        assert!(is_open_for_writing(&reader).unwrap());
        drop(writer);
        assert!(!is_open_for_writing(&reader).unwrap());
        let appender = File::options().append(true).open(&path).unwrap();
        assert!(is_open_for_writing(&reader).unwrap());
        drop(appender);
        assert!(!is_open_for_writing(&reader).unwrap(), "asking leaves no trace");
    }
}
