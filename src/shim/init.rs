//! Process 1 of a PID namespace that a pod's containers share: reaps orphans, and has no privileges that an attacker could use.
//!
//! Containers see it, so it has no rights, no files, and an empty root: `/proc/1/root` must not lead to the host.

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Gid, Uid, chdir, pivot_root, setgroups, setresgid, setresuid};
use podstead_sys::process::{ignore_signal, reset_signals};
use std::convert::Infallible;

/// User and group `nobody`.
const UNPRIVILEGED: u32 = 65534;

/// Reason why process 1 cannot run.
#[derive(Debug, thiserror::Error)]
#[error("process 1 of the pod: {step}")]
pub(super) struct InitError {
    step: &'static str,
    #[source]
    source: nix::Error,
}

/// Never returns but with an error. The working directory is any directory of the host; an empty file system is mounted on it, for this
/// process only, and becomes its root.
pub(super) fn run() -> Result<Infallible, InitError> {
    reset_signals();
    confine()?;
    // The kernel does not deliver these to process 1 from inside; from the host, SIGTERM would end it.
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().for_each(ignore_signal);
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    mask.thread_block().map_err(at("block SIGCHLD"))?;
    loop {
        while matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Ok(status) if status.pid().is_some()) {}
        let _interrupted = mask.wait();
    }
}

fn confine() -> Result<(), InitError> {
    let directory = nix::unistd::getcwd().map_err(at("get the working directory"))?;
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS).map_err(at("unshare mounts"))?;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).map_err(at("make mounts private"))?;
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("empty"), &directory, Some("tmpfs"), flags, Some("size=4k,nr_inodes=1,mode=555")).map_err(at("mount empty root"))?;
    chdir(&directory).map_err(at("enter empty root"))?;
    pivot_root(".", ".").map_err(at("change root"))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(at("leave the host's root"))?;
    chdir("/").map_err(at("enter root"))?;
    prctl::set_name(c"podstead-init").map_err(at("set process name"))?;
    setgroups(&[]).map_err(at("drop groups"))?;
    let (uid, gid) = (Uid::from_raw(UNPRIVILEGED), Gid::from_raw(UNPRIVILEGED));
    setresgid(gid, gid, gid).map_err(at("drop group"))?;
    setresuid(uid, uid, uid).map_err(at("drop user"))?;
    prctl::set_no_new_privs().map_err(at("set no_new_privs"))?;
    prctl::set_dumpable(false).map_err(at("disable tracing"))
}

fn at(step: &'static str) -> impl FnOnce(nix::Error) -> InitError {
    move |source| InitError { step, source }
}
