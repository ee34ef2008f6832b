//! Workloads as served by the daemon, and the pods that they own.

use super::client::{Client, ClientError};
use super::endpoints::slices_of;
use super::object_type::ObjectType;
use super::pod_name::PodNameError;
use super::pods::{self, FindPodError, ServedList, namespace_of};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use podstead_api::WORKLOAD_KINDS;
use podstead_api::published::SOURCE_ANNOTATION;
use podstead_manifest::ObjectKey;
use podstead_workload::object::WorkloadKind;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Workloads that may be above a pod.
const MAX_OWNERS: usize = 2;

/// Errors of finding a workload by name, or a pod of it.
#[derive(Debug, thiserror::Error)]
pub(super) enum FindWorkloadError {
    /// The daemon did not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// No workload is called so.
    #[error("{kind} {name:?} not found{}{}", in_namespace(.namespace.as_deref()), .suggestion.as_ref().map(|near| format!(", did you mean {near:?}?")).unwrap_or_default())]
    NotFound {
        /// The resource, such as `deployments.apps`.
        kind: &'static str,
        /// As given.
        name: String,
        /// As given.
        namespace: Option<String>,
        /// The name of one that is close.
        suggestion: Option<String>,
    },
    /// Several workloads are called so.
    #[error("{kind} {name:?} exists in several namespaces: {}; choose one with -n", namespaces.join(", "))]
    Ambiguous {
        /// The resource.
        kind: &'static str,
        /// As given.
        name: String,
        /// The namespaces with one.
        namespaces: Vec<String>,
    },
    /// It has no pods.
    #[error("{object} has no pods; podstead describe {object} shows more")]
    NoPods {
        /// `deployment.apps/web`.
        object: String,
    },
    /// The type has no pods.
    #[error("{0} have no logs and no containers; name a pod, a workload such as deploy/web, or a Service such as svc/web")]
    NoWorkload(&'static str),
    /// The name means no pod.
    #[error(transparent)]
    Pod(#[from] PodNameError),
    /// The argument is no pod and no `TYPE/NAME`.
    #[error("{0}")]
    BadReference(String),
}

impl FindWorkloadError {
    /// The error of the request, if it is one.
    pub(super) fn client(&self) -> Option<&ClientError> {
        match self {
            Self::Client(error) => Some(error),
            Self::NotFound { .. }
            | Self::Ambiguous { .. }
            | Self::NoPods { .. }
            | Self::NoWorkload(_)
            | Self::Pod(_)
            | Self::BadReference(_) => None,
        }
    }
}

fn in_namespace(namespace: Option<&str>) -> String {
    namespace.map(|namespace| format!(" in namespace {namespace:?}")).unwrap_or_default()
}

/// A field of `metadata` that is a text.
pub(super) fn metadata<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// The value of an annotation.
pub(super) fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][name].as_str()
}

/// Workloads of a kind, of a namespace or of all. None where the daemon is older than workloads.
pub(super) async fn list(client: &Client, kind: WorkloadKind, namespace: Option<&str>) -> Result<Vec<Value>, ClientError> {
    list_objects(client, ObjectType::Workload(kind), namespace).await
}

/// Objects of a type, of a namespace or of all. None where the daemon is older than the type.
async fn list_objects(client: &Client, object_type: ObjectType, namespace: Option<&str>) -> Result<Vec<Value>, ClientError> {
    match client.get::<ServedList>(object_type.collection(namespace)).await {
        Ok(list) => Ok(list.items),
        Err(ClientError::Refused { code: 404, .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Workloads of all kinds.
pub(super) async fn list_all(client: &Client) -> Result<Vec<Value>, ClientError> {
    let mut all = Vec::new();
    for kind in WORKLOAD_KINDS {
        all.extend(list(client, kind, None).await?);
    }
    Ok(all)
}

/// The workload that a name on the command line means.
pub(super) async fn find(
    client: &Client,
    kind: WorkloadKind,
    name: &str,
    namespace: Option<&str>,
) -> Result<Value, FindWorkloadError> {
    find_object(client, ObjectType::Workload(kind), name, namespace).await
}

/// The object that a name on the command line means.
pub(super) async fn find_object(
    client: &Client,
    object_type: ObjectType,
    name: &str,
    namespace: Option<&str>,
) -> Result<Value, FindWorkloadError> {
    let mut items = list_objects(client, object_type, namespace).await?;
    only(&mut items, object_type, name, namespace)
}

/// Takes the one with this name.
fn only(items: &mut Vec<Value>, object_type: ObjectType, name: &str, namespace: Option<&str>) -> Result<Value, FindWorkloadError> {
    let resource = object_type.qualified_plural();
    let suggestion = nearest(items.iter().map(|item| metadata(item, "name")), name);
    items.retain(|item| metadata(item, "name") == name);
    match (items.pop(), items.as_slice()) {
        (Some(item), []) => Ok(item),
        (None, _) => {
            let (name, namespace) = (name.to_owned(), namespace.map(str::to_owned));
            Err(FindWorkloadError::NotFound { kind: resource, name, namespace, suggestion })
        }
        (Some(last), others) => {
            let namespaces = others.iter().chain([&last]).map(|item| metadata(item, "namespace").to_owned()).collect();
            Err(FindWorkloadError::Ambiguous { kind: resource, name: name.to_owned(), namespaces })
        }
    }
}

/// The name that is closest to a misspelt one.
pub(super) fn nearest<'a>(names: impl Iterator<Item = &'a str>, name: &str) -> Option<String> {
    let distances = names.map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate));
    let near = distances.filter(|(distance, _)| *distance <= 2.min(name.len() / 2)).min();
    near.map(|(_, candidate)| candidate.to_owned())
}

/// True if the object with this UID is the controller of the object.
pub(super) fn is_controlled_by(object: &Value, uid: &str) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|owner| owner["controller"] == true && owner["uid"] == uid)
}

/// Kind and name of the workload that made a pod, such as `ReplicaSet/web-7d9c8f4b5`.
pub(super) fn controller_of(pod: &Pod) -> Option<(&str, &str)> {
    let owners = pod.metadata.owner_references.iter().flatten();
    let owner = owners.into_iter().find(|owner| owner.controller == Some(true))?;
    Some((&owner.kind, &owner.name))
}

/// The workloads above a pod, such as its ReplicaSet and the Deployment of that.
pub(super) async fn owners_of(client: &Client, pod: &Pod) -> Result<Vec<ObjectKey>, ClientError> {
    let mut owners = Vec::new();
    let mut next = controller_of(pod).map(|(kind, name)| (kind.to_owned(), name.to_owned()));
    // A Deployment or a CronJob is the second one, and nothing owns these.
    while let (Some((kind, name)), true) = (next.take(), owners.len() < MAX_OWNERS) {
        let objects = match WorkloadKind::named(&kind) {
            Some(kind) => list(client, kind, Some(namespace_of(pod))).await?,
            None => break,
        };
        next = objects.iter().find(|object| metadata(object, "name") == name).and_then(controller_in);
        owners.push(ObjectKey { kind: kind.into(), namespace: namespace_of(pod).into(), name: name.into() });
    }
    Ok(owners)
}

/// Kind and name of the controller of an object.
fn controller_in(object: &Value) -> Option<(String, String)> {
    let owner = object["metadata"]["ownerReferences"].as_array()?.iter().find(|owner| owner["controller"] == true)?;
    Some((owner["kind"].as_str()?.to_owned(), owner["name"].as_str()?.to_owned()))
}

/// The pods of a workload, those of its ReplicaSets or Jobs included.
pub(super) async fn pods_of(client: &Client, kind: WorkloadKind, workload: &Value) -> Result<Vec<Pod>, ClientError> {
    let namespace = Some(metadata(workload, "namespace"));
    let uid = metadata(workload, "uid");
    let between = match kind {
        WorkloadKind::Deployment => Some(WorkloadKind::ReplicaSet),
        WorkloadKind::CronJob => Some(WorkloadKind::Job),
        WorkloadKind::StatefulSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::ReplicaSet
        | WorkloadKind::ReplicationController
        | WorkloadKind::Job => None,
    };
    let mut owners: BTreeSet<String> = [uid.to_owned()].into();
    if let Some(between) = between {
        let made = list(client, between, namespace).await?;
        owners.extend(made.iter().filter(|object| is_controlled_by(object, uid)).map(|object| metadata(object, "uid").to_owned()));
    }
    let is_owned = |pod: &Pod| {
        let references = pod.metadata.owner_references.iter().flatten();
        references.into_iter().any(|owner| owner.controller == Some(true) && owners.contains(&owner.uid))
    };
    Ok(pods::list(client, namespace).await?.into_iter().filter(is_owned).collect())
}

/// The pods that a Service selects; none without a selector.
async fn pods_behind(client: &Client, service: &Value) -> Result<Vec<Pod>, ClientError> {
    let pods = pods::list(client, Some(metadata(service, "namespace"))).await?;
    Ok(selected(service, pods, &slices_of(client, service).await?))
}

/// The pods among these that a Service selects. One of another source counts if it is an endpoint: a source with `allow` is apart from others.
fn selected(service: &Value, pods: Vec<Pod>, slices: &[EndpointSlice]) -> Vec<Pod> {
    let wanted = service["spec"]["selector"].as_object().cloned().unwrap_or_default();
    let has = |pod: &Pod, key: &str, value: &Value| {
        let labels = pod.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(key)).map(String::as_str) == value.as_str()
    };
    let targets = slices.iter().flat_map(|slice| &slice.endpoints).filter_map(|endpoint| endpoint.target_ref.as_ref());
    let targets: Vec<&str> = targets.filter_map(|target| target.uid.as_deref()).collect();
    let may_be_behind = |pod: &Pod| {
        pods::annotation(pod, SOURCE_ANNOTATION) == annotation(service, SOURCE_ANNOTATION)
            || pod.metadata.uid.as_deref().is_some_and(|uid| targets.contains(&uid))
    };
    let is_selected = |pod: &Pod| !wanted.is_empty() && wanted.iter().all(|(key, value)| has(pod, key, value));
    pods.into_iter().filter(|pod| is_selected(pod) && may_be_behind(pod)).collect()
}

/// The Service that an argument names, such as `svc/web`; `None` if it names something else.
pub(super) async fn service_meant(
    client: &Client,
    argument: &str,
    namespace: Option<&str>,
) -> Result<Option<Value>, FindWorkloadError> {
    match super::object_type::parse_object(argument) {
        Ok((ObjectType::Service, name)) => find_object(client, ObjectType::Service, &name, namespace).await.map(Some),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// The pods that an argument means: one for a pod, the best first for a workload or a Service (`deploy/web`, `svc/web`).
pub(super) async fn pods_meant(client: &Client, argument: &str, namespace: Option<&str>) -> Result<Vec<Pod>, FindWorkloadError> {
    if !argument.contains('/') {
        return Ok(vec![one_pod(client, argument, namespace).await?]);
    }
    let (object_type, name) = super::object_type::parse_object(argument).map_err(FindWorkloadError::BadReference)?;
    let mut pods = match object_type {
        ObjectType::Pod => return Ok(vec![one_pod(client, &name, namespace).await?]),
        ObjectType::Workload(kind) => pods_of(client, kind, &find(client, kind, &name, namespace).await?).await?,
        ObjectType::Service => pods_behind(client, &find_object(client, object_type, &name, namespace).await?).await?,
        ObjectType::ConfigMap
        | ObjectType::Secret
        | ObjectType::PersistentVolumeClaim
        | ObjectType::EndpointSlice
        | ObjectType::NetworkPolicy
        | ObjectType::Namespace
        | ObjectType::Node
        | ObjectType::Event
        | ObjectType::Source
        | ObjectType::Image
        | ObjectType::Pull => {
            return Err(FindWorkloadError::NoWorkload(object_type.qualified_plural()));
        }
    };
    if pods.is_empty() {
        return Err(FindWorkloadError::NoPods { object: format!("{}/{name}", object_type.qualified_singular()) });
    }
    pods.sort_by_cached_key(rank);
    Ok(pods)
}

/// The pod of that name.
pub(super) async fn one_pod(client: &Client, name: &str, namespace: Option<&str>) -> Result<Pod, FindWorkloadError> {
    pods::find(client, name, namespace).await.map_err(|error| match error {
        FindPodError::Client(error) => FindWorkloadError::Client(error),
        FindPodError::Name(error) => FindWorkloadError::Pod(error),
    })
}

/// The pod that an argument means. Of several pods of a workload it is the best one, which is named on stderr.
pub(super) async fn choose_pod(client: &Client, argument: &str, namespace: Option<&str>) -> anyhow::Result<Pod> {
    let mut pods = pods_meant(client, argument, namespace).await?;
    let pod = pods.remove(0);
    if !pods.is_empty() {
        writeln!(io::stderr(), "Found {} pods, using pod/{}", pods.len() + 1, pods::name_of(&pod))?;
    }
    Ok(pod)
}

/// Sorts the best pod first: running before waiting, ready before not ready, of ready ones the one that is ready for longest (the order of
/// kubectl), of others the newest. A pod that is being stopped comes after those that stay, one that has ended after those that run.
fn rank(pod: &Pod) -> (bool, u8, bool, i64, Reverse<Timestamp>, String) {
    let status = pod.status.as_ref();
    let phase = match status.and_then(|status| status.phase.as_deref()) {
        Some("Running") => 0,
        Some("Unknown") => 1,
        Some("Pending") => 2,
        Some(_) | None => 3,
    };
    let ready = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = ready.into_iter().find(|condition| condition.type_ == "Ready" && condition.status == "True");
    let since = ready.and_then(|ready| ready.last_transition_time.as_ref()).map_or(0, |time| time.0.as_second());
    let created = pod.metadata.creation_timestamp.as_ref().map_or(Timestamp::MIN, |time| time.0);
    let is_stopping = pod.metadata.deletion_timestamp.is_some();
    let name = format!("{}/{}", namespace_of(pod), pods::name_of(pod));
    (is_stopping, phase, ready.is_none(), since, Reverse(created), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, created: &str, phase: &str, ready_since: Option<&str>) -> Pod {
        let conditions: Vec<Value> =
            ready_since.map(|since| json!({"type": "Ready", "status": "True", "lastTransitionTime": since})).into_iter().collect();
        serde_json::from_value(json!({
            "metadata": {"name": name, "creationTimestamp": created},
            "status": {"phase": phase, "conditions": conditions},
        }))
        .unwrap()
    }

    #[test]
    fn service_means_pods_of_its_source_and_its_endpoints() {
        let of = |name: &str, app: &str, source: &str| -> Pod {
            let metadata = json!({"name": name, "uid": name, "labels": {"app": app}, "annotations": {SOURCE_ANNOTATION: source}});
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        };
        let pods =
            vec![of("own", "web", "site"), of("other", "db", "site"), of("tenant", "web", "tenant"), of("shared", "web", "fleet")];
        let service =
            json!({"metadata": {"name": "web", "annotations": {SOURCE_ANNOTATION: "site"}}, "spec": {"selector": {"app": "web"}}});
        let slice = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.201.0.1"], "targetRef": {"uid": "shared"}}]});
        let slices = [serde_json::from_value(slice).unwrap()];
        let names: Vec<_> = selected(&service, pods.clone(), &slices).into_iter().filter_map(|pod| pod.metadata.name).collect();
        assert_eq!(names, ["own", "shared"]);
        assert_eq!(selected(&json!({"metadata": {"name": "free"}, "spec": {}}), pods, &[]), []);
    }

    #[test]
    fn ready_pod_comes_before_others() {
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
        let mut stopping = pod("stopping", early, "Running", Some(early));
        stopping.metadata.deletion_timestamp = stopping.metadata.creation_timestamp.clone();
        let mut pods = [
            stopping,
            pod("ended-old", early, "Succeeded", None),
            pod("ended-new", late, "Succeeded", None),
            pod("pending", early, "Pending", None),
            pod("running", early, "Running", None),
            pod("ready-late", early, "Running", Some(late)),
            pod("ready-early", early, "Running", Some(early)),
        ];
        pods.sort_by_cached_key(rank);
        let names: Vec<&str> = pods.iter().map(pods::name_of).collect();
        assert_eq!(names, ["ready-early", "ready-late", "running", "pending", "ended-new", "ended-old", "stopping"]);
    }

    #[test]
    fn name_must_mean_one_workload() {
        let item = |namespace: &str, name: &str| json!({"metadata": {"name": name, "namespace": namespace}});
        let find = |name: &str, namespace: Option<&str>| {
            let mut items = vec![item("default", "web"), item("shop", "web"), item("shop", "api")];
            items.retain(|item| namespace.is_none_or(|namespace| metadata(item, "namespace") == namespace));
            only(&mut items, ObjectType::Workload(WorkloadKind::Deployment), name, namespace)
                .map(|item| metadata(&item, "namespace").to_owned())
                .map_err(|error| error.to_string())
        };
        assert_eq!(find("api", None).unwrap(), "shop");
        assert_eq!(find("web", Some("shop")).unwrap(), "shop");
        let several = r#"deployments.apps "web" exists in several namespaces: default, shop; choose one with -n"#;
        assert_eq!(find("web", None).unwrap_err(), several);
        assert_eq!(find("wbe", None).unwrap_err(), r#"deployments.apps "wbe" not found, did you mean "web"?"#);
        assert_eq!(find("x", Some("shop")).unwrap_err(), r#"deployments.apps "x" not found in namespace "shop""#);
    }
}
