//! The objects that ask for pods.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{PodTemplateSpec, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An object that asks for pods, without status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Workload {
    /// `apps/v1`.
    Deployment(Box<Deployment>),
    /// `apps/v1`.
    ReplicaSet(Box<ReplicaSet>),
    /// `v1`. It behaves as a ReplicaSet.
    ReplicationController(Box<ReplicationController>),
    /// `apps/v1`.
    StatefulSet(Box<StatefulSet>),
    /// `apps/v1`.
    DaemonSet(Box<DaemonSet>),
    /// `batch/v1`.
    Job(Box<Job>),
    /// `batch/v1`.
    CronJob(Box<CronJob>),
}

/// A kind of workload. The order is the one in which names of pods are given (W9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WorkloadKind {
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `apps/v1` DaemonSet.
    DaemonSet,
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` ReplicaSet.
    ReplicaSet,
    /// `v1` ReplicationController.
    ReplicationController,
    /// `batch/v1` Job.
    Job,
    /// `batch/v1` CronJob.
    CronJob,
}

impl WorkloadKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::StatefulSet,
        Self::DaemonSet,
        Self::Deployment,
        Self::ReplicaSet,
        Self::ReplicationController,
        Self::Job,
        Self::CronJob,
    ];

    /// The kind of that name, such as `Deployment`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The name as a manifest has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::ReplicationController => "ReplicationController",
            Self::Job => "Job",
            Self::CronJob => "CronJob",
        }
    }

    /// The API version as a manifest has it.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::StatefulSet | Self::DaemonSet | Self::Deployment | Self::ReplicaSet => "apps/v1",
            Self::ReplicationController => "v1",
            Self::Job | Self::CronJob => "batch/v1",
        }
    }

    /// The path of the pod template in the object.
    pub fn template_path(self) -> &'static str {
        match self {
            Self::StatefulSet | Self::DaemonSet | Self::Deployment | Self::ReplicaSet | Self::ReplicationController | Self::Job => {
                "spec.template"
            }
            Self::CronJob => "spec.jobTemplate.spec.template",
        }
    }
}

impl fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Workload {
    /// Its kind.
    pub fn kind(&self) -> WorkloadKind {
        match self {
            Self::Deployment(_) => WorkloadKind::Deployment,
            Self::ReplicaSet(_) => WorkloadKind::ReplicaSet,
            Self::ReplicationController(_) => WorkloadKind::ReplicationController,
            Self::StatefulSet(_) => WorkloadKind::StatefulSet,
            Self::DaemonSet(_) => WorkloadKind::DaemonSet,
            Self::Job(_) => WorkloadKind::Job,
            Self::CronJob(_) => WorkloadKind::CronJob,
        }
    }

    /// Its metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Deployment(object) => &object.metadata,
            Self::ReplicaSet(object) => &object.metadata,
            Self::ReplicationController(object) => &object.metadata,
            Self::StatefulSet(object) => &object.metadata,
            Self::DaemonSet(object) => &object.metadata,
            Self::Job(object) => &object.metadata,
            Self::CronJob(object) => &object.metadata,
        }
    }

    /// Its metadata, to be changed.
    pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Deployment(object) => &mut object.metadata,
            Self::ReplicaSet(object) => &mut object.metadata,
            Self::ReplicationController(object) => &mut object.metadata,
            Self::StatefulSet(object) => &mut object.metadata,
            Self::DaemonSet(object) => &mut object.metadata,
            Self::Job(object) => &mut object.metadata,
            Self::CronJob(object) => &mut object.metadata,
        }
    }

    /// The whole object as JSON, with apiVersion and kind.
    pub fn to_json(&self) -> serde_json::Value {
        let value = match self {
            Self::Deployment(object) => serde_json::to_value(object),
            Self::ReplicaSet(object) => serde_json::to_value(object),
            Self::ReplicationController(object) => serde_json::to_value(object),
            Self::StatefulSet(object) => serde_json::to_value(object),
            Self::DaemonSet(object) => serde_json::to_value(object),
            Self::Job(object) => serde_json::to_value(object),
            Self::CronJob(object) => serde_json::to_value(object),
        };
        // These types have string keys only: they are always values.
        value.unwrap_or_default()
    }

    /// The template of its pods; `None` where it is not written.
    pub fn template(&self) -> Option<&PodTemplateSpec> {
        match self {
            Self::Deployment(object) => Some(&object.spec.as_ref()?.template),
            Self::ReplicaSet(object) => object.spec.as_ref()?.template.as_ref(),
            Self::ReplicationController(object) => object.spec.as_ref()?.template.as_ref(),
            Self::StatefulSet(object) => Some(&object.spec.as_ref()?.template),
            Self::DaemonSet(object) => Some(&object.spec.as_ref()?.template),
            Self::Job(object) => Some(&object.spec.as_ref()?.template),
            Self::CronJob(object) => Some(&object.spec.as_ref()?.job_template.spec.as_ref()?.template),
        }
    }
}
