//! Inputs of a pod's status.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodStatus;
use podstead_container::ObservedPod;
use podstead_pod::{ContainerId, ContainerName, DesiredPod};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Reason why a container waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// One of [`super::reason`].
    pub reason: &'static str,
    /// A sentence for people; empty where the reason says it all.
    pub message: String,
}

/// A running container that is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unready {
    /// Its startup probe succeeded, or it has none.
    pub is_started: bool,
    /// The last check that failed, and when; `None` before the first.
    pub why: Option<(String, Timestamp)>,
}

/// Result of a pod that ended by itself. Kept on disk: a pod that finished stays so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodResult {
    /// All containers did what they were for.
    pub succeeded: bool,
    /// `status.reason`, e.g. `DeadlineExceeded`.
    pub reason: Option<String>,
    /// `status.message`.
    pub message: Option<String>,
}

impl PodResult {
    /// Every container ended with exit code 0.
    pub const fn succeeded() -> Self {
        Self { succeeded: true, reason: None, message: None }
    }

    /// A container ended with another exit code and is not restarted.
    pub const fn failed() -> Self {
        Self { succeeded: false, reason: None, message: None }
    }
}

/// A change of resources that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resize {
    /// The host can never give as much; why.
    Infeasible(String),
    /// Being made; why the last attempt failed.
    InProgress(Option<String>),
}

/// Devices of a pod that may be unplugged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluggedDevices {
    /// The devices that are not there, with the reasons.
    pub absent: Vec<String>,
}

/// Everything that [`super::pod_status`] looks at.
///
/// One type because it is the whole input of one pure function: what is not in it cannot change the status.
#[derive(Debug)]
pub struct StatusInput<'a> {
    /// The desired state of the pod.
    pub desired: &'a DesiredPod,
    /// The observed state of the pod.
    pub observed: Option<&'a ObservedPod>,
    /// Reason why containers wait, where there is a particular reason.
    pub waiting: &'a BTreeMap<ContainerName, Waiting>,
    /// Containers whose process runs but whose start is not done (their postStart hook), and what is shown of them.
    pub starting: &'a BTreeMap<ContainerName, Waiting>,
    /// Result of the pod, if it ended.
    pub result: Option<&'a PodResult>,
    /// Its containers are kept running: without a `result`, more follows, whatever their exit codes say.
    pub shall_run: bool,
    /// Containers that run but have a readiness or startup probe that does not succeed.
    pub unready: &'a BTreeMap<ContainerName, Unready>,
    /// The sandbox and its network are there.
    pub sandbox_ready: bool,
    /// Addresses of the pod, primary first.
    pub pod_ips: &'a [IpAddr],
    /// Addresses of this host, primary first.
    pub host_ips: &'a [IpAddr],
    /// Runs from before all containers of the pod were last restarted together. What still runs of them is being killed.
    pub surpassed: &'a BTreeSet<ContainerId>,
    /// Running containers do not have the resources of their definition.
    pub resize: Option<&'a Resize>,
    /// Its devices that may be unplugged; `None` of a pod that names none.
    pub plugged: Option<&'a PluggedDevices>,
    /// The time at which this host took the pod up.
    pub started_at: Option<Timestamp>,
    /// The status before, for the times at which conditions changed.
    pub previous: Option<&'a PodStatus>,
    /// Wall-clock time.
    pub now: Timestamp,
}
