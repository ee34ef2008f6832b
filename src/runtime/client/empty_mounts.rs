//! The mount namespace with nothing in it that helpers of shims enter. All shims of one daemon have the same.

use podstead_sys::empty_mounts;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::timeout;

/// A copy of some thousand mounts, which comes before, takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// The namespace, once it was made.
#[derive(Debug, Default)]
pub(super) struct EmptyMounts(OnceCell<Option<OwnedFd>>);

impl EmptyMounts {
    /// Makes it if that was not tried yet. `None` if it cannot be made: then each helper takes a copy of the mounts of the host.
    pub(super) async fn get(&self, shim_binary: &Path) -> Option<OwnedFd> {
        let made = self.0.get_or_init(|| async {
            let made = timeout(PATIENCE, make(shim_binary)).await.map_err(io::Error::other).flatten();
            made.inspect_err(|error| tracing::warn!(%error, "cannot make an empty mount namespace: starts take longer on a host with many mounts")).ok()
        });
        made.await.as_ref().and_then(|namespace| namespace.try_clone().ok())
    }
}

/// The namespace outlives the process that makes it.
async fn make(shim_binary: &Path) -> io::Result<OwnedFd> {
    let mut child = Command::new(shim_binary)
        .arg("mounts")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let ended = || io::Error::other("the process that makes it ended");
    // It goes on until this end of its input is closed, so that its number is its own.
    let (id, input, mut output) = match (child.id(), child.stdin.take(), child.stdout.take()) {
        (Some(id), Some(input), Some(output)) => (id, input, output),
        _ => return Err(ended()),
    };
    output.read_u8().await?;
    let namespace = empty_mounts::of_process(id)?;
    drop(input);
    child.wait().await?;
    Ok(namespace)
}
