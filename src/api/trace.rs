//! Traces of a pod: `GET .../namespaces/NAMESPACE/pods/NAME/trace` of podstead's own group.

use super::Backend;
use super::kinds::OWN_API_VERSION;
use super::pods::Pods;
use super::respond::{self, Answer};
use super::route::PodPath;
use podstead_telemetry::trace::Trace;
use serde::{Deserialize, Serialize};

/// Shown without a trace.
const ADOPTED: &str = "the pod was started before this daemon; its next start, change or restart will be traced";

/// Traces of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodTraceObject {
    /// `podstead.dev/v1alpha1`.
    pub api_version: String,
    /// `PodTrace`.
    pub kind: String,
    /// The pod.
    pub metadata: PodTraceMetadata,
    /// Reason why there is no trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The last start, change and restart, the newest first.
    pub traces: Vec<Trace>,
}

/// `metadata` of the traces of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodTraceMetadata {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its UID.
    pub uid: String,
}

/// The traces of a pod.
pub(super) fn trace(backend: &Backend, pods: &Pods, path: &PodPath) -> Answer {
    let pod = pods.find(path)?;
    let uid = &pod.desired.uid;
    let traces = backend.traces.of(uid);
    respond::json(&PodTraceObject {
        api_version: OWN_API_VERSION.into(),
        kind: "PodTrace".into(),
        metadata: PodTraceMetadata { name: path.name.clone(), namespace: path.namespace.clone(), uid: uid.to_string() },
        reason: traces.is_empty().then(|| ADOPTED.to_owned()),
        traces,
    })
}
