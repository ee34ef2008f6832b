//! Global options of all subcommands.

use super::client::Client;
use super::{ColorChoice, Global};
use podstead_config::{Config, last_valid};
use podstead_settings::ConfigError;
use std::future::Future;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Global options and what follows from them.
#[derive(Clone, Debug)]
pub(super) struct Context {
    global: Global,
}

impl Context {
    /// From parsed options.
    pub(super) fn new(global: Global) -> Self {
        Self { global }
    }

    /// Path of the configuration file, from `--config` or `PODSTEAD_CONFIG`.
    pub(super) fn config_path(&self) -> &Path {
        &self.global.config
    }

    /// Reads the configuration.
    pub(super) fn load_config(&self) -> Result<Config, ConfigError> {
        Config::load(self.config_path())
    }

    /// Socket of the daemon, from the options or the configuration. Uses the last valid configuration if the file is invalid, as the daemon does.
    pub(super) fn socket(&self) -> Result<PathBuf, ConfigError> {
        match &self.global.socket {
            Some(socket) => Ok(socket.clone()),
            None => Ok(last_valid::paths(self.config_path())?.api_socket()),
        }
    }

    /// True if the socket is that of the configuration at its default path, which other commands find by themselves.
    pub(super) fn is_default_socket(&self) -> bool {
        self.global.socket.is_none() && self.global.config == Path::new(podstead_config::DEFAULT_PATH)
    }

    /// For asking the daemon.
    pub(super) fn client(&self) -> Result<Client, ConfigError> {
        Ok(Client::new(self.socket()?))
    }

    /// Runs a client's work on a runtime of one thread. A thread that still reads stdin does not hold the end up.
    pub(super) fn block_on<T>(&self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let result = runtime.block_on(work);
        runtime.shutdown_background();
        result
    }

    /// True if output on stdout is coloured.
    pub(super) fn color(&self) -> bool {
        match self.global.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
                let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
                !refused && (forced || !dumb && std::io::stdout().is_terminal())
            }
        }
    }
}
