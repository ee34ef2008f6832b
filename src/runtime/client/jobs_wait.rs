//! Jobs of the daemon, such as those that unpack images, run only where nobody else wants a processor while a pod or container starts.
//!
//! A start is a chain of short-lived processes. Each of them would wait its turn behind whatever runs on its processor, and a container without a CPU request
//! weighs next to nothing. Jobs may take seconds of processor time; they wait for the few milliseconds that a start needs, and go on. Where one start
//! follows the other, they have their turns, too.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Time after a start for which jobs still wait: the program of the container begins.
const BEGINNING: Duration = Duration::from_millis(500);

/// Time for which jobs wait at a stretch, and for which they do not wait after that.
const TURN: Duration = Duration::from_secs(5);

/// The starts under way, for which jobs wait.
pub(super) struct JobsWait {
    set_idle: Box<dyn Fn(bool) + Send + Sync>,
    starts: Mutex<Starts>,
}

#[derive(Debug, Default)]
struct Starts {
    under_way: usize,
    /// One has begun or ended since the last look.
    has_changed: bool,
    jobs: Jobs,
}

/// Turn of the jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Jobs {
    /// They run as usual, until a start begins.
    #[default]
    Usual,
    /// They wait.
    Wait,
    /// They run as usual, whatever begins.
    Rest,
}

impl fmt::Debug for JobsWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobsWait").field("starts", &self.starts).finish_non_exhaustive()
    }
}

/// A start under way, until it is dropped.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<JobsWait>);

impl JobsWait {
    /// `set_idle` makes jobs wait, or ends that. It takes some microseconds.
    pub(super) fn new(set_idle: impl Fn(bool) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { set_idle: Box::new(set_idle), starts: Mutex::default() })
    }

    /// Begins a start.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        let mut starts = self.starts();
        starts.under_way += 1;
        starts.has_changed = true;
        if starts.jobs == Jobs::Usual {
            starts.jobs = Jobs::Wait;
            (self.set_idle)(true);
            tokio::spawn(Arc::clone(self).end_later());
        }
        UnderWay(Arc::clone(self))
    }

    /// Lets jobs go on when there was no start for a while, or when they have waited long enough.
    async fn end_later(self: Arc<Self>) {
        let begun = Instant::now();
        let jobs = loop {
            tokio::time::sleep(BEGINNING).await;
            if let Some(jobs) = self.go_on(begun.elapsed() >= TURN) {
                break jobs;
            }
        };
        if jobs == Jobs::Rest {
            tokio::time::sleep(TURN).await;
            self.starts().jobs = Jobs::Usual;
        }
    }

    /// Lets jobs go on if there is no start any more or their turn has come.
    fn go_on(&self, is_their_turn: bool) -> Option<Jobs> {
        let mut starts = self.starts();
        let are_over = !std::mem::take(&mut starts.has_changed) && starts.under_way == 0;
        starts.jobs = match (are_over, is_their_turn) {
            (true, _) => Jobs::Usual,
            (false, true) => Jobs::Rest,
            (false, false) => return None,
        };
        (self.set_idle)(false);
        Some(starts.jobs)
    }

    fn starts(&self) -> MutexGuard<'_, Starts> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut starts = self.0.starts();
        starts.under_way -= 1;
        starts.has_changed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test(start_paused = true)]
    async fn jobs_have_their_turns_among_starts_that_follow_each_other() {
        let (told, heard) = mpsc::channel();
        let jobs = JobsWait::new(move |idle| told.send(idle).unwrap());
        let begun = Instant::now();
        while begun.elapsed() < 4 * TURN {
            drop(jobs.begin());
            tokio::time::sleep(BEGINNING / 5).await;
        }
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [true, false, true, false]);
        tokio::time::sleep(2 * TURN).await;
        let _hangs = jobs.begin();
        tokio::time::sleep(3 * TURN / 2).await;
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [true, false], "a start that hangs holds jobs up for one turn");
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_wait_for_all_starts_and_a_while_longer() {
        let (told, heard) = mpsc::channel();
        let jobs = JobsWait::new(move |idle| told.send(idle).unwrap());
        let heard = || heard.try_iter().collect::<Vec<_>>();
        let (first, second) = (jobs.begin(), jobs.begin());
        assert_eq!(heard(), [true]);
        drop(first);
        tokio::time::sleep(5 * BEGINNING).await;
        assert!(heard().is_empty(), "one is under way");
        drop(second);
        tokio::time::sleep(BEGINNING / 2).await;
        assert!(heard().is_empty());
        drop(jobs.begin());
        tokio::time::sleep(3 * BEGINNING).await;
        assert_eq!(heard(), [false]);
        drop(jobs.begin());
        assert_eq!(heard(), [true]);
        tokio::time::sleep(3 * BEGINNING).await;
        assert_eq!(heard(), [false]);
    }
}
