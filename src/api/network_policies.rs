//! NetworkPolicies as they are served. **Pure**.

use super::key::SOURCE_ANNOTATION;
use super::networking::OBJECT_KIND;
use super::objects::shown_of;
use super::show::selector_text;
use super::table::{AGE, Column, age_of};
use jiff::Timestamp;
use podstead_pod::SourceId;
pub use podstead_pod::annotations::ONLY_PODS_OF as ONLY_PODS_OF_ANNOTATION;
use podstead_pod::objects::Objects;
use serde_json::{Value, json};

/// NetworkPolicies as they are shown: those of a restricted source with the annotation.
pub(super) fn shown(objects: &Objects) -> Vec<Value> {
    let mut policies = shown_of(objects, OBJECT_KIND);
    for policy in &mut policies {
        let annotations = &mut policy["metadata"]["annotations"];
        let source = annotations[SOURCE_ANNOTATION].as_str().map(str::to_owned);
        if let Some(source) = source.filter(|source| objects.sharing().is_restricted(&SourceId::new(source))) {
            annotations[ONLY_PODS_OF_ANNOTATION] = json!(source);
        }
    }
    policies
}

/// Columns of NetworkPolicies.
pub(super) const COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Pod-Selector", "Labels of the pods that it selects"),
    AGE,
    Column::text("Source", "Source that the object comes from").wide(),
];

/// The cells of a NetworkPolicy.
pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let metadata = &object["metadata"];
    let selector = selector_text(&object["spec"]["podSelector"]);
    vec![metadata["name"].clone(), json!(selector), age_of(object, now), metadata["annotations"][SOURCE_ANNOTATION].clone()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selector_is_shown_as_by_kubectl() {
        let policy = |selector: Value| json!({"metadata": {"name": "deny"}, "spec": {"podSelector": selector}});
        let labels =
            json!({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]});
        assert_eq!(cells(&policy(labels), Timestamp::UNIX_EPOCH)[1], "app=web,tier in (a,b)");
        assert_eq!(cells(&policy(json!({})), Timestamp::UNIX_EPOCH)[1], "<none>");
    }
}
