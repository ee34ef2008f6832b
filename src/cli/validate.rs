//! `podstead validate`.

use super::Context;
use clap::Args;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct ValidateArgs {}

pub(super) fn run(_args: &ValidateArgs, _context: &Context) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not available in this build")
}
