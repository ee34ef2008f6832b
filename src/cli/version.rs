//! `podstead version`: of this command and of the daemon.

use super::Context;
use super::client::{OWN, Target};
use super::output::Form;
use clap::Args;
use podstead_api::DaemonObject;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct VersionArgs {
    /// Only the version of this command; do not connect to the daemon
    #[arg(long)]
    client: bool,
    /// Output format
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    output: Form,
}

pub(super) fn run(args: &VersionArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let own = env!("CARGO_PKG_VERSION");
    let mut out = std::io::stdout();
    match &args.output {
        Form::Text => {
            // Before the daemon is asked, which may not answer.
            writeln!(out, "client: {own}")?;
            if let Some(daemon) = daemon(args, context)? {
                writeln!(out, "daemon: {daemon}")?;
            }
        }
        Form::Structured(form) => {
            let mut versions = json!({"client": own});
            if let Some(daemon) = daemon(args, context)? {
                versions["daemon"] = daemon.into();
            }
            form.write(&mut out, &versions, "")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The version of the daemon, if it is asked for.
fn daemon(args: &VersionArgs, context: &Context) -> anyhow::Result<Option<String>> {
    if args.client {
        return Ok(None);
    }
    let client = context.client()?;
    let daemon: DaemonObject = context.block_on(async { Ok(client.get(Target::new(OWN, &["daemon"])).await?) })?;
    Ok(Some(daemon.version))
}
