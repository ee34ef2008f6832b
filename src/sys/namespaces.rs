//! Namespaces that live without a process: pinned by bind mounts of their `/proc` files.

use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::stat::Mode;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A namespace that a pod pins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Namespace {
    /// Network.
    Net,
    /// System V IPC and POSIX queues.
    Ipc,
    /// Host name.
    Uts,
    /// Process ids.
    Pid,
    /// Users and groups, and what they may do.
    User,
}

impl Namespace {
    /// Its name under `/proc/<pid>/ns` and in the directory of pins.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Net => "net",
            Self::Ipc => "ipc",
            Self::Uts => "uts",
            Self::Pid => "pid",
            Self::User => "user",
        }
    }

    /// The flag that makes or enters it.
    pub fn flag(self) -> CloneFlags {
        match self {
            Self::Net => CloneFlags::CLONE_NEWNET,
            Self::Ipc => CloneFlags::CLONE_NEWIPC,
            Self::Uts => CloneFlags::CLONE_NEWUTS,
            Self::Pid => CloneFlags::CLONE_NEWPID,
            Self::User => CloneFlags::CLONE_NEWUSER,
        }
    }
}

/// Error of a namespace operation.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The kernel did not make it.
    #[error("create namespaces {0:?}")]
    Unshare(Vec<Namespace>, #[source] nix::Error),
    /// The directory of pins or a file in it could not be made.
    #[error("make {}", _0.display())]
    MakePin(PathBuf, #[source] io::Error),
    /// The bind mount failed.
    #[error("pin namespace at {}", _0.display())]
    Pin(PathBuf, #[source] nix::Error),
    /// The host name was refused.
    #[error("set host name {0:?}")]
    Hostname(String, #[source] nix::Error),
    /// A sysctl was refused.
    #[error("set sysctl {0}")]
    Sysctl(String, #[source] io::Error),
}

/// Moves this process, which must have one thread, into new namespaces.
pub fn make(namespaces: &[Namespace]) -> Result<(), NamespaceError> {
    let flags = namespaces.iter().fold(CloneFlags::empty(), |flags, namespace| flags | namespace.flag());
    unshare(flags).map_err(|source| NamespaceError::Unshare(namespaces.to_vec(), source))
}

/// Pins a namespace of process `pid` (`self` for the caller) in `directory`; an older pin of that name is replaced.
pub fn pin(pid: &str, namespace: Namespace, directory: &Path) -> Result<PathBuf, NamespaceError> {
    let target = directory.join(namespace.file_name());
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .and_then(|()| unpin(&target))
        .and_then(|()| File::create(&target).map(drop))
        .map_err(|source| NamespaceError::MakePin(target.clone(), source))?;
    let source = format!("/proc/{pid}/ns/{}", namespace.file_name());
    mount(Some(source.as_str()), &target, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .map_err(|source| NamespaceError::Pin(target.clone(), source))?;
    Ok(target)
}

/// Releases a pin. The namespace goes with its last process. One that is not there is success.
pub fn unpin(pin: &Path) -> io::Result<()> {
    loop {
        match umount2(pin, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW) {
            Ok(()) => {}
            Err(nix::Error::EINVAL | nix::Error::ENOENT) => break,
            Err(error) => return Err(error.into()),
        }
    }
    match fs::remove_file(pin) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Does `work` in the mount namespace of a process, and comes back. To be called by a process with one thread; its root and working directory
/// become the roots of the namespaces.
pub fn in_mounts_of<T>(process: &OwnedFd, work: impl FnOnce() -> T) -> nix::Result<T> {
    let home = open("/proc/self/ns/mnt", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    super::pidfd::enter_namespaces(process, CloneFlags::CLONE_NEWNS)?;
    let result = work();
    setns(home, CloneFlags::CLONE_NEWNS)?;
    Ok(result)
}

/// Sets the host name of this process's UTS namespace.
pub fn set_hostname(hostname: &str) -> Result<(), NamespaceError> {
    nix::unistd::sethostname(hostname).map_err(|source| NamespaceError::Hostname(hostname.to_owned(), source))
}

/// Sets a sysctl (`net.core.somaxconn` or `net/core/somaxconn`) of this process's namespaces.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), NamespaceError> {
    let error = |source| NamespaceError::Sysctl(name.to_owned(), source);
    let relative = sysctl_path(name).ok_or_else(|| error(io::Error::from(io::ErrorKind::InvalidInput)))?;
    fs::write(Path::new("/proc/sys").join(relative), value).map_err(error)
}

/// As sysctl(8): the first separator decides which is which, so that `net/ipv4/conf/eth0.1/forwarding` names an interface with a dot.
fn sysctl_path(name: &str) -> Option<String> {
    let dots_separate = match name.find(['.', '/']) {
        Some(at) => name.as_bytes()[at] == b'.',
        None => return None,
    };
    let swap = |c| match c {
        '.' if dots_separate => '/',
        '/' if dots_separate => '.',
        other => other,
    };
    let path: String = name.chars().map(swap).collect();
    path.split('/').all(|part| !part.is_empty() && part != "." && part != "..").then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctl_names_never_leave_proc_sys() {
        assert_eq!(sysctl_path("net.core.somaxconn").as_deref(), Some("net/core/somaxconn"));
        assert_eq!(sysctl_path("net/ipv4/conf/eth0.1/forwarding").as_deref(), Some("net/ipv4/conf/eth0.1/forwarding"));
        for bad in ["../etc/passwd", "net/../../x", "kernel", "", "/etc/passwd", "a..b"] {
            assert_eq!(sysctl_path(bad), None, "{bad}");
        }
    }
}
