//! The flow from what sources report to what happens to pods.

use super::super::age_key::AgeKeys;
use super::super::sources;
use super::super::workloads::{self, DiskClaims, StoreImages};
use super::base::{Base, HostParts};
use super::networking::Networking;
use super::stages::Stages;
use podstead_artifact::SourceReport;
use podstead_config::sharing;
use podstead_expand::{Clocks, ExpandHandle, ExpandLinks, ExpandTask, KnownPod, Observations};
use podstead_mux::{self as mux, Merge, MuxHandle, MuxTask, PodUpdate};
use podstead_network::host_ips;
use podstead_pod::objects::FingerprintKey;
use podstead_pod::{PodUid, SourceId};
use podstead_probe::Prober;
use podstead_store::CheckContext;
use podstead_store::intake::{self, Intake, IntakeConfigurator, IntakeHandle};
use podstead_sync::Recovered;
use podstead_sys::machine_key::FINGERPRINTS;
use podstead_sys_async::clock::Clock;
use podstead_worker::backoff::BackoffPolicy;
use podstead_worker::{DeviceWatch, HostAddresses, PodWorkers, Services};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// A source that is ahead of the intake waits: what it would report is then newer.
const REPORTS: usize = 1;
/// One per source is the usual number at start.
const SETS: usize = 4;
/// The expansion of workloads plans again while one waits.
const EXPANDED: usize = 1;
/// The sync loop reads them as fast as they come; one SET makes at most three.
const UPDATES: usize = 8;

/// Workers of the pods that an earlier daemon left, and what they work with.
pub(super) struct PodWork {
    pub(super) services: Arc<Services>,
    pub(super) workers: PodWorkers,
    /// Directories of pods of which nothing else is left.
    pub(super) remains: BTreeSet<PodUid>,
    observations: Arc<Observations>,
    known: Vec<KnownPod>,
    clocks: Clocks,
}

/// Channels of a worker to and from the rest of the daemon.
pub(super) struct WorkerChannels {
    /// Pods whose background work ended.
    pub(super) pokes: mpsc::UnboundedSender<PodUid>,
    /// Back-off of crashing containers.
    pub(super) crash_loop: watch::Receiver<BackoffPolicy>,
    /// Directories of CDI specs.
    pub(super) cdi_directories: watch::Receiver<Vec<PathBuf>>,
    /// Recreates finished pods.
    pub(super) incarnations: MuxHandle,
}

impl PodWork {
    /// Adopts the pods that were recovered.
    pub(super) fn adopt(
        base: &Base,
        parts: &HostParts,
        networking: &Networking,
        recovered: Recovered,
        channels: WorkerChannels,
        stages: &mut Stages,
    ) -> Self {
        let WorkerChannels { pokes, crash_loop, cdi_directories, incarnations } = channels;
        let (config, clock, clocks) = (&base.config, Clock::system(), Clocks::system());
        let known = workloads::known(&recovered);
        let uids = known.iter().map(|pod| pod.uid.clone());
        let observations = Arc::new(Observations::new(networking.backends.clone(), clocks.clone(), uids));
        let (prober, probes) = Prober::new(parts.runtime.clone(), base.events.clone(), clock, pokes.clone());
        stages.start_endless(prober.run());
        let devices = Arc::new(DeviceWatch::default());
        let (watch, poked) = (Arc::clone(&devices), pokes.clone());
        stages.start_endless(async move { watch.run(poked).await });
        let services = Arc::new(Services {
            runtime: parts.runtime.clone(),
            images: parts.images.clone(),
            volumes: parts.volumes.clone(),
            network: Arc::new(networking.plugins.clone()),
            probes: Arc::new(probes),
            statuses: observations.clone(),
            events: base.events.clone(),
            traces: base.traces.clone(),
            incarnations: Arc::new(incarnations),
            clock,
            paths: base.paths.clone(),
            write_ahead: base.write_ahead.clone(),
            node: parts.node.clone(),
            host_addresses: HostAddresses::new(host_ips),
            crash_loop,
            service_variables: Arc::new(networking.steward.variables()),
            objects: base.objects.clone(),
            fingerprint_key: FingerprintKey::new(base.machine_key.derive(FINGERPRINTS)),
            boot_id: clocks.boot_id().to_owned(),
            starts_stopped_at_boot: config.start_stopped_pods_at_boot,
            pids_limit: config.pod_pids_limit,
            cdi_directories,
            devices: Arc::clone(&devices),
            pokes,
        });
        let mut workers = PodWorkers::new(Arc::clone(&services));
        let remains = recovered.adopt(&mut workers);
        Self { services, workers, remains, observations, known, clocks }
    }
}

/// The stages between sources and sync loop.
pub(super) struct Flow {
    /// Takes reports of sources.
    pub(super) reports: mpsc::Sender<(SourceId, SourceReport)>,
    pub(super) intake: IntakeConfigurator,
    pub(super) source_control: IntakeHandle,
    pub(super) expand: ExpandHandle,
}

impl Flow {
    /// Starts the stages. The receiver gives operations on pods.
    pub(super) fn start(
        base: &Base,
        parts: &HostParts,
        work: &mut PodWork,
        mux_task: MuxTask,
        stages: &mut Stages,
    ) -> anyhow::Result<(Self, mpsc::Receiver<PodUpdate>)> {
        let config = &base.config;
        let (reports, reported) = mpsc::channel(REPORTS);
        let (set, sets) = mpsc::channel(SETS);
        let (expanded, expanded_sets) = mpsc::channel(EXPANDED);
        let (update, updates) = mpsc::channel(UPDATES);
        let age_keys = AgeKeys::load(config, base.events.clone());
        let check = CheckContext { opening: age_keys.opening(), ..CheckContext::new(config.admit_context()) };
        let described = config.sources.iter().map(sources::describe).collect();
        let (intake, source_control) = Intake::new(described, &base.paths, check, base.published.clone(), base.events.clone());
        let intake = intake.traced(base.traces.clone(), base.wakers.clone()).log_to(base.write_ahead.clone());
        let configurator = intake.configurator();
        let links = ExpandLinks {
            paths: base.paths.clone(),
            admit: config.admit_context(),
            observations: Arc::clone(&work.observations),
            clocks: work.clocks.clone(),
            claims: Arc::new(DiskClaims(parts.volumes.clone())),
            images: Arc::new(StoreImages { images: parts.images.clone(), objects: base.objects.clone() }),
            sink: base.published.clone(),
            events: base.events.clone(),
        };
        let (host, known) = (workloads::host(config, &config.labels), std::mem::take(&mut work.known));
        let (expand_task, expand) = ExpandTask::new(sharing(&config.sources), host, known, links)?;
        stages.start("the manifest intake", intake::run(intake, reported, set));
        stages.start("the expansion of workloads", podstead_expand::run(expand_task, sets, expanded));
        stages.start("the config mux", mux::run(mux_task, expanded_sets, update));
        if let Some(following) = age_keys.follow(configurator.clone()) {
            stages.start("the age key file watcher", following);
        }
        Ok((Self { reports, intake: configurator, source_control, expand }, updates))
    }
}

/// The mux, which knows the pods that were recovered.
pub(super) fn mux_of(base: &Base, recovered: &Recovered) -> (MuxTask, MuxHandle) {
    let merge = Merge::new(sharing(&base.config.sources), recovered.known());
    MuxTask::new(merge, base.objects.clone(), base.events.clone())
}
