//! Each rule of Deployments, ReplicaSets, StatefulSets and DaemonSets, broken once.

use super::*;
use crate::problem::Problem;
use crate::testing::{merge, template};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn object<T: DeserializeOwned>(name: &str, spec: &Value) -> T {
    let mut all = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template("web:1")});
    merge(&mut all, spec);
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": all})).unwrap()
}

fn told(problems: Vec<Problem>) -> Vec<String> {
    problems.into_iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect()
}

fn of_deployment(spec: &Value) -> Vec<String> {
    told(deployment(&object("web", spec)))
}

fn of_stateful_set(spec: &Value) -> Vec<String> {
    told(stateful_set(&object("web", spec)))
}

fn of_daemon_set(spec: &Value) -> Vec<String> {
    told(daemon_set(&object("web", spec)))
}

#[test]
fn good_objects_have_no_problems() {
    assert!(of_deployment(&json!({})).is_empty());
    assert!(of_stateful_set(&json!({"replicas": 3, "serviceName": "web"})).is_empty());
    assert!(of_daemon_set(&json!({})).is_empty());
    assert!(replica_set(&object("web", &json!({"replicas": 2}))).is_empty());
}

#[test]
fn selector_must_match_template() {
    assert_eq!(of_deployment(&json!({"selector": {}})), ["spec.selector: is required"]);
    assert_eq!(
        of_deployment(&json!({"selector": {"matchLabels": {"app": "db"}}})),
        ["spec.template.metadata.labels: invalid value {\"app\": \"web\"}: `selector` does not match template `labels`"]
    );
    let expression =
        |operator: &str| json!({"selector": {"matchExpressions": [{"key": "app", "operator": operator, "values": ["web"]}]}});
    assert!(of_deployment(&expression("In")).is_empty());
    assert_eq!(of_deployment(&expression("NotIn")).len(), 1);
}

#[test]
fn template_must_run_forever() {
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [], "restartPolicy": "Never", "activeDeadlineSeconds": 5}});
    assert_eq!(
        of_deployment(&json!({"template": template})),
        [
            "spec.template.spec.restartPolicy: invalid value \"Never\": must be one of \"Always\"",
            "spec.template.spec.activeDeadlineSeconds: forbidden: activeDeadlineSeconds in Deployment is not Supported",
        ]
    );
}

/// W2.
#[test]
fn replicas_have_bounds() {
    assert_eq!(of_deployment(&json!({"replicas": -1})), ["spec.replicas: invalid value -1: must be greater than or equal to 0"]);
    assert_eq!(of_deployment(&json!({"replicas": 501})), ["spec.replicas: invalid value 501: must be less than or equal to 500"]);
}

/// W20.
#[test]
fn deployment_strategy_must_move() {
    let rolling = |unavailable: Value, surge: Value| {
        of_deployment(&json!({"strategy": {"rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}}))
    };
    let path = "spec.strategy.rollingUpdate";
    assert_eq!(
        rolling(json!(0), json!("0%")),
        [format!("{path}.maxUnavailable: invalid value 0: may not be 0 when `maxSurge` is 0")]
    );
    assert_eq!(
        rolling(json!("101%"), json!(1)),
        [format!("{path}.maxUnavailable: invalid value \"101%\": must not be greater than 100%")]
    );
    assert!(rolling(json!("many"), json!(1))[0].contains("a valid percent string"));
    assert!(rolling(json!(0), json!("200%")).is_empty());
    assert_eq!(
        of_deployment(&json!({"strategy": {"type": "Recreate", "rollingUpdate": {}}})),
        [format!("{path}: forbidden: may not be specified when strategy `type` is 'Recreate'")]
    );
    assert_eq!(
        of_deployment(&json!({"strategy": {"type": "BlueGreen"}})),
        ["spec.strategy.type: invalid value \"BlueGreen\": must be one of \"Recreate\", \"RollingUpdate\""]
    );
    assert_eq!(
        of_deployment(&json!({"minReadySeconds": 600})),
        ["spec.progressDeadlineSeconds: invalid value 600: must be greater than minReadySeconds"]
    );
}

/// W33.
#[test]
fn exported_replica_set_is_refused() {
    let mut exported: k8s_openapi::api::apps::v1::ReplicaSet = object("web-7d9", &json!({}));
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u"});
    exported.metadata.owner_references = Some(vec![serde_json::from_value(owner).unwrap()]);
    assert!(told(replica_set(&exported))[0].contains("belongs to Deployment web"));
}

/// W34.
#[test]
fn stateful_set_names_are_labels() {
    let long = "a".repeat(62);
    assert!(told(stateful_set(&object(&long, &json!({}))))[0].contains("must be no more than 63 characters"));
    assert!(told(stateful_set(&object("web.shop", &json!({}))))[0].contains("RFC 1123 label"));
}

/// W34.
#[test]
fn stateful_set_update_is_checked() {
    let strategy = |strategy: Value| of_stateful_set(&json!({"updateStrategy": strategy}));
    assert_eq!(
        strategy(json!({"type": "OnDelete", "rollingUpdate": {}})),
        ["spec.updateStrategy.rollingUpdate: forbidden: only allowed for updateStrategy 'RollingUpdate'"]
    );
    assert_eq!(
        strategy(json!({"rollingUpdate": {"maxUnavailable": 0}})),
        ["spec.updateStrategy.rollingUpdate.maxUnavailable: invalid value 0: cannot be 0"]
    );
    assert_eq!(
        strategy(json!({"type": "Fast"})),
        ["spec.updateStrategy: invalid value \"Fast\": must be 'RollingUpdate' or 'OnDelete'"]
    );
    assert_eq!(
        of_stateful_set(&json!({"podManagementPolicy": "Any"})),
        ["spec.podManagementPolicy: invalid value \"Any\": must be 'OrderedReady' or 'Parallel'"]
    );
    assert_eq!(
        of_stateful_set(&json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Keep"}})),
        ["spec.persistentVolumeClaimRetentionPolicy.whenScaled: invalid value \"Keep\": must be one of \"Delete\", \"Retain\""]
    );
    let claims = json!([{"metadata": {"name": "data"}, "spec": {}}, {"metadata": {"name": "data"}, "spec": {}}, {"spec": {}, "metadata": {}}]);
    assert_eq!(
        of_stateful_set(&json!({"volumeClaimTemplates": claims})),
        [
            "spec.volumeClaimTemplates[1].metadata.name: invalid value \"data\": must be unique",
            "spec.volumeClaimTemplates[2].metadata.name: is required",
        ]
    );
}

/// W45.
#[test]
fn daemon_set_has_one_limit() {
    let rolling = |rolling: Value| of_daemon_set(&json!({"updateStrategy": {"rollingUpdate": rolling}}));
    assert!(rolling(json!({"maxSurge": 1, "maxUnavailable": 0})).is_empty());
    assert!(rolling(json!({"maxUnavailable": 1})).is_empty());
    assert_eq!(rolling(json!({"maxUnavailable": 0})).len(), 1);
    assert_eq!(rolling(json!({"maxUnavailable": 1, "maxSurge": 1})).len(), 1);
}
