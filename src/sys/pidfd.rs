//! Processes held by a file descriptor: signals and namespaces reach the intended process, even if IDs are reused.
#![expect(unsafe_code, reason = "pidfd calls with raw signal numbers and namespace sets have no safe wrapper")]

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Opens a process. ESRCH if there is none; a process that has ended but was not waited for can be opened.
pub fn open(pid: u32) -> nix::Result<OwnedFd> {
    // SAFETY: no pointers; a result that is not negative is a new descriptor that nothing else owns.
    unsafe {
        let result = Errno::result(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
        let descriptor = i32::try_from(result).map_err(|_| Errno::EBADF)?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Sends a signal, real-time ones included. ESRCH if the process has ended.
pub fn send_signal(process: &OwnedFd, signal: i32) -> nix::Result<()> {
    // SAFETY: the descriptor is open; a null siginfo makes the kernel fill it in as kill(2) does.
    let result =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, std::ptr::null::<libc::siginfo_t>(), 0) };
    Errno::result(result).map(drop)
}

/// Waits until the process has ended, at most `timeout`. Whether it has.
pub fn wait_for_end(process: &OwnedFd, timeout: Duration) -> nix::Result<bool> {
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
    let mut descriptors = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    Ok(poll(&mut descriptors, timeout)? > 0)
}

/// Moves this thread into the given namespaces of the process, in one step, so that the kernel orders them.
pub fn enter_namespaces(process: &OwnedFd, namespaces: CloneFlags) -> nix::Result<()> {
    nix::sched::setns(process, namespaces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_to_an_ended_process_is_esrch_and_to_a_living_one_arrives() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = open(child.id()).unwrap();
        assert_eq!(wait_for_end(&process, Duration::ZERO), Ok(false));
        send_signal(&process, libc::SIGKILL).unwrap();
        assert_eq!(wait_for_end(&process, Duration::from_secs(60)), Ok(true));
        child.wait().unwrap();
        assert_eq!(send_signal(&process, libc::SIGKILL), Err(Errno::ESRCH));
    }
}
