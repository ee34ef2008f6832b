//! Active time of a pod, for `activeDeadlineSeconds` (kubelet rule D13).
//!
//! The kubelet asks the wall clock, which on a host without a battery starts in the past and jumps: a pod would be ended early or never.
//! Here active time is counted on the clock of the boot, and kept in the pod record now and then: a boot that ends without notice takes
//! away what was counted since. The time for which the host is off does not count.

use super::state::ActiveTimes;
use podstead_sys::boot::BootTime;
use podstead_sys_async::clock::Moment;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// So many times in a pod's allowance the record is written, so that a power cut takes no more than that part of it.
const PARTS: u32 = 8;
/// But not more often.
const LEAST_PAUSE: Duration = Duration::from_secs(60);

/// Active time that was counted at some point of a boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveTime {
    boot_id: String,
    since_boot_secs: u64,
    elapsed_secs: u64,
}

impl ActiveTime {
    /// So much of it until now.
    pub fn counted(elapsed: Duration, now: &BootTime) -> Self {
        Self { boot_id: now.boot_id.clone(), since_boot_secs: now.since_boot.as_secs(), elapsed_secs: elapsed.as_secs() }
    }

    /// The active time up to `now`.
    pub fn elapsed(&self, now: &BootTime) -> Duration {
        let counted = Duration::from_secs(self.elapsed_secs);
        if self.boot_id != now.boot_id {
            return counted;
        }
        counted + now.since_boot.saturating_sub(Duration::from_secs(self.since_boot_secs))
    }
}

impl ActiveTimes {
    /// Takes over what an earlier daemon counted.
    pub(super) fn inherit(&mut self, counted: &ActiveTime, now: Moment, boot: &BootTime) {
        self.since = Some(now - counted.elapsed(boot));
    }

    /// The count to be recorded now, if the pod has a deadline and it is time to.
    pub(super) fn count_due(&mut self, deadline: Option<Duration>, now: Moment, boot: impl Fn() -> BootTime) -> Option<ActiveTime> {
        let (Some(deadline), Some(since)) = (deadline, self.since) else {
            self.record_at = None;
            return None;
        };
        if self.record_at.is_some_and(|due| due > now) {
            return None;
        }
        self.record_at = Some(now + (deadline / PARTS).max(LEAST_PAUSE));
        Some(ActiveTime::counted(now.since(since), &boot()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(boot_id: &str, seconds: u64) -> BootTime {
        BootTime { boot_id: boot_id.to_owned(), since_boot: Duration::from_secs(seconds) }
    }

    #[test]
    fn d13_active_time_goes_on_in_its_boot_and_stands_still_while_the_host_is_off() {
        let kept = ActiveTime::counted(Duration::from_secs(30), &at("a", 100));
        assert_eq!(kept.elapsed(&at("a", 100)), Duration::from_secs(30));
        assert_eq!(kept.elapsed(&at("a", 150)), Duration::from_secs(80));
        assert_eq!(kept.elapsed(&at("b", 5)), Duration::from_secs(30), "another boot");
        assert_eq!(kept.elapsed(&at("a", 50)), Duration::from_secs(30), "never less than what was counted");
    }
}
