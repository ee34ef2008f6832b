//! Discovery: which groups and resources there are, for kubectl and client libraries.

use super::resource::WorkloadResource;
use super::route::{OWN_GROUP, OWN_VERSION, WorkloadGroup};
use serde_json::{Value, json};

const READ: &[&str] = &["get", "list", "watch"];

fn resource(name: &str, singular: &str, kind: &str, namespaced: bool, verbs: &[&str], short: &[&str]) -> Value {
    json!({
        "name": name, "singularName": singular, "kind": kind, "namespaced": namespaced, "verbs": verbs, "shortNames": short,
    })
}

/// In the category `all`: `kubectl get all` lists it.
fn in_all(mut resource: Value) -> Value {
    resource["categories"] = json!(["all"]);
    resource
}

/// The resources of workloads of a group, with their subresources.
fn workloads(group: &str) -> Vec<Value> {
    let mut resources = Vec::new();
    for names in WorkloadResource::of_group(group) {
        let kind = names.kind.as_str();
        resources.push(in_all(resource(names.plural, names.singular, kind, true, READ, names.short.as_slice())));
        resources.push(resource(&format!("{}/status", names.plural), "", kind, true, &["get"], &[]));
        if names.is_scalable {
            let mut scale = resource(&format!("{}/scale", names.plural), "", "Scale", true, &["get"], &[]);
            (scale["group"], scale["version"]) = (json!("autoscaling"), json!("v1"));
            resources.push(scale);
        }
    }
    resources
}

/// `/api`.
pub(super) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// `/api/v1`.
pub(super) fn core_resources() -> Value {
    let mut resources = vec![
        in_all(resource("pods", "pod", "Pod", true, READ, &["po"])),
        resource("pods/log", "", "Pod", true, &["get"], &[]),
        resource("pods/exec", "", "PodExecOptions", true, &["create", "get"], &[]),
        resource("pods/attach", "", "PodAttachOptions", true, &["create", "get"], &[]),
        resource("pods/portforward", "", "PodPortForwardOptions", true, &["create", "get"], &[]),
        in_all(resource("services", "service", "Service", true, READ, &["svc"])),
        resource("configmaps", "configmap", "ConfigMap", true, READ, &["cm"]),
        resource("secrets", "secret", "Secret", true, READ, &[]),
        resource("persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", true, READ, &["pvc"]),
        resource("events", "event", "Event", true, &["list", "watch"], &["ev"]),
    ];
    resources.extend(workloads(""));
    json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": resources})
}

fn group_versions(name: &str, version: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

fn group(name: &str, version: &str) -> Value {
    let mut group = group_versions(name, version);
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    group
}

/// `/apis`.
pub(super) fn groups() -> Value {
    let mut groups: Vec<Value> = WorkloadGroup::ALL.iter().map(|group| group_versions(group.as_str(), "v1")).collect();
    groups.push(group_versions(SLICE_GROUP, "v1"));
    groups.push(group_versions(OWN_GROUP, OWN_VERSION));
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// The group of EndpointSlices.
const SLICE_GROUP: &str = "discovery.k8s.io";

/// `/apis/discovery.k8s.io`.
pub(super) fn slice_group() -> Value {
    group(SLICE_GROUP, "v1")
}

/// `/apis/discovery.k8s.io/v1`.
pub(super) fn slice_resources() -> Value {
    let slices = resource("endpointslices", "endpointslice", "EndpointSlice", true, READ, &[]);
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{SLICE_GROUP}/v1"), "resources": [slices]})
}

/// `/apis/podstead.dev`.
pub(super) fn own_group() -> Value {
    group(OWN_GROUP, OWN_VERSION)
}

/// `/apis/apps`, `/apis/batch`.
pub(super) fn workload_group(name: WorkloadGroup) -> Value {
    group(name.as_str(), "v1")
}

/// `/apis/apps/v1`, `/apis/batch/v1`.
pub(super) fn workload_resources(group: WorkloadGroup) -> Value {
    let group = group.as_str();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{group}/v1"), "resources": workloads(group)})
}

/// `/apis/podstead.dev/v1alpha1`.
pub(super) fn own_resources() -> Value {
    let resources = [
        resource("sources", "source", "Source", false, READ, &[]),
        resource("sources/prune", "", "Source", false, &["create"], &[]),
        resource("persistentvolumeclaims/prune", "", "PersistentVolumeClaim", true, &["create"], &[]),
        resource("cronjobs/run", "", "CronJob", true, &["create"], &[]),
        resource("images", "image", "Image", false, &["list", "watch"], &[]),
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
