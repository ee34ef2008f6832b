//! Phase of a worker's pod. **Pure**.
//!
//! ```text
//!    halt() and start()
//!   Halted <---> Sync            (a halted pod that is removed becomes Terminating)
//!
//!            finish() or remove()            stopped()                  remove()
//!   Sync ------------------------> Terminating -------> Terminated ---------------> Terminated (and removed)
//! ```
//! Otherwise never back (kubelet rule C6): a pod that finished or was removed runs again only under a new UID.

use podstead_status::PodResult;
use podstead_sys_async::clock::Moment;
use std::time::Duration;

/// Phase of the work. Not the pod's phase, which is what the API shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkPhase {
    /// The pod shall run. Entered by the worker's creation; left by [`WorkPhase::finish`] and [`WorkPhase::remove`].
    Sync,
    /// An operator stopped the pod: its containers are being stopped or are gone, and stay so. Entered by [`WorkPhase::halt`]; left by
    /// [`WorkPhase::start`] and [`WorkPhase::remove`].
    Halted,
    /// Its containers are being stopped. Entered from `Sync`; left by [`WorkPhase::stopped`].
    Terminating(Termination),
    /// Nothing of it runs. Entered by [`WorkPhase::stopped`]. With [`Cause::Removed`], what is left of it on disk goes and the worker is
    /// forgotten; with [`Cause::Finished`] it stays as it is until its manifest goes.
    Terminated(Cause),
}

/// An end under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    /// The reason.
    pub cause: Cause,
    /// The time at which it began.
    pub began: Moment,
    /// Time for containers after their stop signal; only ever shortened (rule C7).
    pub grace: Duration,
}

/// Reason why a pod ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its containers are done, or it ran too long; the manifest is still there.
    Finished(PodResult),
    /// It is no longer wanted. The result is that of a pod which had finished before.
    Removed(Option<PodResult>),
}

impl Cause {
    /// The pod's result, if it ended by itself.
    pub const fn result(&self) -> Option<&PodResult> {
        match self {
            Cause::Finished(result) | Cause::Removed(Some(result)) => Some(result),
            Cause::Removed(None) => None,
        }
    }
}

impl WorkPhase {
    /// The pod is over by itself. No effect unless it is being synced.
    pub fn finish(&mut self, result: PodResult, grace: Duration, now: Moment) {
        match self {
            WorkPhase::Sync => *self = WorkPhase::Terminating(Termination { cause: Cause::Finished(result), began: now, grace }),
            WorkPhase::Halted | WorkPhase::Terminating(_) | WorkPhase::Terminated(_) => {}
        }
    }

    /// An operator stops the pod. Returns false if it ends or has ended.
    pub fn halt(&mut self) -> bool {
        let is_possible = matches!(self, WorkPhase::Sync | WorkPhase::Halted);
        if is_possible {
            *self = WorkPhase::Halted;
        }
        is_possible
    }

    /// An operator, an edit or a reboot starts a stopped pod. Returns false if it ends or has ended.
    pub fn start(&mut self) -> bool {
        let is_possible = matches!(self, WorkPhase::Sync | WorkPhase::Halted);
        if is_possible {
            *self = WorkPhase::Sync;
        }
        is_possible
    }

    /// The pod is no longer wanted. The end of a termination under way can only come closer.
    pub fn remove(&mut self, grace: Duration, now: Moment) {
        match self {
            WorkPhase::Sync | WorkPhase::Halted => {
                *self = WorkPhase::Terminating(Termination { cause: Cause::Removed(None), began: now, grace })
            }
            WorkPhase::Terminating(termination) => {
                termination.cause = Cause::Removed(termination.cause.result().cloned());
                let end = (termination.began + termination.grace).min(now + grace);
                termination.grace = end.since(termination.began);
            }
            WorkPhase::Terminated(cause) => *cause = Cause::Removed(cause.result().cloned()),
        }
    }

    /// Nothing of the pod runs any more. No effect unless it is terminating.
    pub fn stopped(&mut self) {
        match self {
            WorkPhase::Terminating(termination) => *self = WorkPhase::Terminated(termination.cause.clone()),
            WorkPhase::Sync | WorkPhase::Halted | WorkPhase::Terminated(_) => {}
        }
    }

    /// Reason why the pod ends or ended; `None` while it shall run.
    pub const fn cause(&self) -> Option<&Cause> {
        match self {
            WorkPhase::Sync | WorkPhase::Halted => None,
            WorkPhase::Terminating(termination) => Some(&termination.cause),
            WorkPhase::Terminated(cause) => Some(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Finish,
        Halt,
        Start,
        Remove(u64),
        Stopped,
    }

    fn result() -> PodResult {
        PodResult::succeeded()
    }

    fn rank(phase: &WorkPhase) -> u8 {
        match phase {
            WorkPhase::Sync | WorkPhase::Halted => 0,
            WorkPhase::Terminating(_) => 1,
            WorkPhase::Terminated(_) => 2,
        }
    }

    fn end(phase: &WorkPhase) -> Option<Moment> {
        match phase {
            WorkPhase::Terminating(termination) => Some(termination.began + termination.grace),
            WorkPhase::Sync | WorkPhase::Halted | WorkPhase::Terminated(_) => None,
        }
    }

    #[test]
    fn removing_a_finished_pod_keeps_how_it_ended() {
        let mut phase = WorkPhase::Sync;
        phase.finish(result(), Duration::from_secs(30), Moment::default());
        phase.stopped();
        phase.remove(Duration::from_secs(30), Moment::default());
        assert_eq!(phase, WorkPhase::Terminated(Cause::Removed(Some(result()))));
    }

    #[test]
    fn halted_pod_does_not_finish() {
        let mut phase = WorkPhase::Sync;
        assert!(phase.halt());
        phase.finish(result(), Duration::from_secs(30), Moment::default());
        assert_eq!(phase, WorkPhase::Halted);
        assert!(phase.start());
        assert_eq!(phase, WorkPhase::Sync);
    }

    proptest! {
        #[test]
        fn phases_only_go_forward_and_grace_only_shrinks(
            steps in prop::collection::vec(
                prop_oneof![
                    Just(Step::Finish),
                    Just(Step::Halt),
                    Just(Step::Start),
                    (0u64..100).prop_map(Step::Remove),
                    Just(Step::Stopped),
                ],
                0..20,
            )
        ) {
            let mut phase = WorkPhase::Sync;
            let mut now = Moment::default();
            let mut removed = false;
            for step in steps {
                let before = phase.clone();
                now = now + Duration::from_secs(1);
                match step {
                    Step::Finish => phase.finish(result(), Duration::from_secs(30), now),
                    Step::Halt => prop_assert_eq!(phase.halt(), rank(&before) == 0),
                    Step::Start => prop_assert_eq!(phase.start(), rank(&before) == 0),
                    Step::Remove(grace) => {
                        phase.remove(Duration::from_secs(grace), now);
                        removed = true;
                    }
                    Step::Stopped => phase.stopped(),
                }
                prop_assert!(rank(&phase) >= rank(&before));
                if let (Some(before), Some(after)) = (end(&before), end(&phase)) {
                    prop_assert!(after <= before);
                }
                prop_assert_eq!(removed, matches!(phase.cause(), Some(Cause::Removed(_))));
            }
        }
    }
}
