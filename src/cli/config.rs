//! `podstead config`: the configuration, checked or shown with every default, by the code that the daemon uses.

use super::Context;
use anyhow::bail;
use clap::{Args, Subcommand};
use podstead_config::DEFAULT_PATH;
use podstead_upstream::client::Kubeconfig;
use std::io::Write;
use std::path::Path;
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
            let path = context.config_path();
            // It is optional at its usual place; elsewhere its name is a mistake.
            let state = match path.try_exists() {
                Ok(false) if path == Path::new(DEFAULT_PATH) => "does not exist: the defaults apply",
                Ok(false) => bail!("{} does not exist", path.display()),
                Ok(true) | Err(_) => "valid",
            };
            writeln!(std::io::stderr(), "{}: {state}", path.display())?;
        }
        ConfigCommand::Show => write!(std::io::stdout(), "{}", serde_yaml::to_string(&config.to_written())?)?,
    }
    Ok(ExitCode::SUCCESS)
}
