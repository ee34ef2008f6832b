//! `podstead suspend`.

use super::client::{OWN, Target};
use super::{Context, source_name};
use clap::Args;
use podstead_api::HoldRequest;
use podstead_store::history::Hold;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct SuspendArgs {
    /// Name of the source; may be omitted if the host has only one
    #[arg(value_name = "SOURCE")]
    source: Option<String>,
}

pub(super) fn run(args: &SuspendArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let (source, hold): (String, Hold) = context.block_on(async {
        let source = source_name::ask_alone(&client, args.source.as_deref()).await?;
        let request = HoldRequest { revision: None, command: format!("podstead suspend {source}") };
        let hold = client.post(Target::new(OWN, &["sources", &source, "suspend"]), &request).await?;
        Ok((source, hold))
    })?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "source {source} is {} since {} ({}): it is held at the revision in force",
        hold.kind.word(),
        hold.since.strftime("%Y-%m-%dT%H:%M:%SZ"),
        hold.command
    )?;
    writeln!(out, "to resume: podstead resume {source}")?;
    Ok(ExitCode::SUCCESS)
}
