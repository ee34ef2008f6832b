//! Executes the running binary again from a read-only clone of its mount, so that a container which gets hold of `/proc/<pid>/exe`
//! cannot open it for writing and change what the host runs next (CVE-2019-5736).
//!
//! No copy is made: the pages stay shared between all shims. Programs started through `/proc/self/exe` inherit the clone.

use crate::mount_tree;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, open};
use nix::sys::stat::Mode;
use nix::sys::statvfs::{FsFlags, fstatvfs};
use nix::unistd::execveat;
use std::convert::Infallible;
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Result, if the caller still runs.
#[derive(Debug, PartialEq, Eq)]
pub enum Protection {
    /// This process runs from a read-only mount.
    Protected,
    /// The kernel cannot do it (older than 5.12) or does not allow it; the process runs as it was started.
    Unavailable(Errno),
}

/// The path by which a process starts the binary that it runs itself, also when that was replaced or removed on disk.
pub const OWN_BINARY: &str = "/proc/self/exe";

/// Replaces this process with the same program, arguments and environment on a read-only mount; returns when that has been done before
/// or cannot be done. Must be called before there are threads, and before anything is opened that must not be opened twice.
pub fn run_from_read_only_mount() -> Protection {
    match is_read_only().and_then(|read_only| if read_only { Ok(()) } else { execute_read_only().map(|never| match never {}) }) {
        Ok(()) => Protection::Protected,
        Err(error) => Protection::Unavailable(error),
    }
}

/// A program on a read-only mount of its own: started through it, it needs not execute itself again.
#[derive(Debug)]
pub struct ReadOnlyBinary {
    tree: OwnedFd,
}

impl ReadOnlyBinary {
    /// Clones the mount of `binary`, as the file is now.
    pub fn open(binary: &Path) -> nix::Result<Self> {
        let tree = mount_tree::clone_mount(AT_FDCWD, binary, mount_tree::Submounts::Leave)?;
        mount_tree::set_read_only(&tree)?;
        Ok(Self { tree })
    }

    /// The path by which children of this process execute it while `self` lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.tree.as_raw_fd()).into()
    }
}

fn is_read_only() -> nix::Result<bool> {
    let binary = open(OWN_BINARY, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
    Ok(fstatvfs(&binary)?.flags().contains(FsFlags::ST_RDONLY))
}

fn execute_read_only() -> nix::Result<Infallible> {
    let ReadOnlyBinary { tree } = ReadOnlyBinary::open(Path::new(OWN_BINARY))?;
    let words = |words: Vec<std::ffi::OsString>| -> nix::Result<Vec<CString>> {
        words.into_iter().map(|word| CString::new(word.into_vec()).map_err(|_| Errno::EINVAL)).collect()
    };
    let arguments = words(std::env::args_os().collect())?;
    let environment = words(
        std::env::vars_os()
            .map(|(mut name, value)| {
                name.push("=");
                name.push(value);
                name
            })
            .collect(),
    )?;
    execveat(&tree, c"", &arguments, &environment, AtFlags::AT_EMPTY_PATH)
}
