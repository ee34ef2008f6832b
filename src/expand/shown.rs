//! Workloads as the API shows them.

use podstead_manifest::ObjectKey;
use podstead_pod::{Origin, Revision, SourceId};
use ring::digest::{SHA256, digest};
use std::fmt;
use std::sync::Arc;

/// Kind of what is shown of a revision of a StatefulSet or a DaemonSet.
pub const CONTROLLER_REVISION: &str = "ControllerRevision";

/// A workload with its status: one of a manifest, or one that another workload made (the ReplicaSet of a Deployment, the Job of a CronJob, a
/// ControllerRevision).
#[derive(Clone, Debug, PartialEq)]
pub struct ShownWorkload {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The source that it comes from.
    pub source: SourceId,
    /// The revision of the source that its present content was read from.
    pub revision: Revision,
    /// File and position of its manifest; those of the owner for an object that a workload made.
    pub origin: Origin,
    /// The whole object as JSON: apiVersion, kind, metadata with uid, generation and creationTimestamp, spec, status. Without resourceVersion.
    pub object: serde_json::Value,
    /// The next run of a CronJob and the reason of a missed one, in words; empty for other kinds.
    pub schedule: Option<ShownSchedule>,
}

impl ShownWorkload {
    /// A sum of all of it: what was shown last is compared by it, because a tree of values takes many times the memory of its text.
    pub(crate) fn sum(&self) -> ShownSum {
        let Self { key, source, revision, origin, object, schedule } = self;
        let schedule = schedule.as_ref().map(|schedule| (&schedule.next, &schedule.missed));
        let all = (&key.kind, &key.namespace, &key.name, source, revision, origin, schedule, object);
        // Writing to memory cannot fail, and all keys are strings.
        let text = serde_json::to_vec(&all).unwrap_or_default();
        let mut sum = ShownSum::default();
        sum.0.copy_from_slice(digest(&SHA256, &text).as_ref());
        sum
    }
}

/// SHA-256 of what is shown of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShownSum([u8; 32]);

/// The schedule of a CronJob as `podstead get cronjobs` shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShownSchedule {
    /// The next run; `None` if it is suspended or the clock is not credible.
    pub next: Option<jiff::Timestamp>,
    /// The reason for which the last due run did not start, such as `missed its deadline of 60 s`.
    pub missed: Option<String>,
}

/// Receives the workloads that the API shows.
pub trait WorkloadSink: Send + Sync + fmt::Debug + 'static {
    /// Replaces what is shown of a workload.
    fn publish_workload(&self, shown: Arc<ShownWorkload>);

    /// The workload is gone.
    fn withdraw_workload(&self, key: &ObjectKey);
}
