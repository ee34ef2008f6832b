//! Active time of a pod, for `activeDeadlineSeconds` (kubelet rule D13).
//!
//! The kubelet asks the wall clock, which on a host without a battery starts in the past and jumps: a pod would be ended early or never.
//! Here active time is counted on the clock of the boot, and kept in the pod record now and then: a boot that ends without notice takes
//! away what was counted since. The time for which the host is off does not count.

use super::memory::Step;
use super::pod_worker::PodWorker;
use super::services::Services;
use podstead_sys::boot::BootTime;
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

impl PodWorker {
    /// Takes up what an earlier daemon counted.
    pub(super) fn adopt_active_time(&mut self, services: &Services) {
        let Some(kept) = &self.record.active else { return };
        let now = services.clock.now();
        self.memory.active_since = Some(now.moment - kept.elapsed(&services.clock.boot_time()));
    }

    /// Keeps how long the pod has been active, if that matters and it is time to.
    pub(super) fn keep_active_time(&mut self, services: &Services) {
        let (Some(deadline), Some(since)) = (self.definition.active_deadline, self.memory.active_since) else {
            self.memory.keep_active_at = None;
            return;
        };
        let now = services.clock.now().moment;
        if self.memory.keep_active_at.is_some_and(|due| due > now) {
            return;
        }
        self.memory.keep_active_at = Some(now + (deadline / PARTS).max(LEAST_PAUSE));
        self.record.active = Some(ActiveTime::counted(now.since(since), &services.clock.boot_time()));
        self.memory.record = Step::Open;
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
