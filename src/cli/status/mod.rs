//! `podstead status`: the status of this host, its problems and how to fix them.

mod report;
mod upstream;

use super::client::{Client, OWN, Target};
use super::doctor::host_troubles;
use super::pods::{ServedList, list};
use super::trouble::gather;
use super::workloads::list_all;
use super::{Context, EXIT_FAILED};
use clap::Args;
use jiff::Timestamp;
use podstead_api::{DaemonObject, DaemonPaths, SourceObject};
use podstead_sys::layout::Paths;
use report::Report;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Default, Args)]
pub(super) struct StatusArgs {
    /// Exit with 1 if there is a problem
    #[arg(long)]
    exit_code: bool,
}

pub(super) fn run(args: &StatusArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let report = context.block_on(async { ask(&client).await })?;
    io::stdout().lock().write_all(report.text(Timestamp::now(), context.color()).as_bytes())?;
    Ok(if args.exit_code && !report.is_well() { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
}

async fn ask(client: &Client) -> anyhow::Result<Report> {
    let daemon: DaemonObject = client.get(Target::new(OWN, &["daemon"])).await?;
    let sources: ServedList = client.get(Target::new(OWN, &["sources"])).await?;
    let sources: Vec<SourceObject> = sources.items.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
    let pods = list(client, None).await?;
    let workloads = list_all(client).await?;
    let evidence = gather(client, &pods, &workloads).await;
    let paths = daemon.paths.clone().map(|DaemonPaths { state, run, logs }| Paths { state, run, logs });
    let (known_pods, known_sources) = (pods.clone(), sources.clone());
    // Name servers may be silent for seconds.
    let look = move || host_troubles(paths.as_ref(), &known_pods, &known_sources);
    let host = tokio::task::spawn_blocking(look).await?;
    Ok(Report { daemon, host, sources, pods, workloads, evidence })
}
