//! From `podstead-shim pod CONFIG` to a running shim.
//!
//! ```text
//! started by the daemon ── forks into the shim's cgroup ── forks ──┬── makes and pins the namespaces ────────────┬── waits ── exits 0
//!                                                                 └── the shim: own session, socket, /dev/shm ──┴── ready ── serves
//! ```
//! Both halves work at the same time. The first half tells on standard output that the shim is ready, or on standard error why there is none, and ends.
//! The process that the daemon started ends some milliseconds later, and the shim is nobody's child. Only that process is in the daemon's cgroup.

use super::event_loop::{LoopError, PodShim};
use super::shared_pid::SharedPidInit;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::CloneFlags;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use podstead_container::cgroup::{CgroupError, Cgroups};
use podstead_container::protocol::{SHIM_READY, ShimConfig};
use podstead_sys::empty_mounts;
use podstead_sys::namespaces::{self, Namespace, NamespaceError};
use podstead_sys::own_memory;
use podstead_sys::process::{Fork, close_others, exit_at_once, fork, fork_into_cgroup, ignore_signal};
use podstead_sys::self_exec;
use podstead_sys::user_namespace::{self, UserNamespaceError};
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Bytes of a pod's `/dev/shm` until a container asks for more.
const SHARED_MEMORY: &str = "mode=1777,size=65536k";

/// The shim is killed for want of memory after everything else (kubelet rule D25, sandbox).
const OOM_SCORE_ADJ: &str = "-998";

/// A directory that each host has.
const SCRATCH: &str = "/proc";

/// Message between the two halves.
const DONE: u8 = b'+';

/// Reason why there is no shim.
#[derive(Debug, thiserror::Error)]
pub(super) enum LaunchError {
    /// The file is not there or cannot be read.
    #[error("read {}", _0.display())]
    ReadConfig(PathBuf, #[source] io::Error),
    /// The file is not what the daemon writes.
    #[error("decode {}", _0.display())]
    DecodeConfig(PathBuf, #[source] serde_json::Error),
    /// The shim would have stayed in the daemon's cgroup.
    #[error("join the shim's cgroup")]
    Cgroup(#[source] CgroupError),
    /// No second process.
    #[error("fork")]
    Fork(#[source] nix::Error),
    /// The two halves cannot talk.
    #[error("create a socket pair")]
    SocketPair(#[source] io::Error),
    /// A namespace was refused.
    #[error("create namespaces")]
    Namespaces(#[source] NamespaceError),
    /// The pod's users were refused.
    #[error("create the pod's user namespace")]
    Users(#[source] UserNamespaceError),
    /// The socket was refused.
    #[error("listen on {}", _0.display())]
    Listen(PathBuf, #[source] io::Error),
    /// `/dev/shm` was refused.
    #[error("mount {}", _0.display())]
    SharedMemory(PathBuf, #[source] io::Error),
    /// A process attribute was refused.
    #[error("{0}")]
    Attribute(&'static str, #[source] nix::Error),
    /// The shim's own log could not be opened.
    #[error("open {}", _0.display())]
    OwnLog(PathBuf, #[source] io::Error),
    /// The other half failed and has said why.
    #[error("{0}")]
    OtherHalf(String),
    /// The shim cannot wait for anything.
    #[error("serve")]
    Serve(#[source] LoopError),
}

/// Becomes the shim of the pod that `config` describes. Returns in the process that was started, and in the first half, when the shim is ready or there
/// is none, and in the shim when it has ended.
pub(super) fn run(config: &Path) -> Result<(), LaunchError> {
    // The daemon's parent may have left descriptors open; a shim outlives them all.
    close_others();
    let _root_is_there = std::env::set_current_dir("/");
    // The daemon has done it, if it could. A kernel that cannot is older than what libcontainer needs; nothing is lost by going on to the error that
    // says so.
    let _protection = self_exec::run_from_read_only_mount();
    let text = fs::read(config).map_err(|source| LaunchError::ReadConfig(config.to_owned(), source))?;
    let config: ShimConfig =
        serde_json::from_slice(&text).map_err(|source| LaunchError::DecodeConfig(config.to_owned(), source))?;
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    if let Some(started) = join_cgroup(&config)? {
        // It tells its errors itself.
        return wait_for_end(started);
    }
    let (mut first_half, second_half) = UnixStream::pair().map_err(LaunchError::SocketPair)?;
    match fork(CloneFlags::empty()).map_err(LaunchError::Fork)? {
        Fork::Child => {
            drop(first_half);
            become_shim(config, second_half)
        }
        Fork::Parent(shim) => {
            drop(second_half);
            let result = make_namespaces(&config).and_then(|()| wait_until_ready(&mut first_half));
            if result.is_ok() {
                let mut stdout = io::stdout();
                // A daemon that is gone finds the shim when it is back.
                let _gone = stdout.write_all(&[SHIM_READY]).and_then(|()| stdout.flush());
            }
            if result.is_err()
                && let Ok(shim) = podstead_sys::pidfd::open(shim)
            {
                let _gone = podstead_sys::pidfd::send_signal(&shim, libc::SIGKILL);
            }
            result
        }
    }
}

/// Goes into the shim's cgroup, in the ways that wait for nobody: in hierarchies of v1 this process itself, and in that of v2 a new process, whose id
/// the old one returns with.
fn join_cgroup(config: &ShimConfig) -> Result<Option<u32>, LaunchError> {
    let cgroups = config.cgroups().map_err(LaunchError::Cgroup)?;
    let group = cgroups.shim(&config.spec.uid);
    cgroups.join_v1(&group).map_err(LaunchError::Cgroup)?;
    let Some(directory) = cgroups.directory_v2(&group) else { return Ok(None) };
    let starter = Pid::this();
    let forked = fs::File::open(&directory).map(|opened| fork_into_cgroup(opened.as_fd()));
    match forked {
        Ok(Ok(Fork::Parent(started))) => {
            // The daemon listens until nobody can say anything.
            for stream in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
                let _closed = nix::unistd::close(stream);
            }
            // This move waits, and the kernel is prepared then for that of the first container's process. Not earlier: the ways into the cgroup would
            // wait for it.
            let _unmoved = Cgroups::join_v2(&directory);
            Ok(Some(started))
        }
        Ok(Ok(Fork::Child)) => {
            // Whoever kills the process that the daemon started means the whole start.
            prctl::set_pdeathsig(Signal::SIGKILL).map_err(|source| LaunchError::Attribute("end with the parent", source))?;
            if Pid::parent() != starter {
                exit_at_once(1);
            }
            Ok(None)
        }
        // A kernel that has no such fork, or a group that is not there, of which this tells.
        Ok(Err(_)) | Err(_) => Cgroups::join_v2(&directory).map(|()| None).map_err(LaunchError::Cgroup),
    }
}

/// Waits for the end of a child.
fn wait_for_end(child: u32) -> Result<(), LaunchError> {
    loop {
        match waitpid(Pid::from_raw(child.cast_signed()), None) {
            Err(nix::Error::EINTR) => {}
            Ok(WaitStatus::Exited(_, 0)) => return Ok(()),
            Ok(WaitStatus::Exited(_, code)) => exit_at_once(code),
            // Killed: it has told nothing, and there may be no shim.
            Ok(_) => exit_at_once(1),
            Err(error) => return Err(LaunchError::Attribute("wait for the first half of the start", error)),
        }
    }
}

/// Has a mount namespace with nothing in it, and says so, until standard input ends.
pub(super) fn hold_empty_mounts() -> io::Result<()> {
    close_others();
    empty_mounts::make(Path::new(SCRATCH))?;
    io::stdout().write_all(&[DONE])?;
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

fn wait_until_ready(shim: &mut UnixStream) -> Result<(), LaunchError> {
    // A shim that has failed already is read below.
    let _gone = shim.write_all(&[DONE]);
    let mut text = Vec::new();
    // A broken read is like a shim that said nothing.
    let _gone = shim.read_to_end(&mut text);
    match text.as_slice() {
        [DONE] => Ok(()),
        [] => Err(LaunchError::OtherHalf("the shim exited during startup".to_owned())),
        text => Err(LaunchError::OtherHalf(String::from_utf8_lossy(text).into_owned())),
    }
}

/// Makes, pins and sets up the namespaces that are the pod's own; this process is in them afterwards.
fn make_namespaces(config: &ShimConfig) -> Result<(), LaunchError> {
    let spec = &config.spec;
    let directory = config.paths().namespaces(&spec.uid);
    let mut own = Vec::new();
    if !spec.namespaces.host_network {
        own.extend([Namespace::Net, Namespace::Uts]);
    }
    if !spec.namespaces.host_ipc {
        own.push(Namespace::Ipc);
    }
    let set_up = || {
        if own.contains(&Namespace::Uts) {
            namespaces::set_hostname(&spec.hostname)?;
        }
        spec.sysctls.iter().try_for_each(|(name, value)| namespaces::set_sysctl(name, value))
    };
    if let Some(first) = spec.first_host_id {
        return user_namespace::make_and_pin(first, &own, &directory, set_up).map_err(LaunchError::Users);
    }
    namespaces::make(&own).and_then(|()| set_up()).map_err(LaunchError::Namespaces)?;
    for namespace in own {
        namespaces::pin("self", namespace, &directory).map_err(LaunchError::Namespaces)?;
    }
    Ok(())
}

/// The other half: never returns to the caller of [`run`] before the shim ends.
fn become_shim(config: ShimConfig, mut first_half: UnixStream) -> Result<(), LaunchError> {
    // The threads that write records need no memory of their own.
    own_memory::share_between_threads();
    // Standard input is where the daemon puts it.
    let stdin = io::stdin();
    let empty_mounts = empty_mounts::is_namespace(stdin.as_fd()).then(|| stdin.as_fd().try_clone_to_owned().ok()).flatten();
    let result = prepare(&config, &mut first_half);
    match result {
        Ok((listener, signals, shared_pid)) => {
            let told = first_half.write_all(&[DONE]);
            drop(first_half);
            if told.is_err() {
                // The caller of this shim is gone.
                return Ok(());
            }
            let mut shim = PodShim::new(config, listener, signals, shared_pid, empty_mounts).map_err(LaunchError::Serve)?;
            shim.run().map_err(LaunchError::Serve)
        }
        Err(error) => {
            let _gone = first_half.write_all(super::explain(&error).as_bytes());
            exit_at_once(1)
        }
    }
}

type Prepared = (UnixListener, SignalFd, Option<SharedPidInit>);

fn prepare(config: &ShimConfig, first_half: &mut UnixStream) -> Result<Prepared, LaunchError> {
    let (paths, uid) = (config.paths(), &config.spec.uid);
    nix::unistd::setsid().map_err(|source| LaunchError::Attribute("start a session", source))?;
    prctl::set_child_subreaper(true).map_err(|source| LaunchError::Attribute("become subreaper", source))?;
    prctl::set_name(c"podstead-shim").map_err(|source| LaunchError::Attribute("set process name", source))?;
    // Without CAP_SYS_RESOURCE it may not be lowered.
    let _not_allowed = fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ);
    // Nothing but a request, SIGTERM or SIGKILL ends a shim.
    [Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGPIPE].into_iter().for_each(ignore_signal);
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    mask.add(Signal::SIGTERM);
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), None).map_err(|source| LaunchError::Attribute("block signals", source))?;
    let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(|source| LaunchError::Attribute("watch signals", source))?;
    redirect_stdio(&paths.pod_run(uid).join("shim.log"))?;
    mount_shared_memory(config)?;

    let socket = paths.shim_socket(uid);
    let listener = listen(&socket).map_err(|source| LaunchError::Listen(socket, source))?;
    let mut done = [0];
    first_half.read_exact(&mut done).map_err(|_| LaunchError::OtherHalf("the namespaces were not created".to_owned()))?;
    let shared_pid = match config.spec.namespaces.share_process && !config.spec.namespaces.host_pid {
        true => Some(SharedPidInit::start(config).map_err(LaunchError::Namespaces)?),
        false => None,
    };
    Ok((listener, signals, shared_pid))
}

/// Closes the daemon's descriptors, and redirects standard error into a file.
fn redirect_stdio(log: &Path) -> Result<(), LaunchError> {
    let error = |source| LaunchError::OwnLog(log.to_owned(), source);
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").map_err(error)?;
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(log).map_err(error)?;
    let duplicated = nix::unistd::dup2_stdin(null.as_fd())
        .and_then(|()| nix::unistd::dup2_stdout(null.as_fd()))
        .and_then(|()| nix::unistd::dup2_stderr(log.as_fd()));
    duplicated.map_err(|source| LaunchError::Attribute("redirect stdio", source))
}

fn mount_shared_memory(config: &ShimConfig) -> Result<(), LaunchError> {
    if config.spec.namespaces.host_ipc {
        return Ok(());
    }
    let target = config.paths().shared_memory(&config.spec.uid);
    let error = |source| LaunchError::SharedMemory(target.clone(), source);
    DirBuilder::new().recursive(true).mode(0o700).create(&target).map_err(error)?;
    // Remains of an earlier sandbox of this pod must not be visible.
    while umount2(&target, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW).is_ok() {}
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("shm"), &target, Some("tmpfs"), flags, Some(SHARED_MEMORY)).map_err(|source| error(source.into()))
}

/// Socket addresses are short, paths may be long: bound by a name relative to its directory, which this process leaves again.
fn listen(socket: &Path) -> io::Result<UnixListener> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let (directory, name) = (socket.parent().ok_or_else(invalid)?, socket.file_name().ok_or_else(invalid)?);
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    std::env::set_current_dir(directory)?;
    let listener = UnixListener::bind(name);
    std::env::set_current_dir("/")?;
    let listener = listener?;
    fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
