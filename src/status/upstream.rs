//! Relation between this host and the cluster.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// State of the Node of this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeStanding {
    /// Not asked yet, or not answered.
    #[default]
    Unknown,
    /// It is there, and this host speaks for it.
    Registered,
    /// Another agent speaks for it: this host says nothing.
    StandBy,
}

/// The cluster as this host sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamStatus {
    /// The API server.
    pub server: String,
    /// True while its pods are being watched.
    pub connected: bool,
    /// Since when they are, or are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// State of the Node.
    pub node: NodeStanding,
    /// Reason why the Node or its Lease cannot be kept at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_error: Option<String>,
    /// Reason why pods cannot be watched at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_error: Option<String>,
    /// Pods of this host.
    pub pods: usize,
    /// Those of them whose mirrors show what they are.
    pub mirrors: usize,
    /// Pods without a mirror that the server accepts, and why; the first ones only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

impl UpstreamStatus {
    /// Everything is as it should be.
    pub fn is_well(&self) -> bool {
        let Self { server: _, connected, since: _, node, node_error, watch_error, pods: _, mirrors: _, problems } = self;
        *connected && *node == NodeStanding::Registered && node_error.is_none() && watch_error.is_none() && problems.is_empty()
    }
}
