//! Pending work of one pod's worker: latest wins, one turn at a time (kubelet rule C5). **Pure**: neither IO nor locks.
//!
//! ```text
//!  ask(Sync) / look() ---> pending --- begin() ---> running --- end() ---> pending or idle
//!                             ^                        |
//!                             +---- whatever is asked for meanwhile
//! ask(Remove) closes the queue for new definitions: a removed pod never comes back under its UID (rule C6).
//! ```

use std::fmt;

/// Purpose of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work<D> {
    /// Look again: something that can be observed changed, or time passed.
    Look,
    /// Make the pod as this says.
    Sync(D),
    /// The pod is no longer wanted.
    Remove,
}

/// One pod's queue; `D` is what the pod shall be.
#[derive(Clone)]
pub struct WorkQueue<D> {
    pending: Option<Work<D>>,
    is_running: bool,
    is_removed: bool,
}

impl<D> WorkQueue<D> {
    /// Nothing to do yet.
    pub const fn new() -> Self {
        Self { pending: None, is_running: false, is_removed: false }
    }

    /// Asks for `definition`, instead of an earlier one that no turn has begun with. Given back when the pod is removed already.
    pub fn sync(&mut self, definition: D) -> Result<(), D> {
        if self.is_removed {
            return Err(definition);
        }
        self.pending = Some(Work::Sync(definition));
        Ok(())
    }

    /// Asks for the end of the pod.
    pub fn remove(&mut self) {
        if !self.is_removed {
            self.is_removed = true;
            self.pending = Some(Work::Remove);
        }
    }

    /// Asks for another look, which any other pending work is too.
    pub fn look(&mut self) {
        if self.pending.is_none() {
            self.pending = Some(Work::Look);
        }
    }

    /// Begins a turn with the latest work, unless one is running or there is nothing to do.
    pub fn begin(&mut self) -> Option<Work<D>> {
        if self.is_running {
            return None;
        }
        let work = self.pending.take()?;
        self.is_running = true;
        Some(work)
    }

    /// The running turn ended.
    pub fn end(&mut self) {
        self.is_running = false;
    }

    /// Returns true if a turn is running.
    pub const fn is_running(&self) -> bool {
        self.is_running
    }

    /// Returns true if the end of the pod was requested.
    pub const fn is_removed(&self) -> bool {
        self.is_removed
    }
}

impl<D> Default for WorkQueue<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D> fmt::Debug for WorkQueue<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending = match &self.pending {
            None => "nothing",
            Some(Work::Look) => "look",
            Some(Work::Sync(_)) => "sync",
            Some(Work::Remove) => "remove",
        };
        f.debug_struct("WorkQueue")
            .field("pending", &pending)
            .field("is_running", &self.is_running)
            .field("is_removed", &self.is_removed)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Sync(u32),
        Remove,
        Look,
        Begin,
        End,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => any::<u32>().prop_map(Step::Sync),
            1 => Just(Step::Remove),
            3 => Just(Step::Look),
            4 => Just(Step::Begin),
            4 => Just(Step::End),
        ];
        prop::collection::vec(step, 0..60)
    }

    #[test]
    fn an_update_during_a_turn_waits_for_its_end() {
        let mut queue = WorkQueue::new();
        queue.sync(1).unwrap();
        assert_eq!(queue.begin(), Some(Work::Sync(1)));
        queue.sync(2).unwrap();
        queue.sync(3).unwrap();
        assert_eq!(queue.begin(), None);
        queue.end();
        assert_eq!(queue.begin(), Some(Work::Sync(3)));
    }

    #[test]
    fn a_removed_pod_takes_no_new_definition() {
        let mut queue = WorkQueue::new();
        queue.sync(1).unwrap();
        queue.remove();
        assert_eq!(queue.sync(2), Err(2));
        assert_eq!(queue.begin(), Some(Work::Remove));
    }

    proptest! {
        #[test]
        fn turns_never_overlap_the_latest_definition_wins_and_nothing_is_lost(steps in steps()) {
            let mut queue = WorkQueue::new();
            let (mut running, mut removed, mut asked_since_begin) = (false, false, false);
            let mut latest: Option<u32> = None;
            let mut begun: Option<u32> = None;
            for step in steps {
                match step {
                    Step::Sync(definition) => {
                        let taken = queue.sync(definition).is_ok();
                        prop_assert_eq!(taken, !removed);
                        if taken {
                            latest = Some(definition);
                            asked_since_begin = true;
                        }
                    }
                    Step::Remove => {
                        asked_since_begin |= !removed;
                        removed = true;
                        queue.remove();
                    }
                    Step::Look => {
                        queue.look();
                        asked_since_begin = true;
                    }
                    Step::Begin => match queue.begin() {
                        Some(work) => {
                            prop_assert!(!running, "two turns at once");
                            prop_assert!(asked_since_begin, "a turn nobody asked for");
                            running = true;
                            asked_since_begin = false;
                            match work {
                                Work::Sync(definition) => {
                                    prop_assert!(!removed);
                                    prop_assert_eq!(Some(definition), latest);
                                    begun = Some(definition);
                                }
                                Work::Remove => prop_assert!(removed),
                                Work::Look => prop_assert!(removed || begun == latest, "a definition was skipped"),
                            }
                        }
                        None => prop_assert!(running || !asked_since_begin, "work is pending and no turn runs"),
                    },
                    Step::End => {
                        queue.end();
                        running = false;
                    }
                }
            }
        }
    }
}
