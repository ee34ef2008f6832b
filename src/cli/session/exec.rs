//! `podstead exec`.

use super::{Streams, terminal};
use crate::Context;
use crate::logs::default_container;
use crate::pods::{PodNamespaceArgs, pod_target};
use crate::workloads::choose_pod;
use clap::Args;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// Pass stdin to the command
    #[arg(short = 'i', long)]
    stdin: bool,
    /// Allocate a terminal for the command
    #[arg(short, long)]
    tty: bool,
    /// Name of the container [default: the one in the annotation kubectl.kubernetes.io/default-container, or the first one]
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    #[command(flatten)]
    namespace: PodNamespaceArgs,
    /// Name of the pod, of which the "-<node>" suffix may be omitted; or a workload or a Service, such as deploy/web
    pod: String,
    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(args: &ExecArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let tty = args.tty && terminal_wanted(args.stdin)?;
    context.block_on(async {
        let pod = choose_pod(&client, &args.pod, args.namespace.namespace.as_deref()).await?;
        let container = match &args.container {
            Some(container) => container.clone(),
            None => default_container(&pod, "running in", "")?,
        };
        let mut target = pod_target(&pod, &["exec"])
            .with("container", &container)
            .with_flag("stdin", args.stdin)
            .with_flag("stdout", true)
            .with_flag("stderr", !tty)
            .with_flag("tty", tty);
        if let Some((columns, rows)) = terminal::size().filter(|_| tty) {
            target = target.with("columns", &columns.to_string()).with("rows", &rows.to_string());
        }
        for argument in &args.command {
            target = target.with("command", argument);
        }
        let socket = client.open(target).await?;
        super::run(socket, Streams { stdin: args.stdin, tty, detachable: false }).await
    })
}

/// A terminal on the other side is of no use when the input here is a pipe, and its echo would be in the output.
fn terminal_wanted(stdin: bool) -> io::Result<bool> {
    if stdin && !io::stdin().is_terminal() {
        writeln!(io::stderr(), "ignoring -t: stdin is not a terminal")?;
        return Ok(false);
    }
    Ok(true)
}
