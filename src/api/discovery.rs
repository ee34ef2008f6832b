//! Discovery: which groups and resources there are, for kubectl and client libraries.

use super::kinds::{CONTROLLER_REVISIONS, Review};
use super::kinds::{OWN_GROUP, OWN_VERSION};
use super::resource::WorkloadResource;
use super::respond::{self, Answer};
use super::route::{METRICS_GROUP, WorkloadGroup};
use super::{event_api, leases, networking, storage};
use hyper::{HeaderMap, header};
use podstead_expand::CONTROLLER_REVISION;
use serde_json::{Value, json};

const READ: &[&str] = &["get", "list", "watch"];

fn resource(name: &str, singular: &str, kind: &str, namespaced: bool, verbs: &[&str], short: &[&str]) -> Value {
    json!({
        "name": name, "singularName": singular, "kind": kind, "namespaced": namespaced, "verbs": verbs, "shortNames": short,
    })
}

/// Verbs of objects that clients may write to the writable source.
const WRITE: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

/// Resources of which a writable source may have objects.
pub(super) const WRITTEN: &[&str] = &[
    "pods",
    "services",
    "configmaps",
    "secrets",
    "persistentvolumeclaims",
    "namespaces",
    networking::PLURAL,
    "replicationcontrollers",
    "deployments",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "jobs",
    "cronjobs",
];

/// A list of resources with the verbs that they have: those of the writable source, if there is one. Without one, `delete` of a pod restarts it.
fn with_verbs(mut list: Value, is_writable: bool) -> Value {
    for entry in list["resources"].as_array_mut().into_iter().flatten() {
        let name = entry["name"].as_str().unwrap_or_default();
        let scaled = name.strip_suffix("/scale");
        let verbs = match (scaled, is_writable) {
            (None, true) if WRITTEN.contains(&name) => json!(WRITE),
            (Some(plural), true) if WRITTEN.contains(&plural) => json!(["get", "patch", "update"]),
            (None, false) if name == "pods" => json!(["delete", "get", "list", "watch"]),
            (_, _) => continue,
        };
        entry["verbs"] = verbs;
    }
    list
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
    if group == "apps" {
        resources.push(resource(CONTROLLER_REVISIONS, "controllerrevision", CONTROLLER_REVISION, true, READ, &[]));
    }
    resources
}

/// `/api`.
pub(super) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// `/api/v1`.
pub(super) fn core_resources(is_writable: bool) -> Value {
    let mut resources = vec![
        in_all(resource("pods", "pod", "Pod", true, READ, &["po"])),
        resource("pods/status", "", "Pod", true, &["get"], &[]),
        resource("pods/log", "", "Pod", true, &["get"], &[]),
        resource("pods/exec", "", "PodExecOptions", true, &["create", "get"], &[]),
        resource("pods/attach", "", "PodAttachOptions", true, &["create", "get"], &[]),
        resource("pods/portforward", "", "PodPortForwardOptions", true, &["create", "get"], &[]),
        eviction(),
        in_all(resource("services", "service", "Service", true, READ, &["svc"])),
        resource("configmaps", "configmap", "ConfigMap", true, READ, &["cm"]),
        resource("secrets", "secret", "Secret", true, READ, &[]),
        resource("persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", true, READ, &["pvc"]),
        resource("endpoints", "endpoints", "Endpoints", true, READ, &["ep"]),
        resource(event_api::PLURAL, "event", "Event", true, READ, &["ev"]),
        resource("namespaces", "namespace", "Namespace", false, READ, &["ns"]),
        resource("nodes", "node", "Node", false, READ, &["no"]),
        resource("persistentvolumes", "persistentvolume", "PersistentVolume", false, READ, &["pv"]),
    ];
    resources.extend(workloads(""));
    with_verbs(json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": resources}), is_writable)
}

/// Evictions are refused; without them `kubectl drain` deletes pods.
fn eviction() -> Value {
    let mut eviction = resource("pods/eviction", "", "Eviction", true, &["create"], &[]);
    (eviction["group"], eviction["version"]) = (json!("policy"), json!("v1"));
    eviction
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
    groups.push(group_versions(leases::GROUP, "v1"));
    groups.push(group_versions(SLICE_GROUP, "v1"));
    groups.push(group_versions(networking::GROUP, "v1"));
    groups.push(group_versions(storage::GROUP, "v1"));
    groups.push(group_versions(event_api::GROUP, "v1"));
    groups.push(group_versions(METRICS_GROUP, METRICS_VERSION));
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

/// `/apis/coordination.k8s.io`.
pub(super) fn lease_group() -> Value {
    group(leases::GROUP, "v1")
}

/// `/apis/coordination.k8s.io/v1`.
pub(super) fn lease_resources() -> Value {
    let leases = resource(leases::PLURAL, "lease", "Lease", true, READ, &[]);
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": leases::API_VERSION, "resources": [leases]})
}

/// `/apis/networking.k8s.io`.
pub(super) fn networking_group() -> Value {
    group(networking::GROUP, "v1")
}

/// `/apis/networking.k8s.io/v1`.
pub(super) fn networking_resources(is_writable: bool) -> Value {
    let resources = [
        resource(networking::PLURAL, "networkpolicy", networking::KIND, true, READ, &["netpol"]),
        resource(networking::INGRESSES, "ingress", "Ingress", true, READ, &["ing"]),
    ];
    let list = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": networking::API_VERSION, "resources": resources,
    });
    with_verbs(list, is_writable)
}

/// `/apis/storage.k8s.io`.
pub(super) fn storage_group() -> Value {
    group(storage::GROUP, "v1")
}

/// `/apis/storage.k8s.io/v1`.
pub(super) fn storage_resources() -> Value {
    let classes = resource(storage::PLURAL, "storageclass", storage::KIND, false, READ, &["sc"]);
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": storage::API_VERSION, "resources": [classes]})
}

/// `/apis/events.k8s.io`.
pub(super) fn event_group() -> Value {
    group(event_api::GROUP, "v1")
}

/// `/apis/events.k8s.io/v1`.
pub(super) fn event_resources() -> Value {
    let resources = [resource(event_api::PLURAL, "event", "Event", true, READ, &["ev"])];
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": event_api::API_VERSION, "resources": resources})
}

const METRICS_VERSION: &str = "v1beta1";

/// `/apis/metrics.k8s.io`.
pub(super) fn metrics_group() -> Value {
    group(METRICS_GROUP, METRICS_VERSION)
}

/// `/apis/metrics.k8s.io/v1beta1`.
pub(super) fn metrics_resources() -> Value {
    let verbs = &["get", "list"];
    let resources = [resource("nodes", "", "NodeMetrics", false, verbs, &[]), resource("pods", "", "PodMetrics", true, verbs, &[])];
    let group_version = format!("{METRICS_GROUP}/{METRICS_VERSION}");
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
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
pub(super) fn workload_resources(group: WorkloadGroup, is_writable: bool) -> Value {
    let group = group.as_str();
    let group_version = format!("{group}/v1");
    let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": workloads(group)});
    with_verbs(list, is_writable)
}

/// `/apis/podstead.dev/v1alpha1`.
pub(super) fn own_resources() -> Value {
    let resources = [
        resource("sources", "source", "Source", false, READ, &[]),
        resource("sources/prune", "", "Source", false, &["create"], &[]),
        resource("persistentvolumeclaims/prune", "", "PersistentVolumeClaim", true, &["create"], &[]),
        resource("cronjobs/run", "", "CronJob", true, &["create"], &[]),
        resource("images", "image", "Image", false, READ, &[]),
        resource("pulls", "pull", "Pull", false, READ, &[]),
    ];
    let group_version = format!("{OWN_GROUP}/{OWN_VERSION}");
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
}

/// The version of aggregated discovery that a client accepts: all resources in one answer.
fn aggregated_version(headers: &HeaderMap) -> Option<&'static str> {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut forms = accepted.flat_map(|value| value.split(','));
    forms.find_map(|form| {
        let parameters: Vec<&str> = form.split(';').map(str::trim).collect();
        let is_aggregated = parameters.contains(&"g=apidiscovery.k8s.io") && parameters.contains(&"as=APIGroupDiscoveryList");
        ["v2", "v2beta1"].into_iter().find(|version| is_aggregated && parameters.contains(&format!("v={version}").as_str()))
    })
}

/// `/api`.
pub(super) fn core(headers: &HeaderMap, is_writable: bool) -> Answer {
    match aggregated_version(headers) {
        Some(version) => aggregated(version, &[("", "v1", core_resources(is_writable))]),
        None => respond::json(&core_versions()),
    }
}

/// `/apis`.
pub(super) fn all_groups(headers: &HeaderMap, is_writable: bool) -> Answer {
    let Some(version) = aggregated_version(headers) else { return respond::json(&groups()) };
    let mut groups: Vec<(&str, &str, Value)> =
        WorkloadGroup::ALL.into_iter().map(|group| (group.as_str(), "v1", workload_resources(group, is_writable))).collect();
    groups.push((leases::GROUP, "v1", lease_resources()));
    groups.push((SLICE_GROUP, "v1", slice_resources()));
    groups.push((networking::GROUP, "v1", networking_resources(is_writable)));
    groups.push((storage::GROUP, "v1", storage_resources()));
    groups.push((event_api::GROUP, "v1", event_resources()));
    groups.push((METRICS_GROUP, METRICS_VERSION, metrics_resources()));
    groups.push((OWN_GROUP, OWN_VERSION, own_resources()));
    aggregated(version, &groups)
}

/// Reports whether clients can have anything to do with this resource: it is served, or a review.
pub(super) fn is_served(group: &str, plural: &str) -> bool {
    let named = |list: Value| list["resources"].as_array().is_some_and(|list| list.iter().any(|entry| entry["name"] == plural));
    match group {
        "" => named(core_resources(true)),
        METRICS_GROUP => named(metrics_resources()),
        networking::GROUP => named(networking_resources(true)),
        storage::GROUP => named(storage_resources()),
        leases::GROUP => named(lease_resources()),
        event_api::GROUP => named(event_resources()),
        SLICE_GROUP => named(slice_resources()),
        // Not all that is served there is in discovery.
        OWN_GROUP => true,
        group => {
            Review::named(group, plural).is_some() || WorkloadResource::find(group, plural).is_some() || {
                group == "apps" && plural == CONTROLLER_REVISIONS
            }
        }
    }
}

/// Lists of resources as one answer.
fn aggregated(version: &'static str, groups: &[(&str, &str, Value)]) -> Answer {
    let items: Vec<Value> = groups
        .iter()
        .map(|(group, group_version, list)| {
            let resources = aggregated_resources(group, group_version, list);
            let versions = json!([{"version": group_version, "resources": resources, "freshness": "Current"}]);
            let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let api_version = format!("apidiscovery.k8s.io/{version}");
    let body = json!({"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items});
    let content_type = match version {
        "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    };
    respond::bytes(content_type, body.to_string().into_bytes())
}

/// The resources of a list, each with its subresources.
fn aggregated_resources(group: &str, version: &str, list: &Value) -> Vec<Value> {
    let mut resources: Vec<Value> = Vec::new();
    for entry in list["resources"].as_array().into_iter().flatten() {
        let (group, version) = (entry["group"].as_str().unwrap_or(group), entry["version"].as_str().unwrap_or(version));
        let kind = json!({"group": group, "version": version, "kind": entry["kind"]});
        let name = entry["name"].as_str().unwrap_or_default();
        match name.split_once('/') {
            None => {
                let scope = if entry["namespaced"] == true { "Namespaced" } else { "Cluster" };
                let mut resource = json!({
                    "resource": name, "responseKind": kind, "scope": scope, "singularResource": entry["singularName"],
                    "verbs": entry["verbs"], "subresources": [],
                });
                // kube-rs refuses a list that is null.
                for field in ["shortNames", "categories"] {
                    if entry[field].is_array() {
                        resource[field] = entry[field].clone();
                    }
                }
                resources.push(resource);
            }
            Some((resource, subresource)) => {
                let parent = resources.iter_mut().find(|parent| parent["resource"] == resource);
                let subresources = parent.and_then(|parent| parent["subresources"].as_array_mut());
                if let Some(subresources) = subresources {
                    subresources.push(json!({"subresource": subresource, "responseKind": kind, "verbs": entry["verbs"]}));
                }
            }
        }
    }
    resources
}

/// `/version`. Clients compare the numbers with their own, and warn if they are more than one apart.
pub(super) fn version() -> Value {
    let (major, minor) = podstead_pod::KUBERNETES_RELEASE;
    json!({
        "major": major.to_string(),
        "minor": minor.to_string(),
        "gitVersion": podstead_pod::kubernetes_version(),
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
