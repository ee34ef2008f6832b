//! `podstead plan`.

use super::Context;
use clap::Args;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct PlanArgs {}

pub(super) fn run(_args: &PlanArgs, _context: &Context) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not available in this build")
}
