//! The sign of life for the service manager's watchdog (`WatchdogSec=`), and for a cluster that is told whether this host is well: given by the
//! sync loop itself, so that a loop that hangs is noticed, and restarted. Pods do not notice (promise P1).

use std::ffi::OsStr;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Beats when it is due. Without a watchdog it never is.
pub struct Heartbeat {
    interval: Option<Interval>,
    beat: Box<dyn Fn() + Send>,
}

impl Heartbeat {
    /// For a manager that gives the loop up after `timeout` without a beat. Beats twice in that time, as `sd_watchdog_enabled(3)` asks.
    pub fn new(timeout: Option<Duration>, beat: impl Fn() + Send + 'static) -> Self {
        let interval = timeout.map(|timeout| {
            let period = (timeout / 2).max(Duration::from_millis(1));
            let mut interval = interval_at(Instant::now() + period, period);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        Self { interval, beat: Box::new(beat) }
    }

    /// There is no watchdog.
    pub fn none() -> Self {
        Self::new(None, || {})
    }

    /// Waits until the next beat is due; for ever without a watchdog. Cancel-safe.
    pub(super) async fn due(&mut self) {
        match &mut self.interval {
            Some(interval) => {
                interval.tick().await;
            }
            None => std::future::pending().await,
        }
    }

    /// Gives the sign.
    pub(super) fn beat(&self) {
        (self.beat)();
    }
}

impl fmt::Debug for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heartbeat").field("interval", &self.interval).finish_non_exhaustive()
    }
}

/// The time of the loop's last sign of life. Clones share it.
#[derive(Clone, Debug)]
pub struct Pulse(Arc<Mutex<Instant>>);

impl Pulse {
    /// Maximum time between two beats of a healthy loop.
    pub const PERIOD: Duration = Duration::from_secs(30);
    /// Silence after which a loop is considered hung: its turns take milliseconds.
    const SILENCE: Duration = Duration::from_secs(120);

    /// A loop that lives now.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    /// A sign of life.
    pub fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Reason why the loop is thought to hang.
    pub fn trouble(&self) -> Option<String> {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (last.elapsed() > Self::SILENCE).then(|| format!("the sync loop has not responded for {} s", Self::SILENCE.as_secs()))
    }
}

impl Default for Pulse {
    fn default() -> Self {
        Self::new()
    }
}

/// The watchdog's timeout, from the values of `WATCHDOG_USEC` and `WATCHDOG_PID`; `None` when there is none, or when it watches another
/// process than `pid`.
pub fn watchdog_timeout(microseconds: Option<&OsStr>, watched: Option<&OsStr>, pid: u32) -> Option<Duration> {
    let number = |text: &OsStr| text.to_str().and_then(|text| text.parse::<u64>().ok());
    if watched.is_some_and(|watched| number(watched) != Some(u64::from(pid))) {
        return None;
    }
    microseconds.and_then(number).filter(|microseconds| *microseconds > 0).map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test(start_paused = true)]
    async fn it_beats_twice_in_the_time_that_the_manager_waits() {
        let beats = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&beats);
        let mut heartbeat = Heartbeat::new(Some(Duration::from_secs(60)), move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let begin = Instant::now();
        for _ in 0..4 {
            heartbeat.due().await;
            heartbeat.beat();
        }
        assert_eq!(begin.elapsed(), Duration::from_secs(120));
        assert_eq!(beats.load(Ordering::Relaxed), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_is_silent_for_two_minutes_hangs_until_it_beats_again() {
        let pulse = Pulse::new();
        tokio::time::advance(Duration::from_secs(120)).await;
        assert_eq!(pulse.trouble(), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(pulse.trouble().is_some());
        pulse.beat();
        assert_eq!(pulse.trouble(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_watchdog_it_never_wakes() {
        let mut heartbeat = Heartbeat::none();
        assert!(tokio::time::timeout(Duration::from_secs(1 << 30), heartbeat.due()).await.is_err());
    }

    #[test]
    fn the_timeout_is_the_managers_and_only_for_this_process() {
        let text = |text: &'static str| Some(OsStr::new(text));
        for (microseconds, watched, expected) in [
            (text("60000000"), None, Some(60)),
            (text("60000000"), text("7"), Some(60)),
            (text("60000000"), text("8"), None),
            (text("60000000"), text("x"), None),
            (text("0"), None, None),
            (text("soon"), None, None),
            (None, None, None),
        ] {
            assert_eq!(
                watchdog_timeout(microseconds, watched, 7),
                expected.map(Duration::from_secs),
                "{microseconds:?} {watched:?}"
            );
        }
    }
}
