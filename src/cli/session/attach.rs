//! `podstead attach`.

use super::Streams;
use crate::Context;
use crate::pods::{PodNamespaceArgs, pod_target};
use crate::workloads::choose_pod;
use clap::Args;
use k8s_openapi::api::core::v1::{Container, Pod};
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// Pass stdin to the container
    #[arg(short = 'i', long)]
    stdin: bool,
    /// Use the terminal of the container in raw mode (ctrl-p ctrl-q detaches)
    #[arg(short, long)]
    tty: bool,
    /// Name of the container [default: the only container, or the one in the annotation kubectl.kubernetes.io/default-container]
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    #[command(flatten)]
    namespace: PodNamespaceArgs,
    /// Name of the pod, of which the "-<node>" suffix may be omitted; or a workload or a Service, such as deploy/web
    pod: String,
}

pub(crate) fn run(args: &AttachArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    context.block_on(async {
        let pod = choose_pod(&client, &args.pod, args.namespace.namespace.as_deref()).await?;
        let container = container(&pod, args.container.as_deref());
        let has = |field: fn(&Container) -> Option<bool>| container.is_some_and(|container| field(container) == Some(true));
        let stdin = args.stdin && has(|container| container.stdin);
        let tty = args.tty && has(|container| container.tty);
        if args.stdin && !stdin {
            writeln!(io::stderr(), "ignoring -i: the container does not read stdin (its manifest does not set stdin: true)")?;
        }
        if args.tty && !tty {
            writeln!(io::stderr(), "ignoring -t: the container has no terminal (its manifest does not set tty: true)")?;
        }
        let target = pod_target(&pod, &["attach"])
            .with_some("container", args.container.as_ref())
            .with_flag("stdin", stdin)
            .with_flag("stdout", true)
            .with_flag("stderr", !tty)
            .with_flag("tty", tty);
        let socket = client.open(target).await?;
        super::run(socket, Streams { stdin, tty, detachable: tty }).await
    })
}

/// The selected container, if the client can find it; otherwise the daemon reports the error.
fn container<'a>(pod: &'a Pod, name: Option<&str>) -> Option<&'a Container> {
    let containers = &pod.spec.as_ref()?.containers;
    match name {
        Some(name) => containers.iter().find(|container| container.name == name),
        None => containers.first(),
    }
}
