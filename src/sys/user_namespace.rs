//! User namespaces: made by a child, mapped by its parent, pinned with the namespaces that belong to them.

use super::namespaces::{self, Namespace, NamespaceError};
use super::process::{Fork, exit_at_once, fork};
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::waitpid;
use nix::unistd::{Gid, Pid, Uid, setgroups, setresgid, setresuid};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Ids of one user namespace: all that a container may use.
pub const IDS: u32 = 65_536;

const DONE: u8 = b'+';

/// Reason why there is no user namespace.
#[derive(Debug, thiserror::Error)]
pub enum UserNamespaceError {
    /// No child, or no way to talk to it.
    #[error("start the first process of the user namespace")]
    Start(#[source] io::Error),
    /// The kernel refused the mapping.
    #[error("map the IDs of the user namespace from {first}")]
    Map {
        /// The host's id of its root.
        first: u32,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// Inside of it something went wrong.
    #[error("{0}")]
    Inside(String),
    /// A pin was refused.
    #[error(transparent)]
    Pin(NamespaceError),
}

/// Makes a user namespace whose ids 0 to 65535 are the host's from `first` on, and in it `own` namespaces, which it owns; runs `set_up` in
/// all of them as their root; pins all in `directory`. The caller, which must have one thread, stays where it is.
pub fn make_and_pin(
    first: u32,
    own: &[Namespace],
    directory: &Path,
    set_up: impl FnOnce() -> Result<(), NamespaceError>,
) -> Result<(), UserNamespaceError> {
    let (mut near, mut far) = UnixStream::pair().map_err(UserNamespaceError::Start)?;
    match fork(CloneFlags::empty()).map_err(|error| UserNamespaceError::Start(error.into()))? {
        Fork::Child => {
            drop(near);
            let said = match inside(&mut far, own, set_up) {
                Ok(()) => vec![DONE],
                Err(text) => text.into_bytes(),
            };
            // The parent closes its end when it has pinned all.
            let _parent_is_gone = far.write_all(&said).and_then(|()| far.shutdown(std::net::Shutdown::Write));
            let _parent_is_done = far.read(&mut [0]);
            exit_at_once(0)
        }
        Fork::Parent(pid) => {
            drop(far);
            let made = map_and_pin(&mut near, pid, first, own, directory);
            drop(near);
            let _reaped = waitpid(Pid::from_raw(pid.cast_signed()), None);
            made
        }
    }
}

fn map_and_pin(
    child: &mut UnixStream,
    pid: u32,
    first: u32,
    own: &[Namespace],
    directory: &Path,
) -> Result<(), UserNamespaceError> {
    let mut told = [0];
    match child.read(&mut told).map_err(UserNamespaceError::Start)? {
        1 if told[0] == DONE => {}
        _ => {
            let mut text = vec![told[0]];
            let _partial = child.read_to_end(&mut text);
            return Err(UserNamespaceError::Inside(String::from_utf8_lossy(&text).into_owned()));
        }
    }
    for file in ["uid_map", "gid_map"] {
        let mapped = fs::write(format!("/proc/{pid}/{file}"), format!("0 {first} {IDS}\n"));
        mapped.map_err(|source| UserNamespaceError::Map { first, source })?;
    }
    child.write_all(&[DONE]).map_err(UserNamespaceError::Start)?;
    let mut text = Vec::new();
    child.read_to_end(&mut text).map_err(UserNamespaceError::Start)?;
    if text != [DONE] {
        return Err(UserNamespaceError::Inside(String::from_utf8_lossy(&text).into_owned()));
    }
    for namespace in std::iter::once(&Namespace::User).chain(own) {
        namespaces::pin(&pid.to_string(), *namespace, directory).map_err(UserNamespaceError::Pin)?;
    }
    Ok(())
}

/// In the child. The error is for people.
fn inside(parent: &mut UnixStream, own: &[Namespace], set_up: impl FnOnce() -> Result<(), NamespaceError>) -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| format!("create a user namespace: {error}"))?;
    parent.write_all(&[DONE]).map_err(|error| error.to_string())?;
    let mut mapped = [0];
    parent.read_exact(&mut mapped).map_err(|_| "the user namespace was not mapped".to_owned())?;
    let (uid, gid) = (Uid::from_raw(0), Gid::from_raw(0));
    setgroups(&[])
        .and_then(|()| setresgid(gid, gid, gid))
        .and_then(|()| setresuid(uid, uid, uid))
        .map_err(|error| format!("become root of the user namespace: {error}"))?;
    namespaces::make(own).and_then(|()| set_up()).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{error}{cause}")
    })
}
