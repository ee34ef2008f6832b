//! Emptying the log: a thread that is there while the log has batches.

use super::halves::{Halves, Next};
use super::{Shared, batch};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Instant;

/// Starts the thread unless there is one. Without it, the log is emptied by the next start of the daemon, and until then each file is synced.
pub(super) fn ensure(shared: &Arc<Shared>, state: &mut Halves) {
    if state.has_checkpoint {
        return;
    }
    let log = Arc::clone(shared);
    match thread::Builder::new().name("checkpoint".to_owned()).spawn(move || log.empty_halves()) {
        Ok(_) => state.has_checkpoint = true,
        Err(error) => {
            tracing::warn!(%error, "cannot start a thread for the write-ahead log");
            state.break_down();
        }
    }
}

impl Shared {
    fn empty_halves(&self) {
        let mut state = self.state();
        loop {
            match state.next(self.rest, Instant::now()) {
                Next::End => break,
                Next::Wait => state = self.wait(state),
                Next::WaitUntil(due) => {
                    let time = due.saturating_duration_since(Instant::now());
                    state = self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
                }
                Next::Empty { half, files } => {
                    let start = state.start(half);
                    drop(state);
                    let emptied = super::write_back(&self.root, &self.file, files.iter().map(PathBuf::as_path))
                        .and_then(|()| self.clear(start));
                    state = self.state();
                    match emptied {
                        Ok(()) => state.emptied(half),
                        Err(error) => {
                            tracing::error!(log = %self.path.display(), %error, "cannot empty the write-ahead log");
                            state.break_down();
                        }
                    }
                    self.changed.notify_all();
                }
            }
        }
        state.has_checkpoint = false;
        self.changed.notify_all();
    }

    /// Makes sure that nothing of a half is replayed.
    fn clear(&self, start: u64) -> io::Result<()> {
        self.file.write_all_at(&[0; batch::BLOCK], start)?;
        self.file.sync_data()
    }
}
