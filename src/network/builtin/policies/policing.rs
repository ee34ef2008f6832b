//! Policies in force, their origin, and reasons why they are not in force as they should be. **Pure**.

use super::objects::PolicyObjects;
use podstead_policy::compile::Policies;
use podstead_sys::netlink::NetlinkError;
use std::sync::Arc;

/// Policies that are in force, and where they are from.
#[derive(Debug, Default)]
pub(in super::super) struct Policing {
    pub(super) policies: Policies,
    pub(super) origin: Origin,
}

/// The origin of policies.
#[derive(Debug, Default)]
pub(super) enum Origin {
    /// Nothing was looked at yet.
    #[default]
    Unknown,
    /// The record of an earlier daemon, and what those sources say that were read; not all of them were.
    Record {
        /// Policies of the record; `None` if it cannot be read. Then nothing is allowed.
        earlier: Option<Arc<PolicyObjects>>,
        /// Policies of the sources, and the result of both.
        given: Arc<PolicyObjects>,
    },
    /// All sources.
    Sources(Arc<PolicyObjects>),
}

/// Reason why policies are not in force as they should be.
#[derive(Debug, thiserror::Error)]
pub enum PoliceError {
    /// The objects could not be recorded.
    #[error("record the NetworkPolicies")]
    Record(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The kernel refused a change.
    #[error("change the packet rules of NetworkPolicies")]
    Rules(#[source] NetlinkError),
    /// The daemon is ending, or the work panicked.
    #[error("the change of the packet rules of NetworkPolicies was interrupted")]
    Interrupted,
}
