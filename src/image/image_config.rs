//! Settings of an image for its process.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part of an OCI image configuration that a container uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageConfig {
    /// `Entrypoint`.
    pub entrypoint: Vec<String>,
    /// `Cmd`.
    pub cmd: Vec<String>,
    /// `Env`, as `NAME=value`.
    pub env: Vec<String>,
    /// `User`: `name`, `uid`, `name:group`, `uid:gid`; empty for root.
    pub user: String,
    /// `WorkingDir`; empty for `/`.
    pub working_dir: String,
    /// `StopSignal`, e.g. `SIGQUIT` or `3`.
    pub stop_signal: Option<String>,
    /// `Labels`.
    pub labels: BTreeMap<String, String>,
}
