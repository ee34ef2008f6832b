//! Input and result of a plan.

use crate::memory_file::Change;
use crate::shown::ShownWorkload;
use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use podstead_manifest::ObjectKey;
use podstead_pod::containers::PullPolicy;
use podstead_pod::{PodUid, SourceId};
use podstead_store::Set;
use podstead_workload::cron;
use podstead_workload::event::WorkloadEvent;
use podstead_workload::moment::Moment;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A pod of a workload that a record tells of at start.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownPod {
    /// Its identity.
    pub uid: PodUid,
    /// Its workload.
    pub owner: ObjectKey,
    /// Its name.
    pub name: String,
    /// It was being stopped.
    pub is_terminating: bool,
}

/// The time, and what else is different at each evaluation.
pub struct Now<'a> {
    /// The clocks of schedules; its moment and wall time are those of every decision.
    pub clocks: cron::Clocks,
    /// The zones of schedules.
    pub zones: &'a TimeZoneDatabase,
    /// Returns a UID that no object has.
    pub fresh_uid: &'a dyn Fn() -> String,
    /// Tells that data of a claim, by namespace and name, are on disk that are deleted when no source has the claim.
    pub is_disposable: &'a dyn Fn(&str, &str) -> bool,
}

impl fmt::Debug for Now<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Now").field("clocks", &self.clocks).finish_non_exhaustive()
    }
}

/// Images that a workload needs before it replaces pods (W14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warm {
    /// The workload.
    pub key: ObjectKey,
    /// Its source, whose Secrets the pull may use.
    pub source: SourceId,
    /// Secrets in its namespace that images are pulled with.
    pub pull_secrets: Vec<String>,
    /// The images.
    pub images: Vec<(String, PullPolicy)>,
    /// A pod of the workload is ready, so that the update may wait for its time.
    pub is_served: bool,
}

/// An event of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventOf {
    /// The workload.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: String,
    /// The event.
    pub event: WorkloadEvent,
}

/// A workload of a source that is not used because another source has one of its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The workload.
    pub key: ObjectKey,
    /// The source whose object is used.
    pub winner: SourceId,
    /// The source whose object is not.
    pub loser: SourceId,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key: ObjectKey { kind, namespace, name }, winner, loser } = self;
        write!(
            f,
            "{kind} {namespace}/{name} of source {loser} is ignored: source {winner} takes precedence and has one of the same name"
        )
    }
}

/// Result of a plan, to be acted on in the order of its fields (W91).
#[derive(Debug, Default)]
pub struct Expansion {
    /// To be durable before anything else.
    pub changes: Vec<Change>,
    /// SETs with the pods and claims of their workloads.
    pub sets: Vec<Set>,
    /// Objects that are shown otherwise than before.
    pub shown: Vec<Arc<ShownWorkload>>,
    /// Objects that are not shown any more.
    pub withdrawn: Vec<ObjectKey>,
    /// Events, in order.
    pub events: Vec<EventOf>,
    /// All workloads that are not used because another source has one of their name.
    pub conflicts: Vec<Conflict>,
    /// Images that workloads that were evaluated need; `None` for one that needs none.
    pub warm: BTreeMap<ObjectKey, Option<Warm>>,
    /// The next look on the clock that never jumps.
    pub wake: Option<Moment>,
    /// The next look on the wall clock.
    pub wake_wall: Option<Timestamp>,
}
