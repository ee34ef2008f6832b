//! Descriptors over unix sockets (SCM_RIGHTS).

use nix::cmsg_space;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// Receives bytes into `buffer` and adds descriptors that came with them, close-on-exec, to `descriptors`. 0 is the end.
#[expect(unsafe_code, reason = "received descriptors come as bare numbers")]
pub fn receive(socket: &UnixStream, buffer: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> nix::Result<usize> {
    let mut slices = [IoSliceMut::new(buffer)];
    let mut space = cmsg_space!([RawFd; 4]);
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC)?;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(received) = control {
            // SAFETY: the kernel has just made these descriptors for this process, and nothing else knows them.
            descriptors.extend(received.into_iter().map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) }));
        }
    }
    Ok(message.bytes)
}

/// Sends `bytes`, all of them, with a descriptor.
pub fn send(socket: &UnixStream, bytes: &[u8], descriptor: impl AsFd) -> nix::Result<()> {
    send_all(socket, bytes, &[descriptor.as_fd()])
}

/// Sends `bytes`, all of them, with descriptors, at most four.
pub fn send_all(socket: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> nix::Result<()> {
    let raw: Vec<RawFd> = descriptors.iter().map(|descriptor| descriptor.as_raw_fd()).collect();
    let mut sent = sendmsg::<()>(
        socket.as_raw_fd(),
        &[IoSlice::new(bytes)],
        &[ControlMessage::ScmRights(&raw)],
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    while sent < bytes.len() {
        sent += sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&bytes[sent..])], &[], MsgFlags::MSG_NOSIGNAL, None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_descriptor_arrives_with_its_bytes_and_works() {
        let (near, far) = UnixStream::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        send(&near, b"pipe", &writer).unwrap();
        drop(writer);
        let (mut buffer, mut descriptors) = ([0; 16], Vec::new());
        assert_eq!(receive(&far, &mut buffer, &mut descriptors).unwrap(), 4);
        assert_eq!(&buffer[..4], b"pipe");
        let mut received = std::fs::File::from(descriptors.pop().unwrap());
        received.write_all(b"through").unwrap();
        drop(received);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
    }
}
