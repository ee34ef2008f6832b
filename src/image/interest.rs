//! Those who wait for a pull, and how urgently.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Need for a pull; an earlier one comes first in the queue for transfers (I17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// A pod has no running version.
    Start,
    /// A running version is replaced, which runs until then.
    Update,
    /// Somebody asked for the image by hand.
    ByHand,
}

impl Urgency {
    /// Time for which a less urgent transfer has to have waited to come before one without need to wait: it gains on others with the time.
    pub(super) const fn handicap(self) -> Duration {
        match self {
            Self::Start => Duration::ZERO,
            Self::Update => Duration::from_secs(600),
            Self::ByHand => Duration::from_secs(1200),
        }
    }

    const fn passes_windows(self) -> bool {
        match self {
            Self::Start | Self::ByHand => true,
            Self::Update => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiters {
    count: usize,
    /// The most urgent need, which does not end with its waiter.
    urgency: Urgency,
    passes_windows: bool,
}

/// All who wait for one pull.
#[derive(Debug)]
pub(super) struct Interest(watch::Sender<Waiters>);

/// Tells of changes of an interest.
#[derive(Debug)]
pub(super) struct Changes(watch::Receiver<Waiters>);

impl Changes {
    /// Waits for the next change. Cancel-safe.
    pub(super) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // Nothing changes any more.
            std::future::pending().await
        }
    }
}

impl Interest {
    /// An interest without waiters.
    pub(super) fn of(urgency: Urgency) -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(Waiters { count: 0, urgency, passes_windows: urgency.passes_windows() })))
    }

    /// One more waits.
    pub(super) fn join(self: &Arc<Self>, urgency: Urgency) -> Waiter {
        self.0.send_modify(|waiters| {
            waiters.count += 1;
            waiters.urgency = waiters.urgency.min(urgency);
            waiters.passes_windows |= urgency.passes_windows();
        });
        Waiter(Arc::clone(self))
    }

    /// The need of the most urgent one.
    pub(super) fn urgency(&self) -> Urgency {
        self.0.borrow().urgency
    }

    /// Returns true if windows do not count.
    pub(super) fn passes_windows(&self) -> bool {
        self.0.borrow().passes_windows
    }

    /// Returns true if all have left.
    pub(super) fn is_deserted(&self) -> bool {
        self.0.borrow().count == 0
    }

    /// Changes from now on.
    pub(super) fn changes(&self) -> Changes {
        Changes(self.0.subscribe())
    }
}

/// One who waits, until this is dropped.
#[derive(Debug)]
pub(super) struct Waiter(Arc<Interest>);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.0.send_modify(|waiters| waiters.count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_urgent_waiter_counts() {
        let interest = Interest::of(Urgency::Update);
        let update = interest.join(Urgency::Update);
        assert_eq!((interest.urgency(), interest.passes_windows(), interest.is_deserted()), (Urgency::Update, false, false));
        drop(interest.join(Urgency::ByHand));
        assert_eq!((interest.urgency(), interest.passes_windows()), (Urgency::Update, true));
        drop(interest.join(Urgency::Start));
        assert_eq!(interest.urgency(), Urgency::Start);
        drop(update);
        assert!(interest.is_deserted());
    }
}
