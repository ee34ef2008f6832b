//! The local API on a unix socket, shaped as Kubernetes': pods and workloads (list, get, watch), logs, events, exec, attach, portforward; and
//! podstead's own resources: sources, images, data of claims that are gone. ConfigMaps and Secrets are listed, Secrets without their data. Nothing here decides: it reads what the sync loop published and asks the services.
//!
//! In: requests on [`ApiSocket`]. Out: answers. The daemon spawns [`serve`] once; dropping the future closes all connections.
//! Every connection is a task; requests read [`Published`] and the event log, which nobody holds locked while waiting, so no client
//! can delay the sync loop. Watches share one bounded history ([`podstead_telemetry::journal`]).

mod access;
mod backend;
mod claims;
mod collection;
mod control;
mod controller_revisions;
mod credentials;
mod delete_options;
mod discovery;
mod dispatch;
mod endpoints;
mod event_api;
mod events;
mod exec;
mod failure;
mod forward;
mod images;
mod key;
mod kinds;
mod leases;
pub mod log;
mod looked_up;
mod looked_up_journals;
mod metrics;
mod namespaces;
mod network_policies;
mod networking;
mod node_view;
mod nodes;
mod objects;
mod openapi;
mod own;
mod page;
mod pod_control;
mod pods;
pub mod published;
mod published_objects;
mod published_workloads;
mod pulls;
mod read;
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
mod storage;
mod sync;
mod table;
mod templates;
mod tls;
mod trace;
mod unserved;
mod upgrade;
mod workloads;
mod write;

pub use access::{Access, IdentityError, ServerIdentity};
pub use backend::Backend;
pub use claims::{RELEASED_PARAMETER, USED_BY_ANNOTATION, USED_BYTES_ANNOTATION};
pub use credentials::{AccessObject, Credential, CredentialRequest, TlsAccess};
pub use exec::channels;
pub use forward::RAW_PROTOCOL;
pub use images::{ImportAnswer, ImportRequest, PinRequest, PruneRequest, PullLine, PullRequest, VerifyRequest};
pub use kinds::{OWN_GROUP, OWN_VERSION};
pub use metrics::disk::{DiskAnswer, PodDisk};
pub use metrics::serve_monitoring;
pub use network_policies::ONLY_PODS_OF_ANNOTATION;
pub use node_view::NodeView;
pub use objects::KEYS_ANNOTATION;
pub use own::{
    DaemonObject, DaemonPaths, PruneAnswer, SourceMetadata, SourceObject, SourceObjectStatus, SourceSpec, UNREAD, refused_objects,
    short_revision, since,
};
pub use pod_control::{PodControl, PodControlError};
pub use published::Published;
pub use published_workloads::{MISSED_RUN_ANNOTATION, NEXT_RUN_ANNOTATION, PublishedWorkload};
pub use resource::{WORKLOAD_KINDS, WorkloadResource, workload_resource};
pub use revisions::HoldRequest;
pub use server::serve;
pub use socket::{ApiSocket, SocketError};
pub use sync::SyncAnswer;
pub use tls::serve_tls;
pub use trace::{PodTraceMetadata, PodTraceObject};
pub use workloads::JobRunAnswer;
pub use write::Writable;
