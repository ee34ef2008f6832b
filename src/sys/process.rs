//! Processes: signals as a new program expects them, priorities, and forks with flags that libc has no name for.
#![expect(unsafe_code, reason = "fork, clone3, sigaction and ioprio_set have no safe wrapper that fits")]

use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Side of a fork.
#[derive(Debug, PartialEq, Eq)]
pub enum Fork {
    /// The caller; the new process has this id.
    Parent(u32),
    /// The new process.
    Child,
}

/// As the kernel's `struct clone_args`, version 2.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Forks with `flags`. With `CLONE_PARENT` the new process is a sibling of the caller.
///
/// Must be called by a process with one thread: in the child, locks that another thread held would never open.
pub fn fork(flags: CloneFlags) -> nix::Result<Fork> {
    if flags.is_empty() {
        // libc keeps its own notes of who the process is, for a child that lives long.
        // SAFETY: the callers have one thread.
        return Ok(match unsafe { nix::unistd::fork() }? {
            nix::unistd::ForkResult::Child => Fork::Child,
            nix::unistd::ForkResult::Parent { child } => Fork::Parent(child.as_raw().unsigned_abs()),
        });
    }
    let sibling = flags.contains(CloneFlags::CLONE_PARENT);
    let arguments = CloneArguments {
        flags: u64::from(flags.bits().unsigned_abs()),
        // A sibling's end is told as the caller's own would be.
        exit_signal: if sibling { 0 } else { Signal::SIGCHLD as u64 },
        ..CloneArguments::default()
    };
    clone3(&arguments)
}

/// `CLONE_INTO_CGROUP` of `<linux/sched.h>`, which does not fit into the flags of clone(2).
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// Forks a process that begins its life in the group of v2 with this directory. Unlike a move, it waits for nobody. The kernel has it since 5.7; an older
/// one says `E2BIG`. libc does not note who the new process is: it may fork and execute, and has to end soon.
///
/// Must be called by a process with one thread, as [`fork`].
pub fn fork_into_cgroup(directory: BorrowedFd<'_>) -> nix::Result<Fork> {
    clone3(&CloneArguments {
        flags: CLONE_INTO_CGROUP,
        exit_signal: Signal::SIGCHLD as u64,
        cgroup: u64::from(directory.as_raw_fd().unsigned_abs()),
        ..CloneArguments::default()
    })
}

/// As [`fork_into_cgroup`], or into the caller's groups without a directory, for a process that may have many threads: the child may make system calls
/// alone until it executes a program, since other threads may have held any lock.
pub(crate) fn fork_with_threads(directory: Option<BorrowedFd<'_>>) -> nix::Result<Fork> {
    match directory {
        Some(directory) => fork_into_cgroup(directory),
        None => clone3(&CloneArguments { exit_signal: Signal::SIGCHLD as u64, ..CloneArguments::default() }),
    }
}

/// A fork: `arguments` ask for no shared memory and no new stack.
fn clone3(arguments: &CloneArguments) -> nix::Result<Fork> {
    // SAFETY: a plain fork, as said above; `arguments` is live and of the size given. The callers have one thread, or their child makes system calls alone.
    let result = unsafe { libc::syscall(libc::SYS_clone3, std::ptr::from_ref(arguments), size_of::<CloneArguments>()) };
    match Errno::result(result)? {
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(u32::try_from(pid).map_err(|_| Errno::EINVAL)?)),
    }
}

/// As the kernel's `struct sigaction`: all zero is the default effect.
#[repr(C)]
#[derive(Default)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// The highest signal number.
const LAST_SIGNAL: i32 = 64;

/// Gives every signal its default effect and unblocks all: what a process ignores or blocks, the programs that it executes ignore and
/// block too, and Rust's runtime ignores SIGPIPE.
pub fn reset_signals() {
    let default = KernelAction::default();
    for signal in 1..=LAST_SIGNAL {
        // Asked of the kernel, since the C library hides two of them. SIGKILL and SIGSTOP are EINVAL.
        // SAFETY: `default` is live and names no handler; the mask's size is the kernel's.
        let _always_default = unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                std::ptr::from_ref(&default),
                std::ptr::null_mut::<KernelAction>(),
                size_of::<u64>(),
            )
        };
    }
    let _cannot_fail = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
}

/// Ignores a signal in this process.
pub fn ignore_signal(signal: Signal) {
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: ignoring runs no code of ours.
    let _cannot_fail = unsafe { sigaction(signal, &ignore) };
}

/// Ends this process at once, without running anything that was registered for its end: for the child side of a fork.
pub fn exit_at_once(code: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Takes over a descriptor that this process inherited by number, and makes it close-on-exec.
pub fn inherited_descriptor(number: i32) -> nix::Result<std::os::fd::OwnedFd> {
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
    if number <= 2 {
        return Err(Errno::EBADF);
    }
    // SAFETY: fcntl checks whether the descriptor is open; a wrong one is EBADF.
    fcntl(unsafe { BorrowedFd::borrow_raw(number) }, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    // SAFETY: it is open, and the caller of this program passed it for this call alone.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Closes every descriptor above standard error: those that a parent left open. To be called first of all, when this process has opened none itself.
pub fn close_others() {
    // SAFETY: no pointers, and nothing in this process owns a descriptor yet. Kernels before 5.9 cannot do it.
    let _old_kernel = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0) };
}

/// Makes every descriptor above standard error close when a program is executed.
pub fn close_others_on_exec() {
    // SAFETY: no pointers. On kernels before 5.11 it fails, and descriptors are close-on-exec by their making.
    let _old_kernel = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Lower priority of work that others should not feel: what waits for a processor gets three times as much.
const GIVING_WAY: i32 = 5;
/// `IOPRIO_WHO_PROCESS`
const IO_OF_THREAD: libc::c_int = 1;
/// The lowest level of the best-effort class, which all others are in.
const IO_GIVING_WAY: libc::c_int = (2 << 13) | 7;

/// Gives way to others who want a processor or the disk. For the calling thread and what it starts from now on, without a way back.
pub fn give_way() {
    // Everybody may lower their own priority. If one of these failed, others would only wait longer.
    let _unchanged = rustix::process::setpriority_process(None, GIVING_WAY);
    // SAFETY: integers alone.
    let _unchanged = unsafe { libc::syscall(libc::SYS_ioprio_set, IO_OF_THREAD, 0, IO_GIVING_WAY) };
}
