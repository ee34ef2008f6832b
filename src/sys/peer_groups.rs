//! Groups of the process at the other end of a unix socket.
#![expect(unsafe_code, reason = "SO_PEERGROUPS fills a buffer of the caller")]

use nix::errno::Errno;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Groups that a first call has room for; a process rarely has more.
const USUAL: usize = 64;
/// The kernel's limit (`NGROUPS_MAX`).
const MOST: usize = 65_536;

/// The supplementary groups that the peer had when it connected. They are the kernel's: a name service that knows more than `/etc/group` counts, and
/// a later change of the process does not.
pub fn peer_groups(socket: impl AsFd) -> io::Result<Vec<u32>> {
    let mut room = USUAL;
    loop {
        let mut groups = vec![0_u32; room];
        let mut length = (room * size_of::<u32>()) as libc::socklen_t;
        // SAFETY: the descriptor is open, `groups` has room for `length` bytes, and the kernel writes at most that many and then the length.
        let result = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                std::ptr::from_mut(&mut length),
            )
        };
        match Errno::result(result) {
            Ok(_) => {
                groups.truncate(length as usize / size_of::<u32>());
                return Ok(groups);
            }
            // The kernel says how much it would have written.
            Err(Errno::ERANGE) if room < MOST => room = (length as usize / size_of::<u32>()).clamp(room * 2, MOST),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::os::unix::net::UnixStream;

    #[test]
    fn groups_of_peer_are_those_of_process() {
        let (here, _there) = UnixStream::pair().unwrap();
        let own: BTreeSet<u32> = nix::unistd::getgroups().unwrap().into_iter().map(Into::into).collect();
        assert_eq!(peer_groups(&here).unwrap().into_iter().collect::<BTreeSet<_>>(), own);
    }
}
