//! Workloads over the API: discovery, list, get, tables, watch, scale, refusals, events.

use crate::host::{Host, reference_to, workload};
use crate::http::TABLE;
use hyper::Method;
use podstead::expand::{ShownSchedule, WorkloadSink};
use podstead::telemetry::events::{EventRecorder, EventType, Subject};
use podstead::workload::object::WorkloadKind;
use serde_json::{Value, json};
use std::sync::Arc;

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

fn cells(table: &Value) -> Vec<Value> {
    table["rows"].as_array().unwrap().iter().map(|row| row["cells"].clone()).collect()
}

fn with_workloads() -> Host {
    let host = Host::start();
    host.publish_source(None, None);
    let of_web = json!({"spec": {"replicas": 3}, "status": {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2}});
    host.publish_workload(WorkloadKind::Deployment, "default", "web", of_web);
    host.publish_workload(WorkloadKind::Deployment, "shop", "api", json!({"spec": {"replicas": 1}}));
    host.publish_workload(WorkloadKind::Job, "default", "dump", json!({"spec": {"completions": 2}, "status": {"succeeded": 1}}));
    host
}

#[test]
fn groups_of_workloads_are_discovered() {
    let host = Host::start();
    let groups = host.get("/apis");
    let names: Vec<&str> = groups["groups"].as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
    let expected = [
        "apps",
        "batch",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "networking.k8s.io",
        "storage.k8s.io",
        "events.k8s.io",
        "metrics.k8s.io",
        "podstead.dev",
    ];
    assert_eq!(names, expected);
    assert_eq!(host.get("/apis/apps")["preferredVersion"]["groupVersion"], "apps/v1");
    let apps = host.get("/apis/apps/v1");
    assert_eq!(apps["groupVersion"], "apps/v1");
    let deployments = apps["resources"].as_array().unwrap().iter().find(|resource| resource["name"] == "deployments").unwrap();
    let expected = json!({
        "name": "deployments", "singularName": "deployment", "kind": "Deployment", "namespaced": true,
        "verbs": ["get", "list", "watch"], "shortNames": ["deploy"], "categories": ["all"],
    });
    assert_eq!(*deployments, expected);
    let core = host.get("/api/v1");
    let controllers = core["resources"].as_array().unwrap().iter().find(|resource| resource["name"] == "replicationcontrollers");
    assert_eq!(controllers.unwrap()["shortNames"], json!(["rc"]));
    assert_eq!(host.send(Method::GET, "/apis/extensions/v1beta1", "").0, 404);
}

#[test]
fn workloads_are_listed_by_kind() {
    let host = with_workloads();
    let all = host.get("/apis/apps/v1/deployments?limit=500");
    assert_eq!((&all["kind"], &all["apiVersion"]), (&json!("DeploymentList"), &json!("apps/v1")));
    assert_eq!(names(&all), ["web", "api"]);
    assert_eq!(all["metadata"]["resourceVersion"], "1002");
    assert_eq!(names(&host.get("/apis/apps/v1/namespaces/shop/deployments")), ["api"]);
    assert_eq!(names(&host.get("/apis/batch/v1/jobs")), ["dump"]);
    assert_eq!(names(&host.get("/api/v1/replicationcontrollers")), Vec::<&str>::new());
    let cases = [
        ("labelSelector=app%3Dweb", vec!["web"]),
        ("labelSelector=app+notin+%28web%29", vec!["api"]),
        ("fieldSelector=metadata.name%3Dapi", vec!["api"]),
        ("fieldSelector=metadata.namespace%21%3Dshop", vec!["web"]),
    ];
    for (query, expected) in cases {
        assert_eq!(names(&host.get(&format!("/apis/apps/v1/deployments?{query}"))), expected, "{query}");
    }
    assert_eq!(names(&host.get("/apis/batch/v1/jobs?fieldSelector=status.successful%3D1")), ["dump"]);
    assert_eq!(host.send(Method::GET, "/apis/apps/v1/deployments?fieldSelector=spec.replicas%3D1", "").0, 400);
}

#[test]
fn one_workload_says_where_it_is_managed() {
    let host = with_workloads();
    let path = "/apis/apps/v1/namespaces/default/deployments/web";
    let web = host.get(path);
    assert_eq!((&web["kind"], &web["apiVersion"]), (&json!("Deployment"), &json!("apps/v1")));
    assert_eq!(web["metadata"]["resourceVersion"], "1001");
    let expected = json!({
        "podstead.dev/source": "manifests", "podstead.dev/revision": "rev1", "podstead.dev/origin": "web.yaml:1:1",
    });
    assert_eq!(web["metadata"]["annotations"], expected);
    assert_eq!(host.get(&format!("{path}/status")), web);
    let (code, status) = host.send(Method::GET, "/apis/apps/v1/namespaces/shop/deployments/web", "");
    assert_eq!((code, &status["message"]), (404, &json!(r#"deployments.apps "web" not found"#)));
    assert_eq!(status["details"], json!({"name": "web", "group": "apps", "kind": "deployments"}));
}

#[test]
fn tables_have_the_columns_of_kubectl() {
    let host = with_workloads();
    let table = host.get_table("/apis/apps/v1/namespaces/default/deployments");
    let columns: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| (column["name"].as_str().unwrap(), column["priority"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("Name", 0),
        ("Ready", 0),
        ("Up-to-date", 0),
        ("Available", 0),
        ("Age", 0),
        ("Containers", 1),
        ("Images", 1),
        ("Selector", 1),
    ];
    assert_eq!(columns, expected);
    assert_eq!(cells(&table), [json!(["web", "2/3", 3, 2, "3h20m", "main", "nginx:1.27", "app=web"])]);
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "web");
    let jobs = host.get_table("/apis/batch/v1/namespaces/default/jobs/dump");
    assert_eq!(cells(&jobs), [json!(["dump", "Running", "1/2", "", "3h20m", "main", "nginx:1.27", "app=dump"])]);
}

#[test]
fn schedule_of_a_cron_job_is_shown() {
    let host = Host::start();
    let mut dump = workload(WorkloadKind::CronJob, "default", "dump", json!({"spec": {"schedule": "@daily"}}));
    let schedule =
        ShownSchedule { next: Some("2100-01-01T00:00:00Z".parse().unwrap()), missed: Some("missed its deadline of 60 s".into()) };
    dump.schedule = Some(schedule);
    host.published.publish_workload(Arc::new(dump));
    let annotations = &host.get("/apis/batch/v1/namespaces/default/cronjobs/dump")["metadata"]["annotations"];
    assert_eq!(annotations["podstead.dev/next-run"], "2100-01-01T00:00:00Z");
    assert_eq!(annotations["podstead.dev/missed-run"], "missed its deadline of 60 s");
    let row = &cells(&host.get_table("/apis/batch/v1/cronjobs"))[0];
    assert_eq!((&row[1], &row[8]), (&json!("@daily"), &json!("missed its deadline of 60 s")));
}

#[test]
fn watch_continues_from_version_of_list() {
    let host = with_workloads();
    let watch = "/apis/apps/v1/deployments?watch=true&resourceVersion=1002&fieldSelector=metadata.namespace%3Ddefault";
    let changed = json!({"spec": {"replicas": 5}});
    host.publish_workload(WorkloadKind::Deployment, "default", "web", changed);
    let web = workload(WorkloadKind::Deployment, "default", "web", json!({}));
    host.published.withdraw_workload(&web.key);
    let mut events = host.stream(watch, "application/json");
    let mut next = || {
        let event = events.next().unwrap();
        let version = event["object"]["metadata"]["resourceVersion"].as_str().unwrap();
        (event["type"].as_str().unwrap().to_owned(), version.to_owned())
    };
    assert_eq!(next(), ("MODIFIED".to_owned(), "1003".to_owned()));
    assert_eq!(next(), ("DELETED".to_owned(), "1004".to_owned()));
    let expired = host.stream("/apis/apps/v1/deployments?watch=true&resourceVersion=5", "application/json").next().unwrap();
    assert_eq!((&expired["type"], &expired["object"]["reason"]), (&json!("ERROR"), &json!("Expired")));
    let mut tables = host.stream("/apis/apps/v1/deployments?watch=true", TABLE);
    assert_eq!(tables.next().unwrap()["object"]["rows"][0]["cells"][0], "api");
}

#[test]
fn scale_is_read_only() {
    let host = with_workloads();
    let path = "/apis/apps/v1/namespaces/default/deployments/web/scale";
    let scale = host.get(path);
    assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!((&scale["spec"], &scale["status"]), (&json!({"replicas": 3}), &json!({"replicas": 3, "selector": "app=web"})));
    assert_eq!(cells(&host.get_table(path)), [json!(["web", 3, 3, "3h20m"])]);
    for method in [Method::PUT, Method::PATCH] {
        let (code, status) = host.send(method, path, r#"{"spec": {"replicas": 5}}"#);
        let expected = r#"deployment "web" is managed by source manifests (revision rev1, web.yaml:1:1): edit spec.replicas of its manifest there"#;
        assert_eq!((code, &status["message"]), (405, &json!(expected)));
    }
    assert_eq!(host.send(Method::GET, "/apis/batch/v1/namespaces/default/jobs/dump/scale", "").0, 404);
}

#[test]
fn changes_are_refused_with_their_place() {
    let host = with_workloads();
    let managed = "is managed by source manifests (revision rev1, web.yaml:1:1): change or remove its manifest there";
    let path = "/apis/apps/v1/namespaces/default/deployments/web";
    for method in [Method::DELETE, Method::PUT, Method::PATCH] {
        let (code, status) = host.send(method, path, "{}");
        assert_eq!((code, &status["message"]), (405, &json!(format!("deployment \"web\" {managed}"))));
        assert_eq!(status["reason"], "MethodNotAllowed");
    }
    let restart = r#"{"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "x"}}}}}"#;
    let (_, status) = host.send(Method::PATCH, path, restart);
    assert!(status["message"].as_str().unwrap().contains("to restart its pods, add an annotation"), "{status}");
    let web = workload(WorkloadKind::Deployment, "default", "web", json!({}));
    let metadata = json!({"metadata": {"ownerReferences": [reference_to(&web)]}});
    host.publish_workload(WorkloadKind::ReplicaSet, "default", "web-7d9c", metadata);
    let (_, status) = host.send(Method::DELETE, "/apis/apps/v1/namespaces/default/replicasets/web-7d9c", "");
    assert!(
        status["message"].as_str().unwrap().starts_with(r#"replicaset "web-7d9c" belongs to deployment "web" and is managed by"#)
    );
    let (code, status) = host.send(Method::POST, "/apis/batch/v1/namespaces/default/cronjobs", "{}");
    let expected = "cronjobs cannot be created through the API; add a manifest to a source: manifests (/etc/podstead/manifests)";
    assert_eq!((code, &status["message"]), (405, &json!(expected)));
    let (_, status) = host.send(Method::POST, "/apis/batch/v1/namespaces/default/jobs", "{}");
    assert!(status["message"].as_str().unwrap().ends_with("; podstead job run NAME starts a CronJob now"), "{status}");
    assert_eq!(host.send(Method::DELETE, "/apis/apps/v1/namespaces/default/deployments/nosuch", "").0, 404);
}

#[test]
fn cron_job_run_needs_workloads() {
    let host = with_workloads();
    let path = "/apis/podstead.dev/v1alpha1/namespaces/default/cronjobs/dump/run";
    let (code, status) = host.send(Method::POST, path, "{}");
    assert_eq!((code, &status["message"]), (503, &json!("this daemon does not run workloads")));
    assert_eq!(host.send(Method::GET, path, "").0, 405);
}

#[test]
fn event_of_a_workload_names_it() {
    let host = with_workloads();
    let subject = Subject::Workload {
        uid: "uid-Deployment-shop-api".into(),
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: "shop".into(),
        name: "api".into(),
    };
    host.events.record(&subject, EventType::Normal, "ScalingReplicaSet", "Scaled up replica set api-1 from 0 to 1");
    let selector = "involvedObject.kind%3DDeployment%2CinvolvedObject.uid%3Duid-Deployment-shop-api";
    let events = host.get(&format!("/api/v1/namespaces/shop/events?fieldSelector={selector}"));
    let involved = &events["items"][0]["involvedObject"];
    let expected = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "api", "namespace": "shop", "uid": "uid-Deployment-shop-api",
    });
    assert_eq!(*involved, expected);
    assert_eq!(events["items"][0]["metadata"]["name"], "api.3e9");
}
