//! `HOME` of a user by the container's own `/etc/passwd`.
//!
//! Read as text: the C library's look-up would load modules from the container's file system into this process.

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};

/// A longer file is not read to its end.
const MAX_PASSWD: u64 = 1 << 20;

/// The home directory of `uid`, `/` if it has none. `root` is the container's root directory.
pub(super) fn home_of(root: impl AsFd, uid: u32) -> String {
    read_passwd(root).ok().and_then(|text| find(&text, uid)).unwrap_or_else(|| "/".to_owned())
}

fn read_passwd(root: impl AsFd) -> io::Result<String> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let found = File::from(openat2(root, "etc/passwd", how)?);
    // Looked at before it is opened: a FIFO blocks, and a device acts (a watchdog starts, a tape rewinds).
    if !found.metadata()?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut bytes = Vec::new();
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?.take(MAX_PASSWD).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn find(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let found: u32 = fields.nth(2)?.parse().ok()?;
        let home = fields.nth(2)?;
        (found == uid && home.starts_with('/')).then(|| home.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sixth_field_of_the_users_line_is_its_home() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nweb:x:33:33::/var/www:/bin/false\nodd:x:7:7::relative:\n";
        assert_eq!(find(passwd, 0).as_deref(), Some("/root"));
        assert_eq!(find(passwd, 33).as_deref(), Some("/var/www"));
        assert_eq!(find(passwd, 7), None);
        assert_eq!(find(passwd, 1000), None);
    }

    #[test]
    fn socket_in_place_of_file_is_not_opened() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("etc")).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(root.path().join("etc/passwd")).unwrap();
        let refused = read_passwd(File::open(root.path()).unwrap()).unwrap_err();
        // The kernel would have said ENXIO.
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_link_out_of_the_root_stays_in_the_root() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("etc")).unwrap();
        std::os::unix::fs::symlink("/elsewhere/passwd", root.path().join("etc/passwd")).unwrap();
        std::fs::create_dir(root.path().join("elsewhere")).unwrap();
        std::fs::write(root.path().join("elsewhere/passwd"), "app:x:5:5::/app:\n").unwrap();
        let directory = File::open(root.path()).unwrap();
        assert_eq!(home_of(&directory, 5), "/app");
        assert_eq!(home_of(&directory, 6), "/");
    }
}
