//! One evaluation of one workload: the decision of its kind, in a common form.

use super::controller_revisions;
use super::show::Shown;
use crate::memory::KindMemory;
use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, ReplicaSetSpec, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use podstead_workload::context::{Context, Pods};
use podstead_workload::cron::{self, CronInput, ObservedRun};
use podstead_workload::event::WorkloadEvent;
use podstead_workload::identity::Identity;
use podstead_workload::job::{self, JobNow};
use podstead_workload::moment::Moment;
use podstead_workload::object::{Workload, WorkloadKind};
use podstead_workload::replica_set::Flavour;
use podstead_workload::{daemon_set, deployment, replica_set, stateful_set};
use std::collections::{BTreeMap, BTreeSet};

/// Arguments of an evaluation beside the workload and its memory.
pub(super) struct Situation<'a> {
    /// Pods of the workload that exist.
    pub(super) pods: &'a Pods,
    /// The host and the time.
    pub(super) context: &'a Context<'a>,
    /// All pods of the workload that existed when the daemon started were observed.
    pub(super) observed: bool,
    /// All sources delivered.
    pub(super) sources_ready: bool,
    /// The memory of this workload was there and is lost (W97).
    pub(super) is_memory_lost: bool,
    /// Jobs of a CronJob of which something exists.
    pub(super) runs: &'a BTreeMap<String, ObservedRun>,
    /// Names of Jobs in the sources, in the namespace.
    pub(super) jobs_in_sources: &'a BTreeSet<String>,
    /// The clocks of schedules.
    pub(super) clocks: &'a cron::Clocks,
    /// The zones of schedules.
    pub(super) zones: &'a TimeZoneDatabase,
}

/// Result of an evaluation.
#[derive(Debug)]
pub(super) struct Decision {
    /// The new memory.
    pub(super) memory: KindMemory,
    /// The pods that are wanted now.
    pub(super) pods: Vec<Pod>,
    /// The claims that are wanted now.
    pub(super) claims: Vec<PersistentVolumeClaim>,
    /// The Jobs that are wanted now, of a CronJob.
    pub(super) jobs: Vec<Job>,
    /// The object with its status, and what stands for parts of it.
    pub(super) shown: Vec<Shown>,
    /// Events, in order.
    pub(super) events: Vec<WorkloadEvent>,
    /// A template of which images are needed before pods are replaced (W14).
    pub(super) warm: Option<PodTemplateSpec>,
    /// The next look on the clock that never jumps.
    pub(super) wake: Option<Moment>,
    /// The next look on the wall clock.
    pub(super) wake_wall: Option<Timestamp>,
}

impl Decision {
    fn new(memory: KindMemory, shown: Shown) -> Self {
        Self {
            memory,
            pods: Vec::new(),
            claims: Vec::new(),
            jobs: Vec::new(),
            shown: vec![shown],
            events: Vec::new(),
            warm: None,
            wake: None,
            wake_wall: None,
        }
    }
}

/// Decides on one workload. A memory of another kind, which its key excludes, counts as none.
pub(super) fn evaluate(workload: &Workload, memory: Option<&KindMemory>, situation: &Situation<'_>) -> Decision {
    match workload {
        Workload::Deployment(object) => of_deployment(object, memory, situation),
        Workload::ReplicaSet(object) => of_replica_set(object, memory, situation),
        Workload::ReplicationController(object) => of_replication_controller(object, memory, situation),
        Workload::StatefulSet(object) => of_stateful_set(object, memory, situation),
        Workload::DaemonSet(object) => of_daemon_set(object, memory, situation),
        Workload::Job(object) => of_job(object, memory, situation),
        Workload::CronJob(object) => of_cron_job(object, memory, situation),
    }
}

fn of_deployment(object: &Deployment, memory: Option<&KindMemory>, situation: &Situation<'_>) -> Decision {
    let memory = match memory {
        Some(KindMemory::Deployment(memory)) => Some(memory),
        Some(_) | None => None,
    };
    let step = deployment::step(object, memory, situation.pods, situation.context);
    let object = Deployment { status: Some(step.status), ..object.clone() };
    let shown = Shown::of(&Workload::Deployment(Box::new(object)), &step.memory.identity);
    let mut decision = Decision::new(KindMemory::Deployment(step.memory), shown);
    decision.shown.extend(step.replica_sets.into_iter().map(|set| Shown::derived(&Workload::ReplicaSet(Box::new(set)))));
    decision.pods = step.pods;
    decision.events = step.events;
    decision.warm = step.warm;
    decision.wake = step.wake;
    decision
}

fn of_replica_set(object: &ReplicaSet, memory: Option<&KindMemory>, situation: &Situation<'_>) -> Decision {
    let step = replica_set::step(object, Flavour::ReplicaSet, replica_set_memory(memory), situation.pods, situation.context);
    let object = ReplicaSet { status: Some(step.status), ..object.clone() };
    let shown = Shown::of(&Workload::ReplicaSet(Box::new(object)), &step.memory.identity);
    let mut decision = Decision::new(KindMemory::ReplicaSet(step.memory), shown);
    decision.pods = step.pods;
    decision.events = step.events;
    decision.wake = step.wake;
    decision
}

fn replica_set_memory(memory: Option<&KindMemory>) -> Option<&replica_set::ReplicaSetMemory> {
    match memory {
        Some(KindMemory::ReplicaSet(memory)) => Some(memory),
        Some(_) | None => None,
    }
}

fn of_replication_controller(object: &ReplicationController, memory: Option<&KindMemory>, situation: &Situation<'_>) -> Decision {
    let set = as_replica_set(object);
    let flavour = Flavour::ReplicationController;
    let step = replica_set::step(&set, flavour, replica_set_memory(memory), situation.pods, situation.context);
    let mut shown = Shown::of(&Workload::ReplicationController(Box::new(object.clone())), &step.memory.identity);
    // Both statuses have the same fields.
    shown.object["status"] = serde_json::to_value(&step.status).unwrap_or_default();
    let mut decision = Decision::new(KindMemory::ReplicaSet(step.memory), shown);
    decision.pods = step.pods;
    decision.events = step.events;
    decision.wake = step.wake;
    decision
}

/// A ReplicationController as a ReplicaSet. Its selector defaults to the labels of its template.
fn as_replica_set(object: &ReplicationController) -> ReplicaSet {
    let spec = object.spec.clone().unwrap_or_default();
    let labels = || spec.template.as_ref()?.metadata.as_ref()?.labels.clone();
    let match_labels = spec.selector.clone().filter(|selector| !selector.is_empty()).or_else(labels);
    let spec = ReplicaSetSpec {
        min_ready_seconds: spec.min_ready_seconds,
        replicas: spec.replicas,
        selector: LabelSelector { match_labels, match_expressions: None },
        template: spec.template,
    };
    ReplicaSet { metadata: object.metadata.clone(), spec: Some(spec), status: None }
}

fn of_stateful_set(object: &StatefulSet, memory: Option<&KindMemory>, situation: &Situation<'_>) -> Decision {
    let memory = match memory {
        Some(KindMemory::StatefulSet(memory)) => Some(memory),
        Some(_) | None => None,
    };
    let step = stateful_set::step(object, memory, situation.pods, situation.context);
    let (kind, uid) = (WorkloadKind::StatefulSet, &step.memory.identity.uid);
    let revisions = controller_revisions::shown(kind, &object.metadata, uid, &step.memory.revisions);
    let object = StatefulSet { status: Some(step.status), ..object.clone() };
    let shown = Shown::of(&Workload::StatefulSet(Box::new(object)), &step.memory.identity);
    let mut decision = Decision::new(KindMemory::StatefulSet(step.memory), shown);
    decision.shown.extend(revisions);
    decision.pods = step.pods;
    decision.claims = step.claims;
    decision.events = step.events;
    decision.warm = step.warm;
    decision.wake = step.wake;
    decision
}

fn of_daemon_set(object: &DaemonSet, memory: Option<&KindMemory>, situation: &Situation<'_>) -> Decision {
    let memory = match memory {
        Some(KindMemory::DaemonSet(memory)) => Some(memory),
        Some(_) | None => None,
    };
    let step = daemon_set::step(object, memory, situation.pods, situation.context);
    let (kind, uid) = (WorkloadKind::DaemonSet, &step.memory.identity.uid);
    let revisions = controller_revisions::shown(kind, &object.metadata, uid, &step.memory.revisions);
    let object = DaemonSet { status: Some(step.status), ..object.clone() };
    let shown = Shown::of(&Workload::DaemonSet(Box::new(object)), &step.memory.identity);
    let mut decision = Decision::new(KindMemory::DaemonSet(step.memory), shown);
    decision.shown.extend(revisions);
    decision.pods = step.pods;
    decision.events = step.events;
    decision.warm = step.warm;
    decision.wake = step.wake;
    decision
}

fn of_job(object: &Job, memory: Option<&KindMemory>, situation: &Situation<'_>) -> Decision {
    let (known, memory) = match memory {
        Some(KindMemory::Job { identity, job }) => (Some(identity), Some(job.as_ref())),
        Some(_) | None => (None, None),
    };
    let identity = identity(known, object.metadata.uid.as_deref(), &object.spec, situation.context);
    let context = situation.context;
    let lost = (memory.is_none() && situation.is_memory_lost).then(|| job::lost_memory(object, context.wall));
    let now = JobNow {
        moment: context.moment,
        wall: context.wall,
        observed: situation.observed,
        may_replace: situation.sources_ready,
        canonical: context.canonical,
        is_taken: context.is_taken,
    };
    let pods: Vec<_> = situation.pods.values().cloned().collect();
    let step = job::step(object, &identity.uid, memory.or(lost.as_ref()), &pods, &now);
    let object = Job { status: Some(step.status), ..object.clone() };
    let shown = Shown::of(&Workload::Job(Box::new(object)), &identity);
    let mut decision = Decision::new(KindMemory::Job { identity, job: Box::new(step.memory) }, shown);
    decision.pods = step.pods.into_values().collect();
    decision.events = step.events;
    decision.wake = step.wake;
    decision
}

fn of_cron_job(object: &CronJob, memory: Option<&KindMemory>, situation: &Situation<'_>) -> Decision {
    let (known, memory) = match memory {
        Some(KindMemory::CronJob { identity, cron }) => (Some(identity), Some(cron)),
        Some(_) | None => (None, None),
    };
    let identity = identity(known, None, &object.spec, situation.context);
    let mut object = object.clone();
    object.metadata.uid = Some(identity.uid.clone());
    let input = CronInput {
        runs: situation.runs,
        all_observed: situation.observed,
        names_in_sources: situation.jobs_in_sources,
        clocks: situation.clocks,
        zones: situation.zones,
        fresh_uid: situation.context.fresh_uid,
    };
    let step = cron::step(&object, memory, &input);
    object.status = Some(step.status);
    let mut shown = Shown::of(&Workload::CronJob(Box::new(object)), &identity);
    shown.set_schedule(step.wake.wall, &step.memory);
    let mut decision = Decision::new(KindMemory::CronJob { identity, cron: step.memory }, shown);
    decision.jobs = step.jobs;
    decision.events = step.events.iter().map(cron_event).collect();
    decision.wake = step.wake.moment;
    decision.wake_wall = step.wake.wall;
    decision
}

fn cron_event(event: &cron::CronEvent) -> WorkloadEvent {
    let message = event.to_string();
    match event.is_warning() {
        true => WorkloadEvent::warning(event.reason(), message),
        false => WorkloadEvent::normal(event.reason(), message),
    }
}

/// The identity of a Job or CronJob; a Job of a CronJob comes with its UID.
fn identity<T: serde::Serialize>(known: Option<&Identity>, uid: Option<&str>, spec: &T, context: &Context<'_>) -> Identity {
    let mut identity = Identity::of(known, spec, context);
    if let Some(uid) = uid {
        uid.clone_into(&mut identity.uid);
    }
    identity
}
