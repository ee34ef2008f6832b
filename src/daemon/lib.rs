//! `podstead daemon`: puts the stages together, starts them in order, and ends when it is asked to or when one of them ends.
//!
//! Every start is a recovery (promise P7). Pods keep running when the daemon ends, however it ends.

mod age_key;
mod assembly;
mod commit_status;
mod dns;
mod event_keeper;
mod live;
pub mod node;
mod notify;
mod pod_control;
mod policies;
mod roots;
mod services;
mod source_supervisor;
mod sources;
mod upstream;
pub mod workloads;

use anyhow::Context as _;
use podstead_config::last_valid::Loaded;
use podstead_sys::{own_memory, sd_notify};
use podstead_telemetry::logging::{self, LogEnvironment};
use rustix::process::DumpableBehavior;
use std::path::Path;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Threads that run tasks. Work that blocks has threads of its own, made when needed.
const WORKER_THREADS: usize = 2;

/// Runs the daemon with the configuration at `config_path` until it is asked to end, or one of its stages ends.
pub fn run(config_path: &Path) -> anyhow::Result<ExitCode> {
    // It knows all Secrets, and the key of this host: a core dump would write them to a disk. What it starts is not concerned.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).context("disable core dumps")?;
    own_memory::share_between_threads();
    let loaded = Loaded::read(config_path)?;
    let log_level = logging::init(&loaded.config.logging.level, loaded.config.logging.format, &LogEnvironment::of_process())?;
    if let Some(reason) = &loaded.refused {
        tracing::error!("invalid configuration: {reason}; starting with the last valid one");
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    // A thread that blocks ends when there was no work for it for some seconds. A burst of work leaves unused memory behind.
    let runtime = runtime.worker_threads(WORKER_THREADS).on_thread_stop(own_memory::return_unused).enable_all().build()?;
    let result = runtime.block_on(async {
        let shutdown = CancellationToken::new();
        tokio::spawn(cancel_on_signal(shutdown.clone())?);
        assembly::run(loaded, config_path, log_level, shutdown).await
    });
    notify_manager("STOPPING=1");
    // Threads that block on the disk must not hold the end up: whatever they leave is repaired at the next start.
    runtime.shutdown_background();
    result.map(|()| ExitCode::SUCCESS)
}

/// Listens from the call on, so that no signal between start and first poll kills the process.
fn cancel_on_signal(shutdown: CancellationToken) -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("received SIGTERM: stopping; pods keep running"),
            _ = interrupt.recv() => tracing::info!("received SIGINT: stopping; pods keep running"),
        }
        shutdown.cancel();
    })
}

/// Tells systemd, where there is one.
fn notify_manager(message: &str) {
    if let Some(socket) = std::env::var_os(sd_notify::SOCKET_VARIABLE)
        && let Err(error) = sd_notify::notify(&socket, message)
    {
        tracing::warn!(%error, message, "cannot notify the service manager");
    }
}
