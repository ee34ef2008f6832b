//! A timer on the wall clock.
#![expect(unsafe_code, reason = "tokio's registration of a descriptor, whose life the caller vouches for")]

use jiff::Timestamp;
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime};
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;

/// Far enough in the future for a timer that only reports changes of the clock.
const NEVER: i64 = 1 << 40;

/// A timer on the wall clock that also reports when the clock is set (`TFD_TIMER_CANCEL_ON_SET`, timerfd_create(2)).
#[derive(Debug)]
pub struct WallTimer {
    descriptor: AsyncFd<OwnedFd>,
}

/// Reason for which a timer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WallEvent {
    /// The time has come.
    Reached,
    /// The clock was set.
    ClockSet,
}

impl WallTimer {
    /// A timer without a time.
    pub fn new() -> io::Result<Self> {
        let descriptor = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // SAFETY: an OwnedFd never replaces its descriptor and closes it only when it is dropped, which AsyncFd does after it has taken the
        // descriptor out of the reactor.
        let descriptor = unsafe { AsyncFd::register(descriptor) };
        let timer = Self { descriptor: descriptor.map_err(io::Error::from)? };
        timer.set(None)?;
        Ok(timer)
    }

    /// Sets the time; without one the timer reports only changes of the clock. Returns [`WallEvent::ClockSet`] if the clock was set since the
    /// last call and that was not reported yet.
    pub fn set(&self, at: Option<Timestamp>) -> io::Result<Option<WallEvent>> {
        let (tv_sec, tv_nsec) = at.map_or((NEVER, 0), |at| (at.as_second().max(1), i64::from(at.subsec_nanosecond().max(0))));
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timer = Itimerspec { it_interval: none, it_value: Timespec { tv_sec, tv_nsec } };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        match timerfd_settime(self.descriptor.get_ref(), flags, &timer) {
            Ok(_) => Ok(None),
            Err(Errno::CANCELED) => Ok(Some(WallEvent::ClockSet)),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the time has come or the clock was set. Cancel-safe.
    pub async fn event(&self) -> io::Result<WallEvent> {
        loop {
            let mut ready = self.descriptor.readable().await?;
            let mut expirations = [0; 8];
            match rustix::io::read(self.descriptor.get_ref(), &mut expirations) {
                Ok(_) => return Ok(WallEvent::Reached),
                Err(Errno::CANCELED) => return Ok(WallEvent::ClockSet),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn timer_ends_at_its_time() {
        let timer = WallTimer::new().unwrap();
        let begun = Timestamp::now();
        let at = begun + Duration::from_millis(30);
        timer.set(Some(at)).unwrap();
        assert_eq!(timer.event().await.unwrap(), WallEvent::Reached);
        assert!(Timestamp::now() >= at);
    }

    #[tokio::test]
    async fn timer_without_time_does_not_end() {
        let timer = WallTimer::new().unwrap();
        timer.set(Some(Timestamp::now())).unwrap();
        timer.set(None).unwrap();
        tokio::time::timeout(Duration::from_millis(30), timer.event()).await.unwrap_err();
    }

    #[tokio::test]
    async fn past_time_is_reached_at_once() {
        let timer = WallTimer::new().unwrap();
        timer.set(Some(Timestamp::UNIX_EPOCH)).unwrap();
        assert_eq!(timer.event().await.unwrap(), WallEvent::Reached);
    }
}
