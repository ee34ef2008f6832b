//! Pods over the API: list, get, selectors, tables, refusals.

use crate::host::{Host, desired, running_status};
use hyper::Method;
use podstead::status::PodStatusSink;
use serde_json::{Value, json};

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|pod| pod["metadata"]["name"].as_str().unwrap()).collect()
}

fn three_pods() -> Host {
    let host = Host::start();
    host.publish_running("kube-system", "dns");
    host.publish_running("default", "web");
    let db = desired("default", "db", json!({}));
    host.published.publish(&db, serde_json::from_value(json!({"phase": "Pending"})).unwrap());
    host
}

#[test]
fn lists_are_ordered_and_versioned() {
    let host = three_pods();
    let list = host.get("/api/v1/pods?limit=500");
    assert_eq!(list["kind"], "PodList");
    assert_eq!(list["metadata"]["resourceVersion"], "1003");
    assert_eq!(names(&list), ["db-edge", "web-edge", "dns-edge"]);
    assert_eq!(names(&host.get("/api/v1/namespaces/kube-system/pods")), ["dns-edge"]);
    assert_eq!(names(&host.get("/api/v1/namespaces/nowhere/pods")), Vec::<&str>::new());
}

#[test]
fn selectors_select() {
    let host = three_pods();
    let cases = [
        ("labelSelector=app%3Dweb", vec!["web-edge"]),
        ("labelSelector=app+in+%28web%2Cdns%29", vec!["web-edge", "dns-edge"]),
        ("fieldSelector=metadata.name%3Dweb-edge", vec!["web-edge"]),
        ("fieldSelector=spec.nodeName%3Dedge%2Cstatus.phase%21%3DRunning", vec!["db-edge"]),
        ("fieldSelector=metadata.namespace%3Dkube-system", vec!["dns-edge"]),
        ("labelSelector=app%3Dweb&fieldSelector=status.phase%3DPending", vec![]),
    ];
    for (query, expected) in cases {
        assert_eq!(names(&host.get(&format!("/api/v1/pods?{query}"))), expected, "{query}");
    }
    let (code, status) = host.send(Method::GET, "/api/v1/pods?fieldSelector=spec.color%3Dred", "");
    assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")));
    assert!(status["message"].as_str().unwrap().starts_with("field label not supported: spec.color"));
}

#[test]
fn one_pod_is_told_whole() {
    let host = three_pods();
    let pod = host.get("/api/v1/namespaces/default/pods/web-edge");
    assert_eq!(pod["kind"], "Pod");
    assert_eq!(pod["apiVersion"], "v1");
    assert_eq!(pod["spec"]["containers"][0]["image"], "nginx:1.27");
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(pod["metadata"]["annotations"]["podstead.dev/origin"], "web.yaml:1:1");
    let (code, status) = host.send(Method::GET, "/api/v1/namespaces/default/pods/nosuch", "");
    assert_eq!(code, 404);
    assert_eq!(status["message"], r#"pods "nosuch" not found"#);
    assert_eq!(status["details"], json!({"kind": "pods", "name": "nosuch"}));
}

#[test]
fn a_table_has_the_columns_of_kubectl() {
    let host = three_pods();
    let table = host.get_table("/api/v1/namespaces/default/pods?includeObject=Metadata");
    let columns: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| (column["name"].as_str().unwrap(), column["priority"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("Name", 0),
        ("Ready", 0),
        ("Status", 0),
        ("Restarts", 0),
        ("Age", 0),
        ("IP", 1),
        ("Node", 1),
        ("Source", 1),
        ("Images", 1),
    ];
    assert_eq!(columns, expected);
    let cells: Vec<_> = table["rows"].as_array().unwrap().iter().map(|row| row["cells"].clone()).collect();
    assert_eq!(cells[0], json!(["db-edge", "0/1", "Pending", "0", "3h20m", "<none>", "edge", "manifests", "nginx:1.27"]));
    assert_eq!(cells[1], json!(["web-edge", "1/1", "Running", "0", "3h20m", "10.0.0.5", "edge", "manifests", "nginx:1.27"]));
    let object = &table["rows"][0]["object"];
    assert_eq!((&object["kind"], &object["metadata"]["name"]), (&json!("PartialObjectMetadata"), &json!("db-edge")));

    let whole = host.get_table("/api/v1/namespaces/default/pods/web-edge?includeObject=Object");
    assert_eq!(whole["rows"][0]["object"]["spec"]["nodeName"], "edge");
    let bare = host.get_table("/api/v1/namespaces/default/pods/web-edge?includeObject=None");
    assert_eq!(bare["rows"][0]["object"], Value::Null);
}

#[test]
fn refused_write_names_the_managing_source() {
    let host = three_pods();
    host.publish_source(None, None);
    for method in [Method::PUT, Method::PATCH] {
        let (code, status) = host.send(method, "/api/v1/namespaces/default/pods/web-edge", "{}");
        assert_eq!(code, 405);
        let expected =
            r#"pod "web-edge" is managed by source manifests (revision rev1, web.yaml:1:1): change or remove its manifest there"#;
        assert_eq!(status["message"], expected);
        assert_eq!(status["reason"], "MethodNotAllowed");
    }
    let (code, status) = host.send(Method::POST, "/api/v1/namespaces/default/pods", "{}");
    let message = status["message"].as_str().unwrap();
    assert!(code == 405 && message.contains("manifests (/etc/podstead/manifests)"), "{code} {message}");
    assert_eq!(host.send(Method::DELETE, "/api/v1/namespaces/default/pods/nosuch", "").0, 404);
}

#[test]
fn deleted_pod_is_restarted() {
    let host = three_pods();
    let web = "/api/v1/namespaces/default/pods/web-edge";
    let (code, pod) = host.send(Method::DELETE, web, "");
    assert_eq!((code, pod["metadata"]["name"].as_str()), (200, Some("web-edge")));
    assert_eq!(host.send(Method::DELETE, &format!("{web}?dryRun=All"), "").0, 200);
    assert_eq!(host.orders.take(), ["restart web-edge"]);
}

#[test]
fn orders_on_pods_are_passed_on() {
    let host = three_pods();
    host.publish_running("default", "ended");
    let pods = "/apis/podstead.dev/v1alpha1/namespaces/default/pods";
    for order in ["stop", "start", "restart"] {
        assert_eq!(host.send(Method::POST, &format!("{pods}/web-edge/{order}"), "{}").0, 200);
    }
    assert_eq!(host.orders.take(), ["stop web-edge", "start web-edge", "restart web-edge"]);
    let (code, status) = host.send(Method::POST, &format!("{pods}/ended-edge/stop"), "{}");
    assert_eq!((code, status["message"].as_str()), (409, Some("the pod has ended")));
    assert_eq!(host.send(Method::POST, &format!("{pods}/nosuch/stop"), "{}").0, 404);
    assert_eq!(host.send(Method::GET, &format!("{pods}/web-edge/stop"), "").0, 405);
}

#[test]
fn requests_out_of_bounds_are_refused() {
    let host = three_pods();
    assert_eq!(host.send(Method::GET, "/api/v1/serviceaccounts", "").0, 404);
    assert_eq!(host.send(Method::DELETE, "/healthz", "").0, 405);
    let pull = "/apis/podstead.dev/v1alpha1/images/pull";
    assert_eq!(host.send(Method::POST, pull, &"x".repeat(100 << 10)).0, 413);
    assert_eq!(host.send(Method::POST, pull, "{}").0, 400);
    assert_eq!(host.send(Method::GET, "/api/v1/pods?watch=maybe", "").0, 400);
    assert_eq!(host.send(Method::GET, "/api/v1/pods?watch=true&resourceVersion=x", "").0, 400);
}

#[test]
fn unchanged_status_changes_no_version() {
    let host = three_pods();
    let before = host.get("/api/v1/namespaces/default/pods/web-edge");
    let web = host.publish_running("default", "web");
    host.published.publish(&web, serde_json::from_value(running_status()).unwrap());
    // Published again with another time of creation in its metadata: a change.
    let after = host.get("/api/v1/namespaces/default/pods/web-edge");
    let version = |pod: &Value| pod["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(version(&after) <= version(&before) + 2);
    let again = after["metadata"]["resourceVersion"].clone();
    host.published.publish(&web, serde_json::from_value(running_status()).unwrap());
    assert_eq!(host.get("/api/v1/namespaces/default/pods/web-edge")["metadata"]["resourceVersion"], again);
}
