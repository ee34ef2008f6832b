//! Options that every subcommand takes.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options that every subcommand takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// Path of the configuration file
    #[arg(long, global = true, value_name = "PATH", env = "PODSTEAD_CONFIG", hide_env_values = true)]
    #[arg(default_value = podstead_config::DEFAULT_PATH)]
    pub(super) config: PathBuf,
    /// Path of the API socket of the daemon [default: podstead.sock in the configured run directory]
    #[arg(long, global = true, value_name = "PATH", env = "PODSTEAD_SOCKET", hide_env_values = true)]
    pub(super) socket: Option<PathBuf>,
    /// When to colour the output; auto: if it is a terminal, NO_COLOR is not set and TERM is not dumb
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub(super) color: ColorChoice,
}

/// `--color`.
// Not documented one by one: that would be a paragraph in every help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorChoice {
    Auto,
    Always,
    Never,
}
