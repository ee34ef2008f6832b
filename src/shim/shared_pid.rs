//! `shareProcessNamespace`: a PID namespace for the pod, with a first process that does nothing but reap.

use super::container::Handle;
use crate::runtime::protocol::ShimConfig;
use crate::sys::namespaces::{self, Namespace, NamespaceError};
use crate::sys::process::{Fork, exit_at_once, fork};
use crate::sys::self_exec::OWN_BINARY;
use nix::sched::CloneFlags;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

/// The first process of the pod's PID namespace. When it ends, the kernel kills all others in it.
#[derive(Debug)]
pub(super) struct SharedPidInit {
    handle: Handle,
}

impl SharedPidInit {
    /// Starts the process and pins its namespace beside the others.
    pub(super) fn start(config: &ShimConfig) -> Result<Self, NamespaceError> {
        let refused = |source| NamespaceError::Unshare(vec![Namespace::Pid], source);
        let (paths, uid) = (config.paths(), &config.spec.uid);
        let program = CString::new(OWN_BINARY).map_err(|_| refused(nix::Error::EINVAL))?;
        let directory = CString::new(paths.pod_run(uid).as_os_str().as_bytes()).map_err(|_| refused(nix::Error::EINVAL))?;
        let handle = match fork(CloneFlags::CLONE_NEWPID).map_err(refused)? {
            Fork::Child => {
                // By the working directory, so that its command line, which containers see, does not name the host's.
                let arguments = [c"podstead-shim", c"init"];
                if nix::unistd::chdir(directory.as_c_str()).is_ok() {
                    let _failed = nix::unistd::execve::<_, &std::ffi::CStr>(&program, &arguments, &[]);
                }
                exit_at_once(1)
            }
            Fork::Parent(pid) => Handle::new(pid),
        };
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
