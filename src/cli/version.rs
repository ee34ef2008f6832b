//! `podstead version`: of this command and of the daemon.

use super::Context;
use super::client::{OWN, Target};
use clap::Args;
use podstead_api::DaemonObject;
use std::io::Write;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct VersionArgs {
    /// Only the version of this command; do not connect to the daemon
    #[arg(long)]
    client: bool,
}

pub(super) fn run(args: &VersionArgs, context: &Context) -> anyhow::Result<ExitCode> {
    writeln!(std::io::stdout(), "client: {}", env!("CARGO_PKG_VERSION"))?;
    if !args.client {
        let client = context.client()?;
        let daemon: DaemonObject = context.block_on(async { Ok(client.get(Target::new(OWN, &["daemon"])).await?) })?;
        writeln!(std::io::stdout(), "daemon: {}", daemon.version)?;
    }
    Ok(ExitCode::SUCCESS)
}
