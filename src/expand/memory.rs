//! Memory of workloads between evaluations: what goes to disk before anything that was decided takes effect (W91).

use podstead_manifest::ObjectKey;
use podstead_pod::SourceId;
use podstead_workload::cron::CronMemory;
use podstead_workload::daemon_set::DaemonSetMemory;
use podstead_workload::deployment::DeploymentMemory;
use podstead_workload::identity::Identity;
use podstead_workload::job::memory::{JobBoot, JobMemory};
use podstead_workload::moment::Moment;
use podstead_workload::replica_set::ReplicaSetMemory;
use podstead_workload::stateful_set::StatefulSetMemory;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Memory of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The source that it came from last.
    pub source: SourceId,
    /// The memory of its kind.
    pub kind: KindMemory,
    /// Restarts of a Job's containers that followed power cuts, by pod and container.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lost_restarts: LostRestarts,
}

/// Restarts that followed power cuts, by pod and container.
pub(crate) type LostRestarts = BTreeMap<String, LostRestart>;

/// Restarts of one container that do not count (W53).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRestart {
    /// The number of restarts of the container at the last of them, so that it is counted once.
    pub at: u32,
    /// Their number.
    pub number: u32,
}

/// Memory of a workload, by kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum KindMemory {
    /// Of a Deployment.
    Deployment(DeploymentMemory),
    /// Of a ReplicaSet or a ReplicationController.
    ReplicaSet(ReplicaSetMemory),
    /// Of a StatefulSet.
    StatefulSet(StatefulSetMemory),
    /// Of a DaemonSet.
    DaemonSet(DaemonSetMemory),
    /// Of a Job.
    Job {
        /// UID, generation and age.
        identity: Identity,
        /// Its run.
        job: Box<JobMemory>,
    },
    /// Of a CronJob.
    CronJob {
        /// UID, generation and age.
        identity: Identity,
        /// Its runs.
        cron: CronMemory,
    },
}

impl KindMemory {
    /// Withdraws a pod of the workload `owner`, so that another one takes its place. Returns false if it cannot: Jobs and CronJobs count
    /// their pods themselves.
    pub(crate) fn withdraw(&mut self, owner: &str, pod: &str) -> bool {
        match self {
            Self::Deployment(memory) => memory.withdraw(owner, pod),
            Self::ReplicaSet(memory) => memory.withdraw(owner, pod),
            Self::StatefulSet(memory) => memory.withdraw(owner, pod),
            Self::DaemonSet(memory) => memory.withdraw(owner, pod),
            Self::Job { .. } | Self::CronJob { .. } => false,
        }
    }

    /// Lets a pod of the Job `owner` go that has ended and is counted. Returns false for any other pod.
    pub(crate) fn forget_ended(&mut self, owner: &str, pod: &str) -> bool {
        match self {
            Self::Job { job, .. } => job.forget(owner, pod),
            Self::Deployment(_) | Self::ReplicaSet(_) | Self::StatefulSet(_) | Self::DaemonSet(_) | Self::CronJob { .. } => false,
        }
    }
}

impl Memory {
    /// The bytes of its file. Time that a rollout has been idle is counted up to `now`, since moments mean nothing after the next boot (W28).
    pub fn to_json(&self, now: Moment) -> Vec<u8> {
        let mut memory = self.clone();
        if let KindMemory::Deployment(deployment) = &mut memory.kind
            && let Some(progress) = &mut deployment.progress
        {
            progress.idle.stop(now);
        }
        memory.bytes()
    }

    /// Reports whether its file would be the same.
    pub fn is_kept_as(&self, other: &Self) -> bool {
        self == other || self.bytes() == other.bytes()
    }

    /// Moments of this boot, where the kind has some that outlive the daemon.
    pub fn boot(&self) -> Option<&JobBoot> {
        match &self.kind {
            KindMemory::Job { job, .. } => Some(&job.boot),
            KindMemory::Deployment(_)
            | KindMemory::ReplicaSet(_)
            | KindMemory::StatefulSet(_)
            | KindMemory::DaemonSet(_)
            | KindMemory::CronJob { .. } => None,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        // Writing to memory cannot fail, and these types have string keys only.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Memory as it was found at start.
#[derive(Debug, Default)]
pub struct Memories {
    /// Those that were read.
    pub read: BTreeMap<ObjectKey, Memory>,
    /// Workloads whose memory was damaged and set aside.
    pub lost: BTreeSet<ObjectKey>,
}
