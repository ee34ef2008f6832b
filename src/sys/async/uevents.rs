//! Waiting for devices that come and go.
#![expect(unsafe_code, reason = "tokio's registration of a descriptor, whose life the caller vouches for")]

use podstead_sys::uevents;
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;

/// Notifications about devices. They say only that something happened: what there is, sysfs tells.
#[derive(Debug)]
pub struct Uevents {
    socket: AsyncFd<OwnedFd>,
}

impl Uevents {
    /// Listens from now on.
    pub fn open() -> io::Result<Self> {
        let socket = uevents::open()?;
        // SAFETY: an OwnedFd never replaces its descriptor and closes it only when it is dropped, which AsyncFd does after it has taken the
        // descriptor out of the reactor.
        let socket = unsafe { AsyncFd::register(socket) };
        Ok(Self { socket: socket.map_err(io::Error::from)? })
    }

    /// Waits until a device with a node came, changed or went. Takes all messages that are there. Cancel-safe.
    pub async fn changed(&mut self) -> io::Result<()> {
        loop {
            let mut ready = self.socket.readable().await?;
            ready.clear_ready();
            if uevents::drain(self.socket.get_ref())? {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn message_of_the_kernel_arrives() {
        let mut uevents = Uevents::open().unwrap();
        std::fs::write("/sys/class/mem/full/uevent", "change").unwrap();
        tokio::time::timeout(Duration::from_secs(60), uevents.changed()).await.unwrap().unwrap();
    }
}
