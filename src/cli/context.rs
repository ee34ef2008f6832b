//! What every subcommand gets: global options, resolved.

use super::{ColorChoice, Global};
use crate::config::{Config, ConfigError};
use std::io::IsTerminal;
use std::path::PathBuf;

/// The daemon's socket does not answer.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach the daemon at {}: {reason}; is podstead running? (systemctl status podstead)", socket.display())]
pub(super) struct DaemonUnreachable {
    /// The socket.
    pub socket: PathBuf,
    /// What was seen.
    pub reason: String,
}

/// Global options and what follows from them.
#[derive(Clone, Debug)]
pub struct Context {
    global: Global,
}

impl Context {
    /// From parsed options.
    pub fn new(global: Global) -> Self {
        Self { global }
    }

    /// The configuration file as told by `--config` or `PODSTEAD_CONFIG`.
    pub fn config_path(&self) -> &std::path::Path {
        &self.global.config
    }

    /// Reads the configuration.
    pub fn load_config(&self) -> Result<Config, ConfigError> {
        Config::load(self.config_path())
    }

    /// The daemon's socket: as told, else from the configuration.
    pub fn socket(&self) -> Result<PathBuf, ConfigError> {
        match &self.global.socket {
            Some(socket) => Ok(socket.clone()),
            None => Ok(self.load_config()?.paths.api_socket()),
        }
    }

    /// Whether output on stdout shall be coloured.
    pub fn color(&self) -> bool {
        match self.global.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
                !refused && (forced || std::io::stdout().is_terminal())
            }
        }
    }
}
