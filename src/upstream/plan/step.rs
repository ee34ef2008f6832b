//! The next request for one pod (kubelet rules E1, E3, E4, E6).
//!
//! ```text
//! nothing there ---- wanted ----> create ----> there ---- status differs ----> patch status
//!       ^                                        |
//!       +--- delete (grace 0, this UID only) <---+  not wanted, being deleted, of other content, or of another Node
//! ```

use super::NodeRef;
use super::mirror::{content_hash, mirror_of};
use super::status_patch::{status_patch, stored_form};
use crate::pod::identity::ANNOTATION_CONFIG_MIRROR;
use crate::pod::{Pod, PodFullName};
use serde_json::Value;
use std::fmt;

/// A pod that this host has.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Name and namespace.
    pub full_name: &'a PodFullName,
    /// The pod as its source delivered it.
    pub pod: &'a Pod,
    /// Its status in [`stored_form`].
    pub status: &'a Value,
}

/// A pod of this node as the API server has it, without what no decision needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Its UID, which is the server's.
    pub uid: String,
    /// Its version, where that is a number.
    pub version: Option<u64>,
    /// The hash that the mirror annotation has; `None` for a pod that is no mirror.
    pub mirror_of: Option<String>,
    /// UID of the Node that owns it.
    pub owner: Option<String>,
    /// Somebody asked for its deletion.
    pub is_deleting: bool,
    /// Its status in [`stored_form`].
    pub status: Value,
}

impl Observed {
    /// Name and what counts of an object; `None` for one without name or UID.
    pub fn of(object: &Value) -> Option<(PodFullName, Self)> {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let full_name = PodFullName { name: text(&metadata["name"])?, namespace: text(&metadata["namespace"])? };
        let owners = metadata["ownerReferences"].as_array();
        let owner = owners.and_then(|owners| owners.iter().find(|owner| owner["kind"] == "Node"));
        let observed = Self {
            uid: text(&metadata["uid"])?,
            version: metadata["resourceVersion"].as_str().and_then(|version| version.parse().ok()),
            mirror_of: text(&metadata["annotations"][ANNOTATION_CONFIG_MIRROR]),
            owner: owner.and_then(|owner| text(&owner["uid"])),
            is_deleting: !metadata["deletionTimestamp"].is_null(),
            status: stored_form(object["status"].clone()),
        };
        Some((full_name, observed))
    }
}

/// Why a pod is deleted at the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteReason {
    /// No pod of this host has its name.
    Orphan,
    /// Its content is of another version of the manifest.
    Outdated,
    /// It belongs to an earlier Node of this name, and would be collected as garbage.
    ForeignOwner,
    /// Somebody deleted it, and waits for this host to agree.
    Terminating,
}

impl fmt::Display for DeleteReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Orphan => "no pod of this host has its name",
            Self::Outdated => "it shows an earlier version of the pod",
            Self::ForeignOwner => "it belongs to an earlier Node of this name",
            Self::Terminating => "somebody deleted it",
        })
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Create this mirror.
    Create(Box<Pod>),
    /// Patch the status of the mirror with this UID.
    PatchStatus {
        /// The UID, which is in the patch, too.
        uid: String,
        /// The strategic merge patch.
        patch: Value,
    },
    /// Delete the pod with this UID and no other, at once.
    Delete {
        /// The UID.
        uid: String,
        /// Why.
        reason: DeleteReason,
    },
}

/// How a pod and its mirror stand to each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// As they should.
    Settled,
    /// This is to be done.
    Act(Step),
    /// The name is taken by a pod that is no mirror.
    Blocked,
}

/// What to do for one name. What is unwanted is deleted only if `may_remove`: at the start nobody knows yet what is wanted.
pub fn plan(wanted: Option<Wanted<'_>>, observed: Option<&Observed>, node: &NodeRef, may_remove: bool) -> Plan {
    let Some(observed) = observed else {
        return wanted
            .map_or(Plan::Settled, |wanted| Plan::Act(Step::Create(Box::new(mirror_of(wanted.pod, wanted.full_name, node)))));
    };
    let delete = |reason| Plan::Act(Step::Delete { uid: observed.uid.clone(), reason });
    // Of any pod on this node: nobody else can agree to its end, and nothing of it runs here.
    if observed.is_deleting {
        return delete(DeleteReason::Terminating);
    }
    let Some(hash) = &observed.mirror_of else {
        return if wanted.is_some() { Plan::Blocked } else { Plan::Settled };
    };
    let Some(wanted) = wanted else {
        return if may_remove { delete(DeleteReason::Orphan) } else { Plan::Settled };
    };
    if hash != content_hash(wanted.pod) {
        return delete(DeleteReason::Outdated);
    }
    if observed.owner.as_ref() != Some(&node.uid) {
        return delete(DeleteReason::ForeignOwner);
    }
    match status_patch(&observed.uid, wanted.status, &observed.status) {
        Some(patch) => Plan::Act(Step::PatchStatus { uid: observed.uid.clone(), patch }),
        None => Plan::Settled,
    }
}
