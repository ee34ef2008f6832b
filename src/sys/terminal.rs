//! Pseudo terminals.
#![expect(unsafe_code, reason = "terminal ioctls take pointers")]

use nix::pty::Winsize;
use std::os::fd::{AsFd, AsRawFd};

mod ioctl {
    nix::ioctl_write_ptr_bad!(set_window_size, libc::TIOCSWINSZ, nix::pty::Winsize);
}

/// Sets a terminal's size, by either end. What is not a terminal is left alone.
pub fn set_size(terminal: impl AsFd, size: &Winsize) {
    // SAFETY: the descriptor is open and `size` is a live struct of the type that TIOCSWINSZ reads.
    let _not_a_terminal = unsafe { ioctl::set_window_size(terminal.as_fd().as_raw_fd(), std::ptr::from_ref(size)) };
}
