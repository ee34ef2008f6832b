//! Rights that a job gives up, once, at its start: each step needs what the next one takes away.

use crate::filter::{Call, Filter};
use crate::user::JobUser;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, dup2_stdout, setgroups, setresgid, setresuid};
use podstead_sys::empty_mounts::{EmptyMounts, is_namespace};
use podstead_sys::{jail, mount_tree};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

/// Rights that remain to the job `unpack`: it makes files of all owners and modes, devices and file capabilities, in its tree.
pub const UNPACK: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::SETFCAP);

/// Right that remains to the job `objects` in a repository of somebody else's: it reads files of all owners, in its tree, which it cannot change.
pub const READ_ALL: CapabilitySet = CapabilitySet::DAC_READ_SEARCH;

/// No rights at all, for jobs that only compute.
pub const NOTHING: CapabilitySet = CapabilitySet::empty();

/// Any directory that each host has: a root is mounted there first.
const MOUNT_POINT: &str = "/tmp";

/// The highest number of a capability that any kernel may have.
const LAST_CAPABILITY: u64 = 63;

/// Limits that a job sets itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rlimits {
    /// Bytes of memory beside the program itself. It is for hosts without a memory controller.
    pub memory: u64,
    /// Seconds of processor time.
    pub cpu_secs: u64,
    /// Open files.
    pub files: u64,
    /// Length of a file.
    pub file_bytes: u64,
}

/// Rights that a job keeps.
#[derive(Debug)]
pub struct Rights<'a> {
    /// The user that it becomes.
    pub user: JobUser,
    /// Its capabilities.
    pub keep: CapabilitySet,
    /// The only files that it can name: a detached mount.
    pub tree: &'a OwnedFd,
    /// Its limits.
    pub limits: Rlimits,
    /// Its system calls beside the common ones.
    pub calls: &'a [&'a [Call]],
}

/// Step at which the rights could not be given up: the job must not begin.
#[derive(Debug, thiserror::Error)]
#[error("{step}")]
pub struct ConfineError {
    /// The step.
    pub step: &'static str,
    /// The error of the kernel.
    #[source]
    pub source: io::Error,
}

fn at<E: Into<io::Error>>(step: &'static str) -> impl FnOnce(E) -> ConfineError {
    move |source| ConfineError { step, source: source.into() }
}

/// Gives up all but `rights`. The process must have one thread.
pub fn confine(rights: &Rights<'_>) -> Result<(), ConfineError> {
    // Built first: without a filter nothing else matters.
    let filter = Filter::of(rights.calls).map_err(at("make the filter of system calls"))?;
    // The caller's may be anything.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    limit(&rights.limits).map_err(at("set limits"))?;
    only_tree(rights.tree).map_err(at("leave the host's files"))?;
    become_user(rights.user, rights.keep).map_err(at("become another user"))?;
    filter.apply().map_err(at("restrict system calls"))
}

/// As [`confine`], for a job that asks servers: it has the network of the host, the files that `enter_root` leaves, and no capabilities.
pub fn confine_in_network(
    user: JobUser,
    limits: &Rlimits,
    enter_root: impl FnOnce() -> io::Result<()>,
) -> Result<(), ConfineError> {
    let filter = Filter::of_network().map_err(at("make the filter of system calls"))?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    limit(limits).map_err(at("set limits"))?;
    enter_root().map_err(at("leave the host's files"))?;
    become_user(user, NOTHING).map_err(at("become another user"))?;
    filter.apply().map_err(at("restrict system calls"))
}

/// As [`confine`], for a job that only computes: it has no capabilities, no network, the common system calls alone, and sees no file.
pub fn confine_without_files(user: JobUser, limits: &Rlimits) -> Result<(), ConfineError> {
    let filter = Filter::of(&[]).map_err(at("make the filter of system calls"))?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    limit(limits).map_err(at("set limits"))?;
    no_files().map_err(at("leave the host's files"))?;
    become_user(user, NOTHING).map_err(at("become another user"))?;
    filter.apply().map_err(at("restrict system calls"))
}

/// As [`confine`], for a program of the host, which is executed next: it has the files that `enter_root` leaves, the network of the host, and all system
/// calls.
pub(crate) fn confine_program(
    user: JobUser,
    limits: &Rlimits,
    enter_root: impl FnOnce() -> io::Result<()>,
) -> Result<(), ConfineError> {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    limit(limits).map_err(at("set limits"))?;
    enter_root().map_err(at("leave the host's files"))?;
    become_user(user, NOTHING).map_err(at("become another user"))
}

fn limit(limits: &Rlimits) -> io::Result<()> {
    let Rlimits { memory, cpu_secs, files, file_bytes } = *limits;
    let all = [
        (Resource::RLIMIT_AS, memory.saturating_add(own_size()?)),
        (Resource::RLIMIT_CPU, cpu_secs),
        (Resource::RLIMIT_NOFILE, files),
        (Resource::RLIMIT_FSIZE, file_bytes),
        (Resource::RLIMIT_CORE, 0),
    ];
    for (resource, value) in all {
        setrlimit(resource, value, value)?;
    }
    Ok(())
}

/// Bytes of address space that this process has now.
fn own_size() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text.split(' ').next().and_then(|pages| pages.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// Leaves `tree` as all there is of files, by name, and a network without interfaces.
fn only_tree(tree: &OwnedFd) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    let mounts = Mounts::enter()?;
    mount_tree::attach(tree, &mounts.place()?)?;
    mounts.leave_for(tree)
}

/// Leaves an empty directory, which nobody but root can change, as all there is of files, and a network without interfaces.
fn no_files() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    match Mounts::enter()? {
        Mounts::Empty(mounts) => Ok(mounts.stay()?),
        mounts @ Mounts::Copied => {
            let root = jail::make(&mounts.place()?, &[])?;
            mounts.leave_for(&root)
        }
    }
}

/// A mount namespace of this process's own, while its paths still lead to the files of the host.
#[derive(Debug)]
pub enum Mounts {
    /// It holds nothing.
    Empty(EmptyMounts),
    /// A copy of that of the host, which takes the kernel milliseconds where there are many mounts.
    Copied,
}

impl Mounts {
    /// Enters the empty mount namespace that the daemon gave as standard output, or a copy of that of the host. The process must have one thread.
    /// Whatever is mounted from now on is seen by this process alone.
    pub fn enter() -> io::Result<Self> {
        if let Some(namespace) = given()?
            && let Some(mounts) = EmptyMounts::enter(&namespace)?
        {
            return Ok(Self::Empty(mounts));
        }
        unshare(CloneFlags::CLONE_NEWNS)?;
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        Ok(Self::Copied)
    }

    /// A directory for what is mounted.
    pub fn place(&self) -> io::Result<PathBuf> {
        match self {
            Self::Empty(mounts) => Ok(mounts.place()),
            // It may be a link.
            Self::Copied => std::fs::canonicalize(MOUNT_POINT),
        }
    }

    /// Makes `root`, which is mounted in this namespace, the root directory. Nothing else is left in the namespace.
    pub fn leave_for(self, root: &OwnedFd) -> io::Result<()> {
        if let Self::Empty(mounts) = self {
            mounts.stay()?;
        }
        jail::enter(root)
    }
}

/// The namespace that the daemon gave as standard output, which is nothing afterwards.
fn given() -> io::Result<Option<OwnedFd>> {
    if !is_namespace(io::stdout().as_fd()) {
        return Ok(None);
    }
    let namespace = io::stdout().as_fd().try_clone_to_owned()?;
    dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    Ok(Some(namespace))
}

/// Another user, with these capabilities and never more.
fn become_user(user: JobUser, keep: CapabilitySet) -> io::Result<()> {
    prctl::set_no_new_privs()?;
    prctl::set_keepcaps(true)?;
    for number in 0..=LAST_CAPABILITY {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The kernel has no more.
            Err(rustix::io::Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    setgroups(&[])?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    prctl::set_dumpable(false)?;
    Ok(set_capabilities(None, CapabilitySets { effective: keep, permitted: keep, inheritable: CapabilitySet::empty() })?)
}
