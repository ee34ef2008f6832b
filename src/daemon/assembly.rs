//! The stages, connected.
//!
//! ```text
//! sources --reports(1)--> intake --sets(4)--> expand --sets(1)--> mux --updates(8)--> sync loop --> workers --> runtime, images, volumes, ...
//!                           |                  |   ^                                                   |
//!                           |                  |   +-------------- observations <----- statuses -------+
//!                           +-> published <----+--------------------------+                                API <-- published, events
//! ```

use super::age_key::AgeKeys;
use super::dns::{DnsSockets, PodAddresses};
use super::event_keeper::EventKeeper;
use super::live;
use super::node;
use super::notify::{self, NotifyLinks};
use super::pod_control::Control;
use super::policies::{self, SourcePolicies};
use super::roots::NeededImages;
use super::roster::{Roster, RosterLinks};
use super::services::{PublishedBackends, Steward, StewardLinks};
use super::workloads::{self, StoreImages};
use super::{notify_manager, sources, upstream};
use anyhow::{Context as _, anyhow, bail};
use jiff::Timestamp;
use podstead_api::services::ServiceView;
use podstead_api::{self as api, Access, ApiSocket, Backend, Published, ServerIdentity};
use podstead_artifact::Wakers;
use podstead_config::last_valid::{self, Loaded};
use podstead_config::{Config, sharing};
use podstead_container::cgroup::Cgroups;
use podstead_expand::{ExpandLinks, ExpandTask, Observations};
use podstead_image::{ImageStore, ImageStoreConfig, default_auth_files};
use podstead_mux::{self as mux, Merge, MuxTask, ObjectView, SourcesReady};
use podstead_network::{BuiltinNetwork, CniLinks, CniNetwork, HostOrLoopback, NetworkLinks, PolicySource, host_ips};
use podstead_pod::objects::FingerprintKey;
use podstead_pod::{PodUid, SourceId};
use podstead_probe::Prober;
use podstead_runtime::client::{ShimRuntime, ShimRuntimeOptions};
use podstead_runtime::{PodNetwork, Runtime};
use podstead_service::range::PortRange;
use podstead_settings as settings;
use podstead_settings::NetworkKind;
use podstead_source::webhook;
use podstead_status::PodStatusSink;
use podstead_store::CheckContext;
use podstead_store::intake::{self, Intake};
use podstead_sync::heartbeat::watchdog_timeout;
use podstead_sync::{self as sync, Ended, Heartbeat, Housekeeping, Pulse, Recovered, SyncInputs};
use podstead_sys::layout::Paths;
use podstead_sys::machine_key::{self, FINGERPRINTS, MachineKey, PULL_SECRETS};
use podstead_sys::mounts;
use podstead_sys_async::clock::Clock;
use podstead_telemetry::logging::LevelControl;
use podstead_telemetry::{EventLog, error_chain};
use podstead_volume::{HostPathPolicy, Volumes};
use podstead_worker::backoff::BackoffPolicy;
use podstead_worker::{HostAddresses, PodWorkers, Services};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A source that is ahead of the intake waits: what it would report is then newer.
const REPORTS: usize = 1;
/// One per source is the usual number at start.
const SETS: usize = 4;
/// The expansion of workloads plans again while one waits.
const EXPANDED: usize = 1;
/// Operators wait for the answer, so few orders are under way.
const COMMANDS: usize = 8;
/// The sync loop reads them as fast as they come; one SET makes at most three.
const UPDATES: usize = 8;

/// Time limit for notifying the service manager that the daemon is ready; earlier, if all sources are synced.
const READY_AFTER: Duration = Duration::from_secs(5);

/// Runs the daemon until `shutdown`, or until a stage ends that must not. The configuration was read from `file`.
pub(super) async fn run(loaded: Loaded, file: &Path, log_level: LevelControl, shutdown: CancellationToken) -> anyhow::Result<()> {
    let config = loaded.config;
    let paths = config.paths.clone();
    make_directory(&paths.state, 0o700)?;
    make_directory(&paths.run, 0o755)?;
    make_directory(&paths.logs, 0o755)?;
    // Also the lock that keeps a second daemon away: before anything is looked at that the first one may be changing.
    let socket = ApiSocket::bind(&paths.api_socket(), config.api_socket_group.as_deref(), !config.api.roles.is_empty())?;
    loaded.bytes.iter().for_each(|bytes| keep_configuration(&paths, bytes));

    let now: fn() -> Timestamp = Timestamp::now;
    let started_at = now();
    let first_version = api::published::first_version(started_at);
    let events = Arc::new(EventLog::new(first_version, now));
    let event_keeper = EventKeeper::restore(events.clone(), paths.events(), started_at);
    let published = Arc::new(Published::new(first_version, now));
    let machine_key = MachineKey::recover(&paths.machine_key(), machine_key::credentials().as_deref())?;
    let images = open_images(&config, &machine_key, events.clone())?;
    let runtime = Arc::new(ShimRuntime::new(ShimRuntimeOptions {
        shim_binary: config.shim.clone(),
        log_limits: live::log_limits(&config),
        cgroup_slice: paths.cgroup_slice(),
        id_range: config.user_namespaces,
        ..ShimRuntimeOptions::new(paths.clone())
    })?);
    warn_of_others_ids(&config);
    let lifecycle = runtime.take_events().ok_or_else(|| anyhow!("the runtime's events are taken already"))?;
    // Early: questions of pods that run wait in there instead of being lost.
    let dns = DnsSockets::open(&config, &events);
    let node = node::facts(&config);
    let host_paths = Arc::new(HostPathPolicy::default());
    host_paths.configure(sources::host_path_rules(&config.sources));
    let volumes =
        Arc::new(Volumes::new(paths.clone(), dns.node_files(&config), Arc::clone(&host_paths), node.allocatable_memory_bytes));
    let sources: Vec<SourceId> = config.sources.iter().map(|source| source.name.clone()).collect();

    if !is_in_memory(&paths.run) {
        let run = paths.run.display();
        tracing::warn!(%run, "the run directory is not on a tmpfs: the environment of containers, which may contain Secrets, is written to disk");
    }
    let objects = Arc::new(ObjectView::default());

    // What an earlier daemon left comes first; then what the sources say of it.
    let recovered = Recovered::look(&paths, runtime.as_ref(), volumes.as_ref()).await?;
    let (mux_task, incarnations) =
        MuxTask::new(Merge::new(sharing(&config.sources), recovered.known()), objects.clone(), events.clone());
    let (tell_sharing, shared) = watch::channel(Arc::new(sharing(&config.sources)));
    let (command, commands) = mpsc::channel(COMMANDS);
    let (poke, pokes) = mpsc::unbounded_channel();
    let policies = Arc::new(SourcePolicies::new(Arc::clone(&objects)));
    let (plugins, builtin) = open_network(&config, &dns, events.clone(), poke.clone(), policies).await;
    let askers = PodAddresses { builtin: builtin.clone(), plugins: plugins.clone() };
    let (resolver, names) = dns.resolver(&config, published.clone(), askers, shared);
    let statuses: Arc<dyn PodStatusSink> = match &names {
        Some(names) => names.clone(),
        None => published.clone(),
    };
    let backends = Arc::new(PublishedBackends::new(statuses));
    let clock = Clock::system();
    let known = workloads::known(&recovered);
    let clocks = podstead_expand::Clocks::system();
    let observations = Arc::new(Observations::new(backends.clone(), clocks.clone(), known.iter().map(|pod| pod.uid.clone())));
    let (prober, probes) = Prober::new(runtime.clone(), events.clone(), clock, poke.clone());
    let served = Arc::new(ServiceView::new(first_version));
    let steward = Steward::new(StewardLinks {
        objects: objects.clone(),
        pods: backends.pods(),
        network: builtin.clone(),
        names,
        paths: paths.clone(),
        node_ports: config.network.node_ports.map_or(PortRange::NODE_PORTS, |(first, last)| PortRange { first, last }),
        node: config.node_name.to_string(),
        events: events.clone(),
        view: served.clone(),
    });
    let (tell_crash_loop, crash_loop) = watch::channel(BackoffPolicy::crash_loop(config.crash_loop_max));
    let services = Arc::new(Services {
        runtime: runtime.clone(),
        images: images.clone(),
        volumes: volumes.clone(),
        network: Arc::new(plugins),
        probes: Arc::new(probes),
        statuses: observations.clone(),
        events: events.clone(),
        incarnations: Arc::new(incarnations.clone()),
        clock,
        paths: paths.clone(),
        node,
        host_addresses: HostAddresses::new(host_ips),
        crash_loop,
        service_variables: Arc::new(steward.variables()),
        objects: objects.clone(),
        fingerprint_key: FingerprintKey::new(machine_key.derive(FINGERPRINTS)),
        boot_id: clocks.boot_id().to_owned(),
        starts_stopped_at_boot: config.start_stopped_pods_at_boot,
        pids_limit: config.pod_pids_limit,
        cdi_directories: config.cdi_directories.clone(),
        pokes: poke,
    });
    let mut workers = PodWorkers::new(Arc::clone(&services));
    let remains = recovered.adopt(&mut workers);

    let (report, reports) = mpsc::channel(REPORTS);
    let (set, sets) = mpsc::channel(SETS);
    let (expanded, expanded_sets) = mpsc::channel(EXPANDED);
    let (update, updates) = mpsc::channel(UPDATES);
    let age_keys = AgeKeys::load(&config, events.clone());
    let check = CheckContext { opening: age_keys.opening(), ..CheckContext::new(config.admit_context()) };
    let described = config.sources.iter().map(sources::describe).collect();
    let (intake, source_control) = Intake::new(described, &paths, check, published.clone(), events.clone());
    let intake_configurator = intake.configurator();
    let links = ExpandLinks {
        paths: paths.clone(),
        admit: config.admit_context(),
        observations,
        clocks,
        images: Arc::new(StoreImages { images: images.clone(), objects: objects.clone() }),
        sink: published.clone(),
        events: events.clone(),
    };
    let host = workloads::host(&config, &config.labels);
    let (expand_task, expand) = ExpandTask::new(sharing(&config.sources), host, known, links)?;

    // None of these ends while the daemon lives.
    let mut stages: JoinSet<&'static str> = JoinSet::new();
    stages.spawn(async move {
        intake::run(intake, reports, set).await;
        "the manifest intake"
    });
    stages.spawn(async move { match prober.run().await {} });
    let keeper = event_keeper.clone();
    stages.spawn(async move { match keeper.run().await {} });
    stages.spawn(async move {
        podstead_expand::run(expand_task, sets, expanded).await;
        "the expansion of workloads"
    });
    stages.spawn(async move {
        mux::run(mux_task, expanded_sets, update).await;
        "the config mux"
    });
    if let Some(following) = age_keys.follow(intake_configurator.clone()) {
        stages.spawn(following);
    }
    let wakers = Wakers::default();
    let (tell_labels, labels) = watch::channel(config.labels.clone());
    let (tell_live, live_config) = watch::channel(Arc::new(config.clone()));
    let (tell_writable, writable) = watch::channel(sources::writable(&config));
    let links = RosterLinks {
        reports: report,
        expand: expand.clone(),
        mux: incarnations.clone(),
        sharing: tell_sharing,
        intake: intake_configurator,
        host_paths,
        wakers: wakers.clone(),
        machine_key: machine_key.clone(),
        events: events.clone(),
        log_level,
        labels: tell_labels,
        live: tell_live,
        writable: tell_writable,
    };
    let (roster, config_standing) = Roster::start(file.to_owned(), config.clone(), links)?;
    stages.spawn(roster.run());
    let links = NotifyLinks {
        config: live_config.clone(),
        published: published.clone(),
        events: events.clone(),
        standing: config_standing.clone(),
        file: paths.notifications(),
        node: config.node_name.to_string(),
    };
    stages.spawn(async move { match notify::run(links).await {} });
    let (configs, woken) = (live_config.clone(), wakers.clone());
    let (followed, shims) = (live_config.clone(), runtime.clone());
    let serve_webhook = move |options| webhook::serve(options, woken.clone(), |_| {});
    stages.spawn(async move { match live::serve(configs, |config| config.webhook.clone(), serve_webhook).await {} });
    stages.spawn(async move { match live::follow(followed, shims, tell_crash_loop).await {} });
    stages.spawn(async move {
        steward.run().await;
        "the controller of Services"
    });
    if let Some(builtin) = builtin {
        let (objects, network) = (Arc::clone(&objects), builtin.clone());
        stages.spawn(async move { match policies::follow(objects, network).await {} });
        stages.spawn(async move {
            builtin.watch().await;
            "the packet rule watcher"
        });
    }
    if let Some(resolver) = resolver {
        stages.spawn(async move {
            resolver.run().await;
            "the pod DNS resolver"
        });
    }
    let claims = volumes.clone();
    // It may be much, and nothing waits for it.
    tokio::spawn(async move {
        if let Err(error) = volumes.finish_deletions().await {
            tracing::warn!(%error, "cannot finish the deletions that an earlier daemon started");
        }
    });
    let preload = images.run_preload();
    stages.spawn(async move {
        preload.await;
        "the preloaded image import"
    });
    let (tell_ready, sources_ready) = watch::channel(false);
    images.set_roots(Arc::new(NeededImages {
        published: published.clone(),
        paths: paths.clone(),
        keep_revisions: config.images.collection.keep_revisions,
        sources_ready: sources_ready.clone(),
    }));
    let collection = images.run_collection();
    stages.spawn(async move {
        collection.await;
        "the collection of images"
    });
    let pulse = config.upstream.is_some().then(Pulse::new);
    let upstream = config.upstream.as_ref().zip(pulse.clone()).map(|(upstream, pulse)| {
        let daemon = upstream::Daemon {
            config: &config,
            labels,
            published: &published,
            events: &events,
            machine_key: &machine_key,
            network: Arc::clone(&services.network),
            pulse,
            sources_ready,
        };
        upstream::start(upstream, daemon)
    });
    let access = api_access(&config);
    let node_view = node::view(&config, Arc::clone(&services.network));
    let backend = Backend {
        published,
        events,
        runtime,
        images,
        objects,
        services: served,
        claims,
        paths,
        node: config.node_name.clone(),
        node_view,
        config: config_standing,
        wakers,
        source_control: Arc::new(source_control),
        writable,
        pod_control: Arc::new(Control { commands: command, expand: expand.clone(), mux: incarnations }),
        expand: Some(expand),
        access: Arc::new(access),
        started_at,
        upstream,
        now,
    };
    let monitored = backend.clone();
    let serve_monitoring = move |address| api::serve_monitoring(address, monitored.clone());
    stages.spawn(async move { match live::serve(live_config, |config| config.monitoring, serve_monitoring).await {} });
    if let Some(port) = config.api.tls_port {
        let backend = backend.clone();
        stages.spawn(async move { match api::serve_tls(port, backend).await {} });
    }
    stages.spawn(async move { match api::serve(socket, backend).await {} });

    let inputs = SyncInputs {
        updates,
        events: lifecycle,
        pokes,
        commands,
        arrivals: services.images.arrivals(),
        tick: sync::tick(),
        heartbeat: heartbeat(pulse),
        shutdown,
    };
    let housekeeping = Housekeeping::new(services, remains);
    let slice = config.paths.cgroup_slice();
    let (heard, is_heard) = oneshot::channel();
    tokio::spawn(async move {
        let mut is_heard = is_heard;
        let in_time = tokio::time::timeout(READY_AFTER, &mut is_heard).await;
        notify_manager("READY=1");
        let all_heard = match in_time {
            Ok(heard) => heard,
            Err(_) => is_heard.await,
        };
        if all_heard.is_ok() {
            tell_ready.send_replace(true);
        }
    });
    // Neither arm is used again after it has won.
    tokio::select! {
        ended = sync::run(inputs, workers, SourcesReady::new(sources), housekeeping, heard) => match ended {
            Ended::Shutdown => {
                event_keeper.write().await;
                tokio::task::spawn_blocking(move || leave_cgroups(&slice)).await.ok();
                Ok(())
            }
            Ended::InputClosed(what) => bail!("the sync loop ended: the channel of {what} was closed"),
        },
        stage = stages.join_next() => match stage {
            Some(Ok(what)) => bail!("{what} ended unexpectedly"),
            Some(Err(error)) => Err(error).context("a stage failed"),
            None => bail!("no stage is running"),
        },
    }
}

/// A daemon without pods takes its cgroups along. What cannot be removed is found again by the next one.
fn leave_cgroups(slice: &str) {
    if let Err(error) = Cgroups::detect(slice).and_then(|cgroups| cgroups.remove_if_unused()) {
        tracing::warn!(error = %error_chain(&error), "cannot remove empty cgroups");
    }
}

/// Feeds the watchdog of the service manager, if it is enabled, and the pulse of the cluster connection, if there is one.
fn heartbeat(pulse: Option<Pulse>) -> Heartbeat {
    let (timeout, watched) = (std::env::var_os("WATCHDOG_USEC"), std::env::var_os("WATCHDOG_PID"));
    let watchdog = watchdog_timeout(timeout.as_deref(), watched.as_deref(), std::process::id());
    // A heart beats twice in the time that is given for one beat.
    let felt = pulse.as_ref().map(|_| 2 * Pulse::PERIOD);
    Heartbeat::new(watchdog.into_iter().chain(felt).min(), move || {
        if watchdog.is_some() {
            notify_manager("WATCHDOG=1");
        }
        pulse.iter().for_each(Pulse::beat);
    })
}

fn is_in_memory(directory: &Path) -> bool {
    let (Ok(mounts), Ok(real)) = (mounts::mounts(), std::fs::canonicalize(directory)) else { return false };
    mounts::mount_of(&mounts, &real).is_some_and(|mount| mount.kind == "tmpfs")
}

/// For a start with a file that is not valid any more.
pub(super) fn keep_configuration(paths: &Paths, bytes: &[u8]) {
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

/// The network of pods, plugins before all; the builtin one also to be watched.
async fn open_network(
    config: &Config,
    dns: &DnsSockets,
    events: Arc<EventLog>,
    pokes: mpsc::UnboundedSender<PodUid>,
    policies: Arc<dyn PolicySource>,
) -> (CniNetwork, Option<BuiltinNetwork>) {
    let plugins = CniLinks {
        paths: config.paths.clone(),
        config: config.network.clone(),
        events: events.clone(),
        names: dns.of_plugins(),
        policies: policies.clone(),
        pokes: pokes.clone(),
    };
    let (base, builtin): (Arc<dyn PodNetwork>, _) = match config.network.kind {
        NetworkKind::Cni | NetworkKind::None => (Arc::new(HostOrLoopback), None),
        NetworkKind::Builtin => {
            let (paths, config, dns_port) = (config.paths.clone(), config.network.clone(), dns.port());
            let links = NetworkLinks { paths, config, events, dns_port, pokes, policies };
            let builtin = BuiltinNetwork::open(links).await;
            (Arc::new(builtin.clone()), Some(builtin))
        }
    };
    (CniNetwork::open(plugins, base).await, builtin)
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
    let store = ImageStoreConfig {
        registries: config.registries.clone(),
        auth_files: if config.default_auth_files { default_auth_files() } else { Vec::new() },
        preload: Some(config.preload.clone()),
        limits: config.images.limits,
        reserve: config.images.reserve,
        collection: config.images.collection.clone(),
        parallel_layers: config.max_parallel_layer_pulls,
        minimum_rate: config.minimum_pull_rate,
        fingerprint_key: FingerprintKey::new(machine_key.derive(PULL_SECRETS)),
        ..ImageStoreConfig::default()
    };
    Ok(ImageStore::open(&config.paths.images(), store, events)?)
}

/// Access to the API. A certificate that cannot be made closes the TLS port and nothing else: pods need no API.
fn api_access(config: &Config) -> Access {
    let identity = config.api.tls_port.and_then(|_| {
        let path = config.paths.api_identity();
        ServerIdentity::load_or_make(&path, config.node_name.as_str())
            .inspect_err(|error| tracing::error!(error = %error_chain(error), "the TLS port of the API stays closed"))
            .ok()
    });
    Access::new(config.api.clone(), config.api_socket_group.as_deref(), identity)
}
