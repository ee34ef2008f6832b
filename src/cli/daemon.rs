//! `podstead daemon`.

use super::Context;
use clap::Args;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct DaemonArgs {}

pub(super) fn run(_args: &DaemonArgs, context: &Context) -> anyhow::Result<ExitCode> {
    podstead_daemon::run(context.config_path())
}
