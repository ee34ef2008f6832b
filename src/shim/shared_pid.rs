//! `shareProcessNamespace`: a PID namespace for the pod, with a first process that does nothing but reap.
//!
//! In a pod with users of its own the namespace is theirs: else its containers could not mount `/proc`. A process in between enters their
//! user namespace, makes the first process as its own sibling, says its id, and ends.

use super::container::Handle;
use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, setns};
use nix::sys::stat::Mode;
use nix::sys::wait::waitpid;
use nix::unistd::{Gid, Pid, Uid, setgroups, setresgid, setresuid};
use podstead_container::protocol::ShimConfig;
use podstead_sys::namespaces::{self, Namespace, NamespaceError};
use podstead_sys::process::{Fork, exit_at_once, fork};
use podstead_sys::self_exec::OWN_BINARY;
use std::ffi::CString;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The first process of the pod's PID namespace. When it ends, the kernel kills all others in it.
#[derive(Debug)]
pub(super) struct SharedPidInit {
    handle: Handle,
}

impl SharedPidInit {
    /// Starts the process and pins its namespace beside the others, which are there.
    pub(super) fn start(config: &ShimConfig) -> Result<Self, NamespaceError> {
        let refused = |source| NamespaceError::Unshare(vec![Namespace::Pid], source);
        let (paths, uid) = (config.paths(), &config.spec.uid);
        let pid = match config.spec.first_host_id {
            None => start_init(&paths.pod_run(uid), CloneFlags::empty()),
            Some(_) => start_among_users(&paths.namespaces(uid).join(Namespace::User.file_name())),
        };
        let handle = Handle::new(pid.map_err(refused)?);
        namespaces::pin(&handle.pid.to_string(), Namespace::Pid, &paths.namespaces(uid))?;
        Ok(Self { handle })
    }

    pub(super) fn pid(&self) -> u32 {
        self.handle.pid
    }

    /// Kills the process, and with it all that are in its namespace.
    pub(super) fn kill(&self) {
        let _gone = self.handle.signal(libc::SIGKILL);
    }
}

/// `directory` is one that the process may enter, to mount its empty root there.
fn start_init(directory: &Path, flags: CloneFlags) -> nix::Result<u32> {
    let program = CString::new(OWN_BINARY).map_err(|_| nix::Error::EINVAL)?;
    let directory = CString::new(directory.as_os_str().as_bytes()).map_err(|_| nix::Error::EINVAL)?;
    match fork(CloneFlags::CLONE_NEWPID | flags)? {
        Fork::Child => {
            // By the working directory, so that its command line, which containers see, does not name the host's.
            let arguments = [c"podstead-shim", c"init"];
            if nix::unistd::chdir(directory.as_c_str()).is_ok() {
                let _failed = nix::unistd::execve::<_, &std::ffi::CStr>(&program, &arguments, &[]);
            }
            exit_at_once(1)
        }
        Fork::Parent(pid) => Ok(pid),
    }
}

fn start_among_users(users: &Path) -> nix::Result<u32> {
    let users = open(users, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    let (mut near, mut far) = UnixStream::pair().map_err(|_| nix::Error::EMFILE)?;
    match fork(CloneFlags::empty())? {
        Fork::Child => {
            drop(near);
            // Every user may enter /proc; the run directory is root's.
            let started = become_root_of(&users).and_then(|()| start_init(Path::new("/proc"), CloneFlags::CLONE_PARENT));
            let said = match started {
                Ok(pid) => i64::from(pid),
                Err(error) => -i64::from(error as i32),
            };
            let _parent_is_gone = far.write_all(&said.to_ne_bytes());
            exit_at_once(0)
        }
        Fork::Parent(between) => {
            drop(far);
            let mut said = [0; 8];
            let read = near.read_exact(&mut said);
            let _reaped = waitpid(Pid::from_raw(between.cast_signed()), None);
            read.map_err(|_| nix::Error::ECHILD)?;
            let said = i64::from_ne_bytes(said);
            u32::try_from(said).map_err(|_| nix::Error::from_raw(i32::try_from(-said).unwrap_or_default()))
        }
    }
}

fn become_root_of(users: &OwnedFd) -> nix::Result<()> {
    let (uid, gid) = (Uid::from_raw(0), Gid::from_raw(0));
    setns(users, CloneFlags::CLONE_NEWUSER)?;
    setgroups(&[])?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)
}
