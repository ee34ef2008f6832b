//! Slots for transfers, so that a registry which is slow delays its own images only.
//!
//! * The most urgent transfer gets the next slot, and each gains on others with the time that it waits.
//! * At most `per_host` transfers of one host run, and at most `total` in all; but one of each host runs whatever the others do, up to a limit.
//! * A transfer that waits gives its slot away after [`PATIENCE`] and queues for another one before it goes on.
//! * A transfer that has begun holds an unpacker with its memory, waiting or not; those are limited, too.

mod queue;

use super::interest::Urgency;
pub(super) use queue::SlotLimits;
use queue::{Request, State, Ticket};
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Between two looks at the urgency of a transfer that waits.
const LOOK: Duration = Duration::from_secs(1);
/// A transfer that waits for longer gives its slot away.
const PATIENCE: Duration = Duration::from_secs(5);

/// All slots.
pub(super) struct Slots {
    state: Mutex<State>,
    changed: Notify,
    begun: Instant,
}

/// The urgency of a transfer at present.
pub(super) type UrgencyOf = Arc<dyn Fn() -> Urgency + Send + Sync>;

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("limits", &self.state().limits()).finish_non_exhaustive()
    }
}

impl Slots {
    pub(super) fn new(limits: SlotLimits) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::new(limits)), changed: Notify::new(), begun: Instant::now() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on these limits count.
    pub(super) fn set_limits(&self, limits: SlotLimits) {
        self.state().set_limits(limits);
        self.changed.notify_waiters();
    }

    /// Waits for a slot for a new transfer from `host`.
    pub(super) async fn begin(self: &Arc<Self>, host: &str, urgency: UrgencyOf) -> Slot {
        self.wait(host, Request::Begin, &*urgency).await;
        Slot { slots: Arc::clone(self), host: host.to_owned(), urgency, is_held: true }
    }

    async fn wait(&self, host: &str, request: Request, urgency: &(dyn Fn() -> Urgency + Send + Sync)) {
        let mut known = urgency();
        let ticket = self.state().enqueue(host, request, known, self.begun.elapsed());
        let mut waiting = Waiting { slots: self, ticket };
        loop {
            let now = urgency();
            if now != known {
                waiting.ticket = self.state().change(waiting.ticket, known, now);
                known = now;
            }
            let changed = self.changed.notified();
            let mut changed = pin!(changed);
            changed.as_mut().enable();
            let is_served = self.state().serve(waiting.ticket);
            if is_served {
                // Another one may be served, too.
                return;
            }
            // Either way it looks again.
            let _changed = tokio::time::timeout(LOOK, changed).await;
        }
    }
}

/// A place in the queue, left when it is dropped.
struct Waiting<'a> {
    slots: &'a Slots,
    ticket: Ticket,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.slots.state().leave(self.ticket);
        // The next in line.
        self.slots.changed.notify_waiters();
    }
}

/// A transfer that has begun; its slot, while it runs.
pub(super) struct Slot {
    slots: Arc<Slots>,
    host: String,
    urgency: UrgencyOf,
    is_held: bool,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("host", &self.host).field("is_held", &self.is_held).finish_non_exhaustive()
    }
}

impl Slot {
    /// Waits for `work`. The slot is given away when that takes long, and there is one again afterwards.
    pub(super) async fn lend_during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        if let Ok(result) = tokio::time::timeout(PATIENCE, &mut work).await {
            return result;
        }
        self.give_away();
        let result = work.await;
        self.take().await;
        result
    }

    /// Lets others run who wait for a slot, and queues behind them.
    pub(super) async fn let_others_run(&mut self) {
        self.give_away();
        self.take().await;
    }

    fn give_away(&mut self) {
        if std::mem::replace(&mut self.is_held, false) {
            self.slots.state().release(&self.host, true, false);
            self.slots.changed.notify_waiters();
        }
    }

    async fn take(&mut self) {
        if !self.is_held {
            self.slots.wait(&self.host, Request::Resume, &*self.urgency).await;
            self.is_held = true;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.state().release(&self.host, self.is_held, true);
        self.slots.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: SlotLimits = SlotLimits { per_host: 3, total: 6 };

    async fn begin(slots: &Arc<Slots>, host: &str) -> Slot {
        slots.begin(host, Arc::new(|| Urgency::Start)).await
    }

    async fn soon<T>(work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(Duration::from_secs(1), work).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn slots_are_limited_per_host_and_in_all() {
        let slots = Slots::new(LIMITS);
        let mut held = Vec::new();
        for host in ["a", "a", "a", "b", "b", "b"] {
            held.push(soon(begin(&slots, host)).await.expect("a free slot"));
        }
        assert!(soon(begin(&slots, "a")).await.is_none());
        let only = soon(begin(&slots, "c")).await.expect("the first of its host");
        assert!(soon(begin(&slots, "c")).await.is_none());
        drop(only);
        held.clear();
        assert!(soon(begin(&slots, "a")).await.is_some());
        assert!(slots.state().is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_transfer_gives_its_slot_away() {
        let slots = Slots::new(SlotLimits { per_host: 1, total: 1 });
        let (finish, finished) = tokio::sync::oneshot::channel::<()>();
        let mut first = begin(&slots, "a").await;
        let waiting = tokio::spawn(async move {
            first.lend_during(finished).await.unwrap();
            first
        });
        assert!(soon(begin(&slots, "a")).await.is_none(), "not before its patience is over");
        let second = begin(&slots, "a").await;
        finish.send(()).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!waiting.is_finished(), "it waits for a slot");
        drop(second);
        waiting.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn begun_transfers_of_a_host_are_limited() {
        let slots = Slots::new(LIMITS);
        let mut begun = Vec::new();
        for _ in 0..6 {
            let mut slot = soon(begin(&slots, "a")).await.unwrap();
            slot.give_away();
            begun.push(slot);
        }
        assert!(soon(begin(&slots, "a")).await.is_none());
        assert!(soon(begin(&slots, "b")).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_stops_waiting_keeps_nobody_waiting() {
        let slots = Slots::new(SlotLimits { per_host: 1, total: 1 });
        let held = begin(&slots, "a").await;
        let impatient = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { begin(&slots, "a").await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let patient = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { begin(&slots, "a").await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        impatient.abort();
        drop(held);
        soon(patient).await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_transfer_becomes_urgent() {
        let slots = Slots::new(SlotLimits { per_host: 1, total: 1 });
        let held = begin(&slots, "a").await;
        let is_urgent = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let wait = |urgency: UrgencyOf| {
            let slots = Arc::clone(&slots);
            tokio::spawn(async move { slots.begin("a", urgency).await })
        };
        let known = Arc::clone(&is_urgent);
        let update = wait(Arc::new(move || match known.load(std::sync::atomic::Ordering::Relaxed) {
            true => Urgency::Start,
            false => Urgency::Update,
        }));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let start = wait(Arc::new(|| Urgency::Start));
        is_urgent.store(true, std::sync::atomic::Ordering::Relaxed);
        tokio::time::sleep(2 * LOOK).await;
        drop(held);
        let served = soon(update).await.expect("it came first").unwrap();
        assert!(!start.is_finished());
        drop(served);
        soon(start).await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn changed_limits_count_for_those_that_wait() {
        let slots = Slots::new(SlotLimits { per_host: 1, total: 1 });
        let _held = begin(&slots, "a").await;
        assert!(soon(begin(&slots, "a")).await.is_none());
        slots.set_limits(SlotLimits { per_host: 2, total: 2 });
        let _second = soon(begin(&slots, "a")).await.expect("a free slot");
        slots.set_limits(SlotLimits { per_host: 1, total: 1 });
        assert!(soon(begin(&slots, "a")).await.is_none(), "those that run go on, and no other one begins");
    }
}
