//! The queue for slots: which transfer runs next. **Pure**.

use super::super::interest::Urgency;
use std::collections::BTreeMap;
use std::time::Duration;

/// Transfers that run although `total` is reached, for they are the only ones of their hosts.
const HOSTS_MAX: usize = 16;
/// Transfers that have begun, over all hosts; the first of a host may begin beyond it.
const BEGUN_MAX: usize = 24;

/// Transfers that run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotLimits {
    pub(crate) per_host: usize,
    pub(crate) total: usize,
}

/// Transfers of one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    running: usize,
    begun: usize,
}

/// Purpose of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// A new transfer.
    Begin,
    /// One that gave its slot away.
    Resume,
}

/// A place in the queue: that of a time, which is later for less urgent transfers. So the more urgent one is served first, and one that waited for so
/// much longer comes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    at: Duration,
    number: u64,
}

impl Ticket {
    /// The place after a change of the urgency.
    fn moved(self, from: Urgency, to: Urgency) -> Self {
        Self { at: (self.at + to.handicap()).saturating_sub(from.handicap()), ..self }
    }
}

/// Running and waiting transfers.
#[derive(Debug)]
pub(super) struct State {
    limits: SlotLimits,
    hosts: BTreeMap<String, Count>,
    /// The first one that can be served is.
    queue: BTreeMap<Ticket, (String, Request)>,
    next: u64,
}

impl State {
    pub(super) fn new(limits: SlotLimits) -> Self {
        Self { limits, hosts: BTreeMap::new(), queue: BTreeMap::new(), next: 0 }
    }

    fn may(&self, host: &str, request: Request) -> bool {
        let Count { running, begun } = self.hosts.get(host).copied().unwrap_or_default();
        let all_running: usize = self.hosts.values().map(|count| count.running).sum();
        let all_begun: usize = self.hosts.values().map(|count| count.begun).sum();
        let may_run = running < self.limits.per_host
            && (all_running < self.limits.total || (running == 0 && all_running < HOSTS_MAX.max(self.limits.total)));
        let may_begin = begun < 2 * self.limits.per_host && (all_begun < BEGUN_MAX.max(self.limits.total) || begun == 0);
        match request {
            Request::Begin => may_run && may_begin,
            Request::Resume => may_run,
        }
    }

    pub(super) fn limits(&self) -> SlotLimits {
        self.limits
    }

    /// Replaces the limits. Transfers beyond lower ones go on.
    pub(super) fn set_limits(&mut self, limits: SlotLimits) {
        self.limits = limits;
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.hosts.is_empty() && self.queue.is_empty()
    }

    /// Removes an abandoned ticket.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.queue.remove(&ticket);
    }

    /// Queues for a slot at `now`; returns the ticket.
    pub(super) fn enqueue(&mut self, host: &str, request: Request, urgency: Urgency, now: Duration) -> Ticket {
        let ticket = Ticket { at: now + urgency.handicap(), number: self.next };
        self.next += 1;
        self.queue.insert(ticket, (host.to_owned(), request));
        ticket
    }

    /// Moves a ticket whose urgency has changed; returns its new place.
    pub(super) fn change(&mut self, ticket: Ticket, from: Urgency, to: Urgency) -> Ticket {
        let moved = ticket.moved(from, to);
        if let Some(waiting) = self.queue.remove(&ticket) {
            self.queue.insert(moved, waiting);
        }
        moved
    }

    /// Gives a slot to the ticket, if it is its turn.
    pub(super) fn serve(&mut self, ticket: Ticket) -> bool {
        let turn = self.queue.iter().find(|(_, (host, request))| self.may(host, *request)).map(|(first, _)| *first);
        if turn != Some(ticket) {
            return false;
        }
        if let Some((host, request)) = self.queue.remove(&ticket) {
            let count = self.hosts.entry(host).or_default();
            count.running += 1;
            count.begun += usize::from(request == Request::Begin);
        }
        true
    }

    /// Takes note that a transfer gave its slot away, or is over.
    pub(super) fn release(&mut self, host: &str, was_running: bool, is_over: bool) {
        if let Some(count) = self.hosts.get_mut(host) {
            count.running -= usize::from(was_running);
            count.begun -= usize::from(is_over);
            if *count == Count::default() {
                self.hosts.remove(host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: SlotLimits = SlotLimits { per_host: 3, total: 6 };

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

    /// The hosts of the queue in the order in which they are served.
    fn order(requests: &[(&str, Urgency, u64)]) -> Vec<String> {
        let mut state = State::new(SlotLimits { per_host: 1, total: HOSTS_MAX });
        for (host, urgency, minutes) in requests {
            state.enqueue(host, Request::Begin, *urgency, Duration::from_secs(60 * minutes));
        }
        state.queue.into_values().map(|(host, _)| host).collect()
    }

    #[test]
    fn urgent_comes_first_and_waiting_counts() {
        let requests = [("hand", Urgency::ByHand, 0), ("update", Urgency::Update, 1), ("start", Urgency::Start, 2)];
        assert_eq!(order(&requests), ["start", "update", "hand"]);
        let late = [
            ("update", Urgency::Update, 0),
            ("soon", Urgency::Start, 9),
            ("late", Urgency::Start, 11),
            ("more", Urgency::Start, 11),
        ];
        assert_eq!(order(&late), ["soon", "update", "late", "more"]);
    }

    #[test]
    fn ticket_moves_with_its_urgency() {
        let mut state = State::new(SlotLimits { per_host: 1, total: 1 });
        let update = state.enqueue("a", Request::Begin, Urgency::Update, Duration::ZERO);
        let start = state.enqueue("a", Request::Begin, Urgency::Start, Duration::from_secs(1));
        let update = state.change(update, Urgency::Update, Urgency::Start);
        assert!(!state.serve(start) && state.serve(update));
        state.leave(start);
        state.release("a", true, true);
        assert!(state.is_idle());
    }

    proptest! {
        #[test]
        fn limits_hold_and_a_host_without_transfer_can_begin(steps in steps()) {
            let mut state = State::new(LIMITS);
            // Hosts of transfers that have begun, and whether they run.
            let mut transfers: Vec<(String, bool)> = Vec::new();
            for step in steps {
                match step {
                    Step::Enqueue(host) => {
                        let urgency = [Urgency::Start, Urgency::Update, Urgency::ByHand][usize::from(host) % 3];
                        state.enqueue(&host.to_string(), Request::Begin, urgency, Duration::ZERO);
                    }
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
                prop_assert!(!strangers || state.may("stranger", Request::Begin));
            }
        }
    }
}
