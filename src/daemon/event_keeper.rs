//! Keeps the events of the last hours in a file, for the next daemon.
//!
//! Written at leisure: some seconds after an event, and again only when minutes have passed since. A host where nothing happens writes nothing.
//! A daemon that ends in order writes what is left; one that is killed loses the events of these minutes, which its log has.

use jiff::Timestamp;
use podstead_sys::atomic_file::write_durable;
use podstead_telemetry::event_file::{MAX_BYTES, decode, encode};
use podstead_telemetry::{EventLog, error_chain};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Pause after an event: others come with it.
const PAUSE: Duration = Duration::from_secs(10);
/// Time between two writes, at least.
const INTERVAL: Duration = Duration::from_secs(300);

/// The event log and its file.
#[derive(Clone, Debug)]
pub(super) struct EventKeeper {
    events: Arc<EventLog>,
    file: PathBuf,
    /// Version of the journal that the file has.
    written: Arc<AtomicU64>,
}

impl EventKeeper {
    /// Gives the log what an earlier daemon kept. What cannot be read is reported and left out: an event is an aid, not a state.
    pub(super) fn restore(events: Arc<EventLog>, file: PathBuf, now: Timestamp) -> Self {
        match read(&file) {
            Ok(Some(bytes)) => match decode(&bytes, now) {
                Ok(kept) => events.restore(kept),
                Err(error) => {
                    tracing::warn!(file = %file.display(), error = %error_chain(&error), "cannot use the events of an earlier daemon");
                }
            },
            Ok(None) => {}
            Err(error) => tracing::warn!(file = %file.display(), %error, "cannot read the events of an earlier daemon"),
        }
        let written = Arc::new(AtomicU64::new(events.journal().version()));
        Self { events, file, written }
    }

    /// Writes the file when there is something new, as seldom as it has to.
    pub(super) async fn run(self) -> std::convert::Infallible {
        let mut changes = self.events.journal().subscribe();
        let mut next = Instant::now();
        loop {
            // The log lives as long as this.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            sleep_until(next.max(Instant::now() + PAUSE)).await;
            changes.borrow_and_update();
            self.write().await;
            next = Instant::now() + INTERVAL;
        }
    }

    /// Writes the file unless it has all events.
    pub(super) async fn write(&self) {
        let (version, events) = self.events.journal().list();
        if self.written.load(Ordering::Relaxed) == version {
            return;
        }
        let file = self.file.clone();
        let write = move || write_durable(&file, &encode(events.iter().map(|event| &**event), Timestamp::now()), 0o600);
        match tokio::task::spawn_blocking(write).await.map_err(io::Error::other).and_then(|written| written) {
            Ok(()) => self.written.store(version, Ordering::Relaxed),
            Err(error) => tracing::warn!(file = %self.file.display(), %error, "cannot write the events of this host"),
        }
    }
}

/// At most one byte more than the file may have.
fn read(file: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    match File::open(file) {
        Ok(open) => open.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map(|_| Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_telemetry::events::{EventRecorder, EventType, Subject};

    fn keeper(file: &Path) -> EventKeeper {
        EventKeeper::restore(Arc::new(EventLog::new(0, Timestamp::now)), file.to_owned(), Timestamp::now())
    }

    #[tokio::test(start_paused = true)]
    async fn event_is_written_once_and_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("events.jsonl");
        let first = keeper(&file);
        let running = tokio::spawn(first.clone().run());
        tokio::time::sleep(INTERVAL).await;
        assert!(!file.try_exists().unwrap(), "nothing happened");
        first.events.record(&Subject::Node, EventType::Warning, "Rebooted", "again");
        while !file.try_exists().unwrap() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        while first.written.load(Ordering::Relaxed) != 1 {
            tokio::task::yield_now().await;
        }
        std::fs::remove_file(&file).unwrap();
        tokio::time::sleep(10 * INTERVAL).await;
        assert!(!file.try_exists().unwrap(), "it is written once");
        first.events.record(&Subject::Node, EventType::Warning, "Rebooted", "again");
        first.write().await;
        running.abort();
        let (_, events) = keeper(&file).events.journal().list();
        assert_eq!(events.iter().map(|event| event.count).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn damaged_file_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("events.jsonl");
        for content in [b"nonsense".to_vec(), vec![b'x'; 2 * MAX_BYTES]] {
            std::fs::write(&file, content).unwrap();
            assert!(keeper(&file).events.journal().is_empty());
        }
    }
}
