//! `lo` in a network namespace.

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// Sets `lo` up in the namespace pinned at `netns`; one that is up already stays so.
///
/// The namespace is entered by a thread that ends with it, so that no other work is ever done in there.
pub fn set_loopback_up(netns: &Path) -> io::Result<()> {
    let netns = File::open(netns)?;
    std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            move_into_link_name_space(netns.as_fd(), Some(LinkNameSpaceType::Network))?;
            raise()
        });
        work.join().unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace panicked")))
    })
}

/// In every namespace `lo` is interface 1.
const LO: u32 = 1;
const HEADER_BYTES: u32 = 16;
const LINK_BYTES: u32 = 16;
const ERROR_MESSAGE: u16 = 2;

/// Asks rtnetlink to set `lo` up, and reads its answer.
fn raise() -> io::Result<()> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let netlink = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
    send(netlink.as_raw_fd(), &request(), MsgFlags::empty())?;
    let mut answer = [0_u8; 256];
    let length = recv(netlink.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    acknowledged(&answer[..length])
}

/// `struct nlmsghdr` and `struct ifinfomsg` of an RTM_NEWLINK message that changes one flag.
fn request() -> Vec<u8> {
    let (kind, flags) = (nix::libc::RTM_NEWLINK, nix::libc::NLM_F_REQUEST | nix::libc::NLM_F_ACK);
    let up = nix::libc::IFF_UP.cast_unsigned();
    let mut message = Vec::new();
    message.extend((HEADER_BYTES + LINK_BYTES).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    // Sequence number and sender, which nobody compares: one message, one answer.
    message.extend([0; 8]);
    // Family and type of the interface: unspecified.
    message.extend([0; 4]);
    message.extend(LO.to_ne_bytes());
    message.extend(up.to_ne_bytes());
    // Which flags are meant.
    message.extend(up.to_ne_bytes());
    message
}

/// Reads an NLMSG_ERROR message: behind the header a negative errno, 0 for success.
fn acknowledged(answer: &[u8]) -> io::Result<()> {
    let field = |at: usize| answer.get(at..at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    let kind = answer.get(4..6).and_then(|bytes| <[u8; 2]>::try_from(bytes).ok()).map(u16::from_ne_bytes);
    match (kind, field(16).map(i32::from_ne_bytes)) {
        (Some(ERROR_MESSAGE), Some(0)) => Ok(()),
        (Some(ERROR_MESSAGE), Some(error)) => Err(io::Error::from_raw_os_error(-error)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "rtnetlink did not acknowledge")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// Gives `body` the path of a new network namespace, and a way to ask whether `lo` is up in it.
    pub(crate) fn in_new_netns(body: impl FnOnce(&Path, &dyn Fn() -> bool)) {
        // The namespace lives as long as the process that waits in it for its input to end.
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo ready; cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let netns = format!("/proc/{}/ns/net", holder.id());
        let is_up = || {
            let output =
                Command::new("nsenter").arg(format!("--net={netns}")).args(["cat", "/proc/net/fib_trie"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap().contains("127.0.0.1")
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(Path::new(&netns), &is_up)));
        drop(holder.stdin.take());
        holder.wait().unwrap();
        result.unwrap();
    }

    #[test]
    fn lo_is_set_up_there_and_this_thread_stays_here() {
        let own = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        in_new_netns(|netns, is_up| {
            assert!(!is_up());
            set_loopback_up(netns).unwrap();
            assert!(is_up());
            set_loopback_up(netns).unwrap();
        });
        assert_eq!(std::fs::read_link("/proc/thread-self/ns/net").unwrap(), own);
    }

    #[test]
    fn what_is_no_namespace_is_an_error() {
        set_loopback_up(Path::new("/dev/null")).unwrap_err();
        set_loopback_up(Path::new("/nowhere")).unwrap_err();
    }

    #[test]
    fn answers_of_the_kernel_are_read() {
        let answer = |kind: u16, error: i32| {
            let mut bytes = vec![36, 0, 0, 0];
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend(error.to_ne_bytes());
            bytes
        };
        acknowledged(&answer(2, 0)).unwrap();
        assert_eq!(acknowledged(&answer(2, -1)).unwrap_err().raw_os_error(), Some(libc::EPERM));
        acknowledged(&answer(16, 0)).unwrap_err();
        acknowledged(&[]).unwrap_err();
    }
}
