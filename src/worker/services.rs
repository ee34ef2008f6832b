//! Services of the daemon that workers use.

use super::backoff::BackoffPolicy;
use super::{DeviceWatch, HostAddresses};
use async_trait::async_trait;
use podstead_mux::ObjectView;
use podstead_pod::env::EnvFacts;
use podstead_pod::objects::FingerprintKey;
use podstead_pod::{Pod, PodUid, SourceId};
use podstead_probe::Probes;
use podstead_runtime::{ImageService, PodNetwork, Runtime};
use podstead_status::PodStatusSink;
use podstead_sys::layout::Paths;
use podstead_sys::write_ahead::WriteAheadLog;
use podstead_sys_async::clock::Clock;
use podstead_telemetry::Traces;
use podstead_telemetry::events::EventRecorder;
use podstead_volume::VolumeService;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// Makes another incarnation of a pod that finished and was edited afterwards; the config mux does.
#[async_trait]
pub trait Incarnations: Send + Sync + fmt::Debug + 'static {
    /// Asks for REMOVE of `uid` and ADD with a new one. Never waits for the sync loop.
    async fn recreate(&self, uid: PodUid);
}

#[async_trait]
impl Incarnations for podstead_mux::MuxHandle {
    async fn recreate(&self, uid: PodUid) {
        podstead_mux::MuxHandle::recreate(self, uid).await;
    }
}

/// Variables with the addresses of Services.
#[async_trait]
pub trait ServiceVariables: Send + Sync + fmt::Debug + 'static {
    /// Those of a pod of `source`. Waits until the Services that came with it have their addresses.
    async fn of_pod(&self, pod: &Pod, source: &SourceId) -> Vec<(String, String)>;
}

/// Everything that a worker works with. One for all workers.
///
/// One type because each turn of a worker uses other parts of it, and all workers share one.
#[derive(Debug)]
pub struct Services {
    /// Runs sandboxes and containers.
    pub runtime: Arc<dyn Runtime>,
    /// Has images.
    pub images: Arc<dyn ImageService>,
    /// Makes volumes.
    pub volumes: Arc<dyn VolumeService>,
    /// Gives sandboxes their network.
    pub network: Arc<dyn PodNetwork>,
    /// Asks containers how they are.
    pub probes: Arc<dyn Probes>,
    /// Shows pods.
    pub statuses: Arc<dyn PodStatusSink>,
    /// Tells what happened.
    pub events: Arc<dyn EventRecorder>,
    /// Times of steps.
    pub traces: Traces,
    /// Recreates finished pods.
    pub incarnations: Arc<dyn Incarnations>,
    /// The time.
    pub clock: Clock,
    /// Paths on disk.
    pub paths: Paths,
    /// Makes records of pods durable.
    pub write_ahead: WriteAheadLog,
    /// Facts about this host that containers can learn, except addresses.
    pub node: EnvFacts,
    /// Addresses of this host.
    pub host_addresses: HostAddresses,
    /// Back-off of crashing containers.
    pub crash_loop: watch::Receiver<BackoffPolicy>,
    /// Variables of Services.
    pub service_variables: Arc<dyn ServiceVariables>,
    /// ConfigMaps and Secrets.
    pub objects: Arc<ObjectView>,
    /// For telling whether values from them changed.
    pub fingerprint_key: FingerprintKey,
    /// Directories of CDI specs; a later directory wins.
    pub cdi_directories: watch::Receiver<Vec<PathBuf>>,
    /// Devices that come and go.
    pub devices: Arc<DeviceWatch>,
    /// The id of this boot.
    pub boot_id: String,
    /// Pods that an operator stopped start with the next boot.
    pub starts_stopped_at_boot: bool,
    /// The host's limit of processes in one pod.
    pub pids_limit: Option<i64>,
    /// Pods that need a turn because their background work ended. Unbounded: at most one entry per pull under way.
    pub pokes: mpsc::UnboundedSender<PodUid>,
}

impl Services {
    /// The back-off of crashing containers as it is configured now.
    pub(crate) fn crash_loop(&self) -> BackoffPolicy {
        *self.crash_loop.borrow()
    }
}
