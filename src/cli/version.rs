//! `podstead version`: of this command and of the daemon.

use super::Context;
use clap::Args;
use std::io::Write;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct VersionArgs {
    /// Only this command's version; do not ask the daemon
    #[arg(long)]
    client: bool,
}

pub(super) fn run(_args: &VersionArgs, _context: &Context) -> anyhow::Result<ExitCode> {
    writeln!(std::io::stdout(), "podstead {}", env!("CARGO_PKG_VERSION"))?;
    Ok(ExitCode::SUCCESS)
}
