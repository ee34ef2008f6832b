//! The Lease of this host's node, as `kubectl describe node` asks for it. **Pure**.
//!
//! A kubelet renews its Lease to be seen from afar; who is answered here sees that the daemon is there. So nothing is written and nothing
//! runs: the time of renewal follows from the clock.

use super::objects::stable_uid;
use super::show::age_since;
use super::table::Column;
use jiff::{SignedDuration, Timestamp};
use podstead_pod::objects::{ObjectKind, ObjectName};
use podstead_pod::{NodeName, SourceId};
use serde_json::{Value, json};
use std::time::Duration;

/// The API group.
pub(super) const GROUP: &str = "coordination.k8s.io";
/// The version of it, as objects have it.
pub(super) const API_VERSION: &str = "coordination.k8s.io/v1";
/// The plural, as in paths.
pub(super) const PLURAL: &str = "leases";
/// The plural with the group, as messages have it.
pub(super) const QUALIFIED: &str = "leases.coordination.k8s.io";
/// Time between renewals, as a kubelet's.
pub(super) const RENEWED_EVERY: Duration = Duration::from_secs(10);
/// Time for which it counts, as a kubelet's.
const DURATION_SECONDS: u32 = 40;
/// The namespace of Leases of nodes.
const NAMESPACE: &str = "kube-node-lease";

/// Columns of Leases.
pub(super) const COLUMNS: &[Column] =
    &[Column::name(), Column::text("Holder", "Node that renews it"), Column::text("Age", "Time since the daemon started")];

/// The Lease of the node, renewed a whole number of times since the start of the daemon.
pub(super) fn shown(node: &NodeName, started_at: Timestamp, now: Timestamp) -> Value {
    let every = i64::try_from(RENEWED_EVERY.as_secs()).unwrap_or(i64::MAX);
    let renewals = now.duration_since(started_at).as_secs().max(0) / every;
    let renewed_at = started_at.checked_add(SignedDuration::from_secs(renewals * every)).unwrap_or(now);
    let identity =
        ObjectName { kind: ObjectKind::ConfigMap, namespace: format!("/{PLURAL}").into(), name: node.to_string().into() };
    json!({
        "apiVersion": API_VERSION,
        "kind": "Lease",
        "metadata": {
            "name": node.as_str(), "namespace": NAMESPACE, "uid": stable_uid(&SourceId::new(""), &identity),
            "creationTimestamp": started_at,
        },
        "spec": {
            "holderIdentity": node.as_str(), "leaseDurationSeconds": DURATION_SECONDS,
            "renewTime": renewed_at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        },
    })
}

/// The cells of a Lease.
pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let created_at = object["metadata"]["creationTimestamp"].as_str().and_then(|time| time.parse().ok());
    vec![object["metadata"]["name"].clone(), object["spec"]["holderIdentity"].clone(), json!(age_since(created_at, now))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_is_renewed_every_ten_seconds() {
        let started_at: Timestamp = "2026-01-01T00:00:00.5Z".parse().unwrap();
        let renewed = |now: &str| shown(&NodeName::new("edge"), started_at, now.parse().unwrap())["spec"]["renewTime"].clone();
        assert_eq!(renewed("2026-01-01T00:00:09Z"), "2026-01-01T00:00:00.500000Z");
        assert_eq!(renewed("2026-01-01T00:00:31Z"), "2026-01-01T00:00:30.500000Z");
        // The clock was set back.
        assert_eq!(renewed("2025-01-01T00:00:00Z"), "2026-01-01T00:00:00.500000Z");
        let lease = shown(&NodeName::new("edge"), started_at, started_at);
        assert_eq!((&lease["metadata"]["namespace"], &lease["spec"]["holderIdentity"]), (&json!(NAMESPACE), &json!("edge")));
    }
}
