//! The stages, connected.
//!
//! ```text
//! sources --reports(1)--> intake --sets(4)--> expand --sets(1)--> mux --updates(8)--> sync loop --> workers --> runtime, images, volumes, ...
//!                           |                  |   ^                                                   |
//!                           |                  |   +-------------- observations <----- statuses -------+
//!                           +-> published <----+--------------------------+                                API <-- published, events
//! ```
//!
//! [`base`] opens what all share and what acts on the host, [`networking`] connects pods, [`pods`] is the flow in the picture, [`front`] follows the
//! configuration and serves clients.

mod base;
mod front;
mod networking;
mod pods;
mod stages;

use super::dns::DnsSockets;
use super::event_keeper::EventKeeper;
use super::{live, notify_manager};
use anyhow::bail;
use base::{Base, HostParts, make_directories};
use front::{ApiLinks, Following, Told};
use networking::Networking;
use pods::{Flow, PodWork, WorkerChannels};
use podstead_api::ApiSocket;
use podstead_config::last_valid::Loaded;
use podstead_config::sharing;
use podstead_container::cgroup::Cgroups;
use podstead_mux::SourcesReady;
use podstead_pod::SourceId;
use podstead_sync::heartbeat::watchdog_timeout;
use podstead_sync::{self as sync, Ended, Heartbeat, Housekeeping, Pulse, Recovered, SyncInputs};
use podstead_telemetry::error_chain;
use podstead_telemetry::logging::LevelControl;
use podstead_volume::Volumes;
use podstead_worker::PodWorkers;
use podstead_worker::backoff::BackoffPolicy;
use stages::Stages;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

pub(super) use base::keep_configuration;

/// Operators wait for the answer, so few orders are under way.
const COMMANDS: usize = 8;

/// Time limit for notifying the service manager that the daemon is ready; earlier, if all sources are synced.
const READY_AFTER: Duration = Duration::from_secs(5);

/// Runs the daemon until `shutdown`, or until a stage ends that must not. The configuration was read from `file`.
pub(super) async fn run(loaded: Loaded, file: &Path, log_level: LevelControl, shutdown: CancellationToken) -> anyhow::Result<()> {
    let config = loaded.config;
    let paths = &config.paths;
    make_directories(paths)?;
    // Also the lock that keeps a second daemon away: before anything is looked at that the first one may be changing.
    let socket = ApiSocket::bind(&paths.api_socket(), config.api_socket_group.as_deref(), !config.api.roles.is_empty())?;
    loaded.bytes.iter().for_each(|bytes| keep_configuration(paths, bytes));
    let (base, event_keeper) = Base::begin(config)?;
    // Early: questions of pods that run wait in there instead of being lost.
    let dns = DnsSockets::open(&base.config, &base.events);
    let parts = HostParts::open(&base, &dns)?;
    let mut stages = Stages::default();
    stages.start_endless(event_keeper.clone().run());

    // What an earlier daemon left comes first; then what the sources say of it.
    let recovered = Recovered::look(&base.paths, parts.runtime.as_ref(), parts.volumes.as_ref()).await?;
    base.published.expect(recovered.uids());
    let (mux_task, mux) = pods::mux_of(&base, &recovered);
    let (tell_sharing, shared) = watch::channel(Arc::new(sharing(&base.config.sources)));
    let (tell_crash_loop, crash_loop) = watch::channel(BackoffPolicy::crash_loop(base.config.crash_loop_max));
    let (tell_cdi, cdi_directories) = watch::channel(base.config.cdi_directories.clone());
    let (poke, pokes) = mpsc::unbounded_channel();
    let networking = Networking::open(&base, dns, shared, poke.clone()).await;
    let channels = WorkerChannels { pokes: poke, crash_loop, cdi_directories, incarnations: mux.clone() };
    let mut work = PodWork::adopt(&base, &parts, &networking, recovered, channels, &mut stages);
    let (flow, updates) = Flow::start(&base, &parts, &mut work, mux_task, &mut stages)?;

    let told =
        Told { sharing: tell_sharing, live: live::Told { crash_loop: tell_crash_loop, cdi_directories: tell_cdi }, log_level };
    let following = Following::start(file, &base, &parts, &flow, mux.clone(), told, &mut stages)?;
    let served = networking.start(&base, &mut stages);
    finish_deletions(parts.volumes.clone());
    let (tell_ready, sources_ready) = watch::channel(false);
    front::start_images(&base, &parts, sources_ready.clone(), &mut stages);
    front::try_jobs(&parts, sources_ready.clone());
    let pulse = base.config.upstream.is_some().then(Pulse::new);
    let upstream = front::start_upstream(&base, &work, &following, pulse.clone(), sources_ready);
    let (command, commands) = mpsc::channel(COMMANDS);
    let links = ApiLinks { socket, served, commands: command, mux, upstream };
    front::start_api(&base, &parts, &work, flow, following, links, &mut stages);

    let inputs = SyncInputs {
        updates,
        events: parts.lifecycle,
        pokes,
        commands,
        arrivals: work.services.images.arrivals(),
        tick: sync::tick(),
        heartbeat: heartbeat(pulse),
        shutdown,
    };
    let housekeeping = Housekeeping::new(work.services, work.remains);
    sync_loop(&base, inputs, work.workers, housekeeping, tell_ready, event_keeper, stages).await
}

/// Runs the sync loop until it is asked to end, or until a stage ends.
async fn sync_loop(
    base: &Base,
    inputs: SyncInputs,
    workers: PodWorkers,
    housekeeping: Housekeeping,
    tell_ready: watch::Sender<bool>,
    event_keeper: EventKeeper,
    mut stages: Stages,
) -> anyhow::Result<()> {
    let (heard, is_heard) = oneshot::channel();
    tokio::spawn(tell_of_readiness(is_heard, tell_ready));
    let sources = base.config.sources.iter().map(|source| source.name.clone());
    let ready = SourcesReady::new(sources.collect::<Vec<SourceId>>());
    // Neither arm is used again after it has won.
    tokio::select! {
        ended = sync::run(inputs, workers, ready, housekeeping, heard) => match ended {
            Ended::Shutdown => {
                event_keeper.write().await;
                let (slice, write_ahead) = (base.paths.cgroup_slice(), base.write_ahead.clone());
                let leave = move || {
                    // An older podstead, which may be the next one, does not read it.
                    write_ahead.empty();
                    leave_cgroups(&slice);
                };
                tokio::task::spawn_blocking(leave).await.ok();
                Ok(())
            }
            Ended::InputClosed(what) => bail!("the sync loop ended: the channel of {what} was closed"),
        },
        error = stages.ended() => Err(error),
    }
}

/// Tells the service manager that the daemon is ready once all sources were heard, or after some time; and the other stages only then.
async fn tell_of_readiness(mut is_heard: oneshot::Receiver<()>, tell_ready: watch::Sender<bool>) {
    let in_time = tokio::time::timeout(READY_AFTER, &mut is_heard).await;
    notify_manager("READY=1");
    let all_heard = match in_time {
        Ok(heard) => heard,
        Err(_) => is_heard.await,
    };
    if all_heard.is_ok() {
        tell_ready.send_replace(true);
    }
}

/// Finishes deletions of an earlier daemon. They may be many, and nothing waits for them.
fn finish_deletions(volumes: Arc<Volumes>) {
    tokio::spawn(async move {
        if let Err(error) = volumes.finish_deletions().await {
            tracing::warn!(error = %error_chain(&error), "cannot finish the deletions that an earlier daemon started");
        }
    });
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
