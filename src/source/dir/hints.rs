//! What events tell, reduced to a few words: when to look next, and who is writing.
//!
//! Any number of events fits in here: the thread that receives them never waits, and nothing can be lost, because what is looked at is
//! the directory and not the events.

use super::DirectoryOptions;
use super::listing::Witness;
use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long after its last write a file without a close event still counts as being written: it may be a slow copy, and it may be a
/// program that keeps its file open for ever.
const WRITER_PAUSE: Duration = Duration::from_secs(2);

/// After the creation of a name something may follow (content, a close), or nothing (a symlink, a hard link).
const CREATION_PAUSE: Duration = Duration::from_millis(100);

/// Names that may be open for writing at once; more are read as they come.
const MAX_WRITERS: usize = 4096;

/// What one event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hint {
    /// Something is as it will stay: closed after writing, renamed, removed, or unknown events were lost.
    Changed {
        /// The name that nobody writes to any more.
        name: Option<OsString>,
    },
    /// A name appeared; more may follow.
    Created,
    /// Bytes were written to the name; a close will follow.
    Written(OsString),
    /// Events were lost.
    Lost,
    /// The watched path itself was moved, removed or made.
    Moved,
}

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    rearm: bool,
    /// First and last event since the last pass that say that something has changed.
    changed: Option<(Instant, Instant)>,
    created: Option<Instant>,
    writers: HashMap<OsString, Instant>,
}

/// Shared between the thread that receives events and the one that follows.
#[derive(Debug, Default)]
pub(super) struct Hints {
    state: Mutex<State>,
    news: Condvar,
}

/// Why the follower woke up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// The source is not wanted any more.
    Stop,
    /// Events say that something changed, and have been silent since.
    Calm,
    /// Events say that something changed, and do not stop.
    Storm,
    /// The given time has come.
    Timer,
}

impl Hints {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent after each statement, so a panic elsewhere takes nothing away.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the follower.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.news.notify_all();
    }

    /// Takes an event in.
    pub(super) fn add(&self, hint: Hint, now: Instant) {
        let mut state = self.lock();
        match hint {
            Hint::Written(name) => {
                if state.writers.len() < MAX_WRITERS || state.writers.contains_key(&name) {
                    state.writers.insert(name, now);
                }
            }
            Hint::Created => {
                state.created.get_or_insert(now);
            }
            Hint::Changed { name } => {
                if let Some(name) = name {
                    state.writers.remove(&name);
                }
                state.touch(now);
            }
            Hint::Lost => {
                state.writers.clear();
                state.touch(now);
            }
            Hint::Moved => {
                state.rearm = true;
                state.touch(now);
            }
        }
        drop(state);
        self.news.notify_all();
    }

    /// Waits until events say that a pass is due, or until `timer`. `storm` is the longest time that events may put a pass off, and
    /// `not_before` the earliest time for one.
    pub(super) fn wait(&self, options: &DirectoryOptions, storm: Duration, not_before: Instant, timer: Instant) -> Wake {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            if state.stopped {
                return Wake::Stop;
            }
            let due = state.due(options.quiet, storm).map(|due| due.max(not_before));
            if due.is_some_and(|due| due <= now) {
                let calm = state.changed.is_none_or(|(_, last)| last + options.quiet <= now);
                return if calm { Wake::Calm } else { Wake::Storm };
            }
            if timer <= now {
                return Wake::Timer;
            }
            let until = due.map_or(timer, |due| due.min(timer));
            state = self.news.wait_timeout(state, until - now).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Begins a pass: everything told so far will be seen by it. Returns whether the watch has to be set anew, and who is writing.
    pub(super) fn begin_pass(&self, now: Instant) -> (bool, Witness) {
        let mut state = self.lock();
        state.changed = None;
        state.created = None;
        state.writers.retain(|_, last| now.saturating_duration_since(*last) < WRITER_PAUSE);
        let being_written = state.writers.keys().cloned().collect();
        (std::mem::take(&mut state.rearm), Witness { watching: true, being_written })
    }

    /// Whether something changed since the pass began.
    pub(super) fn overtaken(&self) -> bool {
        self.lock().changed.is_some()
    }
}

impl State {
    fn touch(&mut self, now: Instant) {
        let first = self.changed.map_or(now, |(first, _)| first);
        self.changed = Some((first, now));
    }

    /// When the next pass is due because of events.
    fn due(&self, quiet: Duration, storm: Duration) -> Option<Instant> {
        let changed = self.changed.map(|(first, last)| (last + quiet).min(first + storm));
        let created = self.created.map(|first| first + CREATION_PAUSE);
        // A writer that never closes its file is looked at when it pauses.
        let paused = self.writers.values().min().map(|last| *last + WRITER_PAUSE);
        [changed, created, paused].into_iter().flatten().min()
    }
}
