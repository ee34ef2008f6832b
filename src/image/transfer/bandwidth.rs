//! Caps on the bytes per second of all transfers and of those of one host: token buckets that pause reading (I19). The bucket is **pure**.

use super::super::live::Live;
use super::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Time whose unused bytes may be used at once.
const BURST: Duration = Duration::from_secs(1);
/// Hosts remembered at most; beyond it, those go whose caps nobody waits for.
const REMEMBERED: usize = 64;

/// Most bytes per second of layers from registries and mirrors; `None` for no cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bandwidth {
    /// Of all hosts together.
    pub total: Option<u64>,
    /// Of each host.
    pub per_host: Option<u64>,
}

/// A bucket that fills at a rate. Bytes that were read already are taken out, and who took them waits until the bucket had them.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// The time at which what was taken so far is paid for.
    paid_at: Duration,
}

impl Bucket {
    /// Takes bytes at `now`; returns the time to wait before more are read.
    fn take(&mut self, bytes: u64, rate: u64, now: Duration) -> Duration {
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
        let takes = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.paid_at = self.paid_at.max(now.saturating_sub(BURST)).saturating_add(takes);
        self.paid_at.saturating_sub(now)
    }
}

/// The caps, which all transfers share.
#[derive(Debug)]
pub(in super::super) struct Caps {
    bandwidth: Live<Bandwidth>,
    begun: Instant,
    total: Mutex<Bucket>,
    hosts: Mutex<BTreeMap<String, Bucket>>,
}

impl Caps {
    pub(super) fn new(bandwidth: Bandwidth) -> Self {
        Self { bandwidth: Live::new(bandwidth), begun: Instant::now(), total: Mutex::default(), hosts: Mutex::default() }
    }

    /// From now on these caps count.
    pub(in super::super) fn set(&self, bandwidth: Bandwidth) {
        self.bandwidth.set(bandwidth);
    }

    /// Returns true if there is a cap.
    pub(super) fn is_capped(&self) -> bool {
        self.bandwidth.get() != Bandwidth::default()
    }

    /// Takes note of bytes that came from a host; returns the time to wait before more are read.
    pub(super) fn take(&self, host: &str, bytes: u64) -> Duration {
        let Bandwidth { total, per_host } = self.bandwidth.get();
        let now = self.begun.elapsed();
        let of_all = total.map(|rate| lock(&self.total).take(bytes, rate, now));
        let of_host = per_host.map(|rate| {
            let mut hosts = lock(&self.hosts);
            if hosts.len() >= REMEMBERED && !hosts.contains_key(host) {
                hosts.retain(|_, bucket| bucket.paid_at > now);
            }
            hosts.entry(host.to_owned()).or_default().take(bytes, rate, now)
        });
        of_all.into_iter().chain(of_host).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[tokio::test(start_paused = true)]
    async fn caps_of_hosts_and_total_hold() {
        let seconds = Duration::from_secs;
        let caps = Caps::new(Bandwidth { total: Some(300), per_host: Some(200) });
        assert!(caps.is_capped() && !Caps::new(Bandwidth::default()).is_capped());
        assert_eq!(caps.take("a", 600), seconds(3), "its own cap");
        assert_eq!(caps.take("b", 600), seconds(4), "that of both");
        tokio::time::advance(seconds(10)).await;
        assert_eq!(caps.take("a", 200), Duration::ZERO, "unused time");
        assert_eq!(caps.take("a", 200), seconds(1));
        caps.set(Bandwidth::default());
        assert_eq!((caps.is_capped(), caps.take("a", u64::MAX)), (false, Duration::ZERO));
    }

    proptest! {
        /// Readers who wait as they are told, whatever comes at once, read no more than the rate and one burst, but for what came last.
        #[test]
        fn rate_is_never_exceeded(
            rate in 1_000_u64..10_000_000,
            reads in prop::collection::vec((0_usize..4, 1_u64..500_000, 0_u64..2_000), 1..200),
        ) {
            let (mut bucket, mut ready) = (Bucket::default(), [Duration::ZERO; 4]);
            let (mut now, mut taken) = (BURST, 0_u128);
            for (reader, bytes, idle) in reads {
                now = now.max(ready[reader]) + Duration::from_millis(idle);
                let allowed = u128::from(rate) * (now.as_millis() + 1) / 1000;
                let waits: Vec<Duration> = ready.iter().filter(|until| **until > now).copied().collect();
                // Each reader that waits has read once beyond it.
                prop_assert!(taken <= allowed + 500_000 * waits.len() as u128, "{taken} of {allowed} at {now:?}");
                taken += u128::from(bytes);
                ready[reader] = now + bucket.take(bytes, rate, now);
            }
        }
    }
}
