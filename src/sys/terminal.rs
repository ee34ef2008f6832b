//! Pseudo terminals.
#![expect(unsafe_code, reason = "terminal ioctls take pointers and numbers")]

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::pty::Winsize;
use nix::sys::stat::{Mode, fstat};
use nix::sys::statfs::{DEVPTS_SUPER_MAGIC, fstatfs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Device number of the terminal multiplexer.
const MULTIPLEXER: (u64, u64) = (5, 2);

/// Sets a terminal's size, by either end. What is not a terminal is left alone.
pub fn set_size(terminal: impl AsFd, size: &Winsize) {
    // SAFETY: the descriptor is open and `size` is a live struct of the type that TIOCSWINSZ reads.
    let _not_a_terminal = unsafe { libc::ioctl(terminal.as_fd().as_raw_fd(), libc::TIOCSWINSZ, std::ptr::from_ref(size)) };
}

/// Gives a terminal to a user, as login does.
pub fn give_to(terminal: BorrowedFd<'_>, uid: u32) -> nix::Result<()> {
    match nix::unistd::fchown(terminal, Some(uid.into()), None) {
        // A read-only or foreign devpts: the user can still use what is open.
        Ok(()) | Err(Errno::EROFS | Errno::EPERM) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes a terminal in this mount namespace's `/dev/pts`, of the given size, and makes it the controlling terminal and the stdio of this
/// process, which must be the leader of a session without one. Returns the master.
pub fn become_controlled(columns: u16, rows: u16) -> nix::Result<OwnedFd> {
    let master = open("/dev/pts/ptmx", OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC, Mode::empty())?;
    // The container may have put anything in its place.
    let node = fstat(&master)?;
    let device = (u64::from(libc::major(node.st_rdev)), u64::from(libc::minor(node.st_rdev)));
    if device != MULTIPLEXER || fstatfs(&master)?.filesystem_type() != DEVPTS_SUPER_MAGIC {
        return Err(Errno::ENOTTY);
    }
    let unlock: libc::c_int = 0;
    // SAFETY: the descriptor is an open terminal master; TIOCSPTLCK reads one int.
    Errno::result(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, std::ptr::from_ref(&unlock)) })?;
    // SAFETY: as above; TIOCGPTPEER takes flags and returns a new descriptor, which nothing else owns.
    let slave = unsafe {
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        OwnedFd::from_raw_fd(Errno::result(libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags))?)
    };
    set_size(&master, &Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 });
    // SAFETY: no pointers; 0 means that no other session's terminal is taken.
    Errno::result(unsafe { libc::ioctl(slave.as_raw_fd(), libc::TIOCSCTTY, 0) })?;
    nix::unistd::dup2_stdin(&slave)?;
    nix::unistd::dup2_stdout(&slave)?;
    nix::unistd::dup2_stderr(&slave)?;
    Ok(master)
}
