//! Inputs of a decision on a Job, and the moment to look again. **Pure**.

use crate::moment::Moment;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use std::fmt;

/// The time, and what else of the host a decision on a Job asks for.
#[derive(Clone, Copy)]
pub struct JobNow<'a> {
    /// The clock that decides.
    pub moment: Moment,
    /// The clock that is shown.
    pub wall: Timestamp,
    /// All pods of the Job that existed when the daemon started were observed. Until then nothing is decided, and the pods that the memory
    /// wants are wanted (W88, W94).
    pub observed: bool,
    /// All sources delivered: the pods of a run may be taken away for another run (W94).
    pub may_replace: bool,
    /// Returns a template with its defaults filled in and its quantities normalised. Templates are the same if this is (W10).
    pub canonical: &'a dyn Fn(&PodTemplateSpec) -> PodTemplateSpec,
    /// Tells that a pod name is taken by something else than this Job (W9).
    pub is_taken: &'a dyn Fn(&str) -> bool,
}

impl fmt::Debug for JobNow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobNow")
            .field("moment", &self.moment)
            .field("wall", &self.wall)
            .field("observed", &self.observed)
            .field("may_replace", &self.may_replace)
            .finish_non_exhaustive()
    }
}

/// The earliest of several moments.
#[derive(Debug, Default)]
pub(super) struct Wake {
    pub(super) at: Option<Moment>,
}

impl Wake {
    pub(super) fn no_later_than(&mut self, moment: Moment) {
        self.at = Some(self.at.map_or(moment, |at| at.min(moment)));
    }
}
