//! Thread of the connection to the cluster, so that a slow cluster slows nothing else down.

use super::run::{self, Links};
use std::io;
use std::time::Duration;

/// Pause before a restart of the thread after a panic, which must not end the daemon.
const AFTER_PANIC: Duration = Duration::from_secs(30);

/// Starts the thread, which ends with the process.
pub fn start(links: Links) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("upstream".into()).spawn(move || {
        runtime.block_on(async {
            loop {
                let running = tokio::spawn(run_owned(links.clone()));
                if let Err(error) = running.await {
                    tracing::error!(%error, "the connection to the cluster failed unexpectedly; restarting it");
                }
                tokio::time::sleep(AFTER_PANIC).await;
            }
        });
    })?;
    Ok(())
}

async fn run_owned(links: Links) {
    match run::run(links).await {}
}
