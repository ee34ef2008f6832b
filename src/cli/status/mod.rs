//! `podstead status`: the status of this host, its problems and how to fix them.

mod report;
mod upstream;

use super::client::{Client, OWN, Target};
use super::pods::{ServedList, list};
use super::trouble::gather;
use super::workloads::list_all;
use super::{Context, EXIT_FAILED};
use clap::Args;
use jiff::Timestamp;
use podstead_api::{DaemonObject, SourceObject};
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
    Ok(Report { daemon, sources, pods, workloads, evidence })
}
