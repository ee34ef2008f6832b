//! State and handles for serving requests.

use super::access::Access;
use super::node_view::NodeView;
use super::pod_control::PodControl;
use super::published::Published;
use super::services;
use super::write::Writable;
use jiff::Timestamp;
use podstead_artifact::Wakers;
use podstead_expand::ExpandHandle;
use podstead_mux::ObjectView;
use podstead_pod::NodeName;
use podstead_runtime::{ImageService, Runtime};
use podstead_settings::{ConfigStanding, HookStanding};
use podstead_status::UpstreamStatus;
use podstead_store::SourceControl;
use podstead_sys::layout::Paths;
use podstead_telemetry::{EventLog, Traces};
use podstead_volume::ClaimStore;
use std::sync::Arc;
use tokio::sync::watch;

/// State and handles for serving requests.
///
/// One type because each handler of a request uses other parts of it, and all are made by one step of the assembly.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Pods and sources as published.
    pub published: Arc<Published>,
    /// Events.
    pub events: Arc<EventLog>,
    /// Times of starts and changes of pods.
    pub traces: Traces,
    /// For exec, attach, portforward and log files.
    pub runtime: Arc<dyn Runtime>,
    /// Images.
    pub images: Arc<dyn ImageService>,
    /// ConfigMaps and Secrets.
    pub objects: Arc<ObjectView>,
    /// Services that are served.
    pub services: Arc<services::ServiceView>,
    /// Persistent volumes.
    pub claims: Arc<dyn ClaimStore>,
    /// Paths of this daemon, including that of logs.
    pub paths: Paths,
    /// Name of this host.
    pub node: NodeName,
    /// The Node that stands for it.
    pub node_view: NodeView,
    /// The configuration in force.
    pub config: watch::Receiver<ConfigStanding>,
    /// Deliveries of the hooks of `notify`.
    pub hooks: watch::Receiver<Vec<HookStanding>>,
    /// For letting a source look now.
    pub wakers: Wakers,
    /// For pruning a source.
    pub source_control: Arc<dyn SourceControl>,
    /// The source that clients may write to; `None` without one.
    pub writable: watch::Receiver<Option<Arc<Writable>>>,
    /// For stopping, starting and restarting pods.
    pub pod_control: Arc<dyn PodControl>,
    /// For starting a CronJob now; `None` where workloads are not run.
    pub expand: Option<ExpandHandle>,
    /// Roles, and the clients that have them.
    pub access: Arc<Access>,
    /// Start time of the daemon.
    pub started_at: Timestamp,
    /// Status of the connection to the cluster; `None` without one.
    pub upstream: Option<watch::Receiver<UpstreamStatus>>,
    /// The clock for ages.
    pub now: fn() -> Timestamp,
}

impl Backend {
    /// Reports whether clients may write to a source.
    pub(super) fn is_writable(&self) -> bool {
        self.writable.borrow().is_some()
    }
}
