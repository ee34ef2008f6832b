//! The objects that ask for pods.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, ReplicaSetSpec, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PodTemplateSpec, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
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

    /// The template of its pods, to be changed; `None` where it is not written.
    pub fn template_mut(&mut self) -> Option<&mut PodTemplateSpec> {
        match self {
            Self::Deployment(object) => Some(&mut object.spec.as_mut()?.template),
            Self::ReplicaSet(object) => object.spec.as_mut()?.template.as_mut(),
            Self::ReplicationController(object) => object.spec.as_mut()?.template.as_mut(),
            Self::StatefulSet(object) => Some(&mut object.spec.as_mut()?.template),
            Self::DaemonSet(object) => Some(&mut object.spec.as_mut()?.template),
            Self::Job(object) => Some(&mut object.spec.as_mut()?.template),
            Self::CronJob(object) => Some(&mut object.spec.as_mut()?.job_template.spec.as_mut()?.template),
        }
    }

    /// The templates of its claims, which only a StatefulSet has.
    pub fn claim_templates(&self) -> &[PersistentVolumeClaim] {
        match self {
            Self::StatefulSet(object) => {
                object.spec.as_ref().and_then(|spec| spec.volume_claim_templates.as_deref()).unwrap_or_default()
            }
            Self::Deployment(_)
            | Self::ReplicaSet(_)
            | Self::ReplicationController(_)
            | Self::DaemonSet(_)
            | Self::Job(_)
            | Self::CronJob(_) => &[],
        }
    }

    /// Removes what a server reports.
    pub fn remove_status(&mut self) {
        match self {
            Self::Deployment(object) => object.status = None,
            Self::ReplicaSet(object) => object.status = None,
            Self::ReplicationController(object) => object.status = None,
            Self::StatefulSet(object) => object.status = None,
            Self::DaemonSet(object) => object.status = None,
            Self::Job(object) => object.status = None,
            Self::CronJob(object) => object.status = None,
        }
    }

    /// The field with the number of pods that run at once, and that number, as far as it is written.
    pub fn replicas(&self) -> Option<(&'static str, i32)> {
        let replicas = |replicas: Option<i32>| replicas.map(|number| ("spec.replicas", number));
        match self {
            Self::Deployment(object) => replicas(object.spec.as_ref()?.replicas),
            Self::ReplicaSet(object) => replicas(object.spec.as_ref()?.replicas),
            Self::ReplicationController(object) => replicas(object.spec.as_ref()?.replicas),
            Self::StatefulSet(object) => replicas(object.spec.as_ref()?.replicas),
            Self::DaemonSet(_) => None,
            Self::Job(object) => Some(("spec.parallelism", object.spec.as_ref()?.parallelism?)),
            Self::CronJob(object) => {
                Some(("spec.jobTemplate.spec.parallelism", object.spec.as_ref()?.job_template.spec.as_ref()?.parallelism?))
            }
        }
    }
}

/// The ReplicaSet that behaves as a ReplicationController does. Its selector is the labels of the template where none is written.
pub fn replica_set_of(object: &ReplicationController) -> ReplicaSet {
    let spec = object.spec.as_ref().map(|spec| {
        let labels = spec.template.as_ref().and_then(|template| template.metadata.as_ref()?.labels.clone());
        let written = spec.selector.clone().filter(|selector| !selector.is_empty());
        ReplicaSetSpec {
            min_ready_seconds: spec.min_ready_seconds,
            replicas: spec.replicas,
            selector: LabelSelector { match_labels: written.or(labels), match_expressions: None },
            template: spec.template.clone(),
        }
    });
    ReplicaSet { metadata: object.metadata.clone(), spec, status: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replication_controller_selects_labels_of_its_template() {
        let of = |selector: &str| {
            let text = format!(
                r#"{{"metadata": {{"name": "a"}}, "spec": {{{selector} "replicas": 2, "template": {{"metadata": {{"labels": {{"a": "b"}}}}}}}}}}"#
            );
            replica_set_of(&serde_json::from_str(&text).unwrap()).spec.unwrap()
        };
        for (selector, expected) in [("", "b"), (r#""selector": {},"#, "b"), (r#""selector": {"a": "c"},"#, "c")] {
            let spec = of(selector);
            assert_eq!(spec.selector.match_labels.unwrap()["a"], expected, "{selector}");
            assert_eq!(spec.replicas, Some(2));
        }
    }
}
