//! The state of the configuration file, compared with the configuration that the daemon uses.

use jiff::Timestamp;
use podstead_pod::SourceId;

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

impl ConfigStanding {
    /// Of a configuration in force as a whole.
    pub fn new(sources: Vec<SourceId>, since: Timestamp) -> Self {
        Self { sources, since, error: None, needs_restart: Vec::new() }
    }
}
