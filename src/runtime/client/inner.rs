//! State that all clones of the runtime and its tasks share.

use super::connection::Connection;
use super::empty_mounts::EmptyMounts;
use super::id_ranges;
use super::starts::Starts;
use super::view::PodView;
use crate::{RuntimeError, log_links};
use podstead_container::cgroup::Cgroups;
use podstead_container::protocol::LogLimits;
use podstead_container::{ContainerStatus, PodLifecycleEvent};
use podstead_pod::PodUid;
use podstead_settings::IdRange;
use podstead_sys::layout::Paths;
use podstead_sys::tick::Tick;
use podstead_telemetry::trace::Step;
use podstead_telemetry::{Traces, error_chain};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Time limit for an operation that the shim completes at once.
pub(super) const PROMPT: Duration = Duration::from_secs(30);

/// Time limit for a start: longer than the shim itself waits for its helper.
pub(super) const START: Duration = Duration::from_secs(150);

/// Options of a [`ShimRuntime`](super::ShimRuntime).
#[derive(Clone, Debug)]
pub struct ShimRuntimeOptions {
    /// The layout on disk.
    pub paths: Paths,
    /// The `podstead-shim` binary.
    pub shim_binary: PathBuf,
    /// Top of the cgroup tree: [`Cgroups::DEFAULT_SLICE`] unless tests or a second instance use another.
    pub cgroup_slice: String,
    /// Rotation of container logs.
    pub log_limits: LogLimits,
    /// Ids of the host for pods with users of their own.
    pub id_range: IdRange,
    /// Times of steps go there.
    pub traces: Traces,
}

impl ShimRuntimeOptions {
    /// The defaults for a layout: the shim's binary lies beside the running one.
    pub fn new(paths: Paths) -> Self {
        let own = std::env::current_exe().unwrap_or_default();
        Self {
            paths,
            shim_binary: own.with_file_name("podstead-shim"),
            cgroup_slice: Cgroups::DEFAULT_SLICE.to_owned(),
            log_limits: LogLimits::default(),
            id_range: IdRange::default(),
            traces: Traces::default(),
        }
    }
}

/// State shared by all clones and tasks.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) options: ShimRuntimeOptions,
    /// Rotation of the logs of pods that start from now on.
    pub(super) log_limits: Mutex<LogLimits>,
    pub(super) cgroups: Cgroups,
    pub(super) boot_id: String,
    pub(super) pods: Mutex<BTreeMap<PodUid, PodView>>,
    pub(super) id_ranges: id_ranges::IdRanges,
    pub(super) empty_mounts: EmptyMounts,
    pub(super) sandbox_starts: Starts,
    /// Apart from those of sandboxes: containers of pods that run already wait for no burst of new pods.
    pub(super) container_starts: Starts,
    /// Unbounded: a shim's events must not wait, and they are few and merged by the pod's worker.
    pub(super) events: mpsc::UnboundedSender<PodLifecycleEvent>,
    pub(super) receiver: Mutex<Option<mpsc::UnboundedReceiver<PodLifecycleEvent>>>,
}

impl Inner {
    pub(super) fn paths(&self) -> &Paths {
        &self.options.paths
    }

    /// The view of all pods. Nothing that can panic or wait is done while it is held.
    pub(super) fn pods(&self) -> MutexGuard<'_, BTreeMap<PodUid, PodView>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn connection(&self, uid: &PodUid) -> Option<Connection> {
        self.pods().get(uid).and_then(|pod| pod.connection.clone())
    }

    /// Traces a step of a pod that began at `from` and ends now.
    pub(super) fn trace(&self, uid: &PodUid, step: Step, from: Tick) {
        self.options.traces.add(uid, step, None, from, Tick::now());
    }

    pub(super) fn tell(&self, event: PodLifecycleEvent) {
        // The receiver is gone: the daemon exits.
        let _ending = self.events.send(event);
    }
}

/// Links to the logs of these containers. A log without a link is better than a container that does not start.
pub(super) async fn link_logs(inner: &Inner, uid: &PodUid, containers: Vec<ContainerStatus>) {
    let Some(links) = inner.paths().log_links() else { return };
    let made = blocking("link logs", move || {
        let made = containers.iter().try_for_each(|container| log_links::create(&links, &container.log_path, &container.id));
        made.map_err(|error| RuntimeError::failed(format!("create a link in {}", links.display()), error))
    });
    if let Err(error) = made.await {
        tracing::warn!(pod_uid = %uid, error = %error_chain(&error), "cannot link the logs of a container");
    }
}

/// Runs what blocks on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(
    operation: &str,
    work: impl FnOnce() -> Result<T, RuntimeError> + Send + 'static,
) -> Result<T, RuntimeError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(RuntimeError::failed(operation, error)),
    }
}
