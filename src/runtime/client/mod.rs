//! [`ShimRuntime`]: the runtime that drives one `podstead-shim` per pod.
//!
//! ```text
//!                  ┌ connection (one task per pod): requests out, answers and events in ── shim
//! Runtime methods ─┤
//!                  └ view of all pods in memory <── records on disk (recovery), answers, events
//! ```
//! In: calls of [`Runtime`]. Out: actions of shims; events. The view is what [`Runtime::observe`] shows: no call to a shim is made for
//! it. A connection that ends without having been asked to means that the shim is dead: what it ran is killed by its cgroup at once, so
//! that no container lives without a parent, and the sandbox is lost. Nothing that blocks runs on tokio's own threads.

mod connection;
mod empty_mounts;
mod failure;
mod id_ranges;
mod inner;
mod jobs_wait;
mod launch;
mod logs;
mod loss;
mod plug;
mod plugged;
mod recover;
pub mod resize;
mod session;
mod starts;
mod teardown;
mod view;

pub(crate) use view::PodView;

use super::{ExecSession, Runtime, RuntimeError, StartError};
use async_trait::async_trait;
use empty_mounts::EmptyMounts;
use failure::{misunderstood, refused};
pub use inner::ShimRuntimeOptions;
use inner::{Inner, PROMPT, START, blocking, link_logs};
use jobs_wait::JobsWait;
use podstead_container::cgroup::Cgroups;
use podstead_container::protocol::{Answer, LogLimits, Operation, Refusal};
use podstead_container::{
    ContainerResources, ContainerSpec, ContainerStatus, ExecSpec, GivenDevice, ObservedPod, PodLifecycleEvent, SandboxSpec,
    SandboxState, SandboxStatus,
};
use podstead_pod::resources::QosClass;
use podstead_pod::{ContainerId, PodUid};
use podstead_sys::{boot, cgroup_moves};
use podstead_telemetry::error_chain;
use starts::Starts;
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// Runs pods by shims. Cheap to clone: all clones are one runtime. Must live inside of a tokio runtime.
#[derive(Clone, Debug)]
pub struct ShimRuntime {
    inner: Arc<Inner>,
}

impl ShimRuntime {
    /// Looks at the host and makes the upper part of the cgroup tree. Pods of an earlier daemon are found by [`Runtime::recover`].
    /// Blocks for a moment.
    pub fn new(options: ShimRuntimeOptions) -> Result<Self, RuntimeError> {
        let cgroups = Cgroups::detect(&options.cgroup_slice).map_err(|error| RuntimeError::failed("detect cgroups", error))?;
        let cpus = std::thread::available_parallelism().map_or(1, NonZero::get);
        cgroups.ensure_tree(cpus as u64).map_err(|error| RuntimeError::failed("create the cgroup tree", error))?;
        let boot_id = boot::boot_id().map_err(|error| RuntimeError::failed("read the boot ID", error))?;
        let (events, receiver) = mpsc::unbounded_channel();
        let receiver = Mutex::new(Some(receiver));
        let (id_range, log_limits) = (options.id_range, Mutex::new(options.log_limits));
        let of_jobs = cgroups.clone();
        let jobs = JobsWait::new(move |pace| of_jobs.pace_jobs(pace));
        Ok(Self {
            inner: Arc::new(Inner {
                options,
                log_limits,
                cgroups,
                boot_id,
                pods: Mutex::default(),
                id_ranges: id_ranges::IdRanges::new(id_range),
                empty_mounts: EmptyMounts::default(),
                sandbox_starts: Starts::new(cpus, Arc::clone(&jobs)),
                container_starts: Starts::new(cpus, jobs),
                events,
                receiver,
            }),
        })
    }
}

impl ShimRuntime {
    /// Sets the rotation of the logs of pods that start from now on.
    pub fn set_log_limits(&self, limits: LogLimits) {
        *self.inner.log_limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }
}

#[async_trait]
impl Runtime for ShimRuntime {
    async fn recover(&self) -> Result<Vec<ObservedPod>, RuntimeError> {
        recover::recover(&self.inner).await
    }

    async fn create_sandbox(&self, spec: &SandboxSpec) -> Result<SandboxStatus, RuntimeError> {
        let existing = self.inner.pods().get(&spec.uid).map(|pod| (pod.sandbox.clone(), pod.connection.is_some()));
        match existing {
            Some((Some(status), true)) if status.spec.attempt == spec.attempt => return Ok(status),
            // An older one, or traces of it, make room.
            Some((Some(SandboxStatus { state: SandboxState::Ready | SandboxState::Lost, .. }), _) | (None, _)) => {
                teardown::stop_sandbox(&self.inner, &spec.uid).await?;
            }
            Some((Some(SandboxStatus { state: SandboxState::Stopped, .. }), _)) | None => {}
        }
        let spec = &id_ranges::assigned(&self.inner, spec)?;
        let created = self.inner.sandbox_starts.take(launch::create_sandbox(&self.inner, spec)).await;
        if let Err(error) = &created {
            // Nothing of a failed attempt stays.
            if let Err(teardown_error) = teardown::stop_sandbox(&self.inner, &spec.uid).await {
                let (error, teardown_error) = (error_chain(error), error_chain(&teardown_error));
                tracing::warn!(pod_uid = %spec.uid, %error, %teardown_error, "cannot clean up a sandbox whose creation failed");
            }
        }
        created
    }

    async fn update_sandbox(&self, spec: &SandboxSpec) -> Result<SandboxStatus, RuntimeError> {
        resize::update_sandbox(&self.inner, spec).await
    }

    async fn resize_container(&self, uid: &PodUid, id: &ContainerId, resources: &ContainerResources) -> Result<(), RuntimeError> {
        resize::resize_container(&self.inner, uid, id, resources).await
    }

    async fn plug_devices(&self, uid: &PodUid, id: &ContainerId, devices: &[GivenDevice]) -> Result<(), RuntimeError> {
        plug::plug(&self.inner, uid, id, devices).await
    }

    async fn stop_sandbox(&self, uid: &PodUid) -> Result<(), RuntimeError> {
        teardown::stop_sandbox(&self.inner, uid).await
    }

    async fn observe(&self, uid: &PodUid) -> Result<Option<ObservedPod>, RuntimeError> {
        Ok(self.inner.pods().get(uid).map(|pod| pod.observed(uid)))
    }

    async fn start_container(&self, spec: &ContainerSpec) -> Result<ContainerStatus, StartError> {
        let connection =
            self.inner.connection(&spec.pod).ok_or_else(|| RuntimeError::NotFound(format!("sandbox of pod {}", spec.full_name)))?;
        plug::note(&self.inner, spec).await?;
        let start = async {
            // The helper moves the container's first process in some milliseconds.
            cgroup_moves::prepare_in_background();
            connection.request(Operation::Start(Box::new(spec.clone())), START).await
        };
        match self.inner.container_starts.take(start).await? {
            Ok(Answer::Container(status)) => {
                link_logs(&self.inner, &spec.pod, vec![(*status).clone()]).await;
                let given = ContainerResources { declared: spec.declared.clone(), cgroup: spec.resources.clone() };
                if let Err(error) = resize::note(&self.inner, &spec.pod, &spec.id, given).await {
                    // It is given the same again then.
                    tracing::warn!(pod = %spec.full_name, container = %spec.name, error = %error_chain(&error), "cannot record the resources of a container");
                }
                Ok(*status)
            }
            Ok(Answer::Done | Answer::Status(_) | Answer::SessionOpen) => Err(misunderstood("start container").into()),
            Err(Refusal::Create(reason)) => Err(StartError::Create(reason)),
            Err(Refusal::Execute(reason)) => Err(StartError::Execute(reason)),
            Err(refusal) => Err(refused(&format!("start container {}", spec.name), refusal).into()),
        }
    }

    async fn signal_container(&self, uid: &PodUid, id: &ContainerId, signal: i32) -> Result<(), RuntimeError> {
        self.act_on(uid, id, Operation::Signal { container: id.clone(), signal }, "signal container").await
    }

    async fn kill_container(&self, uid: &PodUid, id: &ContainerId) -> Result<(), RuntimeError> {
        self.act_on(uid, id, Operation::Kill { container: id.clone() }, "kill container").await
    }

    async fn remove_container(&self, uid: &PodUid, id: &ContainerId) -> Result<(), RuntimeError> {
        teardown::remove_container(&self.inner, uid, id).await
    }

    async fn remove_pod(&self, uid: &PodUid) -> Result<(), RuntimeError> {
        teardown::remove_pod(&self.inner, uid).await
    }

    fn weigh_burstable(&self, cpu_shares: u64) -> Result<(), RuntimeError> {
        let weighed = self.inner.cgroups.set_tier_shares(QosClass::Burstable, cpu_shares);
        weighed.map_err(|error| RuntimeError::failed("set the CPU shares of the burstable cgroup", error))
    }

    async fn exec(&self, uid: &PodUid, id: &ContainerId, spec: &ExecSpec) -> Result<ExecSession, RuntimeError> {
        self.require_sandbox(uid)?;
        session::open(self.inner.paths(), uid, Operation::Exec { container: id.clone(), spec: spec.clone() }).await
    }

    async fn attach(&self, uid: &PodUid, id: &ContainerId) -> Result<ExecSession, RuntimeError> {
        self.require_sandbox(uid)?;
        session::open(self.inner.paths(), uid, Operation::Attach { container: id.clone() }).await
    }

    fn take_events(&self) -> Option<mpsc::UnboundedReceiver<PodLifecycleEvent>> {
        self.inner.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl ShimRuntime {
    /// Asks the shim; where there is none, the container is dead, which is what the caller wants.
    async fn act_on(&self, uid: &PodUid, id: &ContainerId, operation: Operation, what: &str) -> Result<(), RuntimeError> {
        let (known, connection) = match self.inner.pods().get(uid) {
            Some(pod) => (pod.containers.iter().any(|container| container.id == *id), pod.connection.clone()),
            None => (false, None),
        };
        match connection {
            None if known => Ok(()),
            None => Err(RuntimeError::NotFound(format!("container {id}"))),
            Some(connection) => match connection.request(operation, PROMPT).await? {
                Ok(_) => Ok(()),
                // A record of an earlier sandbox, of which this shim knows nothing.
                Err(Refusal::NotFound(_)) if known => Ok(()),
                Err(refusal) => Err(refused(what, refusal)),
            },
        }
    }

    fn require_sandbox(&self, uid: &PodUid) -> Result<(), RuntimeError> {
        match self.inner.connection(uid) {
            Some(_) => Ok(()),
            None => Err(RuntimeError::NotFound(format!("sandbox of pod {uid}"))),
        }
    }
}
