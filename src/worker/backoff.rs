//! Back-off of crashing containers and failing pulls (kubelet rules D9, D10). **Pure**.
//!
//! The state of one back-off is how long the last pause was and when it was decided. It lives in the pod's state. After a restart of
//! the daemon it is derived from the last run's record: its attempt number tells how often it was restarted, its times tell whether it ran
//! long enough to be forgiven. Edits also count as attempts, so the derived pause can be too long, but never longer than the cap.

use podstead_sys_async::clock::Moment;
use std::time::Duration;

/// Growth of the pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffPolicy {
    /// The first pause.
    pub initial: Duration,
    /// No pause is longer.
    pub cap: Duration,
    /// A run longer than this forgives what was before.
    pub reset_after: Duration,
}

/// The pauses of one container definition or one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The pause that follows the next failure.
    pub delay: Duration,
    /// The time at which `delay` was decided: the last restart, or the last failed attempt.
    pub updated: Moment,
}

impl BackoffPolicy {
    /// CrashLoopBackOff: 10 s, doubling to `cap` (300 s unless configured), forgotten after 10 minutes (kubelet rule D9).
    pub const fn crash_loop(cap: Duration) -> Self {
        Self { initial: Duration::from_secs(10), cap, reset_after: Duration::from_secs(600) }
    }

    /// ImagePullBackOff: 10 s, doubling to 300 s (kubelet rule D10).
    pub const fn image_pull() -> Self {
        Self { initial: Duration::from_secs(10), cap: Duration::from_secs(300), reset_after: Duration::from_secs(600) }
    }

    /// Retries of what usually works at once: sandbox, volumes, a container that cannot be made. The kubelet waits 10 s each time (rule C8).
    pub const fn retry() -> Self {
        Self { initial: Duration::from_secs(1), cap: Duration::from_secs(10), reset_after: Duration::from_secs(600) }
    }

    /// Until when a restart after a failure at `failed` has to wait; a moment that is not after `failed` means that it need not wait.
    /// Without state (the first failure) there is no pause.
    pub fn earliest(&self, state: Option<&Backoff>, failed: Moment) -> Moment {
        match state {
            Some(backoff) if !self.is_forgiven(backoff, failed) => failed + backoff.delay.min(self.cap),
            Some(_) | None => failed,
        }
    }

    /// The state after a restart at `now` that follows the failure at `failed`.
    pub fn next(&self, state: Option<&Backoff>, failed: Moment, now: Moment) -> Backoff {
        let delay = match state {
            Some(backoff) if !self.is_forgiven(backoff, failed) => backoff.delay.saturating_mul(2),
            Some(_) | None => self.initial,
        };
        Backoff { delay: delay.min(self.cap), updated: now }
    }

    /// The state that a restarted daemon assumes: `attempt` restarts so far, the last run from `started` to `failed`.
    pub fn derive(&self, attempt: u32, started: Moment, failed: Moment) -> Option<Backoff> {
        let doublings = attempt.checked_sub(1)?;
        let delay = self.initial.saturating_mul(2u32.saturating_pow(doublings)).min(self.cap);
        let backoff = Backoff { delay, updated: started };
        (!self.is_forgiven(&backoff, failed)).then_some(backoff)
    }

    fn is_forgiven(&self, backoff: &Backoff, failed: Moment) -> bool {
        failed.since(backoff.updated) > self.reset_after
    }
}

/// Something that failed `count` times in a row and is tried again at `retry_at`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The waiting reason, in the kubelet's words (rule D8).
    pub reason: &'static str,
    /// The error.
    pub message: String,
    /// Failures in a row.
    pub count: u32,
    /// Not before this.
    pub retry_at: Moment,
    backoff: Backoff,
}

impl Failure {
    /// One more failure at `now`, after `previous` ones of the same thing.
    pub fn again(
        previous: Option<&Failure>,
        policy: &BackoffPolicy,
        reason: &'static str,
        message: impl Into<String>,
        now: Moment,
    ) -> Self {
        let backoff = policy.next(previous.map(|failure| &failure.backoff), now, now);
        let count = previous.map_or(0, |failure| failure.count).saturating_add(1);
        Self { reason, message: message.into(), count, retry_at: now + backoff.delay, backoff }
    }

    /// Returns true if the pause is over.
    pub fn is_due(&self, now: Moment) -> bool {
        now >= self.retry_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICY: BackoffPolicy = BackoffPolicy::crash_loop(Duration::from_secs(300));

    fn at(seconds: u64) -> Moment {
        Moment::from_beginning(Duration::from_secs(seconds))
    }

    /// Restarts a container that runs for `run` seconds each time; the pauses between death and restart.
    fn pauses(policy: &BackoffPolicy, runs: &[u64]) -> Vec<u64> {
        let mut state = None;
        let mut now = at(1_000);
        let mut pauses = Vec::new();
        for run in runs {
            let failed = now + Duration::from_secs(*run);
            let restart = policy.earliest(state.as_ref(), failed);
            pauses.push(restart.since(failed).as_secs());
            state = Some(policy.next(state.as_ref(), failed, restart));
            now = restart;
        }
        pauses
    }

    #[test]
    fn a_container_that_dies_at_once_waits_0_10_20_40_up_to_300_seconds() {
        assert_eq!(pauses(&POLICY, &[1; 8]), [0, 10, 20, 40, 80, 160, 300, 300]);
    }

    #[test]
    fn ten_minutes_of_running_forgive() {
        assert_eq!(pauses(&POLICY, &[1, 1, 1, 601, 1]), [0, 10, 20, 0, 10]);
        assert_eq!(pauses(&POLICY, &[1, 1, 1, 600, 1]), [0, 10, 20, 40, 80], "exactly ten minutes do not");
    }

    #[test]
    fn a_configured_cap_holds_from_the_first_pause() {
        assert_eq!(pauses(&BackoffPolicy::crash_loop(Duration::from_secs(3)), &[1; 4]), [0, 3, 3, 3]);
    }

    #[test]
    fn failed_pulls_wait_10_20_40_seconds() {
        let policy = BackoffPolicy::image_pull();
        let mut failure = None;
        let mut now = at(1_000);
        let mut waits = Vec::new();
        for _ in 0..6 {
            let next = Failure::again(failure.as_ref(), &policy, "ErrImagePull", "no route", now);
            waits.push(next.retry_at.since(now).as_secs());
            now = next.retry_at;
            failure = Some(next);
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 300]);
    }

    proptest! {
        #[test]
        fn a_pause_never_exceeds_the_cap_and_never_shrinks_while_unforgiven(
            runs in prop::collection::vec(0u64..600, 1..30), cap in 1u64..400,
        ) {
            let pauses = pauses(&BackoffPolicy::crash_loop(Duration::from_secs(cap)), &runs);
            prop_assert_eq!(pauses[0], 0);
            prop_assert!(pauses.iter().all(|pause| *pause <= cap));
            // A run and the pause before it may together be over the limit only when the run alone is: none here.
            prop_assert!(pauses.windows(2).all(|pair| pair[0] <= pair[1]));
        }

        #[test]
        fn a_restarted_daemon_assumes_what_the_running_one_knew(short_runs in prop::collection::vec(0u64..500, 2..12)) {
            let mut state = None;
            let mut started = at(1_000);
            for (attempt, run) in (0..).zip(&short_runs) {
                let failed = started + Duration::from_secs(*run);
                prop_assert_eq!(
                    POLICY.earliest(state.as_ref(), failed),
                    POLICY.earliest(POLICY.derive(attempt, started, failed).as_ref(), failed)
                );
                let restart = POLICY.earliest(state.as_ref(), failed);
                state = Some(POLICY.next(state.as_ref(), failed, restart));
                started = restart;
            }
        }
    }
}
