//! `podstead daemon`.

use super::Context;
use clap::Args;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct DaemonArgs {}

pub(super) fn run(_args: &DaemonArgs, _context: &Context) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not available in this build")
}
