//! The local API on a unix socket, shaped as Kubernetes': pods and workloads (list, get, watch), logs, events, exec, attach, portforward; and
//! podstead's own resources: sources, images, data of claims that are gone. ConfigMaps and Secrets are listed, Secrets without their data. Nothing here decides: it reads what the sync loop published and asks the services.
//!
//! In: requests on [`ApiSocket`]. Out: answers. The daemon spawns [`serve`] once; dropping the future closes all connections.
//! Every connection is a task; requests read [`Published`] and the event log, which nobody holds locked while waiting, so no client
//! can delay the sync loop. Watches share one bounded history ([`podstead_telemetry::journal`]).

mod access;
mod claims;
mod collection;
mod control;
mod credentials;
mod delete_options;
mod discovery;
mod dispatch;
mod events;
mod exec;
mod failure;
mod forward;
mod images;
pub mod log;
mod looked_up;
mod metrics;
mod namespaces;
mod network_policies;
mod nodes;
mod objects;
mod openapi;
mod own;
mod page;
mod pods;
pub mod published;
mod published_objects;
mod published_workloads;
mod pulls;
mod request;
mod resource;
mod respond;
mod reviews;
mod revisions;
mod route;
mod selector;
mod server;
pub mod services;
pub mod show;
mod socket;
mod spdy;
mod spdy_headers;
mod sync;
mod table;
mod tls;
mod unserved;
mod upgrade;
mod workloads;
mod write;

pub use access::{Access, IdentityError, ServerIdentity};
pub use claims::{USED_BY_ANNOTATION, USED_BYTES_ANNOTATION};
pub use control::{PodControl, PodControlError};
pub use credentials::{AccessObject, Credential, CredentialRequest, TlsAccess};
pub use exec::channels;
pub use forward::RAW_PROTOCOL;
pub use images::{ImportAnswer, ImportRequest, PinRequest, PruneRequest, PullLine, PullRequest};
pub use metrics::disk::{DiskAnswer, PodDisk};
pub use metrics::serve_monitoring;
pub use network_policies::ONLY_PODS_OF_ANNOTATION;
pub use nodes::NodeView;
pub use objects::KEYS_ANNOTATION;
pub use own::{
    DaemonObject, DaemonPaths, PruneAnswer, SourceMetadata, SourceObject, SourceObjectStatus, SourceSpec, refused_objects, since,
};
pub use published::Published;
pub use published_workloads::{MISSED_RUN_ANNOTATION, NEXT_RUN_ANNOTATION, PublishedWorkload};
pub use resource::{WORKLOAD_KINDS, WorkloadResource, workload_resource};
pub use revisions::HoldRequest;
pub use route::{OWN_GROUP, OWN_VERSION};
pub use server::serve;
pub use socket::{ApiSocket, SocketError};
pub use sync::SyncAnswer;
pub use tls::serve_tls;
pub use workloads::JobRunAnswer;
pub use write::Writable;

use jiff::Timestamp;
use podstead_artifact::Wakers;
use podstead_expand::ExpandHandle;
use podstead_mux::ObjectView;
use podstead_pod::NodeName;
use podstead_runtime::{ImageService, Runtime};
use podstead_settings::ConfigStanding;
use podstead_status::UpstreamStatus;
use podstead_store::SourceControl;
use podstead_sys::layout::Paths;
use podstead_telemetry::EventLog;
use podstead_volume::ClaimStore;
use std::sync::Arc;
use tokio::sync::watch;

/// State and handles for serving requests.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Pods and sources as published.
    pub published: Arc<Published>,
    /// Events.
    pub events: Arc<EventLog>,
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
