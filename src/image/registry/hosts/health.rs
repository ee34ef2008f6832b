//! Memory of hosts that failed, while the daemon runs: they are asked last for a while, and their failures are told now and then.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Failures in a row after which a host is asked last.
const FAILURES: u32 = 2;
/// The first time for which it is, doubled with each further failure.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(30 * 60);
/// Between two events about a mirror.
const TOLD: Duration = Duration::from_secs(3600);
/// Remembered at most; beyond it, the memory begins anew.
const REMEMBERED: usize = 1024;

/// Failures of one host.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    failures: u32,
    /// It is asked last until then.
    closed: Option<Instant>,
    told: Option<Instant>,
}

/// Failures of all hosts, by name.
#[derive(Debug, Default)]
pub(in super::super) struct Health(Mutex<HashMap<String, Record>>);

impl Health {
    fn records(&self) -> MutexGuard<'_, HashMap<String, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note that a host failed.
    pub(in super::super) fn failed(&self, host: &str) {
        let mut records = self.records();
        if records.len() >= REMEMBERED && !records.contains_key(host) {
            records.clear();
        }
        let record = records.entry(host.to_owned()).or_default();
        record.failures = record.failures.saturating_add(1);
        if let Some(doublings) = record.failures.checked_sub(FAILURES) {
            record.closed = Some(Instant::now() + (FIRST * 2_u32.saturating_pow(doublings.min(10))).min(LONGEST));
        }
    }

    /// Takes note that a host answered.
    pub(in super::super) fn answered(&self, host: &str) {
        if let Some(record) = self.records().get_mut(host) {
            (record.failures, record.closed) = (0, None);
        }
    }

    /// Returns true for a host that is to be asked last.
    pub(in super::super) fn is_closed(&self, host: &str) -> bool {
        self.records().get(host).and_then(|record| record.closed).is_some_and(|until| until > Instant::now())
    }

    /// Returns true if the failure of a host is to be told now, at most once an hour.
    pub(in super::super) fn is_news(&self, host: &str) -> bool {
        let mut records = self.records();
        let record = records.entry(host.to_owned()).or_default();
        let is_news = record.told.is_none_or(|told| told.elapsed() >= TOLD);
        if is_news {
            record.told = Some(Instant::now());
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn two_failures_close_a_host() {
        let health = Health::default();
        health.failed("a");
        assert!(!health.is_closed("a"));
        health.failed("a");
        assert!(health.is_closed("a") && !health.is_closed("b"));
        pass(61).await;
        assert!(!health.is_closed("a"));
        health.failed("a");
        pass(61).await;
        assert!(health.is_closed("a"), "the time doubles");
        for _ in 0..100 {
            health.failed("a");
        }
        pass(30 * 60 + 1).await;
        assert!(!health.is_closed("a"), "the time has an end");
        health.failed("a");
        health.answered("a");
        assert!(!health.is_closed("a"));
        health.failed("a");
        assert!(!health.is_closed("a"), "an answer makes it as new");
    }

    #[tokio::test(start_paused = true)]
    async fn failure_is_told_once_an_hour() {
        let health = Health::default();
        assert!(health.is_news("a") && !health.is_news("a") && health.is_news("b"));
        health.answered("a");
        pass(3599).await;
        assert!(!health.is_news("a"));
        pass(2).await;
        assert!(health.is_news("a"));
    }
}
