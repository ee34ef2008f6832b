//! `podstead stop POD` stops pods through the daemon. `podstead stop --all`: stops all pods of a host whose daemon does not run, e.g. before the package is removed.
//!
//! Each shim is asked as at the shutdown of the host: stop signals, grace periods, SIGKILL, every exit on disk. Then the network takes its leave: no
//! packet rule leads to a pod that is not there. The pods are still wanted: a daemon that is started again starts them again.

use super::Context;
use super::pod_orders::{self, PodOrder, PodOrderArgs};
use super::pods::PodNamespaceArgs;
use anyhow::Context as _;
use clap::Args;
use futures_util::future::join_all;
use jiff::Timestamp;
use nix::errno::Errno;
use podstead_api::{ApiSocket, SocketError};
use podstead_config::Config;
use podstead_config::last_valid::Loaded;
use podstead_container::ObservedPod;
use podstead_container::cgroup::Cgroups;
use podstead_network::{self as network, CniLinks, CniNetwork, HostOrLoopback, NoPolicies};
use podstead_runtime::client::{ShimRuntime, ShimRuntimeOptions};
use podstead_runtime::{NetworkError, PodNetwork as _, Runtime};
use podstead_sys::pidfd;
use podstead_sys_async::clock::Clock;
use podstead_telemetry::EventLog;
use podstead_telemetry::error_chain;
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

const SIGTERM: i32 = 15;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct StopArgs {
    /// Pods, of which the "-<node>" suffix may be omitted; or workloads such as deploy/web, for all their pods
    #[arg(value_name = "POD|TYPE/NAME", required_unless_present = "all")]
    pods: Vec<String>,
    #[command(flatten)]
    namespace: PodNamespaceArgs,
    /// Stop all pods of this host while the daemon is not running; it starts them again
    #[arg(long, conflicts_with_all = ["pods", "namespace", "no_wait"])]
    all: bool,
    /// Return at once, without waiting until the pods are stopped
    #[arg(long)]
    no_wait: bool,
    /// Longest time to wait for each pod, in seconds; with --all, kill containers that still run then
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
}

pub(super) fn run(args: &StopArgs, context: &Context) -> anyhow::Result<ExitCode> {
    if !args.all {
        let orders = PodOrderArgs::new(&args.pods, &args.namespace, args.no_wait, args.timeout);
        return pod_orders::run(PodOrder::Stop, &orders, context);
    }
    let Loaded { config, refused, .. } = Loaded::read_or_default(context.config_path())?;
    if let Some(reason) = refused {
        writeln!(io::stderr(), "podstead: invalid configuration: {reason}; stopping the pods of {}", config.paths.run.display())?;
    }
    let timeout = Duration::from_secs(args.timeout);
    let (pods, troubles) = context.block_on(async {
        // The daemon's own lock: one that runs would start the pods again, and none can start now.
        let _lock = match ApiSocket::bind(&config.paths.api_socket(), None, false) {
            Ok(lock) => lock,
            Err(error @ SocketError::InUse { .. }) => {
                return Err(error)
                    .context("the daemon is running and would start the pods again; first run systemctl stop podstead");
            }
            // Nothing has run since the host was started.
            Err(SocketError::System { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok((Vec::new(), Vec::new())),
            Err(error) => return Err(error.into()),
        };
        let runtime = ShimRuntime::new(ShimRuntimeOptions {
            cgroup_slice: config.paths.cgroup_slice(),
            ..ShimRuntimeOptions::new(config.paths.clone())
        })?;
        let pods: Vec<ObservedPod> = runtime.recover().await?.into_iter().filter(|pod| pod.sandbox.is_some()).collect();
        let shims = pods.iter().filter_map(|pod| pod.sandbox.as_ref()?.shim_pid).filter_map(ask_to_end);
        let shims = shims.collect::<io::Result<Vec<OwnedFd>>>().context("send SIGTERM to a shim")?;
        tokio::task::spawn_blocking(move || wait_for_ends(&shims, timeout)).await?;
        // While the namespaces of the pods are there.
        let mut troubles = disconnect(&config).await;
        // What is left is killed, and every trace of it goes from the kernel.
        join_all(pods.iter().map(|pod| runtime.stop_sandbox(&pod.uid))).await.into_iter().collect::<Result<(), _>>()?;
        Cgroups::detect(&config.paths.cgroup_slice())?.remove_if_unused()?;
        let paths = config.paths.clone();
        let left = tokio::task::spawn_blocking(move || network::leave(&paths)).await?;
        troubles.extend(left.err().map(|error| error_chain(&error).to_string()));
        Ok((pods, troubles))
    })?;
    let mut out = io::stdout().lock();
    for sandbox in pods.iter().filter_map(|pod| pod.sandbox.as_ref()).filter(|sandbox| sandbox.shim_pid.is_some()) {
        writeln!(out, "stopped {}", sandbox.spec.full_name)?;
    }
    if troubles.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    anyhow::bail!("the pods are stopped, but their network could not be removed completely: {}", troubles.join("; "))
}

/// Has CNI plugins take back what they gave to pods. Why they did not.
async fn disconnect(config: &Config) -> Vec<String> {
    let (pokes, mut ends) = mpsc::unbounded_channel();
    let events = Arc::new(EventLog::new(0, Timestamp::now));
    let links = CniLinks {
        paths: config.paths.clone(),
        config: config.network.clone(),
        events,
        names: None,
        builtin: None,
        policies: Arc::new(NoPolicies::default()),
        pokes,
    };
    let plugins = CniNetwork::open(links, Arc::new(HostOrLoopback)).await;
    let mut troubles = Vec::new();
    for uid in plugins.connected() {
        let done = loop {
            match plugins.teardown(&uid).await {
                // Plugins have a time limit of their own.
                Err(NetworkError::UnderWay) if ends.recv().await.is_some() => {}
                done => break done,
            }
        };
        troubles.extend(done.err().map(|error| error_chain(&error).to_string()));
    }
    troubles
}

/// Signals a shim; `None` if it has ended meanwhile.
fn ask_to_end(pid: u32) -> Option<io::Result<OwnedFd>> {
    let ask = || {
        let shim = pidfd::open(pid)?;
        pidfd::send_signal(&shim, SIGTERM)?;
        Ok(shim)
    };
    match ask() {
        Err(Errno::ESRCH) => None,
        asked => Some(asked.map_err(io::Error::from)),
    }
}

/// Waits until all have ended or the time is over.
fn wait_for_ends(shims: &[OwnedFd], timeout: Duration) {
    let clock = Clock::system();
    let deadline = clock.now().moment + timeout;
    for shim in shims {
        let left = deadline.since(clock.now().moment);
        // A timeout is not an error: remaining containers are killed.
        pidfd::wait_for_end(shim, left).ok();
    }
}
