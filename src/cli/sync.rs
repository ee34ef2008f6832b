//! `podstead sync`.

use super::Context;
use super::client::{OWN, Target};
use crate::api::PruneAnswer;
use clap::Args;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct SyncArgs {
    /// Take the source for empty, though it cannot be read or is another place than before: remove its pods
    #[arg(long, required = true)]
    prune: bool,
    /// The source, as `podstead get sources` names it
    #[arg(value_name = "SOURCE")]
    source: String,
}

pub(super) fn run(args: &SyncArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let target = Target::new(OWN, &["sources", &args.source, "prune"]);
    let answer: PruneAnswer = context.block_on(async { Ok(client.post(target, &serde_json::json!({})).await?) })?;
    writeln!(io::stdout(), "{} pods of source {} are removed", answer.removed_pods, args.source)?;
    Ok(ExitCode::SUCCESS)
}
