//! Jobs of the daemon, such as those that unpack images, stand still while a pod or container starts, and run only where nobody else wants a processor for
//! a while longer.
//!
//! A start is a chain of short-lived processes. Each of them would wait its turn behind whatever runs on its processor, and a container without a CPU request
//! weighs next to nothing, no more than an idle job; and whoever runs beside it takes caches and the journal of the disk. Jobs may take seconds of processor
//! time; they wait for the few milliseconds that a start needs, and go on. Where one start follows the other, they have their turns, too.

use podstead_container::cgroup::JobsPace;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Time for which jobs stand still at most: a start that takes longer waits for something else than a processor.
const STILL: Duration = Duration::from_millis(100);

/// Time after a start for which jobs are idle: the program of the container begins.
const BEGINNING: Duration = Duration::from_millis(500);

/// Time for which jobs wait at a stretch, and for which they do not wait after that.
const TURN: Duration = Duration::from_secs(5);

/// The starts under way, for which jobs wait.
pub(super) struct JobsWait {
    set_pace: Box<dyn Fn(JobsPace) + Send + Sync>,
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
    /// They stand still, since this time.
    Still(Instant),
    /// They run where nobody else wants a processor.
    Idle,
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
    /// `set_pace` lets jobs run in another way. It takes some microseconds.
    pub(super) fn new(set_pace: impl Fn(JobsPace) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { set_pace: Box::new(set_pace), starts: Mutex::default() })
    }

    /// Begins a start.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        let mut starts = self.starts();
        starts.under_way += 1;
        starts.has_changed = true;
        match starts.jobs {
            Jobs::Usual => {
                self.hold(&mut starts);
                tokio::spawn(Arc::clone(self).end_later());
            }
            // Not for one that begins beside others: those have had their time.
            Jobs::Idle if starts.under_way == 1 => self.hold(&mut starts),
            Jobs::Idle | Jobs::Still(_) | Jobs::Rest => {}
        }
        UnderWay(Arc::clone(self))
    }

    /// Lets jobs stand still.
    fn hold(self: &Arc<Self>, starts: &mut Starts) {
        starts.jobs = Jobs::Still(Instant::now());
        (self.set_pace)(JobsPace::Frozen);
        let later = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(STILL).await;
            let mut starts = later.starts();
            if matches!(starts.jobs, Jobs::Still(since) if since.elapsed() >= STILL) {
                later.let_go(&mut starts);
            }
        });
    }

    /// Ends that jobs stand still.
    fn let_go(&self, starts: &mut Starts) {
        starts.jobs = Jobs::Idle;
        (self.set_pace)(JobsPace::Idle);
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
        (self.set_pace)(JobsPace::Usual);
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
        if starts.under_way == 0 && matches!(starts.jobs, Jobs::Still(_)) {
            self.0.let_go(&mut starts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::JobsPace::{Frozen, Idle, Usual};
    use super::*;
    use std::sync::mpsc;

    /// Jobs, and what they were told since the last look.
    fn jobs() -> (Arc<JobsWait>, impl Fn() -> Vec<JobsPace>) {
        let (told, heard) = mpsc::channel();
        (JobsWait::new(move |pace| told.send(pace).unwrap()), move || heard.try_iter().collect())
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_have_their_turns_among_starts_that_follow_each_other() {
        let (jobs, heard) = jobs();
        let begun = Instant::now();
        while begun.elapsed() < 4 * TURN {
            drop(jobs.begin());
            tokio::time::sleep(BEGINNING / 5).await;
        }
        let mut turns: Vec<bool> = heard().into_iter().map(|pace| pace == Usual).collect();
        turns.dedup();
        assert_eq!(turns, [false, true, false, true]);
        tokio::time::sleep(2 * TURN).await;
        let _hangs = jobs.begin();
        tokio::time::sleep(3 * TURN / 2).await;
        assert_eq!(heard(), [Frozen, Idle, Usual], "a start that hangs holds jobs up for one turn");
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_wait_for_all_starts_and_a_while_longer() {
        let (jobs, heard) = jobs();
        let (first, second) = (jobs.begin(), jobs.begin());
        assert_eq!(heard(), [Frozen]);
        drop(first);
        tokio::time::sleep(STILL / 2).await;
        assert!(heard().is_empty(), "one is under way");
        drop(second);
        assert_eq!(heard(), [Idle]);
        tokio::time::sleep(BEGINNING / 2).await;
        assert!(heard().is_empty());
        drop(jobs.begin());
        assert_eq!(heard(), [Frozen, Idle]);
        tokio::time::sleep(3 * BEGINNING).await;
        assert_eq!(heard(), [Usual]);
        drop(jobs.begin());
        assert_eq!(heard(), [Frozen, Idle]);
        tokio::time::sleep(3 * BEGINNING).await;
        assert_eq!(heard(), [Usual]);
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_stand_still_for_a_moment_of_each_long_start() {
        let (jobs, heard) = jobs();
        let long = jobs.begin();
        tokio::time::sleep(2 * STILL).await;
        assert_eq!(heard(), [Frozen, Idle]);
        drop(jobs.begin());
        assert!(heard().is_empty(), "beside one that takes long");
        drop(long);
        let first = jobs.begin();
        tokio::time::sleep(STILL / 2).await;
        drop(first);
        let second = jobs.begin();
        tokio::time::sleep(STILL / 2).await;
        assert_eq!(heard(), [Frozen, Idle, Frozen], "each has its own time");
        tokio::time::sleep(STILL).await;
        assert_eq!(heard(), [Idle]);
        drop(second);
    }
}
