//! The next request for one pod (kubelet rules E1, E3, E4, E6).
//!
//! ```text
//! nothing there ---- wanted ----> create ----> there ---- status differs ----> patch status
//!       ^                                        |
//!       +--- delete (grace 0, this UID only) <---+  not wanted, being deleted, of other content, or of another Node
//! ```

use super::NodeRef;
use super::mirror::{Detail, content_hash, mirror_of};
use super::status_patch::{own_part, status_patch};
use super::weight::weight;
use podstead_pod::identity::ANNOTATION_CONFIG_MIRROR;
use podstead_pod::{Pod, PodFullName};
use serde_json::Value;
use std::fmt;

/// Longest accepted name, UID or hash: a server that follows its own rules has none that is longer.
const MAX_WORD: usize = 253;
/// Weight of a status that is remembered; that of a pod with dozens of containers is lighter.
const MAX_STATUS: usize = 256 << 10;

/// A pod that this host has.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Name and namespace.
    pub full_name: &'a PodFullName,
    /// The pod as its source delivered it.
    pub pod: &'a Pod,
    /// Its status in [`stored_form`](super::status_patch::stored_form).
    pub status: &'a Value,
    /// Level of detail that the server accepts.
    pub detail: Detail,
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
    /// The [`own_part`] of its status, as far as there was room for it.
    pub status: Value,
    /// Bytes that this takes, about.
    pub weight: usize,
}

impl Observed {
    /// Name and what counts of an object, of bounded size; `None` for one without name or UID.
    pub fn of(object: &Value) -> Option<(PodFullName, Self)> {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().filter(|word| word.len() <= MAX_WORD).map(str::to_owned);
        let full_name = PodFullName { name: text(&metadata["name"])?, namespace: text(&metadata["namespace"])? };
        let owners = metadata["ownerReferences"].as_array();
        let owner = owners.and_then(|owners| owners.iter().find(|owner| owner["kind"] == "Node"));
        let status = own_part(&object["status"]);
        let mut observed = Self {
            uid: text(&metadata["uid"])?,
            version: metadata["resourceVersion"].as_str().and_then(|version| version.parse().ok()),
            mirror_of: metadata["annotations"][ANNOTATION_CONFIG_MIRROR].as_str().map(|hash| hash.chars().take(MAX_WORD).collect()),
            owner: owner.and_then(|owner| text(&owner["uid"])),
            is_deleting: !metadata["deletionTimestamp"].is_null(),
            weight: weight(&status),
            status,
        };
        if observed.weight > MAX_STATUS {
            observed.forget_status();
        }
        Some((full_name, observed))
    }

    /// There is no room for its status: the next one is then sent whole.
    pub fn forget_status(&mut self) {
        (self.status, self.weight) = (Value::Null, 0);
    }
}

/// Reason why a pod is deleted at the API server.
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
            Self::Orphan => "no pod of this host has this name",
            Self::Outdated => "the pod has changed",
            Self::ForeignOwner => "it belongs to an earlier Node of the same name",
            Self::Terminating => "it was deleted at the API server",
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
        /// The reason.
        reason: DeleteReason,
    },
}

/// Relation of a pod and its mirror.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// As they should.
    Settled,
    /// This is to be done.
    Act(Step),
    /// The name is taken by a pod that is no mirror.
    Blocked,
}

/// Plans the next request for one name. Unwanted mirrors are deleted only if `may_remove`: at the start it is not known yet which pods are
/// wanted.
pub fn plan(wanted: Option<Wanted<'_>>, observed: Option<&Observed>, node: &NodeRef, may_remove: bool) -> Plan {
    let Some(observed) = observed else {
        return wanted.map_or(Plan::Settled, |wanted| {
            Plan::Act(Step::Create(Box::new(mirror_of(wanted.pod, wanted.full_name, node, wanted.detail))))
        });
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_a_pod_only_as_much_is_remembered_as_a_server_can_mean() {
        let pod = |name: &str, message: &str| {
            json!({
                "metadata": {"name": name, "namespace": "n", "uid": "u", "resourceVersion": "7", "managedFields": ["f"]},
                "spec": {"nodeName": "edge"},
                "status": {"phase": "Running", "message": message, "qosClass": "Burstable", "startTime": "2026-01-01T00:00:00Z"},
            })
        };
        let (name, observed) = Observed::of(&pod("a", "m")).unwrap();
        assert_eq!((name.name.as_str(), observed.version), ("a", Some(7)));
        assert_eq!(observed.status, json!({"phase": "Running", "message": "m", "startTime": "2026-01-01T00:00:00Z"}));
        assert_eq!(Observed::of(&pod("a", &"m".repeat(1 << 20))).unwrap().1.status, Value::Null);
        assert_eq!(Observed::of(&pod(&"a".repeat(254), "m")), None);
    }
}
