//! `podstead stop`, `podstead start` and `podstead restart` of pods, through the daemon.

use super::Context;
use super::client::{Client, OWN, Target};
use super::pods::{PodNamespaceArgs, name_of, namespace_of, pod_target, shown_name};
use super::workloads::pods_meant;
use anyhow::bail;
use clap::Args;
use k8s_openapi::api::core::v1::Pod;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Pause between two looks at a pod that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Reasons of waiting containers that are failures.
const FAILURES: [&str; 10] = [
    "CrashLoopBackOff",
    "ErrImagePull",
    "ErrImageNeverPull",
    "ImagePullBackOff",
    "InvalidImageName",
    "SignatureValidationFailed",
    "HostPortConflict",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// Pods on the command line.
#[derive(Debug, Args)]
pub(super) struct PodOrderArgs {
    /// Pods, of which the "-<node>" suffix may be omitted; or workloads such as deploy/web, for all their pods
    #[arg(value_name = "POD|TYPE/NAME", required = true)]
    pods: Vec<String>,
    #[command(flatten)]
    namespace: PodNamespaceArgs,
    /// Return at once, without waiting until it is done
    #[arg(long)]
    no_wait: bool,
    /// Longest time to wait for each pod, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
}

impl PodOrderArgs {
    /// Those of `podstead stop`.
    pub(super) fn new(pods: &[String], namespace: &PodNamespaceArgs, no_wait: bool, timeout: u64) -> Self {
        Self { pods: pods.to_vec(), namespace: namespace.clone(), no_wait, timeout }
    }
}

/// Order for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodOrder {
    /// Stop it until it is started.
    Stop,
    /// Start it again.
    Start,
    /// Replace it by a new one.
    Restart,
}

impl PodOrder {
    fn path(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Restart => "restart",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Stop => "stopped",
            Self::Start => "started",
            Self::Restart => "restarted",
        }
    }
}

/// Gives the order for each pod in turn, so that a workload is never restarted all at once.
pub(super) fn run(order: PodOrder, args: &PodOrderArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    context.block_on(async {
        for argument in &args.pods {
            for pod in pods_meant(&client, argument, args.namespace.namespace.as_deref()).await? {
                give(order, args, &client, &pod).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn give(order: PodOrder, args: &PodOrderArgs, client: &Client, pod: &Pod) -> anyhow::Result<()> {
    let target = Target::new(OWN, &["namespaces", namespace_of(pod), "pods", name_of(pod), order.path()]);
    client.post::<serde_json::Value>(target, &serde_json::json!({})).await?;
    if args.no_wait {
        return Ok(writeln!(io::stdout(), "pod/{} is being {}", name_of(pod), order.done())?);
    }
    let limit = Duration::from_secs(args.timeout);
    match tokio::time::timeout(limit, wait(order, client, pod)).await {
        Ok(waited) => waited?,
        Err(_) => {
            let name = shown_name(pod);
            bail!("pod {name} is not {} after {} seconds; podstead describe pod {name} shows why", order.done(), args.timeout)
        }
    }
    Ok(writeln!(io::stdout(), "pod/{} {}", name_of(pod), order.done())?)
}

/// Waits until the pod is as ordered.
async fn wait(order: PodOrder, client: &Client, pod: &Pod) -> anyhow::Result<()> {
    loop {
        let present = match client.get::<Pod>(pod_target(pod, &[])).await {
            Ok(present) => Some(present).filter(|present| present.metadata.uid == pod.metadata.uid),
            Err(super::client::ClientError::Refused { code: 404, .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let is_done = match (order, &present) {
            (PodOrder::Restart, present) => present.is_none(),
            // A source removed or replaced it meanwhile.
            (PodOrder::Stop | PodOrder::Start, None) => true,
            (PodOrder::Stop, Some(present)) => !runs(present) && !waits_to_start(present),
            (PodOrder::Start, Some(present)) => match fails(present) {
                Some(reason) if !runs(present) => {
                    let name = shown_name(pod);
                    bail!("pod {name} is not stopped any more, and does not run: {reason}; podstead describe pod {name} shows why")
                }
                _ => runs(present),
            },
        };
        if is_done {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Returns true if a container runs.
fn runs(pod: &Pod) -> bool {
    let status = pod.status.iter();
    let mut all = status.flat_map(|status| status.init_container_statuses.iter().chain(&status.container_statuses).flatten());
    all.any(|container| container.state.as_ref().is_some_and(|state| state.running.is_some()))
}

/// The reason why a main container does not start, if it is one that waiting does not end.
fn fails(pod: &Pod) -> Option<&str> {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let mut reasons = statuses.filter_map(|container| container.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
    reasons.find(|reason| FAILURES.contains(reason))
}

/// Returns true if a main container waits for something else than `podstead start`.
fn waits_to_start(pod: &Pod) -> bool {
    let status = pod.status.iter();
    let mut reasons = status
        .flat_map(|status| status.container_statuses.iter().flatten())
        .filter_map(|container| container.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
    reasons.any(|reason| reason != podstead_status::reason::STOPPED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(state: serde_json::Value) -> Pod {
        let container = json!({"name": "main", "image": "a", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        serde_json::from_value(json!({"status": {"containerStatuses": [container]}})).unwrap()
    }

    #[test]
    fn start_of_failing_pod_is_told_apart() {
        assert_eq!(fails(&pod(json!({"waiting": {"reason": "CrashLoopBackOff"}}))), Some("CrashLoopBackOff"));
        for goes_on in
            [json!({"waiting": {"reason": "Stopped"}}), json!({"waiting": {"reason": "ContainerCreating"}}), json!({"running": {}})]
        {
            assert_eq!(fails(&pod(goes_on.clone())), None, "{goes_on}");
        }
    }
}
