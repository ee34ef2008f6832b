//! A host in memory: the real sync loop and workers, with a fake runtime, fake services and a clock that the test moves.

use crate::{Housekeeping, Recovered, SyncInputs, sync_loop_iteration};
use k8s_openapi::api::core::v1::PodStatus;
use podstead_container::{ContainerState, ObservedPod, SandboxState};
use podstead_mux::{ObjectView, PodOp, PodUpdate, SourcesReady};
use podstead_pod::env::EnvFacts;
use podstead_pod::objects::{FingerprintKey, Objects};
use podstead_pod::{DesiredPod, NodeName, Origin, Pod, PodFullName, PodUid, Position, Revision, SourceId};
use podstead_probe::fake::FakeProbes;
use podstead_runtime::fake::FakeRuntime;
use podstead_runtime::{ImageService, Runtime};
use podstead_sys::layout::Paths;
use podstead_sys::write_ahead::WriteAheadLog;
use podstead_sys_async::clock::Clock;
use podstead_worker::backoff::BackoffPolicy;
use podstead_worker::definition::DefinitionContext;
use podstead_worker::fakes::{AskedIncarnations, FakeImages, FakeNetwork, FakeVolumes, ShownStatuses, ToldEvents};
use podstead_worker::halt::{Command, Order, OrderError};
use podstead_worker::{HostAddresses, PodWorkers, Services};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The daemon's part, which a crash takes away.
struct Daemon {
    inputs: SyncInputs,
    workers: PodWorkers,
    ready: SourcesReady,
    housekeeping: Housekeeping,
    updates: mpsc::Sender<PodUpdate>,
    pokes: mpsc::UnboundedSender<PodUid>,
    commands: mpsc::Sender<Command>,
}

/// The host.
pub(super) struct Host {
    pub(super) runtime: Arc<FakeRuntime>,
    pub(super) images: Arc<FakeImages>,
    pub(super) volumes: Arc<FakeVolumes>,
    pub(super) network: Arc<FakeNetwork>,
    pub(super) probes: Arc<FakeProbes>,
    pub(super) statuses: Arc<ShownStatuses>,
    pub(super) events: Arc<ToldEvents>,
    pub(super) incarnations: Arc<AskedIncarnations>,
    pub(super) objects: Arc<ObjectView>,
    pub(super) paths: Paths,
    pub(super) clock: Clock,
    pub(super) boot_id: String,
    /// `startStoppedPodsAtBoot`.
    pub(super) starts_stopped_at_boot: bool,
    _root: tempfile::TempDir,
    daemon: Option<Daemon>,
}

pub(super) fn source() -> SourceId {
    SourceId::new("manifests")
}

/// A pod called `name` with this spec (YAML); its UID is its name followed by `-uid`.
pub(super) fn pod(name: &str, spec: &str) -> Arc<DesiredPod> {
    pod_with_uid(name, &format!("{name}-uid"), spec)
}

pub(super) fn pod_with_uid(name: &str, uid: &str, spec: &str) -> Arc<DesiredPod> {
    let yaml = format!("{{metadata: {{name: {name}, namespace: default, uid: {uid}}}, spec: {spec}}}");
    let pod: Pod = serde_yaml::from_str(&yaml).unwrap();
    Arc::new(DesiredPod {
        uid: PodUid::new(uid),
        full_name: PodFullName { name: name.into(), namespace: "default".into() },
        source: source(),
        revision: Revision("1".into()),
        origin: Origin { file: "pod.yaml".into(), position: Position { line: 1, column: 1 } },
        pod: Arc::new(pod),
    })
}

fn facts() -> EnvFacts {
    EnvFacts {
        node_name: NodeName::new("node"),
        cluster_domain: "cluster.local".into(),
        host_ips: Vec::new(),
        pod_ips: Vec::new(),
        service_variables: Vec::new(),
        allocatable_cpu_milli: 2000,
        allocatable_memory_bytes: 1 << 30,
        allocatable_ephemeral_storage_bytes: 1 << 30,
    }
}

impl Host {
    /// A host on which a daemon was just started. The images `a` and `b` are present.
    pub(super) async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
        let clock = Clock::starting_at("2025-06-01T12:00:00Z".parse().unwrap());
        let images = Arc::new(FakeImages::default());
        images.put("a");
        images.put("b");
        let mut host = Self {
            runtime: Arc::new(FakeRuntime::new(clock)),
            images,
            volumes: Arc::default(),
            network: Arc::default(),
            probes: Arc::default(),
            statuses: Arc::default(),
            events: Arc::default(),
            incarnations: Arc::default(),
            objects: Arc::default(),
            paths,
            clock,
            boot_id: "boot-1".to_owned(),
            starts_stopped_at_boot: true,
            _root: root,
            daemon: None,
        };
        host.start_daemon().await;
        host
    }

    /// Starts the daemon, which finds what an earlier one left.
    pub(super) async fn start_daemon(&mut self) {
        let (updates, receiver) = mpsc::channel(8);
        let (pokes, poked) = mpsc::unbounded_channel();
        let (commands, commanded) = mpsc::channel(8);
        let services = Arc::new(Services {
            runtime: Arc::clone(&self.runtime) as Arc<dyn Runtime>,
            images: Arc::clone(&self.images) as _,
            volumes: Arc::clone(&self.volumes) as _,
            network: Arc::clone(&self.network) as _,
            probes: Arc::clone(&self.probes) as _,
            statuses: Arc::clone(&self.statuses) as _,
            events: Arc::clone(&self.events) as _,
            traces: Default::default(),
            incarnations: Arc::clone(&self.incarnations) as _,
            clock: self.clock,
            paths: self.paths.clone(),
            write_ahead: WriteAheadLog::none(),
            node: facts(),
            host_addresses: HostAddresses::new(|| Ok(vec![[192, 0, 2, 1].into()])),
            crash_loop: tokio::sync::watch::channel(BackoffPolicy::crash_loop(Duration::from_secs(300))).1,
            service_variables: Arc::new(podstead_worker::fakes::NoServices),
            objects: Arc::clone(&self.objects),
            fingerprint_key: FingerprintKey::new([7; 32]),
            boot_id: self.boot_id.clone(),
            starts_stopped_at_boot: self.starts_stopped_at_boot,
            pids_limit: None,
            devices: Arc::default(),
            cdi_directories: tokio::sync::watch::channel(Vec::new()).1,
            pokes: pokes.clone(),
        });
        let mut workers = PodWorkers::new(Arc::clone(&services));
        let recovered = Recovered::look(&self.paths, &*self.runtime, &*self.volumes).await.unwrap();
        let remains = recovered.adopt(&mut workers);
        self.daemon = Some(Daemon {
            inputs: SyncInputs {
                updates: receiver,
                events: self.runtime.take_events().unwrap(),
                pokes: poked,
                commands: commanded,
                arrivals: self.images.arrivals(),
                tick: crate::tick(),
                heartbeat: crate::Heartbeat::none(),
                shutdown: CancellationToken::new(),
            },
            workers,
            ready: SourcesReady::new([source()]),
            housekeeping: Housekeeping::new(services, remains),
            updates,
            pokes,
            commands,
        });
    }

    /// The sources say this of ConfigMaps and Secrets.
    pub(super) async fn set_objects(&mut self, objects: Objects) {
        let changed = objects.changes(&self.objects.get());
        self.objects.replace(Arc::new(objects));
        let update = PodUpdate { source: source(), op: PodOp::Update, pods: Vec::new(), objects: changed };
        self.daemon.as_ref().unwrap().updates.send(update).await.unwrap();
    }

    /// A daemon that starts knows of none.
    pub(super) fn forget_objects(&mut self) {
        self.objects.replace(Arc::default());
    }

    /// Inputs of the daemon's definitions.
    pub(super) fn definition_context(&self) -> DefinitionContext {
        let (objects, fingerprint_key) = (self.objects.get(), FingerprintKey::new([7; 32]));
        DefinitionContext { pids_limit: None, objects, fingerprint_key, facts: facts() }
    }

    /// The daemon dies at once; what runs goes on.
    pub(super) fn kill_daemon(&mut self) {
        self.daemon = None;
        self.runtime.restart_daemon();
    }

    /// The mux says something.
    pub(super) async fn say(&mut self, op: PodOp, pods: &[&Arc<DesiredPod>]) {
        let update =
            PodUpdate { source: source(), op, pods: pods.iter().map(|pod| Arc::clone(pod)).collect(), objects: Vec::new() };
        self.daemon.as_ref().unwrap().updates.send(update).await.unwrap();
    }

    /// Something happened that the pod's worker has to look at.
    pub(super) fn poke(&self, uid: &PodUid) {
        self.daemon.as_ref().unwrap().pokes.send(uid.clone()).unwrap();
    }

    /// Gives an order and lets the daemon answer it.
    pub(super) async fn order(&mut self, uid: &PodUid, order: Order) -> Result<(), OrderError> {
        let (answer, answered) = oneshot::channel();
        let command = Command { uid: uid.clone(), order, answer };
        self.daemon.as_ref().unwrap().commands.send(command).await.unwrap();
        self.settle().await;
        answered.await.unwrap()
    }

    /// Lets the daemon run for some time of the paused clock.
    pub(super) async fn run(&mut self, seconds: u64) {
        let Daemon { inputs, workers, ready, housekeeping, .. } = self.daemon.as_mut().unwrap();
        let end = tokio::time::sleep(Duration::from_secs(seconds));
        tokio::pin!(end);
        loop {
            tokio::select! {
                biased;
                flow = sync_loop_iteration(inputs, workers, ready, housekeeping) => assert!(flow.is_continue()),
                () = &mut end => return,
            }
        }
    }

    /// Lets the daemon do all that there is to do without time passing (much).
    pub(super) async fn settle(&mut self) {
        self.run_millis(100).await;
    }

    pub(super) async fn run_millis(&mut self, millis: u64) {
        let Daemon { inputs, workers, ready, housekeeping, .. } = self.daemon.as_mut().unwrap();
        let end = tokio::time::sleep(Duration::from_millis(millis));
        tokio::pin!(end);
        loop {
            tokio::select! {
                biased;
                flow = sync_loop_iteration(inputs, workers, ready, housekeeping) => assert!(flow.is_continue()),
                () = &mut end => return,
            }
        }
    }

    pub(super) fn status(&self, uid: &PodUid) -> PodStatus {
        self.statuses.get(uid).unwrap()
    }

    pub(super) fn observed(&self, uid: &PodUid) -> ObservedPod {
        self.runtime.observed(uid).unwrap()
    }

    /// The pod's containers that run, as `name/attempt`.
    pub(super) fn running(&self, uid: &PodUid) -> Vec<String> {
        let Some(observed) = self.runtime.observed(uid) else { return Vec::new() };
        if observed.sandbox.is_none_or(|sandbox| sandbox.state != SandboxState::Ready) {
            return Vec::new();
        }
        let running = observed.containers.iter().filter(|c| matches!(c.state, ContainerState::Running { .. }));
        running.map(|container| format!("{}/{}", container.name, container.attempt)).collect()
    }

    /// `phase`, and each container as `name=state(reason)`.
    pub(super) fn summary(&self, uid: &PodUid) -> String {
        let status = self.status(uid);
        let mut words = vec![status.phase.clone().unwrap_or_default()];
        let containers = status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
        for container in containers {
            let state = container.state.clone().unwrap_or_default();
            let word = match (state.waiting, state.running, state.terminated) {
                (Some(waiting), _, _) => waiting.reason.unwrap_or_default(),
                (_, Some(_), _) => "Running".to_owned(),
                (_, _, Some(terminated)) => format!("{}({})", terminated.reason.unwrap_or_default(), terminated.exit_code),
                (None, None, None) => "nothing".to_owned(),
            };
            words.push(format!("{}={word}", container.name));
        }
        words.join(" ")
    }
}
