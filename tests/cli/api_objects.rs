//! ConfigMaps and Secrets over the API and on the command line: what a Secret holds is not told.

use crate::host::{Host, NODE};
use podstead::api::services::Shown;
use podstead::pod::SourceId;
use podstead::pod::objects::{Object, ObjectKind, ObjectName, Objects};
use podstead::pod::sharing::Sharing;
use serde_json::json;
use std::sync::Arc;

/// A host with one ConfigMap and one Secret.
fn host() -> Host {
    let host = Host::start();
    let source = SourceId::new("manifests");
    let mut view = Objects::new(Arc::new(Sharing::from([source.clone()])), |_| true);
    let name = |kind, name: &str| ObjectName { kind, namespace: "shop".into(), name: name.into() };
    let config_map = json!({"metadata": {"name": "web"}, "data": {"MODE": "fast"}, "binaryData": {"logo": "AAEC"}});
    let config_map = Object::ConfigMap(Arc::new(serde_json::from_value(config_map).unwrap()));
    let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
    let secret =
        json!({"metadata": {"name": "db", "annotations": {last_applied: "hunter2"}}, "data": {"password": "aHVudGVyMg=="}});
    let secret = Object::Secret(Arc::new(serde_json::from_value(secret).unwrap()));
    assert!(view.add(&source, name(ObjectKind::ConfigMap, "web"), config_map).is_none());
    assert!(view.add(&source, name(ObjectKind::Secret, "db"), secret).is_none());
    host.objects.replace(Arc::new(view));
    host
}

#[test]
fn config_maps_show_data_and_source() {
    let host = host();
    let list = host.get("/api/v1/configmaps");
    assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&json!("ConfigMapList"), 1));
    let one = host.get("/api/v1/namespaces/shop/configmaps/web");
    assert_eq!(one, list["items"][0]);
    assert_eq!((&one["data"]["MODE"], &one["metadata"]["namespace"]), (&json!("fast"), &json!("shop")));
    assert_eq!(one["metadata"]["annotations"]["podstead.dev/source"], "manifests");
    assert_eq!(
        host.get_table("/api/v1/configmaps")["rows"][0]["cells"],
        json!(["web", "2", "<unknown>", "manifests", "MODE, logo"])
    );
    assert_eq!(host.get("/api/v1/namespaces/other/configmaps")["items"], json!([]));
}

#[test]
fn secrets_show_only_keys_and_sizes() {
    let host = host();
    let one = host.get("/api/v1/namespaces/shop/secrets/db");
    assert_eq!(one["metadata"]["annotations"]["podstead.dev/keys"], "password (7 bytes)");
    assert_eq!(one["type"], "Opaque");
    let mut told = vec![
        one.to_string(),
        host.get("/api/v1/secrets").to_string(),
        host.get_table("/api/v1/secrets?includeObject=Object").to_string(),
    ];
    for output in ["table", "wide", "json", "yaml", "name"] {
        told.push(host.run(&["get", "secrets", "-o", output]));
        told.push(host.run(&["get", "secret", "db", "-n", "shop", "-o", output]));
    }
    for text in told {
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
    }
}

#[test]
fn objects_are_listed_on_the_command_line() {
    let host = host();
    assert_eq!(host.run(&["get", "cm"]), "NAMESPACE   NAME   DATA   AGE\nshop        web    2      <unknown>\n");
    let secrets = host.run(&["get", "secrets", "-o", "wide"]);
    assert_eq!(
        secrets,
        "NAMESPACE   NAME   TYPE     DATA   AGE         SOURCE      KEYS\n\
         shop        db     Opaque   1      <unknown>   manifests   password (7 bytes)\n"
    );
    let (code, message) = host.fail(&["get", "configmap", "none", "-n", "shop"]);
    assert_eq!(code, 1);
    assert!(message.contains("configmap \"none\" not found in namespace \"shop\" (looked in source manifests)"), "{message}");
}

#[test]
fn all_types_are_listed_together() {
    let host = host();
    let ports = json!([{"port": 80, "nodePort": 30080}]);
    let spec = json!({"type": "NodePort", "clusterIP": "10.202.0.7", "selector": {"app": "web"}, "ports": ports});
    let service = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
    let slice = json!({"metadata": {"name": "web-v4", "namespace": "shop"}, "addressType": "IPv4", "endpoints": []});
    host.services.replace(vec![Shown {
        service: serde_json::from_value(service).unwrap(),
        slices: vec![serde_json::from_value(slice).unwrap()],
        source: SourceId::new("manifests"),
    }]);
    host.publish_running("shop", "front");
    let all = host.run(&["get", "all", "-n", "shop"]);
    let (pods, services) = all.split_once("\n\n").unwrap_or_else(|| panic!("{all}"));
    assert!(pods.contains("\npod/front-edge "), "{all}");
    assert_eq!(
        services,
        "NAME          TYPE       CLUSTER-IP   EXTERNAL-IP   PORT(S)        AGE\n\
         service/web   NodePort   10.202.0.7   <none>        80:30080/TCP   <unknown>\n"
    );
    assert_eq!(host.run(&["get", "svc", "web", "-o", "jsonpath={.spec.clusterIP}"]), "10.202.0.7");
    assert_eq!(host.run(&["get", "svc,cm", "-o", "name"]), "service/web\nconfigmap/web\n");
    assert_eq!(host.run(&["get", "endpointslices", "-o", "name"]), "endpointslice.discovery.k8s.io/web-v4\n");
    assert_eq!(host.run(&["get", "cm/web", "-o", "jsonpath={.data.MODE}"]), "fast");
    let nodes = host.run(&["get", "nodes"]);
    assert!(nodes.starts_with("NAME   STATUS") && nodes.contains("\nedge   "), "{nodes}");
    assert_eq!(host.run(&["get", "node", NODE, "-o", "name"]), "node/edge\n");
    assert!(host.run(&["get", "ns", "-o", "name"]).contains("namespace/shop\n"));
    for arguments in [&["describe", "node/edge"][..], &["describe", "node"], &["describe", "nodes", "edge"]] {
        let described = host.run(arguments);
        assert!(described.contains("Name:                edge") && described.contains("Node Info:"), "{described}");
    }
    let (code, message) = host.fail(&["describe", "node", "other"]);
    assert!(code == 1 && message.contains("node \"other\" not found"), "{message}");
}
