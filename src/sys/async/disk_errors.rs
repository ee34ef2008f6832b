//! Waiting for errors that a file system has found in itself.
#![expect(unsafe_code, reason = "tokio's registration of a descriptor, whose life the caller vouches for")]

use std::fs::{self, File};
use std::io;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The count of errors that the kernel keeps of an ext4 file system. It outlives a restart, so that only its rise says something.
#[derive(Debug)]
pub struct DiskErrors {
    counter: AsyncFd<File>,
    known: u64,
}

impl DiskErrors {
    /// Watches the file system that `path` is on from now on. `None` if it counts no errors: only ext4 does.
    pub fn watch(path: &Path) -> io::Result<Option<Self>> {
        let device = fs::metadata(path)?.st_dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let block = match fs::read_link(format!("/sys/dev/block/{major}:{minor}")) {
            Ok(block) => block,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(name) = block.file_name() else { return Ok(None) };
        let counter = match File::open(Path::new("/sys/fs/ext4").join(name).join("errors_count")) {
            Ok(counter) => counter,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // Also arms the notification.
        let known = count(&counter)?;
        // SAFETY: a File never replaces its descriptor and closes it only when it is dropped, which AsyncFd does after it has taken the descriptor
        // out of the reactor.
        let counter = unsafe { AsyncFd::register_with_interest(counter, Interest::PRIORITY) };
        Ok(Some(Self { counter: counter.map_err(io::Error::from)?, known }))
    }

    /// Waits until there are more errors than before. Cancel-safe.
    pub async fn more(&mut self) -> io::Result<()> {
        loop {
            let now = count(self.counter.get_ref())?;
            if std::mem::replace(&mut self.known, now) < now {
                return Ok(());
            }
            self.counter.ready(Interest::PRIORITY).await?.clear_ready();
        }
    }
}

fn count(counter: &File) -> io::Result<u64> {
    let mut text = [0; 32];
    let length = counter.read_at(&mut text, 0)?;
    let text = String::from_utf8_lossy(&text[..length]);
    text.trim().parse().map_err(|_| io::Error::other(format!("{text:?} is no count of errors")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn file_system_without_count_is_not_watched() {
        assert!(DiskErrors::watch(Path::new("/proc")).unwrap().is_none());
        assert!(DiskErrors::watch(Path::new("/nowhere/at/all")).is_err());
    }
}
