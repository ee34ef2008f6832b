//! Discovery: which groups and resources there are, for kubectl and client libraries.

use super::route::{OWN_GROUP, OWN_VERSION};
use serde_json::{Value, json};

const READ: &[&str] = &["get", "list", "watch"];

fn resource(name: &str, singular: &str, kind: &str, namespaced: bool, verbs: &[&str], short: &[&str]) -> Value {
    json!({
        "name": name, "singularName": singular, "kind": kind, "namespaced": namespaced, "verbs": verbs, "shortNames": short,
    })
}

/// `/api`.
pub(super) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// `/api/v1`.
pub(super) fn core_resources() -> Value {
    let resources = [
        resource("pods", "pod", "Pod", true, READ, &["po"]),
        resource("pods/log", "", "Pod", true, &["get"], &[]),
        resource("pods/exec", "", "PodExecOptions", true, &["create", "get"], &[]),
        resource("pods/attach", "", "PodAttachOptions", true, &["create", "get"], &[]),
        resource("pods/portforward", "", "PodPortForwardOptions", true, &["create", "get"], &[]),
        resource("configmaps", "configmap", "ConfigMap", true, &["get", "list"], &["cm"]),
        resource("secrets", "secret", "Secret", true, &["get", "list"], &[]),
        resource("persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", true, &["get", "list"], &["pvc"]),
        resource("events", "event", "Event", true, &["list", "watch"], &["ev"]),
    ];
    json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": resources})
}

fn own_group_versions() -> Value {
    let version = json!({"groupVersion": format!("{OWN_GROUP}/{OWN_VERSION}"), "version": OWN_VERSION});
    json!({"name": OWN_GROUP, "versions": [version], "preferredVersion": version})
}

/// `/apis`.
pub(super) fn groups() -> Value {
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [own_group_versions()]})
}

/// `/apis/podstead.dev`.
pub(super) fn own_group() -> Value {
    let mut group = own_group_versions();
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    group
}

/// `/apis/podstead.dev/v1alpha1`.
pub(super) fn own_resources() -> Value {
    let resources = [
        resource("sources", "source", "Source", false, &["get", "list"], &[]),
        resource("sources/prune", "", "Source", false, &["create"], &[]),
        resource("persistentvolumeclaims/prune", "", "PersistentVolumeClaim", true, &["create"], &[]),
        resource("images", "image", "Image", false, &["list"], &[]),
    ];
    let group_version = format!("{OWN_GROUP}/{OWN_VERSION}");
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
}

/// `/version`. Clients compare the numbers with their own: they are those of the Kubernetes API that the objects are of.
pub(super) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "34",
        "gitVersion": format!("v1.34.0+podstead{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// The architecture in Go's words, as clients expect it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
