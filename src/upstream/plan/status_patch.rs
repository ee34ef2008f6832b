//! The difference between the status that a mirror has and the one that it should have, as a strategic merge patch (kubelet rule E3).
//!
//! Only fields of this host are compared and sent, and of these only what differs. Conditions are merged by their type, so those of others
//! stay. A server stores less than it is sent (whole seconds, no empty fields): both sides are converted to that form first, lest the
//! same patch is sent for ever.

use serde_json::{Map, Value, json};

/// Fields of a status that the host decides.
const FIELDS: [&str; 12] = [
    "conditions",
    "containerStatuses",
    "ephemeralContainerStatuses",
    "hostIP",
    "hostIPs",
    "initContainerStatuses",
    "message",
    "phase",
    "podIP",
    "podIPs",
    "reason",
    "startTime",
];
/// Lists that the server merges by a key instead of replacing them.
const MERGED_LISTS: [&str; 2] = ["hostIPs", "podIPs"];
/// Types of conditions that the host decides.
const CONDITIONS: [&str; 5] = ["ContainersReady", "Initialized", "PodReadyToStartContainers", "PodScheduled", "Ready"];
/// Fields that hold a time.
const TIMES: [&str; 6] = ["finishedAt", "lastHeartbeatTime", "lastProbeTime", "lastTransitionTime", "startTime", "startedAt"];

/// Returns the fields of a server's status that the host decides, in their [`stored_form`].
pub fn own_part(status: &Value) -> Value {
    let field = |name: &&str| Some(((*name).to_owned(), status.get(*name)?.clone()));
    stored_form(Value::Object(FIELDS.iter().filter_map(field).collect()))
}

/// A status as a server stores it: no empty fields, times in whole seconds.
pub fn stored_form(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let field = |(key, value): (String, Value)| {
                let value = if TIMES.contains(&key.as_str()) { whole_seconds(value) } else { stored_form(value) };
                (!is_empty(&value)).then_some((key, value))
            };
            Value::Object(map.into_iter().filter_map(field).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(stored_form).collect()),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn whole_seconds(value: Value) -> Value {
    match value.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok()) {
        Some(at) => {
            // Cut off, as the server does; rounding up would give a time that it does not have.
            let whole = jiff::Timestamp::from_second(at.as_second()).unwrap_or(at);
            Value::String(super::seconds(whole))
        }
        None => value,
    }
}

/// The patch that makes the mirror `uid` show `wanted`; `None` when it does so already. Both statuses are in their [`stored_form`].
pub fn status_patch(uid: &str, wanted: &Value, observed: &Value) -> Option<Value> {
    let mut patch = Map::new();
    for field in FIELDS {
        let (wanted, observed) = (&wanted[field], &observed[field]);
        let change = match field {
            "conditions" => conditions_patch(wanted, observed),
            _ if wanted == observed => None,
            _ if MERGED_LISTS.contains(&field) => Some(replaced(wanted, observed)),
            _ => Some(wanted.clone()),
        };
        if let Some(change) = change {
            patch.insert(field.to_owned(), change);
        }
    }
    (!patch.is_empty()).then(|| json!({"metadata": {"uid": uid}, "status": patch}))
}

fn conditions_patch(wanted: &Value, observed: &Value) -> Option<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (wanted, observed) = (list(wanted), list(observed));
    let of_type = |list: &[Value], kind: &Value| list.iter().find(|condition| condition["type"] == *kind).cloned();
    let mut patch = Vec::new();
    for condition in &wanted {
        let before = of_type(&observed, &condition["type"]);
        if before.as_ref() != Some(condition) {
            patch.push(with_removals(condition, before.as_ref()));
        }
    }
    for condition in &observed {
        let kind = &condition["type"];
        if kind.as_str().is_some_and(|kind| CONDITIONS.contains(&kind)) && of_type(&wanted, kind).is_none() {
            patch.push(json!({"$patch": "delete", "type": kind}));
        }
    }
    (!patch.is_empty()).then_some(Value::Array(patch))
}

/// The change that puts a list in the place of one that would be merged. Only where there is one: a server takes a list that it has not yet as it
/// is, and stores the directive as an empty item.
pub(super) fn replaced(wanted: &Value, observed: &Value) -> Value {
    let directive = observed.is_array().then(|| json!({"$patch": "replace"}));
    directive.into_iter().chain(wanted.as_array().into_iter().flatten().cloned()).collect()
}

/// A merged object keeps what the patch does not name: what it had and shall not have is set to null.
pub(super) fn with_removals(wanted: &Value, before: Option<&Value>) -> Value {
    let mut merged = wanted.as_object().cloned().unwrap_or_default();
    for key in before.and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        if !merged.contains_key(key) {
            merged.insert(key.clone(), Value::Null);
        }
    }
    Value::Object(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(wanted: Value, observed: Value) -> Option<Value> {
        status_patch("u", &stored_form(wanted), &stored_form(observed)).map(|patch| patch["status"].clone())
    }

    #[test]
    fn what_a_server_stores_otherwise_is_no_difference() {
        let wanted = json!({
            "phase": "Running", "message": "", "startTime": "2026-01-01T00:00:00.987Z", "podIPs": [],
            "containerStatuses": [{"name": "c", "ready": true, "state": {"running": {"startedAt": "2026-01-01T00:00:01.5Z"}}}],
        });
        let observed = json!({
            "phase": "Running", "startTime": "2026-01-01T00:00:00Z", "qosClass": "Burstable", "observedGeneration": 1,
            "containerStatuses": [{"name": "c", "ready": true, "lastState": {}, "state": {"running": {"startedAt": "2026-01-01T00:00:01Z"}}}],
        });
        assert_eq!(patch(wanted, observed), None);
    }

    #[test]
    fn only_what_differs_is_sent_and_what_is_gone_is_null() {
        let wanted = json!({"phase": "Running", "containerStatuses": [{"name": "c"}], "podIPs": [{"ip": "10.0.0.2"}]});
        let observed =
            json!({"phase": "Running", "reason": "Evicted", "containerStatuses": [{"name": "d"}], "podIPs": [{"ip": "10.0.0.1"}]});
        let expected = json!({
            "reason": null, "containerStatuses": [{"name": "c"}], "podIPs": [{"$patch": "replace"}, {"ip": "10.0.0.2"}],
        });
        assert_eq!(patch(wanted, observed), Some(expected));
        let first = patch(json!({"podIPs": [{"ip": "10.0.0.2"}]}), json!({}));
        assert_eq!(first, Some(json!({"podIPs": [{"ip": "10.0.0.2"}]})), "there is nothing to replace");
    }

    #[test]
    fn e3_conditions_of_others_stay_and_own_ones_that_are_gone_go() {
        let wanted = json!({"conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]});
        let observed = json!({"conditions": [
            {"type": "Ready", "status": "False", "message": "not yet"},
            {"type": "Initialized", "status": "True"},
            {"type": "ContainersReady", "status": "True"},
            {"type": "example.com/seen", "status": "True"},
        ]});
        let expected = json!([
            {"type": "Ready", "status": "True", "message": null},
            {"$patch": "delete", "type": "ContainersReady"},
        ]);
        assert_eq!(patch(wanted, observed).unwrap()["conditions"], expected);
    }
}
