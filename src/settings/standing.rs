//! The state of the configuration file, compared with the configuration that the daemon uses.

use jiff::Timestamp;
use podstead_pod::SourceId;
use serde::{Deserialize, Serialize};

/// State of the configuration file in the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigStanding {
    /// Names of the sources in force, in order of precedence.
    pub sources: Vec<SourceId>,
    /// Time since which the configuration is in force.
    pub since: Timestamp,
    /// Reason why the current file is not in force.
    pub error: Option<String>,
    /// Fields of the file that count at the next start only.
    pub needs_restart: Vec<&'static str>,
}

/// Deliveries of one hook of `notify` since the daemon started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookStanding {
    /// Name of the hook.
    pub name: String,
    /// Notifications that wait.
    pub waiting: usize,
    /// Notifications that were delivered.
    pub delivered: u64,
    /// Notifications that the receiver refused; they are lost.
    pub refused: u64,
    /// Attempts that failed and are repeated.
    pub failed: u64,
    /// Reason why the last attempt failed or was refused; `None` if it was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ConfigStanding {
    /// Of a configuration in force as a whole.
    pub fn new(sources: Vec<SourceId>, since: Timestamp) -> Self {
        Self { sources, since, error: None, needs_restart: Vec::new() }
    }
}
