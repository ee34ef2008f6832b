//! The running sources, and their replacement by a new configuration while pods run.
//!
//! In: the configuration file, followed as any single file of manifests is (half-written ones are waited for), and SIGHUP. Out: source
//! tasks started and stopped, the mux and the intake configured, [`ConfigStanding`] for readers. An invalid configuration changes
//! nothing and is reported. The order of a change, so that no valid report is lost and no outdated one is applied: old sources stop,
//! then the mux and the intake are configured, then new sources start.

use super::{sources, workloads};
use anyhow::Context as _;
use jiff::Timestamp;
use podstead_api::Writable;
use podstead_artifact::wake::Waker;
use podstead_artifact::{Artifact, SourceReport, Wakers, Wishes};
use podstead_config::reload::{SourceChanges, is_blank, needs_restart};
use podstead_config::{Config, HostFacts, SourceConfig, sharing};
use podstead_expand::ExpandHandle;
use podstead_image::ImageStore;
use podstead_mux::MuxHandle;
use podstead_pod::SourceId;
use podstead_pod::sharing::Sharing;
use podstead_settings::ConfigStanding;
use podstead_source::PodSource as _;
use podstead_source::dir::{DirectoryOptions, DirectorySource};
use podstead_store::intake::IntakeConfigurator;
use podstead_sys::machine_key::MachineKey;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use podstead_telemetry::logging::LevelControl;
use podstead_telemetry::{EventLog, error_chain};
use podstead_volume::HostPathPolicy;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Polling interval for changes that inotify does not report, such as a mount over the file.
const LOOK: Duration = Duration::from_secs(60);

/// Handles of the other stages.
///
/// One type because it is the list of arguments of one task, which the assembly fills in once.
#[derive(Debug)]
pub(super) struct SourceLinks {
    /// Channel for reports of sources.
    pub(super) reports: mpsc::Sender<(SourceId, SourceReport)>,
    pub(super) expand: ExpandHandle,
    pub(super) mux: MuxHandle,
    /// Sharing rules between sources, for readers other than the mux.
    pub(super) sharing: watch::Sender<Arc<Sharing>>,
    pub(super) intake: IntakeConfigurator,
    pub(super) host_paths: Arc<HostPathPolicy>,
    pub(super) wakers: Wakers,
    pub(super) machine_key: MachineKey,
    pub(super) images: Arc<ImageStore>,
    pub(super) events: Arc<EventLog>,
    pub(super) log_level: LevelControl,
    /// The configuration, for stages that follow it.
    pub(super) live: watch::Sender<Arc<Config>>,
    /// The labels of this host, for readers.
    pub(super) labels: watch::Sender<BTreeMap<String, String>>,
    /// The source that clients of the API may write to.
    pub(super) writable: watch::Sender<Option<Arc<Writable>>>,
}

/// The task before it runs.
#[derive(Debug)]
pub(super) struct SourceSupervisor {
    file: PathBuf,
    /// The configuration that the daemon was started with.
    started: Config,
    /// The one whose sources run.
    current: Config,
    running: BTreeMap<SourceId, CancellationToken>,
    tasks: JoinSet<(SourceId, End)>,
    links: SourceLinks,
    standing: watch::Sender<ConfigStanding>,
    hangup: Signal,
    /// A source ended by itself while another one was being stopped.
    broken: bool,
}

/// Reason for the end of a source task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It was stopped.
    Stopped,
    /// By itself, which must not happen.
    OnItsOwn,
}

impl SourceSupervisor {
    /// Starts the sources of `config`, which was read from `file`. From here on SIGHUP does not end the process.
    pub(super) fn start(
        file: PathBuf,
        config: Config,
        links: SourceLinks,
    ) -> anyhow::Result<(Self, watch::Receiver<ConfigStanding>)> {
        let hangup = signal(SignalKind::hangup()).context("listen for SIGHUP")?;
        let (standing, receiver) = watch::channel(ConfigStanding::new(names(&config.sources), Timestamp::now()));
        let mut supervisor = Self {
            file: std::path::absolute(file)?,
            started: config.clone(),
            current: config.clone(),
            running: BTreeMap::new(),
            tasks: JoinSet::new(),
            links,
            standing,
            hangup,
            broken: false,
        };
        config.sources.iter().for_each(|source| supervisor.run_source(source));
        Ok((supervisor, receiver))
    }

    /// Runs until a source ends by itself.
    pub(super) async fn run(mut self) -> &'static str {
        let (sender, mut file) = mpsc::channel(1);
        let options = DirectoryOptions { look: LOOK, relist: LOOK, ..DirectoryOptions::default() };
        let follower = DirectorySource::new(SourceId::new("configuration"), &self.file, options);
        let mut following = JoinSet::new();
        following.spawn(Box::new(follower).run(sender, Wishes::none()));
        // Absent from the start is a configuration, too: the default one. A file that goes away is not.
        let mut was_there = false;
        while !self.broken {
            // All arms are cancel-safe: what is received is received by the arm that wins.
            tokio::select! {
                Some(ended) = self.tasks.join_next() => match ended {
                    Ok((_, End::Stopped)) => {}
                    Ok((_, End::OnItsOwn)) | Err(_) => return "a manifest source",
                },
                report = file.recv() => match report {
                    Some((_, SourceReport::Artifact(artifact))) => {
                        was_there = true;
                        self.take_file(artifact).await;
                    }
                    Some((_, SourceReport::Failed(reason))) if was_there => self.refuse(&reason),
                    Some((_, SourceReport::Recovered)) => self.reread().await,
                    Some((_, SourceReport::Failed(_) | SourceReport::Degraded(_) | SourceReport::Inquiry(_))) => {}
                    None => return "the configuration file watcher",
                },
                Some(()) = self.hangup.recv() => {
                    tracing::info!(file = %self.file.display(), "received SIGHUP: reloading the configuration");
                    self.reread().await;
                }
            }
        }
        "a manifest source"
    }

    async fn take_file(&mut self, artifact: Artifact) {
        match artifact.files.into_values().next() {
            Some(Ok(bytes)) => self.take_bytes(&bytes.read()).await,
            Some(Err(reason)) => self.refuse(&reason),
            None => self.refuse("the file does not exist"),
        }
    }

    async fn reread(&mut self) {
        match std::fs::read(&self.file) {
            Ok(bytes) => self.take_bytes(&bytes).await,
            Err(error) => self.refuse(&format!("read {}: {error}", self.file.display())),
        }
    }

    async fn take_bytes(&mut self, bytes: &[u8]) {
        if is_blank(bytes) && self.current != self.started_from_nothing() {
            return self.refuse(&format!("{} is empty", self.file.display()));
        }
        match Config::parse(bytes, &HostFacts::of_this_host(), &self.file) {
            Ok(config) => {
                super::assembly::keep_configuration(&self.started.paths, bytes);
                self.apply(config).await;
            }
            Err(error) => self.refuse(&error_chain(&error).to_string()),
        }
    }

    /// Configuration that an empty file stands for.
    fn started_from_nothing(&self) -> Config {
        Config::parse(b"", &HostFacts::of_this_host(), &self.file).unwrap_or_else(|_| self.current.clone())
    }

    /// Puts another configuration in force as far as that is possible now.
    async fn apply(&mut self, mut config: Config) {
        let mut restart = needs_restart(&self.started, &config);
        if config.node_name != self.started.node_name && config.sources != self.current.sources {
            // They may be resolved with the new name, which does not count yet.
            config.sources.clone_from(&self.current.sources);
            restart.push("sources");
        }
        let changes = SourceChanges::between(&self.current.sources, &config.sources);
        self.tell(&changes, &restart);
        self.set_log_level(&config.logging.level);
        if config != self.current {
            self.links.live.send_replace(Arc::new(config.clone()));
        }
        self.links.labels.send_if_modified(|labels| {
            let differs = *labels != config.labels;
            labels.clone_from(&config.labels);
            differs
        });
        // The name of the host counts from the next start on.
        let host = Config { node_name: self.started.node_name.clone(), ..config.clone() };
        self.links.expand.configure_host(workloads::host(&host, &config.labels)).await;

        if !changes.is_empty() {
            // Nobody writes to a source that is being replaced.
            self.links.writable.send_replace(None);
        }
        for name in changes.removed.iter().chain(changes.changed.iter().map(|source| &source.name)) {
            self.stop(name).await;
        }
        if !changes.is_empty() {
            // First: no pod of a new revision is mounted by old rules.
            self.links.host_paths.configure(sources::host_path_rules(&config.sources));
            let sharing = sharing(&config.sources);
            self.links.expand.configure(sharing.clone()).await;
            self.links.mux.configure(sharing.clone()).await;
            self.links.sharing.send_replace(Arc::new(sharing));
            self.links.intake.configure(config.sources.iter().map(sources::describe).collect()).await;
        }
        // Only now, for a source that was changed begins with what it left on disk.
        changes.added.iter().chain(&changes.changed).for_each(|source| self.run_source(source));
        if !changes.is_empty() {
            self.links.writable.send_replace(sources::writable(&host));
        }

        let was_refused = self.standing.borrow().error.is_some();
        if !changes.is_empty() || was_refused || self.standing.borrow().needs_restart != restart {
            let new = ConfigStanding::new(names(&config.sources), Timestamp::now());
            self.standing.send_replace(ConfigStanding { needs_restart: restart, ..new });
        }
        self.current = config;
    }

    fn set_log_level(&self, level: &str) {
        if self.current.logging.level == level {
            return;
        }
        match self.links.log_level.set(level) {
            Ok(()) => tracing::info!(level, "log level changed"),
            Err(error) => tracing::error!(error = %error_chain(&error), "cannot change the log level"),
        }
    }

    fn run_source(&mut self, config: &SourceConfig) {
        // Paths are those of the start, whatever the file says now.
        let (name, source, url) = (
            config.name.clone(),
            sources::follow(config, &self.started.paths, &self.links.machine_key, &self.links.images),
            config.place.url(),
        );
        let (waker, wishes) = Waker::new();
        let stop = CancellationToken::new();
        self.running.insert(name.clone(), stop.clone());
        self.links.wakers.insert(name.clone(), waker, url);
        let reports = self.links.reports.clone();
        self.tasks.spawn(async move {
            // The source may be dropped at any await; both arms are final.
            let end = tokio::select! {
                () = source.run(reports, wishes) => End::OnItsOwn,
                () = stop.cancelled() => End::Stopped,
            };
            (name, end)
        });
    }

    /// Stops a source and waits until it is gone.
    async fn stop(&mut self, name: &SourceId) {
        self.links.wakers.remove(name);
        let Some(stop) = self.running.remove(name) else { return };
        stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok((ended, _)) if ended == *name => return,
                Ok((_, End::Stopped)) => {}
                Ok((_, End::OnItsOwn)) | Err(_) => self.broken = true,
            }
        }
    }

    fn tell(&self, changes: &SourceChanges, restart: &[&str]) {
        let SourceChanges { removed, added, changed, reordered } = changes;
        let mut said = Vec::new();
        let names = |sources: &[SourceConfig]| sources.iter().map(|source| source.name.to_string()).collect::<Vec<_>>().join(", ");
        if !removed.is_empty() {
            let names = removed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            tracing::warn!(sources = %names, "sources removed from the configuration: removing their pods");
            said.push(format!("removed {names}"));
        }
        for (what, sources) in [("added", added), ("changed", changed)] {
            if !sources.is_empty() {
                said.push(format!("{what} {}", names(sources)));
            }
        }
        if *reordered {
            said.push("order of precedence changed".to_owned());
        }
        if !said.is_empty() {
            let text = format!("sources: {}", said.join("; "));
            tracing::info!(file = %self.file.display(), "configuration reloaded: {text}");
            self.links.events.record(&Subject::Node, EventType::Normal, "ConfigurationChanged", &text);
        }
        if !restart.is_empty() && self.standing.borrow().needs_restart != restart {
            let text = format!("these configuration fields take effect when the daemon is restarted: {}", restart.join(", "));
            tracing::warn!("{text}");
            self.links.events.record(&Subject::Node, EventType::Warning, "RestartNeeded", &text);
        }
    }

    /// Says once why the file is not in force.
    fn refuse(&self, reason: &str) {
        let text = format!("invalid configuration: {reason}; keeping the previous one");
        if self.standing.borrow().error.as_ref() == Some(&text) {
            return;
        }
        tracing::error!("{text}");
        self.links.events.record(&Subject::Node, EventType::Warning, "InvalidConfiguration", &text);
        self.standing.send_modify(|standing| standing.error = Some(text));
    }
}
fn names(sources: &[SourceConfig]) -> Vec<SourceId> {
    sources.iter().map(|source| source.name.clone()).collect()
}
