//! Starts under way. Each is made of a few processes that need a processor for some milliseconds: of hundreds at once, none is done sooner, and whatever
//! else needs a processor, such as a probe, waits for all of them.

use super::jobs_wait::JobsWait;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Starts at once for each processor: while one waits for the kernel, others go on.
const PER_PROCESSOR: usize = 3;

/// Time after which a start gives its place to another one. It waits for something else than a processor then.
const PATIENCE: Duration = Duration::from_secs(1);

/// Places for starts of one kind, given in the order in which they are asked for.
#[derive(Debug)]
pub(super) struct Starts {
    places: Semaphore,
    jobs: Arc<JobsWait>,
}

impl Starts {
    /// As many places as a host with so many processors needs.
    pub(super) fn new(processors: usize, jobs: Arc<JobsWait>) -> Self {
        Self { places: Semaphore::new(processors.max(1).saturating_mul(PER_PROCESSOR)), jobs }
    }

    /// Does the work when there is a place for it. Jobs of the daemon wait as long as it has one.
    pub(super) async fn take<T>(&self, work: impl Future<Output = T>) -> T {
        // The semaphore is never closed.
        let place = (self.places.acquire().await.ok(), self.jobs.begin());
        let mut work = pin!(work);
        match timeout(PATIENCE, &mut work).await {
            Ok(done) => done,
            Err(_) => {
                drop(place);
                work.await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::task::JoinSet;

    #[tokio::test(start_paused = true)]
    async fn few_starts_are_under_way_at_once_and_all_have_their_turn() {
        let (starts, now, most) =
            (Arc::new(Starts::new(2, JobsWait::new(|_| {}))), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut all = JoinSet::new();
        for _ in 0..100 {
            let (starts, now, most) = (Arc::clone(&starts), Arc::clone(&now), Arc::clone(&most));
            all.spawn(async move {
                let work = async {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                };
                starts.take(work).await;
            });
        }
        while let Some(ended) = all.join_next().await {
            ended.unwrap();
        }
        assert_eq!((most.load(Ordering::SeqCst), now.load(Ordering::SeqCst)), (6, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn starts_that_hang_hold_no_other_up_for_long() {
        let starts = Arc::new(Starts::new(1, JobsWait::new(|_| {})));
        for _ in 0..10 * PER_PROCESSOR {
            let starts = Arc::clone(&starts);
            tokio::spawn(async move { starts.take(std::future::pending::<()>()).await });
        }
        tokio::task::yield_now().await;
        let asked = tokio::time::Instant::now();
        assert_eq!(starts.take(async { 7 }).await, 7);
        assert!(asked.elapsed() <= PATIENCE * 11, "{:?}", asked.elapsed());
        // One that is dropped while it waits or works takes no place along.
        tokio::time::sleep(PATIENCE * 11).await;
        assert_eq!(starts.places.available_permits(), PER_PROCESSOR);
    }
}
