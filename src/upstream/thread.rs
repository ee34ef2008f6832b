//! The thread that the cluster has for itself: what is slow there makes nothing else slow.

use super::run::{self, Links};
use std::io;
use std::time::Duration;

/// Pause before everything begins anew after a mistake in the code: no reason to end what the daemon is for.
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
