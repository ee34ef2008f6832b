//! Waiting until all processors have left the parts of the kernel that read without locks.

use std::io;

/// Waits until every processor has left the code that it was in: whatever read a table of the kernel before a change that precedes the call has
/// ended. The kernel does so within some milliseconds (`membarrier(2)`, `MEMBARRIER_CMD_GLOBAL`).
///
/// # Errors
///
/// A kernel without the call, or one with processors without a tick (`nohz_full`).
#[expect(unsafe_code, reason = "no crate wraps membarrier")]
pub fn wait_for_readers() -> io::Result<()> {
    const NO_FLAGS: libc::c_uint = 0;
    // SAFETY: the call takes numbers only and touches no memory of this process.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, NO_FLAGS, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn readers_end() {
        super::wait_for_readers().unwrap();
    }
}
