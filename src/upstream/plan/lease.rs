//! The Lease of the Node, and detection of another agent that renews it.
//!
//! A kubelet's Lease says nothing but the node's name, and a kubelet keeps annotations that it finds. So the sign that another agent
//! renews a Lease is the time of renewal itself: it is one that this host never wrote. The annotations [`AGENT_ANNOTATION`] and
//! [`RENEWED_ANNOTATION`] repeat who wrote it and when, so that an agent knows its own Lease from before: from before its start, and from
//! before the backup from which a cluster was restored.

use super::{NodeRef, microseconds};
use jiff::Timestamp;
use serde_json::{Value, json};

pub use podstead_pod::annotations::{AGENT as AGENT_ANNOTATION, RENEWED as RENEWED_ANNOTATION};
/// Seconds that a Lease counts after its renewal, as the kubelet's.
pub const DURATION_SECONDS: u32 = 40;

/// Holder of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// This agent's, from this life or an earlier one.
    Own,
    /// Another agent's, which renewed it at that time.
    Other(String),
    /// It is not renewed.
    Nobody,
}

/// The Lease to create, or to put in the place of `before`, renewed at `now`.
pub fn renewed(before: Option<&Value>, node: &NodeRef, agent: &str, now: Timestamp) -> Value {
    let mut lease = before.cloned().unwrap_or_else(|| {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": node.name, "namespace": "kube-node-lease"},
            "spec": {},
        })
    });
    if !lease["metadata"]["annotations"].is_object() {
        lease["metadata"]["annotations"] = json!({});
    }
    lease["metadata"]["annotations"][AGENT_ANNOTATION] = agent.into();
    lease["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}]);
    lease["spec"]["holderIdentity"] = node.name.clone().into();
    lease["spec"]["leaseDurationSeconds"] = DURATION_SECONDS.into();
    lease["spec"]["renewTime"] = microseconds(now).into();
    lease["metadata"]["annotations"][RENEWED_ANNOTATION] = lease["spec"]["renewTime"].clone();
    lease
}

/// Returns the renew time of a Lease.
pub fn renew_time(lease: &Value) -> Option<&str> {
    lease["spec"]["renewTime"].as_str()
}

/// Returns the holder of the Lease for an agent that has not written it since its start.
pub fn holder_at_start(lease: &Value, agent: &str) -> Holder {
    let annotations = &lease["metadata"]["annotations"];
    if annotations[AGENT_ANNOTATION] == agent && (annotations[RENEWED_ANNOTATION].is_null() || is_renewed_by(lease, agent)) {
        return Holder::Own;
    }
    renew_time(lease).map_or(Holder::Nobody, |at| Holder::Other(at.to_owned()))
}

/// Returns the holder of the Lease for `agent`, which wrote it with these renew times, of which the last one may be unconfirmed.
pub fn holder(lease: &Value, agent: &str, written: &[String]) -> Holder {
    match renew_time(lease) {
        Some(at) if written.iter().any(|time| time == at) || is_renewed_by(lease, agent) => Holder::Own,
        Some(at) => Holder::Other(at.to_owned()),
        None => Holder::Nobody,
    }
}

/// The last one that renewed the Lease is this agent, at whatever time.
fn is_renewed_by(lease: &Value, agent: &str) -> bool {
    let annotations = &lease["metadata"]["annotations"];
    annotations[AGENT_ANNOTATION] == agent
        && renew_time(lease).is_some_and(|at| annotations[RENEWED_ANNOTATION].as_str() == Some(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> NodeRef {
        NodeRef { name: "edge".into(), uid: "n1".into() }
    }

    #[test]
    fn a_lease_is_the_kubelets_with_the_agent_that_wrote_it() {
        let now: Timestamp = "2026-01-01T00:00:00.123456789Z".parse().unwrap();
        let lease = renewed(None, &node(), "a", now);
        assert_eq!(lease["spec"]["renewTime"], "2026-01-01T00:00:00.123456Z");
        assert_eq!(lease["spec"]["holderIdentity"], "edge");
        assert_eq!(lease["metadata"]["ownerReferences"][0]["uid"], "n1");
        let mut stored = lease.clone();
        stored["metadata"]["resourceVersion"] = "7".into();
        stored["metadata"]["annotations"]["note"] = "kept".into();
        let again = renewed(Some(&stored), &node(), "b", now);
        assert_eq!(again["metadata"]["resourceVersion"], "7");
        assert_eq!(
            again["metadata"]["annotations"],
            json!({"note": "kept", AGENT_ANNOTATION: "b", RENEWED_ANNOTATION: "2026-01-01T00:00:00.123456Z"})
        );
    }

    #[test]
    fn a_time_that_was_never_written_here_is_somebody_elses() {
        let lease =
            |at: &str, agent: &str| json!({"metadata": {"annotations": {AGENT_ANNOTATION: agent}}, "spec": {"renewTime": at}});
        assert_eq!(holder_at_start(&lease("t1", "a"), "a"), Holder::Own);
        assert_eq!(holder_at_start(&lease("t1", "b"), "a"), Holder::Other("t1".into()));
        assert_eq!(holder_at_start(&json!({}), "a"), Holder::Nobody);
        let written = ["t1".to_owned(), "t2".to_owned()];
        assert_eq!(holder(&lease("t2", "a"), "a", &written), Holder::Own, "its answer was lost");
        assert_eq!(holder(&lease("t3", "a"), "a", &written), Holder::Other("t3".into()), "a kubelet keeps the annotation");
        assert_eq!(holder(&json!({}), "a", &written), Holder::Nobody);
    }

    #[test]
    fn own_lease_of_a_backup_is_recognised() {
        let lease = renewed(None, &node(), "a", "2026-01-01T00:00:00Z".parse().unwrap());
        let written = ["2026-01-02T00:00:00.000000Z".to_owned()];
        assert_eq!(holder(&lease, "a", &written), Holder::Own);
        assert_eq!(holder_at_start(&lease, "a"), Holder::Own);
        let time = renew_time(&lease).unwrap().to_owned();
        assert_eq!(holder(&lease, "b", &written), Holder::Other(time));
        let mut taken = lease;
        taken["spec"]["renewTime"] = "2026-01-01T00:00:10.000000Z".into();
        let other = Holder::Other("2026-01-01T00:00:10.000000Z".into());
        assert_eq!(holder(&taken, "a", &written), other, "a kubelet keeps the annotations");
        assert_eq!(holder_at_start(&taken, "a"), other);
    }
}
