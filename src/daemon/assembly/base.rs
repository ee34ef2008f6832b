//! The parts that all others share, and those that act on the host.

use super::super::dns::DnsSockets;
use super::super::event_keeper::EventKeeper;
use super::super::{live, node, sources};
use anyhow::{Context as _, anyhow};
use jiff::Timestamp;
use podstead_api::Published;
use podstead_api::published::first_version;
use podstead_artifact::Wakers;
use podstead_config::{Config, last_valid, sharing};
use podstead_container::PodLifecycleEvent;
use podstead_image::{ImageStore, ImageStoreConfig, JobSettings, RegistryDirectories, StoreSettings};
use podstead_mux::ObjectView;
use podstead_pod::env::EnvFacts;
use podstead_pod::objects::{FingerprintKey, Objects};
use podstead_runtime::Runtime;
use podstead_runtime::client::{ShimRuntime, ShimRuntimeOptions};
use podstead_settings as settings;
use podstead_sys::atomic_file;
use podstead_sys::layout::Paths;
use podstead_sys::machine_key::{self, MachineKey, PULL_SECRETS};
use podstead_sys::mounts;
use podstead_sys::write_ahead::WriteAheadLog;
use podstead_telemetry::{EventLog, Traces};
use podstead_volume::{HostPathPolicy, Volumes};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The parts that all others share.
#[derive(Clone, Debug)]
pub(super) struct Base {
    /// The configuration of the start.
    pub(super) config: Arc<Config>,
    pub(super) paths: Paths,
    /// Makes small files durable.
    pub(super) write_ahead: WriteAheadLog,
    pub(super) started_at: Timestamp,
    pub(super) events: Arc<EventLog>,
    /// Times of steps.
    pub(super) traces: Traces,
    /// For letting a source look now.
    pub(super) wakers: Wakers,
    /// State that clients are shown.
    pub(super) published: Arc<Published>,
    /// ConfigMaps, Secrets and the other objects that are not pods.
    pub(super) objects: Arc<ObjectView>,
    pub(super) machine_key: MachineKey,
}

impl Base {
    /// Recovers what an earlier daemon left of them.
    pub(super) fn begin(config: Config) -> anyhow::Result<(Self, EventKeeper)> {
        let paths = config.paths.clone();
        // Before anything is read that it may bring back.
        let write_ahead = WriteAheadLog::open(&paths.state, &paths.write_ahead_mark());
        let started_at = Timestamp::now();
        let first_version = first_version(started_at);
        let events = Arc::new(EventLog::new(first_version, Timestamp::now));
        let keeper = EventKeeper::restore(events.clone(), paths.events(), started_at);
        let published = Arc::new(Published::new(first_version, Timestamp::now));
        let machine_key = MachineKey::recover(&paths.machine_key(), machine_key::credentials().as_deref())?;
        let objects = Arc::new(ObjectView::default());
        // Until their first SET: what is missing may come, and is not reported.
        objects.replace(Arc::new(Objects::new(Arc::new(sharing(&config.sources)), |_| false)));
        let (config, traces, wakers) = (Arc::new(config), Traces::default(), Wakers::default());
        Ok((Self { config, paths, write_ahead, started_at, events, traces, wakers, published, objects, machine_key }, keeper))
    }

    /// The first version of what is published: no daemon before published a later one.
    pub(super) fn first_version(&self) -> u64 {
        first_version(self.started_at)
    }
}

/// The parts that act on the host.
pub(super) struct HostParts {
    pub(super) runtime: Arc<ShimRuntime>,
    /// Lifecycle events of the runtime.
    pub(super) lifecycle: mpsc::UnboundedReceiver<PodLifecycleEvent>,
    pub(super) images: Arc<ImageStore>,
    pub(super) volumes: Arc<Volumes>,
    pub(super) host_paths: Arc<HostPathPolicy>,
    pub(super) node: EnvFacts,
}

impl HostParts {
    /// Opens them. Nothing is changed on the host yet.
    pub(super) fn open(base: &Base, dns: &DnsSockets) -> anyhow::Result<Self> {
        let (config, paths) = (&base.config, &base.paths);
        let images = open_images(config, &base.machine_key, base.events.clone())?;
        let runtime = Arc::new(ShimRuntime::new(ShimRuntimeOptions {
            shim_binary: config.shim.clone(),
            log_limits: live::log_limits(config),
            cgroup_slice: paths.cgroup_slice(),
            id_range: config.user_namespaces,
            traces: base.traces.clone(),
            ..ShimRuntimeOptions::new(paths.clone())
        })?);
        warn_of_others_ids(config);
        warn_of_run_on_disk(&paths.run);
        let lifecycle = runtime.take_events().ok_or_else(|| anyhow!("the runtime's events are taken already"))?;
        let node = node::facts(config);
        let host_paths = Arc::new(HostPathPolicy::default());
        host_paths.configure(sources::host_path_rules(&config.sources));
        let (files, memory) = (dns.node_files(config), node.allocatable_memory_bytes);
        let volumes = Arc::new(Volumes::new(paths.clone(), files, Arc::clone(&host_paths), memory));
        Ok(Self { runtime, lifecycle, images, volumes, host_paths, node })
    }
}

/// Makes the directories of the daemon.
pub(super) fn make_directories(paths: &Paths) -> anyhow::Result<()> {
    make_directory(&paths.state, 0o700)?;
    // Names that lead to the records of pods are durable from now on.
    let pods = paths.pods();
    atomic_file::make_directories(&pods, 0o755).with_context(|| format!("create directory {}", pods.display()))?;
    make_directory(&paths.run, 0o755)?;
    make_directory(&paths.logs, 0o755)
}

/// Keeps a valid configuration for a start with a file that is not valid any more.
pub(in super::super) fn keep_configuration(paths: &Paths, bytes: &[u8]) {
    if let Err(error) = last_valid::keep(paths, bytes) {
        tracing::warn!(%error, "cannot save a copy of the valid configuration: the daemon could not start if the file became invalid");
    }
}

fn make_directory(path: &Path, mode: u32) -> anyhow::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .with_context(|| format!("create directory {}", path.display()))
}

fn warn_of_run_on_disk(run: &Path) {
    if !is_in_memory(run) {
        let run = run.display();
        tracing::warn!(%run, "the run directory is not on a tmpfs: the environment of containers, which may contain Secrets, is written to disk");
    }
}

fn is_in_memory(directory: &Path) -> bool {
    let (Ok(mounts), Ok(real)) = (mounts::mounts(), std::fs::canonicalize(directory)) else { return false };
    mounts::mount_of(&mounts, &real).is_some_and(|mount| mount.kind == "tmpfs")
}

/// Warns about other users with IDs of the pod range. The administrator must resolve that; pods keep running.
fn warn_of_others_ids(config: &Config) {
    for file in settings::ID_FILES {
        for clash in config.user_namespaces.clashes(&std::fs::read_to_string(file).unwrap_or_default()) {
            tracing::warn!("{}", settings::sentence(config.user_namespaces, file, &clash));
        }
    }
}

fn open_images(config: &Config, machine_key: &MachineKey, events: Arc<EventLog>) -> anyhow::Result<Arc<ImageStore>> {
    make_directory(&config.preload, 0o755)?;
    let settings = live::registry_settings(config);
    let StoreSettings { limits, reserve, collection, parallel_layers, minimum_rate, bandwidth, windows } =
        live::store_settings(config);
    let store = ImageStoreConfig {
        registries: settings.registries,
        auth_files: settings.auth_files,
        directories: RegistryDirectories { hosts: settings.hosts, ..RegistryDirectories::default() },
        preload: Some(config.preload.clone()),
        policy: config.image_policy.clone(),
        limits,
        reserve,
        collection,
        parallel_layers,
        minimum_rate,
        bandwidth,
        windows,
        fingerprint_key: FingerprintKey::new(machine_key.derive(PULL_SECRETS)),
        jobs: JobSettings { slice: Some(config.paths.cgroup_slice()), ..JobSettings::default() },
        ..ImageStoreConfig::default()
    };
    Ok(ImageStore::open(&config.paths.images(), store, events)?)
}
