//! Workloads: list, get, watch, `scale` and `status`; the errors for attempts to change them; and the start of a CronJob by hand.

mod refusal;
mod rows;
mod run;
mod scale;

pub use run::JobRunAnswer;
pub(super) use run::run_now;
pub(super) use scale::scale;

use super::collection::Collection;
use super::failure::ApiFailure;
use super::key::PodKey;
use super::published::Published;
use super::published_workloads::PublishedWorkload;
use super::resource::{WorkloadResource, workload_resource};
use super::route::PodPath;
use super::table::Column;
use bytes::Bytes;
use jiff::Timestamp;
use podstead_telemetry::journal::Journal;
use podstead_workload::object::WorkloadKind;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Workloads of one kind, as published.
#[derive(Debug)]
pub(super) struct Workloads {
    published: Arc<Published>,
    kind: WorkloadKind,
}

impl Workloads {
    pub(super) fn new(published: Arc<Published>, kind: WorkloadKind) -> Self {
        Self { published, kind }
    }

    fn resource(&self) -> WorkloadResource {
        workload_resource(self.kind)
    }

    /// One workload.
    pub(super) fn find(&self, path: &PodPath) -> Result<Arc<PublishedWorkload>, ApiFailure> {
        let key = PodKey { namespace: (&path.namespace).into(), name: (&path.name).into() };
        self.journal().get(&key).ok_or_else(|| ApiFailure::not_found(self.resource().qualified, &path.name))
    }
}

const FIELDS: &[&str] = &["metadata.name", "metadata.namespace", "metadata.uid"];
/// With those of Kubernetes for ReplicaSets and ReplicationControllers.
const REPLICA_FIELDS: &[&str] = &["metadata.name", "metadata.namespace", "metadata.uid", "status.replicas"];
/// With those of Kubernetes for Jobs.
const JOB_FIELDS: &[&str] = &["metadata.name", "metadata.namespace", "metadata.uid", "status.successful"];

impl Collection for Workloads {
    type Key = PodKey;
    type Item = PublishedWorkload;

    fn api_version(&self) -> &'static str {
        self.kind.api_version()
    }

    fn kind(&self) -> &'static str {
        self.kind.as_str()
    }

    fn fields(&self) -> &'static [&'static str] {
        match self.kind {
            WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController => REPLICA_FIELDS,
            WorkloadKind::Job => JOB_FIELDS,
            WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet | WorkloadKind::CronJob => FIELDS,
        }
    }

    fn columns(&self) -> &'static [Column] {
        rows::columns(self.kind)
    }

    fn journal(&self) -> &Journal<PodKey, PublishedWorkload> {
        self.published.workloads(self.kind)
    }

    fn namespace<'a>(&self, item: &'a PublishedWorkload) -> &'a str {
        &item.key.namespace
    }

    fn labels<'a>(&self, item: &'a PublishedWorkload) -> Option<Cow<'a, BTreeMap<String, String>>> {
        Some(Cow::Borrowed(&item.labels))
    }

    fn field(&self, item: &PublishedWorkload, name: &str) -> String {
        let number = |value: &Value| value.as_i64().unwrap_or_default().to_string();
        match name {
            "metadata.name" => item.key.name.to_string(),
            "metadata.namespace" => item.key.namespace.to_string(),
            "metadata.uid" => item.object()["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            "status.replicas" => number(&item.object()["status"]["replicas"]),
            "status.successful" => number(&item.object()["status"]["succeeded"]),
            _ => String::new(),
        }
    }

    fn metadata(&self, item: &PublishedWorkload) -> Value {
        json!(item.object()["metadata"])
    }

    fn json(&self, item: &PublishedWorkload) -> Bytes {
        item.json()
    }

    fn cells(&self, item: &PublishedWorkload, now: Timestamp) -> Vec<Value> {
        rows::cells(self.kind, &item.object(), now)
    }
}
