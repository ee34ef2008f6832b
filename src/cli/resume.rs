//! `podstead resume`.

use super::client::{OWN, Target};
use super::{Context, source_name};
use crate::source::history::Hold;
use clap::Args;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    /// The source; may be left out where there is one
    #[arg(value_name = "SOURCE")]
    source: Option<String>,
}

pub(super) fn run(args: &ResumeArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let (source, hold): (String, Hold) = context.block_on(async {
        let source = source_name::ask_alone(&client, args.source.as_deref()).await?;
        let hold = client.post(Target::new(OWN, &["sources", &source, "resume"]), &serde_json::json!({})).await?;
        Ok((source, hold))
    })?;
    writeln!(
        io::stdout(),
        "source {source} goes on; it was {} since {} ({})",
        hold.kind.word(),
        hold.since.strftime("%Y-%m-%dT%H:%M:%SZ"),
        hold.command
    )?;
    Ok(ExitCode::SUCCESS)
}
