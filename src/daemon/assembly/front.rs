//! Stages that follow the configuration, and those that serve clients: notifications, the API, the cluster.

use super::super::commit_status::{self, CommitStatusLinks};
use super::super::live::{self, LiveConfig};
use super::super::notify::{self, NotifyLinks};
use super::super::pod_control::Control;
use super::super::roots::NeededImages;
use super::super::source_supervisor::{SourceLinks, SourceSupervisor};
use super::super::{node, sources, upstream};
use super::base::{Base, HostParts};
use super::pods::{Flow, PodWork};
use super::stages::Stages;
use jiff::Timestamp;
use podstead_api::services::ServiceView;
use podstead_api::{self as api, Access, ApiSocket, Backend, Published, ServerIdentity, Writable};
use podstead_artifact::Wakers;
use podstead_config::Config;
use podstead_image::list_job::Lister;
use podstead_mux::MuxHandle;
use podstead_pod::sharing::Sharing;
use podstead_settings::{ConfigStanding, HookStanding};
use podstead_source::webhook;
use podstead_status::UpstreamStatus;
use podstead_sync::Pulse;
use podstead_telemetry::error_chain;
use podstead_telemetry::logging::LevelControl;
use podstead_worker::halt::Command;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Time after which the API is served although a pod of an earlier daemon is not listed yet.
const RECOVERED_WITHIN: Duration = Duration::from_secs(3);

/// Settings that others are told of when the configuration changes.
pub(super) struct Told {
    pub(super) sharing: watch::Sender<Arc<Sharing>>,
    pub(super) live: live::Told,
    pub(super) log_level: LevelControl,
}

/// The configuration in force, for those who follow it.
pub(super) struct Following {
    standing: watch::Receiver<ConfigStanding>,
    live: LiveConfig,
    labels: watch::Receiver<BTreeMap<String, String>>,
    writable: watch::Receiver<Option<Arc<Writable>>>,
    wakers: Wakers,
    hooks: watch::Receiver<Vec<HookStanding>>,
}

impl Following {
    /// Starts the sources of the configuration in `file`, and what else follows it.
    pub(super) fn start(
        file: &Path,
        base: &Base,
        parts: &HostParts,
        flow: &Flow,
        mux: MuxHandle,
        told: Told,
        stages: &mut Stages,
    ) -> anyhow::Result<Self> {
        let config = &base.config;
        let wakers = base.wakers.clone();
        let (tell_labels, labels) = watch::channel(config.labels.clone());
        let (tell_live, live) = watch::channel(Arc::clone(config));
        let (tell_writable, writable) = watch::channel(sources::writable(config));
        let links = SourceLinks {
            reports: flow.reports.clone(),
            expand: flow.expand.clone(),
            mux,
            sharing: told.sharing,
            intake: flow.intake.clone(),
            host_paths: parts.host_paths.clone(),
            wakers: wakers.clone(),
            machine_key: base.machine_key.clone(),
            images: parts.images.clone(),
            events: base.events.clone(),
            log_level: told.log_level,
            labels: tell_labels,
            live: tell_live,
            writable: tell_writable,
        };
        let (supervisor, standing) = SourceSupervisor::start(file.to_owned(), Config::clone(config), links)?;
        stages.start("the sources", supervisor.run());
        let (tell_hooks, hooks) = watch::channel(Vec::new());
        let links = NotifyLinks {
            config: live.clone(),
            published: base.published.clone(),
            events: base.events.clone(),
            standing: standing.clone(),
            file: base.paths.notifications(),
            node: config.node_name.to_string(),
            hooks: tell_hooks,
        };
        stages.start_endless(notify::run(links));
        stages.start_endless(commit_status::run(CommitStatusLinks {
            config: live.clone(),
            published: base.published.clone(),
            events: base.events.clone(),
            file: base.paths.commit_statuses(),
            node: config.node_name.to_string(),
        }));
        let woken = wakers.clone();
        let serve_webhook = move |options| webhook::serve(options, woken.clone(), |_| {});
        stages.start_endless(live::serve(live.clone(), |config| config.webhook.clone(), serve_webhook));
        stages.start_endless(live::follow(live.clone(), parts.runtime.clone(), parts.images.clone(), told.live));
        Ok(Self { standing, live, labels, writable, wakers, hooks })
    }
}

/// Lets the image store import and collect. `sources_ready` tells when all sources were read.
pub(super) fn start_images(base: &Base, parts: &HostParts, sources_ready: watch::Receiver<bool>, stages: &mut Stages) {
    let images = &parts.images;
    stages.start("the preloaded image import", images.run_preload());
    images.set_roots(Arc::new(NeededImages {
        published: base.published.clone(),
        paths: base.paths.clone(),
        keep_revisions: base.config.images.collection.keep_revisions,
        sources_ready,
    }));
    stages.start("the collection of images", images.run_collection());
    stages.start_endless(images.run_check());
}

/// Starts a job when all sources were read, so that a host on which none can work is known before the next image or commit is. The event and the log tell of it.
pub(super) fn try_jobs(parts: &HostParts, mut sources_ready: watch::Receiver<bool>) {
    let lister = Lister::new(Arc::clone(parts.images.launcher()), Arc::clone(parts.images.events()));
    tokio::spawn(async move {
        if sources_ready.wait_for(|ready| *ready).await.is_ok() {
            // A refusal was recorded; other errors come again with work to do.
            tokio::task::spawn_blocking(move || lister.try_out()).await.ok();
        }
    });
}

/// Connects to the cluster, if one is configured. `pulse` shows it that the sync loop runs.
pub(super) fn start_upstream(
    base: &Base,
    work: &PodWork,
    following: &Following,
    pulse: Option<Pulse>,
    sources_ready: watch::Receiver<bool>,
) -> Option<watch::Receiver<UpstreamStatus>> {
    let (upstream, pulse) = base.config.upstream.as_ref().zip(pulse)?;
    let daemon = upstream::Daemon {
        config: &base.config,
        labels: following.labels.clone(),
        published: &base.published,
        events: &base.events,
        machine_key: &base.machine_key,
        network: Arc::clone(&work.services.network),
        pulse,
        sources_ready,
    };
    Some(upstream::start(upstream, daemon))
}

/// Further parts of the API.
pub(super) struct ApiLinks {
    pub(super) socket: ApiSocket,
    pub(super) served: Arc<ServiceView>,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) mux: MuxHandle,
    pub(super) upstream: Option<watch::Receiver<UpstreamStatus>>,
}

/// Serves the API at its socket, and at the ports that are configured.
pub(super) fn start_api(
    base: &Base,
    parts: &HostParts,
    work: &PodWork,
    flow: Flow,
    following: Following,
    links: ApiLinks,
    stages: &mut Stages,
) {
    let config = &base.config;
    let backend = Backend {
        published: base.published.clone(),
        events: base.events.clone(),
        traces: base.traces.clone(),
        runtime: parts.runtime.clone(),
        images: parts.images.clone(),
        objects: base.objects.clone(),
        services: links.served,
        claims: parts.volumes.clone(),
        paths: base.paths.clone(),
        node: config.node_name.clone(),
        node_view: node::view(config, Arc::clone(&work.services.network)),
        config: following.standing,
        hooks: following.hooks,
        wakers: following.wakers,
        source_control: Arc::new(flow.source_control),
        writable: following.writable,
        pod_control: Arc::new(Control { commands: links.commands, expand: flow.expand.clone(), mux: links.mux }),
        expand: Some(flow.expand),
        access: Arc::new(api_access(config)),
        started_at: base.started_at,
        upstream: links.upstream,
        now: Timestamp::now,
    };
    let monitored = backend.clone();
    let serve_monitoring = move |address| api::serve_monitoring(address, monitored.clone());
    stages.start_endless(live::serve(following.live, |config| config.monitoring, serve_monitoring));
    if let Some(port) = config.api.tls_port {
        let (shown, backend) = (base.published.clone(), backend.clone());
        stages.start_endless(async move {
            recovered_pods(&shown).await;
            api::serve_tls(port, backend).await
        });
    }
    let (shown, socket) = (base.published.clone(), links.socket);
    stages.start_endless(async move {
        recovered_pods(&shown).await;
        api::serve(socket, backend).await
    });
}

/// Waits for the pods that an earlier daemon left to be in the lists. Clients wait that long, since a list without them looks as if they were
/// gone. A pod that cannot be looked at keeps nobody waiting for longer.
async fn recovered_pods(published: &Published) {
    if tokio::time::timeout(RECOVERED_WITHIN, published.all_expected()).await.is_err() {
        tracing::warn!("the API is served before all pods of the earlier daemon were looked at");
    }
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
