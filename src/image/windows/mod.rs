//! Windows, and the wall clock that they go by (I19): outside of them, layers are fetched only for pods that have no running version, and by hand.
//!
//! Documents are not held back: an update whose layers are here needs no window.

mod window;

pub(super) use window::Standing;
pub use window::{Day, PullWindow, TimeOfDay, WindowError};

use super::interest::Interest;
use jiff::Timestamp;
use podstead_sys_async::wall_timer::WallTimer;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Between two looks at the clock where the kernel has no timer for it.
const LOOK: Duration = Duration::from_secs(60);

/// The windows of a store, which all copies share.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows(Arc<watch::Sender<Vec<PullWindow>>>);

/// The wait of a pull is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// It may go on, as far as is known.
    MayGoOn,
    /// Nobody waits for it any more.
    Deserted,
}

impl Windows {
    pub(super) fn new(windows: Vec<PullWindow>) -> Self {
        Self(Arc::new(watch::Sender::new(windows)))
    }

    /// From now on these count, also for pulls that wait for others.
    pub(super) fn set(&self, windows: Vec<PullWindow>) {
        self.0.send_if_modified(|known| std::mem::replace(known, windows.clone()) != windows);
    }

    /// The state of the windows for a pull now: open to one that need not keep to them.
    pub(super) fn standing(&self, interest: &Interest) -> Standing {
        match interest.passes_windows() {
            true => Standing::Open(None),
            false => window::standing(&self.0.borrow(), Timestamp::now()),
        }
    }

    /// Waits until the pull may go on, or nobody waits for it.
    pub(super) async fn wait(&self, interest: &Interest) -> WaitEnd {
        let (mut changes, mut windows) = (interest.changes(), self.0.subscribe());
        loop {
            if interest.is_deserted() {
                return WaitEnd::Deserted;
            }
            windows.mark_unchanged();
            let Standing::Closed(until) = self.standing(interest) else { return WaitEnd::MayGoOn };
            // All are asked for anew in the next turn. The sender is here.
            tokio::select! {
                () = reach(until) => {}
                () = changes.changed() => {}
                _ = windows.changed() => {}
            }
        }
    }

    /// Waits until the windows close for the pull; returns when they open again.
    pub(super) async fn closed(&self, interest: &Interest) -> Option<Timestamp> {
        let (mut changes, mut windows) = (interest.changes(), self.0.subscribe());
        loop {
            windows.mark_unchanged();
            // Without windows there is no timer.
            let is_always_open = self.0.borrow().is_empty();
            match self.standing(interest) {
                Standing::Closed(until) => return until,
                Standing::Open(until) => tokio::select! {
                    () = reach(until), if !is_always_open => {}
                    () = changes.changed() => {}
                    _ = windows.changed() => {}
                },
            }
        }
    }
}

/// Waits until the clock shows that time, or is set.
async fn reach(at: Option<Timestamp>) {
    let timer = WallTimer::new().and_then(|timer| timer.set(at).map(|_| timer));
    let event = match timer {
        Ok(timer) => timer.event().await.map(drop),
        Err(error) => Err(error),
    };
    if let Err(error) = event {
        tracing::debug!(%error, "no timer by the wall clock, looking at it each minute");
        tokio::time::sleep(LOOK).await;
    }
}
