//! Waiting for mounts and unmounts.
#![expect(unsafe_code, reason = "tokio's registration of a descriptor, whose life the caller vouches for")]

use std::fs::File;
use std::io;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The kernel's table of mounts of this process, which says that it has changed. What there is, the table itself tells.
#[derive(Debug)]
pub struct MountTable {
    table: AsyncFd<File>,
}

impl MountTable {
    /// Watches from now on.
    pub fn watch() -> io::Result<Self> {
        let table = File::open("/proc/self/mountinfo")?;
        // SAFETY: a File never replaces its descriptor and closes it only when it is dropped, which AsyncFd does after it has taken the descriptor
        // out of the reactor.
        let table = unsafe { AsyncFd::register_with_interest(table, Interest::PRIORITY) };
        Ok(Self { table: table.map_err(io::Error::from)? })
    }

    /// Waits until something was mounted or unmounted since the last time. Cancel-safe.
    pub async fn changed(&self) -> io::Result<()> {
        self.table.ready(Interest::PRIORITY).await?.clear_ready();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    use std::time::Duration;

    #[tokio::test]
    async fn mounts_and_unmounts_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let table = MountTable::watch().unwrap();
        let wait = || async { tokio::time::timeout(Duration::from_secs(60), table.changed()).await.unwrap().unwrap() };
        mount("none", directory.path(), "tmpfs", MountFlags::empty(), None).unwrap();
        wait().await;
        unmount(directory.path(), UnmountFlags::empty()).unwrap();
        wait().await;
    }
}
