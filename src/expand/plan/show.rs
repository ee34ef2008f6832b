//! Objects as the API shows them.

use crate::shown::ShownSchedule;
use jiff::Timestamp;
use podstead_manifest::ObjectKey;
use podstead_pod::DEFAULT_NAMESPACE;
use podstead_workload::cron::CronMemory;
use podstead_workload::identity::Identity;
use podstead_workload::job::CONTROLLER_UID_LABEL;
use podstead_workload::object::Workload;
use serde_json::{Value, json};

/// One object with its status.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shown {
    /// Kind, namespace and name.
    pub(super) key: ObjectKey,
    /// The object.
    pub(super) object: Value,
    /// The schedule of a CronJob.
    pub(super) schedule: Option<ShownSchedule>,
}

impl Shown {
    /// An object of a source, or a Job of a CronJob.
    pub(super) fn of(workload: &Workload, identity: &Identity) -> Self {
        let mut shown = Self::derived(workload);
        let metadata = &mut shown.object["metadata"];
        metadata["uid"] = json!(identity.uid);
        metadata["generation"] = json!(identity.generation);
        if metadata.get("creationTimestamp").is_none() {
            metadata["creationTimestamp"] = json!(format!("{:.0}", identity.first_seen));
        }
        if let Workload::Job(job) = workload
            && job.spec.as_ref().is_none_or(|spec| spec.selector.is_none())
        {
            // As the API server generates it: without a selector, clients take all pods of the namespace for those of the Job.
            let labels = json!({CONTROLLER_UID_LABEL: identity.uid});
            shown.object["spec"]["selector"] = json!({"matchLabels": labels});
        }
        shown
    }

    /// An object that stands for a part of another one, with an identity of its own.
    pub(super) fn derived(workload: &Workload) -> Self {
        let metadata = workload.metadata();
        let key = ObjectKey {
            kind: workload.kind().as_str().into(),
            namespace: metadata.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE).into(),
            name: metadata.name.as_deref().unwrap_or_default().into(),
        };
        let mut object = workload.clone().with_defaults().to_json();
        object["metadata"]["namespace"] = json!(key.namespace);
        if object["metadata"].get("generation").is_none() {
            object["metadata"]["generation"] = json!(1);
        }
        Self { key, object, schedule: None }
    }

    /// Adds the next run of a CronJob, and the run that was missed last.
    pub(super) fn set_schedule(&mut self, next: Option<Timestamp>, memory: &CronMemory) {
        // A run that started later settles what was missed before it.
        let is_open = |scheduled: &Timestamp| memory.last_scheduled.is_none_or(|last| *scheduled > last);
        let missed =
            memory.told.missed.filter(is_open).map(|scheduled| {
                format!("the run of {scheduled:.0} was more than startingDeadlineSeconds late when it could start")
            });
        let blocked = memory.told.blocked.filter(is_open);
        let blocked = blocked.map(|scheduled| format!("the run of {scheduled:.0} waits for the Job that is active"));
        let unusable = memory.told.unusable.clone();
        self.schedule = Some(ShownSchedule { next, missed: unusable.or(blocked).or(missed) });
        // The creation that schedules count from: an earlier clock was not credible (W77).
        if let Some(created) = memory.created {
            self.object["metadata"]["creationTimestamp"] = json!(format!("{created:.0}"));
        }
    }
}
