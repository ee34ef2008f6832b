//! Slots for transfers, so that a registry which is slow delays its own images only.
//!
//! * At most `per_host` transfers of one host run, and at most `total` in all; but one of each host runs whatever the others do, up to [`HOSTS_MAX`].
//! * A transfer that waits gives its slot away after [`PATIENCE`] and queues for another one before it goes on.
//! * A transfer that has begun holds an unpacker with its memory, waiting or not; those are limited, too.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A transfer that waits for longer gives its slot away.
const PATIENCE: Duration = Duration::from_secs(5);
/// Transfers that run although `total` is reached, for they are the only ones of their hosts.
const HOSTS_MAX: usize = 16;
/// Transfers that have begun, over all hosts; the first of a host may begin beyond it.
const BEGUN_MAX: usize = 24;

/// Transfers that run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotLimits {
    pub(super) per_host: usize,
    pub(super) total: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    running: usize,
    begun: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Begin,
    Resume,
}

/// Who runs and who waits. **Pure**.
#[derive(Debug)]
struct State {
    limits: SlotLimits,
    hosts: BTreeMap<String, Count>,
    /// First come, first served, among those that can be served.
    queue: BTreeMap<u64, (String, Wish)>,
    next: u64,
}

impl State {
    fn new(limits: SlotLimits) -> Self {
        Self { limits, hosts: BTreeMap::new(), queue: BTreeMap::new(), next: 0 }
    }

    fn may(&self, host: &str, wish: Wish) -> bool {
        let Count { running, begun } = self.hosts.get(host).copied().unwrap_or_default();
        let all_running: usize = self.hosts.values().map(|count| count.running).sum();
        let all_begun: usize = self.hosts.values().map(|count| count.begun).sum();
        let may_run = running < self.limits.per_host
            && (all_running < self.limits.total || (running == 0 && all_running < HOSTS_MAX.max(self.limits.total)));
        let may_begin = begun < 2 * self.limits.per_host && (all_begun < BEGUN_MAX.max(self.limits.total) || begun == 0);
        match wish {
            Wish::Begin => may_run && may_begin,
            Wish::Resume => may_run,
        }
    }

    fn enqueue(&mut self, host: &str, wish: Wish) -> u64 {
        let ticket = self.next;
        self.next += 1;
        self.queue.insert(ticket, (host.to_owned(), wish));
        ticket
    }

    /// Gives a slot to the ticket, if it is its turn.
    fn serve(&mut self, ticket: u64) -> bool {
        let turn = self.queue.iter().find(|(_, (host, wish))| self.may(host, *wish)).map(|(first, _)| *first);
        if turn != Some(ticket) {
            return false;
        }
        if let Some((host, wish)) = self.queue.remove(&ticket) {
            let count = self.hosts.entry(host).or_default();
            count.running += 1;
            count.begun += usize::from(wish == Wish::Begin);
        }
        true
    }

    fn release(&mut self, host: &str, was_running: bool, is_over: bool) {
        if let Some(count) = self.hosts.get_mut(host) {
            count.running -= usize::from(was_running);
            count.begun -= usize::from(is_over);
            if *count == Count::default() {
                self.hosts.remove(host);
            }
        }
    }
}

/// All slots.
pub(super) struct Slots {
    state: Mutex<State>,
    changed: Notify,
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("limits", &self.state().limits).finish_non_exhaustive()
    }
}

impl Slots {
    pub(super) fn new(limits: SlotLimits) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::new(limits)), changed: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot for a new transfer from `host`.
    pub(super) async fn begin(self: &Arc<Self>, host: &str) -> Slot {
        self.wait(host, Wish::Begin).await;
        Slot { slots: Arc::clone(self), host: host.to_owned(), is_held: true }
    }

    async fn wait(&self, host: &str, wish: Wish) {
        let waiting = Waiting { slots: self, ticket: self.state().enqueue(host, wish) };
        loop {
            let changed = self.changed.notified();
            let mut changed = pin!(changed);
            changed.as_mut().enable();
            let is_served = self.state().serve(waiting.ticket);
            if is_served {
                // Another one may be served, too.
                return;
            }
            changed.await;
        }
    }
}

/// A place in the queue, left when nobody waits any more.
struct Waiting<'a> {
    slots: &'a Slots,
    ticket: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.slots.state().queue.remove(&self.ticket);
        // Whoever is next.
        self.slots.changed.notify_waiters();
    }
}

/// A transfer that has begun; its slot, while it runs.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    host: String,
    is_held: bool,
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
            self.slots.wait(&self.host, Wish::Resume).await;
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
    use proptest::prelude::*;

    const LIMITS: SlotLimits = SlotLimits { per_host: 3, total: 6 };

    async fn soon<T>(work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(Duration::from_secs(1), work).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn slots_are_limited_per_host_and_in_all() {
        let slots = Slots::new(LIMITS);
        let mut held = Vec::new();
        for host in ["a", "a", "a", "b", "b", "b"] {
            held.push(soon(slots.begin(host)).await.expect("a free slot"));
        }
        assert!(soon(slots.begin("a")).await.is_none());
        let only = soon(slots.begin("c")).await.expect("the first of its host");
        assert!(soon(slots.begin("c")).await.is_none());
        drop(only);
        held.clear();
        assert!(soon(slots.begin("a")).await.is_some());
        assert!(slots.state().hosts.is_empty() && slots.state().queue.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_transfer_gives_its_slot_away() {
        let slots = Slots::new(SlotLimits { per_host: 1, total: 1 });
        let (finish, finished) = tokio::sync::oneshot::channel::<()>();
        let mut first = slots.begin("a").await;
        let waiting = tokio::spawn(async move {
            first.lend_during(finished).await.unwrap();
            first
        });
        assert!(soon(slots.begin("a")).await.is_none(), "not before its patience is over");
        let second = slots.begin("a").await;
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
            let mut slot = soon(slots.begin("a")).await.unwrap();
            slot.give_away();
            begun.push(slot);
        }
        assert!(soon(slots.begin("a")).await.is_none());
        assert!(soon(slots.begin("b")).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_stops_waiting_keeps_nobody_waiting() {
        let slots = Slots::new(SlotLimits { per_host: 1, total: 1 });
        let held = slots.begin("a").await;
        let impatient = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.begin("a").await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let patient = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.begin("a").await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        impatient.abort();
        drop(held);
        soon(patient).await.unwrap().unwrap();
    }

    #[derive(Clone, Debug)]
    enum Step {
        Enqueue(u8),
        Serve(usize),
        Pause(usize),
        End(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0_u8..5).prop_map(Step::Enqueue),
            (0_usize..8).prop_map(Step::Serve),
            (0_usize..8).prop_map(Step::Pause),
            (0_usize..8).prop_map(Step::End),
        ];
        proptest::collection::vec(step, 0..120)
    }

    proptest! {
        #[test]
        fn limits_hold_and_a_host_without_transfer_can_begin(steps in steps()) {
            let mut state = State::new(LIMITS);
            // Hosts of transfers that have begun, and whether they run.
            let mut transfers: Vec<(String, bool)> = Vec::new();
            for step in steps {
                match step {
                    Step::Enqueue(host) => drop(state.enqueue(&host.to_string(), Wish::Begin)),
                    Step::Serve(index) => {
                        let ticket = state.queue.keys().nth(index).copied();
                        let host = ticket.map(|ticket| state.queue[&ticket].0.clone());
                        if let (Some(ticket), Some(host)) = (ticket, host) && state.serve(ticket) {
                            transfers.push((host, true));
                        }
                    }
                    Step::Pause(index) => {
                        if let Some((host, runs)) = transfers.get_mut(index).filter(|(_, runs)| *runs) {
                            state.release(host, true, false);
                            *runs = false;
                        }
                    }
                    Step::End(index) if index < transfers.len() => {
                        let (host, runs) = transfers.remove(index);
                        state.release(&host, runs, true);
                    }
                    Step::End(_) => {}
                }
                for count in state.hosts.values() {
                    prop_assert!(count.running <= LIMITS.per_host && count.begun <= 2 * LIMITS.per_host && count.running <= count.begun);
                }
                prop_assert_eq!(state.hosts.values().map(|count| count.begun).sum::<usize>(), transfers.len());
                let strangers = state.hosts.len() < HOSTS_MAX;
                prop_assert!(!strangers || state.may("stranger", Wish::Begin));
            }
        }
    }
}
