//! Discovery, documents of fields, namespaces and the node, by every kubectl of this machine.

use crate::host::{Host, text};
use crate::kubectl::Kubectl;
use podstead::api::services::Shown;
use podstead::pod::SourceId;
use podstead::telemetry::events::{EventRecorder, EventType, Subject};
use serde_json::{Value, json};

#[test]
fn kubectl_discovers_all_kinds() {
    let host = Host::start();
    for kubectl in Kubectl::all(&host) {
        let kinds = kubectl.run(&["api-resources", "--no-headers"]);
        for kind in ["namespaces", "nodes", "pods", "deployments", "endpointslices", "sources", "NodeMetrics", "PodMetrics"] {
            assert!(kinds.contains(kind), "{kind}: {kinds}");
        }
        assert!(kubectl.run(&["api-versions"]).contains("metrics.k8s.io/v1beta1"));
        if kubectl.minor() >= 27 {
            let all = kubectl.run(&["api-resources", "--categories=all", "-o", "name"]);
            assert!(all.contains("deployments.apps") && !all.contains("configmaps"), "{all}");
        }
        assert_eq!(kubectl.run(&["get", "--raw", "/livez?verbose"]), "ok");
    }
}

#[test]
fn kubectl_explains_fields() {
    let host = Host::start();
    for kubectl in Kubectl::all(&host) {
        // Until 1.26 by OpenAPI 2 alone, whose types are called otherwise.
        if kubectl.minor() < 27 {
            let explained = kubectl.run(&["explain", "deploy.spec.template.spec.nodeName"]);
            assert!(explained.contains("<string>") && explained.contains("Name of the host"), "{explained}");
            continue;
        }
        for (field, kind) in [("pod.spec.nodeName", "<string>"), ("deploy.spec", "<Object>"), ("cm.data", "<map[string]string>")] {
            let explained = kubectl.run(&["explain", field]);
            assert!(explained.replace("DeploymentSpec", "Object").contains(kind), "{field}: {explained}");
        }
        assert!(kubectl.run(&["explain", "pod.spec", "--recursive"]).contains("livenessProbe"));
        let node_name = kubectl.run(&["explain", "pod.spec.nodeName"]);
        assert!(
            node_name.contains("Name of the host") && node_name.contains("On this host: only this host's name."),
            "{node_name}"
        );
        let template = kubectl.run(&["explain", "deploy.spec.template.spec.nodeName"]);
        // Folded at a width.
        let words = template.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("no pod is made on a host with another name"), "{template}");
        for kind in ["pods", "deploy", "cj", "svc", "netpol", "pvc", "nodes", "events", "leases", "sources", "images", "pulls"] {
            let explained = kubectl.run(&["explain", kind]);
            assert!(!explained.contains("<empty>") && !explained.contains("<no description>"), "{kind}: {explained}");
            let older = kubectl.run(&["explain", kind, "--output=plaintext-openapiv2"]);
            assert!(older.contains("FIELDS:") && !older.contains("<empty>"), "{kind}: {older}");
        }
        for (field, form) in [
            ("pod.spec.containers", "<[]Object>"),
            ("sts.spec.template.spec", "<Object>"),
            ("job.spec.ttlSecondsAfterFinished", "<integer>"),
        ] {
            let older = kubectl.run(&["explain", field, "--output=plaintext-openapiv2"]);
            assert!(older.contains(form), "{field}: {older}");
        }
        let older = kubectl.run(&["explain", "deploy.spec.template.spec.nodeName", "--output=plaintext-openapiv2"]);
        let words = older.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("no pod is made on a host with another name"), "{older}");
        let unknown = kubectl.output(&["explain", "pod.spec.hostNetwrok"]);
        assert!(text(&unknown.stderr).contains("does not exist"), "{}", text(&unknown.stderr));
    }
}

#[test]
fn kubectl_describes_the_node_with_its_lease() {
    let host = Host::start();
    for kubectl in Kubectl::all(&host) {
        let described = kubectl.run(&["describe", "node", "edge"]);
        assert!(described.contains("HolderIdentity:  edge") && described.contains("RenewTime: "), "{described}");
        assert_eq!(kubectl.run(&["get", "leases", "-A", "-o", "jsonpath={.items[*].spec.holderIdentity}"]), "edge");
    }
}

#[test]
fn kubectl_is_told_cluster_kinds_are_empty() {
    let host = Host::start();
    for kubectl in Kubectl::all(&host) {
        for kind in ["pv", "ingress"] {
            assert_eq!(kubectl.run(&["get", kind, "-o", "name"]), "");
            let missing = text(&kubectl.output(&["get", kind, "x"]).stderr);
            assert!(missing.contains("NotFound"), "{missing}");
        }
    }
    let Some(kubectl) = Kubectl::find(&host) else { return };
    let refused = text(&kubectl.output(&["create", "ingress", "x", "--rule=a.lan/*=web:80"]).stderr);
    assert!(refused.contains("no ingress controller"), "{refused}");
}

#[test]
fn kubectl_finds_documents_for_patches() {
    let host = Host::start();
    let file = host.root.path().join("pod.yaml");
    std::fs::write(&file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}\n").unwrap();
    for kubectl in Kubectl::all(&host) {
        // Until objects can be written: the refusal of the server, and no complaint about documents.
        let applied = kubectl.output(&["apply", "-f", file.to_str().unwrap()]);
        let message = text(&applied.stderr);
        assert!(!message.contains("openapi") && !message.contains("NotFound"), "{message}");
    }
}

#[test]
fn every_kubectl_shows_endpoints() {
    let host = Host::start();
    let ports = json!([{"name": "http", "port": 80, "targetPort": 8080}]);
    let spec = json!({"clusterIP": "10.202.0.7", "ipFamilies": ["IPv4"], "selector": {"app": "web"}, "ports": ports});
    let service = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
    let slice = json!({
        "metadata": {"name": "web-v4", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}}, "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.201.0.5"], "conditions": {"ready": true}}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    });
    host.services.replace(vec![Shown {
        service: serde_json::from_value(service).unwrap(),
        slices: vec![serde_json::from_value(slice).unwrap()],
        source: SourceId::new("manifests"),
    }]);
    for kubectl in Kubectl::all(&host) {
        // Versions up to 1.30 ask for Endpoints, later ones for EndpointSlices.
        let described = kubectl.run(&["describe", "svc", "web", "-n", "shop"]);
        let endpoints = described.lines().find(|line| line.starts_with("Endpoints:")).unwrap_or_default();
        assert!(endpoints.ends_with(" 10.201.0.5:8080"), "1.{}: {described}", kubectl.minor());
        let listed = kubectl.run(&["get", "ep", "-A", "--no-headers"]);
        assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), ["shop", "web", "10.201.0.5:8080", "<unknown>"]);
        assert_eq!(kubectl.run(&["get", "ep", "web", "-n", "shop", "-o", "jsonpath={.subsets[0].addresses[0].ip}"]), "10.201.0.5");
    }
}

#[test]
fn kubectl_describes_node_and_namespaces() {
    let host = Host::start();
    host.publish_running("shop", "web");
    host.events.record(&Subject::Node, EventType::Normal, "Starting", "podstead starts");
    for kubectl in Kubectl::all(&host) {
        let nodes = kubectl.run(&["get", "nodes", "-o", "wide"]);
        assert!(nodes.contains("edge") && nodes.contains("Ready") && nodes.contains("192.0.2.1"), "{nodes}");
        let described = kubectl.run(&["describe", "node", "edge"]);
        for part in ["web-edge", "cpu", "podstead starts", "KubeletReady"] {
            assert!(described.contains(part), "{part}: {described}");
        }
        assert_eq!(kubectl.run(&["get", "ns", "-o", "name"]), "namespace/default\nnamespace/shop\n");
        assert_eq!(kubectl.run(&["get", "ns", "new", "-o", "name"]), "namespace/new\n");
        let missing = kubectl.output(&["get", "pod", "nosuch", "-n", "nosuch"]);
        assert_eq!(text(&missing.stderr).trim(), "Error from server (NotFound): pods \"nosuch\" not found");
    }
}

#[test]
fn aggregated_discovery_has_subresources() {
    let host = Host::start();
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let (code, list) = host.send_with("GET", "/apis", &[("host", "podstead"), ("accept", accept)]);
    assert_eq!(
        (code, &list["kind"], &list["apiVersion"]),
        (200, &json!("APIGroupDiscoveryList"), &json!("apidiscovery.k8s.io/v2"))
    );
    let apps = &list["items"][0];
    assert_eq!(apps["metadata"]["name"], "apps");
    let resources = apps["versions"][0]["resources"].as_array().unwrap();
    let deployments = resources.iter().find(|resource| resource["resource"] == "deployments").unwrap();
    assert_eq!(deployments["categories"], json!(["all"]));
    let subresources: Vec<&Value> =
        deployments["subresources"].as_array().unwrap().iter().map(|subresource| &subresource["subresource"]).collect();
    assert_eq!(subresources, [&json!("status"), &json!("scale")]);
}
