//! Jobs of the daemon, such as those that unpack images, are stopped while a pod or container starts, and run only where nobody else wants a processor for
//! a while longer.
//!
//! A start is a chain of short-lived processes. Each of them would wait its turn behind whatever runs on its processor, and a container without a CPU request
//! weighs next to nothing, no more than an idle job. Jobs may take seconds of processor time; they wait for the few milliseconds that a start needs, and go
//! on. Where one start follows the other, they have their turns, too.

use podstead_container::cgroup::JobsPace;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Time for which jobs are stopped at most: a start that takes longer waits for something else than a processor.
const STOP: Duration = Duration::from_millis(100);

/// Time without a start after which jobs go on: between the sandbox of a pod and its container is less.
const PAUSE: Duration = Duration::from_millis(20);

/// Time after a start for which jobs are idle: the program of the container begins.
const BEGINNING: Duration = Duration::from_millis(500);

/// Time for which jobs give way at a stretch, and for which they do not after that.
const TURN: Duration = Duration::from_secs(5);

/// The starts under way, for which jobs wait.
pub(super) struct JobsWait {
    set_pace: Box<dyn Fn(JobsPace) + Send + Sync>,
    starts: Mutex<Starts>,
}

#[derive(Debug, Default)]
struct Starts {
    under_way: usize,
    /// When one has begun or ended last.
    touched: Option<Instant>,
    jobs: Jobs,
}

/// Turn of the jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Jobs {
    /// They run as usual, until a start begins.
    #[default]
    Usual,
    /// They are stopped, since this time.
    Stopped(Instant),
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

impl Starts {
    /// Returns true if none is under way, and none was for so long. **Pure** but for the clock.
    fn are_over_for(&self, time: Duration) -> bool {
        self.under_way == 0 && self.touched.is_none_or(|touched| touched.elapsed() >= time)
    }
}

impl JobsWait {
    /// `set_pace` lets jobs run in another way. It takes some microseconds.
    pub(super) fn new(set_pace: impl Fn(JobsPace) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { set_pace: Box::new(set_pace), starts: Mutex::default() })
    }

    /// Begins a start.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        let mut starts = self.starts();
        starts.under_way += 1;
        starts.touched = Some(Instant::now());
        match starts.jobs {
            Jobs::Usual => {
                self.stop(&mut starts);
                tokio::spawn(Arc::clone(self).end_later());
            }
            // Not for one that begins beside others: those have had their time.
            Jobs::Idle if starts.under_way == 1 => self.stop(&mut starts),
            Jobs::Idle | Jobs::Stopped(_) | Jobs::Rest => {}
        }
        UnderWay(Arc::clone(self))
    }

    fn stop(self: &Arc<Self>, starts: &mut Starts) {
        let now = Instant::now();
        starts.jobs = Jobs::Stopped(now);
        (self.set_pace)(JobsPace::Stopped);
        tokio::spawn(Arc::clone(self).continue_later(now));
    }

    /// Lets jobs that were stopped at a time go on, where nobody else wants a processor.
    async fn continue_later(self: Arc<Self>, stopped: Instant) {
        loop {
            tokio::time::sleep(PAUSE).await;
            let mut starts = self.starts();
            if starts.jobs != Jobs::Stopped(stopped) {
                return;
            }
            if starts.are_over_for(PAUSE) || stopped.elapsed() >= STOP {
                starts.jobs = Jobs::Idle;
                (self.set_pace)(JobsPace::Idle);
                return;
            }
        }
    }

    /// Lets jobs run as usual when there was no start for a while, or when they have given way for long enough.
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

    /// Lets jobs run as usual if there is no start any more or their turn has come.
    fn go_on(&self, is_their_turn: bool) -> Option<Jobs> {
        let mut starts = self.starts();
        starts.jobs = match (starts.are_over_for(BEGINNING), is_their_turn) {
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
        starts.touched = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::JobsPace::{Idle, Stopped, Usual};
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
        assert_eq!(heard(), [Stopped, Idle, Usual], "a start that hangs holds jobs up for one turn");
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_wait_for_all_starts_and_a_while_longer() {
        let (jobs, heard) = jobs();
        let (first, second) = (jobs.begin(), jobs.begin());
        assert_eq!(heard(), [Stopped]);
        drop(first);
        tokio::time::sleep(2 * PAUSE).await;
        assert!(heard().is_empty(), "one is under way");
        drop(second);
        tokio::time::sleep(PAUSE / 2).await;
        drop(jobs.begin());
        assert!(heard().is_empty(), "the next step of the start");
        tokio::time::sleep(2 * PAUSE).await;
        assert_eq!(heard(), [Idle]);
        drop(jobs.begin());
        assert_eq!(heard(), [Stopped], "another start");
        for _ in 0..2 {
            tokio::time::sleep(3 * BEGINNING).await;
            assert_eq!(heard(), [Idle, Usual]);
            drop(jobs.begin());
            assert_eq!(heard(), [Stopped]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_are_stopped_for_a_moment_of_each_long_start() {
        let (jobs, heard) = jobs();
        let long = jobs.begin();
        tokio::time::sleep(STOP - PAUSE / 2).await;
        assert_eq!(heard(), [Stopped]);
        tokio::time::sleep(PAUSE).await;
        assert_eq!(heard(), [Idle]);
        drop(jobs.begin());
        assert!(heard().is_empty(), "beside one that takes long");
        drop(long);
        let _next = jobs.begin();
        assert_eq!(heard(), [Stopped], "each has its own time");
        tokio::time::sleep(STOP + PAUSE).await;
        assert_eq!(heard(), [Idle]);
    }
}
