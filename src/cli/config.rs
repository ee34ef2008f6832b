//! `podstead config`: the configuration, checked or shown with every default, by the code that the daemon uses.

use super::Context;
use clap::{Args, Subcommand};
use podstead_upstream::client::Kubeconfig;
use std::io::Write;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Check the configuration; exits with 0 if the daemon would start with it
    Check,
    /// Print the configuration with all defaults
    Show,
}

pub(super) fn run(args: &ConfigArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let config = context.load_config()?;
    match args.command {
        ConfigCommand::Check => {
            if let Some(upstream) = &config.upstream {
                // The daemon starts without it, but a check must report the error.
                Kubeconfig::load(&upstream.kubeconfig, upstream.context.as_deref())?;
            }
            writeln!(std::io::stderr(), "{}: valid", context.config_path().display())?;
        }
        ConfigCommand::Show => write!(std::io::stdout(), "{}", serde_yaml::to_string(&config.to_written())?)?,
    }
    Ok(ExitCode::SUCCESS)
}
