//! Summary of inotify events: when the next pass is due, and which files are being written.
//!
//! Any number of events fits in here: the thread that receives them never waits, and nothing can be lost, because what is looked at is
//! the directory and not the events.

use super::DirectoryOptions;
use super::listing::Witness;
use podstead_artifact::wake::Asked;
use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time after the last write for which a file without a close event counts as being written: it may be a slow copy, or a
/// program that keeps its file open for ever.
const WRITER_PAUSE: Duration = Duration::from_secs(2);

/// After the creation of a name something may follow (content, a close), or nothing (a symlink, a hard link).
const CREATION_PAUSE: Duration = Duration::from_millis(100);

/// Quiet time after a change that stands alone: one file, or a few within this time, of which none has gone.
const QUIET_OF_ONE: Duration = Duration::from_millis(1);

/// A change that comes so soon after another one is one of several: `mv` for each file in a loop, for example.
const APART: Duration = Duration::from_millis(250);

/// Names that may be open for writing at once; more are read as they come.
const MAX_WRITERS: usize = 4096;

/// Summary of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hint {
    /// A file is whole: it was closed after writing, or renamed to its name. Nothing has gone.
    Placed {
        /// The file that is no longer written to.
        name: OsString,
    },
    /// A change is complete: a file was renamed to another name or removed, or its attributes changed.
    Changed {
        /// The file that is no longer written to.
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
    /// Events since the last pass that say that something has changed.
    changed: Option<Burst>,
    /// The last such event of all.
    last: Option<Instant>,
    created: Option<Instant>,
    writers: HashMap<OsString, Instant>,
    /// Inquiries that wait for the next pass.
    asked: Asked,
}

/// Events that say that something has changed, without a pass between them.
#[derive(Clone, Copy, Debug)]
struct Burst {
    first: Instant,
    last: Instant,
    /// All of them are about files that are whole, and came at once, long after any other.
    stands_alone: bool,
}

impl Burst {
    /// Time after the last of them before the directory is read.
    fn quiet(self, quiet: Duration) -> Duration {
        if self.stands_alone { quiet.min(QUIET_OF_ONE) } else { quiet }
    }
}

/// Shared between the thread that receives events and the one that follows.
#[derive(Debug, Default)]
pub(super) struct Hints {
    state: Mutex<State>,
    news: Condvar,
}

/// Reason why the follower woke up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// The source was stopped.
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

    /// Records an event.
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
            Hint::Placed { name } => {
                state.writers.remove(&name);
                state.touch(now, true);
            }
            Hint::Changed { name } => {
                if let Some(name) = name {
                    state.writers.remove(&name);
                }
                state.touch(now, false);
            }
            Hint::Lost => {
                state.writers.clear();
                state.touch(now, false);
            }
            Hint::Moved => {
                state.rearm = true;
                state.touch(now, false);
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
                let calm = state.changed.is_none_or(|burst| burst.last + burst.quiet(options.quiet) <= now);
                return if calm { Wake::Calm } else { Wake::Storm };
            }
            if timer <= now {
                return Wake::Timer;
            }
            let until = due.map_or(timer, |due| due.min(timer));
            state = self.news.wait_timeout(state, until - now).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Requests a pass; `asked` are the inquiries that wait for its result.
    pub(super) fn wish(&self, asked: Asked, now: Instant) {
        let mut state = self.lock();
        state.asked.join(asked);
        state.touch(now, false);
        drop(state);
        self.news.notify_all();
    }

    /// Removes and returns the inquiries that wait for a pass that has not begun yet.
    pub(super) fn take_asked(&self) -> Asked {
        std::mem::take(&mut self.lock().asked)
    }

    /// The first event since the last pass.
    pub(super) fn noticed(&self) -> Option<Instant> {
        let state = self.lock();
        state.changed.map(|burst| burst.first).into_iter().chain(state.created).min()
    }

    /// Begins a pass, which covers all events so far. Returns whether the watch has to be set up again, and which files are being written.
    pub(super) fn begin_pass(&self, now: Instant) -> (bool, Witness) {
        let mut state = self.lock();
        state.changed = None;
        state.created = None;
        state.writers.retain(|_, last| now.saturating_duration_since(*last) < WRITER_PAUSE);
        let being_written = state.writers.keys().cloned().collect();
        (std::mem::take(&mut state.rearm), Witness { watching: true, being_written })
    }

    /// Reports whether something changed since the pass began.
    pub(super) fn overtaken(&self) -> bool {
        self.lock().changed.is_some()
    }
}

impl State {
    /// Notes a change; `is_whole`: that of a file that is whole.
    fn touch(&mut self, now: Instant, is_whole: bool) {
        let is_apart = self.last.is_none_or(|last| now.saturating_duration_since(last) >= APART);
        let begun = self.changed.unwrap_or(Burst { first: now, last: now, stands_alone: is_apart });
        let is_at_once = now.saturating_duration_since(begun.first) < QUIET_OF_ONE;
        self.changed = Some(Burst { last: now, stands_alone: begun.stands_alone && is_whole && is_at_once, ..begun });
        self.last = Some(now);
    }

    /// Time at which the next pass is due because of events.
    fn due(&self, quiet: Duration, storm: Duration) -> Option<Instant> {
        let changed = self.changed.map(|burst| (burst.last + burst.quiet(quiet)).min(burst.first + storm));
        let created = self.created.map(|first| first + CREATION_PAUSE);
        // A writer that never closes its file is looked at when it pauses.
        let paused = self.writers.values().min().map(|last| *last + WRITER_PAUSE);
        [changed, created, paused].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Duration = Duration::from_millis(5);
    const STORM: Duration = Duration::from_millis(250);

    /// Handles events at given milliseconds and returns when a pass is due.
    fn due(events: &[(u64, Hint)]) -> Option<u128> {
        let (hints, start) = (Hints::default(), Instant::now());
        for (at, hint) in events {
            hints.add(hint.clone(), start + Duration::from_millis(*at));
        }
        let due = hints.lock().due(QUIET, STORM);
        due.map(|due| (due - start).as_millis())
    }

    fn changed() -> Hint {
        Hint::Changed { name: Some("p.yaml".into()) }
    }

    fn written() -> Hint {
        Hint::Written("p.yaml".into())
    }

    #[test]
    fn a_pass_is_due_a_moment_after_the_last_change_and_no_storm_puts_it_off_for_ever() {
        assert_eq!(due(&[]), None);
        assert_eq!(due(&[(0, changed())]), Some(5));
        assert_eq!(due(&[(0, changed()), (4, changed())]), Some(9));
        let storm: Vec<_> = (0..100).map(|number| (number * 4, changed())).collect();
        assert_eq!(due(&storm), Some(250));
    }

    fn placed() -> Hint {
        Hint::Placed { name: "p.yaml".into() }
    }

    #[test]
    fn files_that_come_at_once_long_after_any_other_change_are_read_soon() {
        assert_eq!(due(&[(0, placed())]), Some(1));
        assert_eq!(due(&[(0, placed()), (0, placed()), (0, placed())]), Some(1));
        assert_eq!(due(&[(0, placed()), (0, changed())]), Some(5), "one that goes may come back under another name");
        assert_eq!(due(&[(0, changed()), (0, placed())]), Some(5));
        assert_eq!(due(&[(0, placed()), (1, placed())]), Some(6), "they come one after the other");
        assert_eq!(due(&[(0, Hint::Created), (0, written()), (0, placed())]), Some(1));
    }

    #[test]
    fn of_files_that_come_one_after_the_other_only_the_first_is_read_alone() {
        let (hints, start) = (Hints::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        let due = |hints: &Hints| hints.lock().due(QUIET, STORM).map(|due| (due - start).as_millis());
        hints.add(placed(), at(0));
        assert_eq!(due(&hints), Some(1));
        hints.begin_pass(at(1));
        for millis in (2..100).step_by(2) {
            hints.add(placed(), at(millis));
            assert_eq!(due(&hints), Some(u128::from(millis) + 5));
        }
        hints.begin_pass(at(103));
        hints.add(placed(), at(347));
        assert_eq!(due(&hints), Some(352));
        hints.begin_pass(at(352));
        hints.add(placed(), at(600));
        assert_eq!(due(&hints), Some(601));
    }

    #[test]
    fn a_writer_is_awaited_until_it_closes_or_pauses() {
        assert_eq!(due(&[(0, Hint::Created)]), Some(100));
        assert_eq!(due(&[(0, written()), (10, written())]), Some(2010));
        assert_eq!(due(&[(0, Hint::Created), (1, written()), (2, changed())]), Some(7));
    }

    #[test]
    fn who_writes_is_known_to_the_pass_until_the_writer_pauses() {
        let (hints, start) = (Hints::default(), Instant::now());
        hints.add(written(), start);
        assert_eq!(hints.begin_pass(start).1.being_written.len(), 1);
        assert_eq!(hints.begin_pass(start + WRITER_PAUSE).1.being_written.len(), 0);
        hints.add(written(), start);
        hints.add(changed(), start);
        assert_eq!(hints.begin_pass(start).1.being_written.len(), 0);
        hints.add(written(), start);
        hints.add(Hint::Lost, start);
        assert_eq!(hints.begin_pass(start).1.being_written.len(), 0, "its close may be among the lost events");
    }

    #[test]
    fn what_was_told_before_a_pass_is_done_by_it() {
        let (hints, start) = (Hints::default(), Instant::now());
        hints.add(Hint::Moved, start);
        assert!(hints.begin_pass(start).0);
        assert!(!hints.begin_pass(start).0);
        assert!(!hints.overtaken());
        hints.add(changed(), start);
        assert!(hints.overtaken());
    }

    #[test]
    fn a_flood_of_names_takes_bounded_memory() {
        let (hints, start) = (Hints::default(), Instant::now());
        for number in 0..3 * MAX_WRITERS {
            hints.add(Hint::Written(format!("{number}.yaml").into()), start);
        }
        assert_eq!(hints.lock().writers.len(), MAX_WRITERS);
    }

    #[test]
    fn a_stopped_follower_wakes_up_at_once() {
        let hints = std::sync::Arc::new(Hints::default());
        let (waiter, far) = (hints.clone(), Instant::now() + Duration::from_secs(3600));
        let thread = std::thread::spawn(move || waiter.wait(&DirectoryOptions::default(), STORM, Instant::now(), far));
        hints.stop();
        assert_eq!(thread.join().unwrap(), Wake::Stop);
    }
}
