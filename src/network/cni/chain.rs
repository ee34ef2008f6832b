//! Calls the plugins of a network one after the other.

use super::exec::{Call, ExecError, Plugins};
use super::spec::conflist::Conflist;
use super::spec::fault::{LIMITED, NOT_AVAILABLE};
use super::spec::invocation::{self, Ask, Command};
use super::spec::result::{self, CniResult, ResultError};
use super::spec::version::CniVersion;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Reason why a plugin did not do its part. In the words of the reference implementation.
#[derive(Debug, thiserror::Error)]
#[error("plugin type=\"{plugin}\" name=\"{network}\" failed ({})", command.as_str().to_lowercase())]
pub(super) struct ChainError {
    plugin: String,
    network: String,
    command: Command,
    #[source]
    source: PluginError,
}

/// Error of a plugin.
#[derive(Debug, thiserror::Error)]
pub(super) enum PluginError {
    /// It could not be called, or failed.
    #[error(transparent)]
    Exec(ExecError),
    /// It printed something else than a result.
    #[error(transparent)]
    Result(ResultError),
}

impl ChainError {
    /// Returns true if the plugin's program does not exist, so that it cannot be called.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self.source, PluginError::Exec(ExecError::NotFound(_)))
    }

    /// Returns true if it was cancelled.
    pub(super) fn is_broken_off(&self) -> bool {
        matches!(self.source, PluginError::Exec(ExecError::BrokenOff))
    }

    /// Returns true if the plugin reports that it cannot connect pods now.
    pub(super) fn is_unavailable(&self) -> bool {
        matches!(&self.source, PluginError::Exec(ExecError::Fault(fault)) if matches!(fault.code, NOT_AVAILABLE | LIMITED))
    }
}

/// A network, and how it is talked with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain<'a> {
    pub(super) plugins: &'a Plugins,
    pub(super) network: &'a Conflist,
    pub(super) version: CniVersion,
    pub(super) cancel: &'a CancellationToken,
}

/// An attachment, and the pod's namespace; empty if that is gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    pub(super) ask: &'a Ask,
    pub(super) netns: &'a str,
}

impl Chain<'_> {
    async fn call(&self, command: Command, index: usize, input: &Value, target: Option<Target<'_>>) -> Result<Vec<u8>, ChainError> {
        let kind = self.network.plugins.get(index).map_or("", |plugin| plugin.kind.as_str());
        let place = target.map(|target| &target.ask.place);
        let netns = target.map_or("", |target| target.netns);
        let variables = invocation::environment(command, place, netns, &self.plugins.path());
        let call = Call { kind, variables, input, container: place.map(|place| place.container_id.as_str()) };
        self.plugins.call(call, self.cancel).await.map_err(|error| self.failed(command, index, PluginError::Exec(error)))
    }

    fn failed(&self, command: Command, index: usize, source: PluginError) -> ChainError {
        let plugin = self.network.plugins.get(index).map_or_else(String::new, |plugin| plugin.kind.clone());
        ChainError { plugin, network: self.network.name.clone(), command, source }
    }

    /// Checks that all programs exist.
    pub(super) fn look_for_plugins(&self) -> Result<(), ChainError> {
        for (index, plugin) in self.network.plugins.iter().enumerate() {
            let found = self.plugins.find(&plugin.kind);
            found.map_err(|error| self.failed(Command::Add, index, PluginError::Exec(error)))?;
        }
        Ok(())
    }

    /// ADD for the plugins from `first` on, with the result of the earlier ones. What came of all.
    pub(super) async fn add(
        &self,
        target: Target<'_>,
        first: usize,
        previous: Option<Value>,
    ) -> Result<(CniResult, Value), ChainError> {
        let mut last = (CniResult::default(), previous);
        for index in first..self.network.plugins.len() {
            let input = invocation::input(self.network, self.version, index, Some(target.ask), last.1.as_ref());
            let output = self.call(Command::Add, index, &input, Some(target)).await?;
            let (result, passed_on) = result::read(&output, self.version)
                .map_err(|error| self.failed(Command::Add, index, PluginError::Result(error)))?;
            last = (result, Some(passed_on));
        }
        Ok((last.0, last.1.unwrap_or_default()))
    }

    /// DEL for the plugins down to `first`, the last one first. All are called, even if one fails; the first error is returned.
    pub(super) async fn del(&self, target: Target<'_>, first: usize, previous: Option<&Value>) -> Result<(), ChainError> {
        let previous = previous.filter(|_| self.version.has_check());
        let mut result: Result<(), ChainError> = Ok(());
        for index in (first..self.network.plugins.len()).rev() {
            let input = invocation::input(self.network, self.version, index, Some(target.ask), previous);
            let deleted = self.call(Command::Del, index, &input, Some(target)).await.map(drop);
            // A plugin that is not there must not hide one that failed.
            let says_less = match &result {
                Ok(()) => true,
                Err(error) => error.is_missing(),
            };
            if deleted.is_err() && says_less {
                result = deleted;
            }
        }
        result
    }

    /// CHECK for all plugins. Nothing is asked where the configuration or the version forbids it.
    pub(super) async fn check(&self, target: Target<'_>, previous: &Value) -> Result<(), ChainError> {
        if self.network.disable_check || !self.version.has_check() {
            return Ok(());
        }
        for index in 0..self.network.plugins.len() {
            let input = invocation::input(self.network, self.version, index, Some(target.ask), Some(previous));
            self.call(Command::Check, index, &input, Some(target)).await?;
        }
        Ok(())
    }

    /// STATUS for all plugins, where the version has it.
    pub(super) async fn status(&self) -> Result<(), ChainError> {
        for index in 0..self.network.plugins.len() {
            if self.version.has_status() {
                let input = invocation::input(self.network, self.version, index, None, None);
                self.call(Command::Status, index, &input, None).await?;
            }
        }
        Ok(())
    }

    /// GC for all plugins, where configuration and version allow it. All are called, even if one fails; the first error is returned.
    pub(super) async fn gc(&self, valid: &[(String, String)]) -> Result<(), ChainError> {
        let mut result = Ok(());
        for index in 0..self.network.plugins.len() {
            if self.version.has_status() && !self.network.disable_gc {
                let input = invocation::gc_input(self.network, self.version, index, valid);
                result = result.and(self.call(Command::Gc, index, &input, None).await.map(drop));
            }
        }
        result
    }

    /// The latest version that the configuration is written for and all plugins speak. Asked only where there is a choice.
    pub(super) async fn negotiated(&self) -> CniVersion {
        let mut common = self.network.versions.clone();
        for index in 0..self.network.plugins.len() {
            if common.len() < 2 {
                break;
            }
            let input = serde_json::json!({"cniVersion": self.network.latest().as_str()});
            // One that does not answer is asked for what is there, and says why not.
            if let Ok(output) = self.call(Command::Version, index, &input, None).await {
                let spoken = invocation::spoken(&output);
                common.retain(|version| spoken.contains(version));
            }
        }
        common.last().copied().unwrap_or_else(|| self.network.latest())
    }
}
