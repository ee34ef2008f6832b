//! From any state of the API server, carrying out what is planned ends with mirrors that equal the pods, and then nothing is planned.

use super::NodeRef;
use super::mirror::Detail;
use super::mirror::content_hash;
use super::status_patch::stored_form;
use super::step::{Observed, Plan, Step, Wanted, plan};
use podstead_pod::{Pod, PodFullName};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A pod needs at most: delete, create, patch.
const MOST_STEPS: usize = 3;

fn node() -> NodeRef {
    NodeRef { name: "edge".into(), uid: "node-1".into() }
}

fn full_name() -> PodFullName {
    PodFullName { name: "web-edge".into(), namespace: "default".into() }
}

fn pod(hash: &str) -> Pod {
    let pod = json!({
        "metadata": {"name": "web", "annotations": {"kubernetes.io/config.hash": hash}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    serde_json::from_value(pod).unwrap()
}

fn statuses() -> impl Strategy<Value = Value> {
    let condition = (prop_oneof!["Ready", "Initialized", "example-other"], prop_oneof!["True", "False"], prop_oneof!["", "why"])
        .prop_map(|(kind, status, message)| json!({"type": kind, "status": status, "message": message}));
    let conditions = prop::collection::btree_map(0u8..3, condition, 0..3).prop_map(|conditions| {
        let mut seen = Vec::new();
        let unique = conditions.into_values().filter(|condition| {
            let is_new = !seen.contains(&condition["type"]);
            seen.push(condition["type"].clone());
            is_new
        });
        unique.collect::<Vec<_>>()
    });
    let ips = prop::collection::vec(0u8..3, 0..3)
        .prop_map(|ips| ips.into_iter().collect::<std::collections::BTreeSet<_>>())
        .prop_map(|ips| ips.into_iter().map(|ip| json!({"ip": format!("10.0.0.{ip}")})).collect::<Vec<_>>());
    (prop_oneof!["Pending", "Running", ""], conditions, ips, prop::option::of(0u8..3)).prop_map(
        |(phase, conditions, ips, restarts)| {
            let containers = restarts.map(|restarts| json!([{"name": "c", "restartCount": restarts, "started": false}]));
            json!({"phase": phase, "conditions": conditions, "podIPs": ips, "containerStatuses": containers})
        },
    )
}

fn observations() -> impl Strategy<Value = Option<Observed>> {
    let mirror_of = prop::option::of(prop_oneof!["h1", "h2"]);
    let owner = prop::option::of(prop_oneof!["node-1", "node-0"]);
    let observed = (mirror_of, owner, any::<bool>(), statuses()).prop_map(|(mirror_of, owner, is_deleting, status)| Observed {
        uid: "u0".into(),
        version: Some(1),
        mirror_of,
        owner,
        is_deleting,
        status: stored_form(status),
        weight: 0,
    });
    prop::option::of(observed)
}

/// Applies a strategic merge patch of a status like a server.
fn merged(before: &Value, patch: &Value) -> Value {
    let mut after = before.as_object().cloned().unwrap_or_default();
    for (field, change) in patch.as_object().unwrap() {
        let key = match field.as_str() {
            "conditions" => Some("type"),
            "podIPs" | "hostIPs" => Some("ip"),
            _ => None,
        };
        let value = match key {
            None => change.clone(),
            Some(key) => merged_list(after.get(field), change, key),
        };
        after.insert(field.clone(), value);
    }
    stored_form(Value::Object(after))
}

fn merged_list(before: Option<&Value>, change: &Value, key: &str) -> Value {
    let mut items = before.and_then(Value::as_array).cloned().unwrap_or_default();
    for item in change.as_array().unwrap() {
        match item["$patch"].as_str() {
            Some("replace") => items.clear(),
            Some("delete") => items.retain(|other| other[key] != item[key]),
            Some(other) => panic!("{other}"),
            None => match items.iter_mut().find(|other| other[key] == item[key]) {
                Some(found) => found.as_object_mut().unwrap().extend(item.as_object().unwrap().clone()),
                None => items.push(item.clone()),
            },
        }
    }
    items.into()
}

/// The server's side of one step; a server deletes at once what is deleted with grace 0.
fn carry_out(step: Step, observed: Option<Observed>, serial: usize) -> Option<Observed> {
    match step {
        Step::Create(object) => {
            assert!(observed.is_none(), "created beside another one");
            let mut object = serde_json::to_value(*object).unwrap();
            object["metadata"]["uid"] = format!("u{serial}").into();
            object["metadata"]["resourceVersion"] = "9".into();
            object["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"});
            Some(Observed::of(&object).unwrap().1)
        }
        Step::PatchStatus { uid, patch } => {
            let mut observed = observed.unwrap();
            assert_eq!((&observed.uid, &patch["metadata"]["uid"]), (&uid, &json!(uid)));
            observed.status = merged(&observed.status, &patch["status"]);
            Some(observed)
        }
        Step::Delete { uid, .. } => {
            assert_eq!(observed.unwrap().uid, uid);
            None
        }
    }
}

proptest! {
    #[test]
    fn every_state_of_the_server_settles(
        wanted in prop::option::of((prop_oneof!["h1", "h2"], statuses())),
        first in observations(),
    ) {
        let (node, name) = (node(), full_name());
        let wanted = wanted.map(|(hash, status)| (pod(&hash), stored_form(status)));
        let mut observed = first.clone();
        for turn in 0..=MOST_STEPS {
            let desired = wanted.as_ref().map(|(pod, status)| Wanted { full_name: &name, pod, status, detail: Detail::Whole });
            match plan(desired, observed.as_ref(), &node, true) {
                Plan::Act(step) => {
                    prop_assert!(turn < MOST_STEPS, "{step:?} is one too many from {first:?}");
                    observed = carry_out(step, observed, turn + 1);
                }
                Plan::Blocked => {
                    prop_assert!(wanted.is_some() && first.as_ref().is_some_and(|first| first.mirror_of.is_none()));
                    return Ok(());
                }
                Plan::Settled => break,
            }
        }
        match (&wanted, &observed) {
            (Some((pod, status)), Some(observed)) => {
                prop_assert_eq!(observed.mirror_of.as_deref(), Some(content_hash(pod)));
                prop_assert_eq!(observed.owner.as_deref(), Some("node-1"));
                for field in ["phase", "podIPs", "containerStatuses"] {
                    prop_assert_eq!(&observed.status[field], &status[field]);
                }
                for condition in status["conditions"].as_array().into_iter().flatten() {
                    prop_assert!(observed.status["conditions"].as_array().unwrap().contains(condition));
                }
            }
            (None, Some(observed)) => prop_assert!(observed.mirror_of.is_none(), "an orphan stays"),
            (Some(_), None) => prop_assert!(false, "there is no mirror"),
            (None, None) => {}
        }
    }

    #[test]
    fn before_it_is_known_what_is_wanted_nothing_is_removed(observed in observations()) {
        let planned = plan(None, observed.as_ref(), &node(), false);
        let was_deleted = observed.is_some_and(|observed| observed.is_deleting);
        prop_assert!(planned == Plan::Settled || was_deleted);
    }
}
