//! `podstead resume`.

use super::client::{OWN, Target};
use super::{Context, diff, source_name};
use clap::Args;
use podstead_store::history::Resumed;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    /// Name of the source; may be omitted if the host has only one
    #[arg(value_name = "SOURCE")]
    source: Option<String>,
}

pub(super) fn run(args: &ResumeArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let (source, Resumed { hold, diff: change }): (String, Resumed) = context.block_on(async {
        let source = source_name::ask_alone(&client, args.source.as_deref()).await?;
        let resumed = client.post(Target::new(OWN, &["sources", &source, "resume"]), &serde_json::json!({})).await?;
        Ok((source, resumed))
    })?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "source {source} resumed; it was {} since {} ({})",
        hold.kind.word(),
        hold.since.strftime("%Y-%m-%dT%H:%M:%SZ"),
        hold.command
    )?;
    if let Some(change) = change {
        out.write_all(diff::text(&source, &change, context.color()).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}
