//! `podstead rollback`.

use super::client::{OWN, Target};
use super::{Context, source_name};
use clap::Args;
use podstead_api::HoldRequest;
use podstead_api::short_revision;
use podstead_store::history::RolledBack;
use podstead_telemetry::counted;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct RollbackArgs {
    /// Name of the source; may be omitted if the host has only one
    #[arg(value_name = "SOURCE")]
    source: Option<String>,
    /// Number in the history or prefix of a revision [default: the last one before without rejected objects]
    #[arg(value_name = "REVISION")]
    revision: Option<String>,
}

pub(super) fn run(args: &RollbackArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let (source, done): (String, RolledBack) = context.block_on(async {
        let chosen = source_name::ask(&client, args.source.as_deref(), args.revision.as_deref()).await?;
        let source_name::Chosen { source, revision } = chosen;
        let command =
            [Some(format!("podstead rollback {source}")), revision.clone()].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let target = Target::new(OWN, &["sources", &source, "rollback"]);
        let done = client.post(target, &HoldRequest { revision, command }).await?;
        Ok((source, done))
    })?;
    let (revision, before) = (short_revision(&done.revision.0), short_revision(&done.before.0));
    let mut out = io::stdout().lock();
    // Pods of workloads are not counted.
    let pods = if done.pods == 0 { String::new() } else { format!(" ({})", counted(done.pods, "pod")) };
    writeln!(out, "source {source} rolled back from {before} to {revision}{pods} and is held there")?;
    writeln!(out, "to resume: podstead resume {source}")?;
    Ok(ExitCode::SUCCESS)
}
