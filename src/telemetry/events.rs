//! Kubernetes events: what happened to an object, in the kubelet's words, aggregated so that a crash loop does not write for ever.

use podstead_pod::{PodFullName, PodUid, SourceId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// `type` of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EventType {
    /// As it should be.
    Normal,
    /// Something to look at.
    Warning,
}

/// Subject of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Subject {
    /// A pod, and in it a container (`spec.containers{web}`).
    Pod {
        /// Its identity.
        uid: PodUid,
        /// Its name.
        full_name: PodFullName,
        /// Field path of the container concerned.
        field_path: Option<String>,
    },
    /// A workload, such as a Deployment or a Job.
    Workload {
        /// Its identity.
        uid: String,
        /// Such as `apps/v1`.
        api_version: Cow<'static, str>,
        /// Such as `Deployment`.
        kind: Cow<'static, str>,
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// A source of manifests.
    Source(SourceId),
    /// This host.
    Node,
}

/// Takes events. Never blocks and never fails: an event is an aid, not a state.
pub trait EventRecorder: Send + Sync + fmt::Debug + 'static {
    /// Records one event; `reason` is the kubelet's word where it has one (`Pulled`, `BackOff`, `FailedMount`).
    fn record(&self, subject: &Subject, kind: EventType, reason: &str, message: &str);
}

/// Drops events, where nobody reads them.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvents;

impl EventRecorder for NoEvents {
    fn record(&self, _: &Subject, _: EventType, _: &str, _: &str) {}
}
