//! `podstead describe`.

mod container;
mod events;
mod network_policy;
mod networks;
mod other;
mod probe;
mod service;
mod source;
mod workload;
mod writer;

use super::Context;
use super::client::{Client, ClientError, OWN, Target};
use super::endpoints::slices_of;
use super::fold::{fold, terminal_width};
use super::object_type::{ObjectType, parse_object};
use super::pods::{PodNamespaceArgs, ServedList, annotation, find, name_of, namespace_of};
use super::source_name;
use super::unserved;
use super::workloads::{self, metadata};
use anyhow::bail;
use clap::{Args, Subcommand};
use events::{Involved, events_about, events_of, write_events};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{KeyToPath, Pod, PodSpec, PodStatus, Volume};
use podstead_api::published::{ORIGIN_ANNOTATION, REVISION_ANNOTATION, SOURCE_ANNOTATION};
use podstead_api::show::{PodRow, age_since};
use podstead_api::{ONLY_PODS_OF_ANNOTATION, SourceObject};
use podstead_manifest::{ObjectKey, Problem};
use podstead_pod::Severity;
use podstead_pod::identity::ANNOTATION_NETWORK_STATUS;
use podstead_store::history::History;
use podstead_workload::object::WorkloadKind;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use writer::Description;

/// Arguments.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, arg_required_else_help = true)]
pub(super) struct DescribeArgs {
    #[command(subcommand)]
    kind: Option<DescribeKind>,
    /// Object, such as pod/web, deploy/web or source/fleet
    #[arg(value_name = "TYPE/NAME", required = true, value_parser = parse_described)]
    object: Option<Described>,
    #[command(flatten)]
    namespace: PodNamespaceArgs,
}

#[derive(Debug, Subcommand)]
enum DescribeKind {
    /// Show the details of a pod, including its events
    #[command(visible_aliases = ["pods", "po"])]
    Pod {
        /// Name of the pod; the "-<node>" suffix may be omitted
        name: String,
        #[command(flatten)]
        namespace: PodNamespaceArgs,
    },
    /// Show the details of a Deployment
    #[command(visible_aliases = ["deployments", "deploy"])]
    Deployment(NamedArgs),
    /// Show the details of a ReplicaSet
    #[command(name = "replicaset", visible_aliases = ["replicasets", "rs"])]
    ReplicaSet(NamedArgs),
    /// Show the details of a StatefulSet
    #[command(name = "statefulset", visible_aliases = ["statefulsets", "sts"])]
    StatefulSet(NamedArgs),
    /// Show the details of a DaemonSet
    #[command(name = "daemonset", visible_aliases = ["daemonsets", "ds"])]
    DaemonSet(NamedArgs),
    /// Show the details of a Job
    #[command(visible_alias = "jobs")]
    Job(NamedArgs),
    /// Show the details of a CronJob, with its next run and the reason of a missed one
    #[command(name = "cronjob", visible_aliases = ["cronjobs", "cj"])]
    CronJob(NamedArgs),
    /// Show the details of a ReplicationController
    #[command(name = "replicationcontroller", visible_aliases = ["replicationcontrollers", "rc"])]
    ReplicationController(NamedArgs),
    /// Show the details of a Service, including its endpoints
    #[command(visible_aliases = ["services", "svc"])]
    Service(NamedArgs),
    /// Show the details of a NetworkPolicy, including the pods that it selects
    #[command(name = "networkpolicy", visible_aliases = ["networkpolicies", "netpol"])]
    NetworkPolicy(NamedArgs),
    /// Show the details of a ConfigMap
    #[command(name = "configmap", visible_aliases = ["configmaps", "cm"])]
    ConfigMap(NamedArgs),
    /// Show the details of a Secret, without its values
    #[command(visible_alias = "secrets")]
    Secret(NamedArgs),
    /// Show the details of a PersistentVolumeClaim
    #[command(name = "persistentvolumeclaim", visible_aliases = ["persistentvolumeclaims", "pvc"])]
    PersistentVolumeClaim(NamedArgs),
    /// Show the details of this host
    #[command(visible_aliases = ["nodes", "no"])]
    Node {
        /// Name of the host; may be omitted
        name: Option<String>,
    },
    /// Show the details of a source: revisions, objects, rejected edits, and its events
    #[command(visible_alias = "sources")]
    Source {
        /// Name of the source; may be omitted if the host has only one
        name: Option<String>,
    },
}

/// The workload that is meant.
#[derive(Debug, Args)]
struct NamedArgs {
    /// Name of the object
    name: String,
    #[command(flatten)]
    namespace: PodNamespaceArgs,
}

/// Object to describe.
#[derive(Clone, Debug)]
enum Described {
    /// An object in a namespace.
    Object(ObjectType, String),
    /// This host.
    Node(Option<String>),
    /// A source.
    Source(Option<String>),
}

fn parse_described(text: &str) -> Result<Described, String> {
    if let Some((word, name)) = text.split_once('/')
        && matches!(word.to_lowercase().as_str(), "source" | "sources")
    {
        return Ok(Described::Source(Some(name.to_owned())));
    }
    match parse_object(text)? {
        (ObjectType::Node, name) => Ok(Described::Node(Some(name))),
        (object_type, name) => Ok(Described::Object(object_type, name)),
    }
}

impl DescribeArgs {
    /// Object and namespace; `None` without arguments, which clap does not let happen.
    fn asked(&self) -> Option<(Described, Option<&str>)> {
        let named = |object_type: ObjectType, args: &'_ NamedArgs| (object_type, args.name.clone());
        let workload = |kind: WorkloadKind, args: &'_ NamedArgs| (ObjectType::Workload(kind), args.name.clone());
        let (asked, namespace) = match &self.kind {
            Some(DescribeKind::Pod { name, namespace }) => ((ObjectType::Pod, name.clone()), namespace),
            Some(DescribeKind::Deployment(args)) => (workload(WorkloadKind::Deployment, args), &args.namespace),
            Some(DescribeKind::ReplicaSet(args)) => (workload(WorkloadKind::ReplicaSet, args), &args.namespace),
            Some(DescribeKind::StatefulSet(args)) => (workload(WorkloadKind::StatefulSet, args), &args.namespace),
            Some(DescribeKind::DaemonSet(args)) => (workload(WorkloadKind::DaemonSet, args), &args.namespace),
            Some(DescribeKind::Job(args)) => (workload(WorkloadKind::Job, args), &args.namespace),
            Some(DescribeKind::CronJob(args)) => (workload(WorkloadKind::CronJob, args), &args.namespace),
            Some(DescribeKind::ReplicationController(args)) => {
                (workload(WorkloadKind::ReplicationController, args), &args.namespace)
            }
            Some(DescribeKind::Service(args)) => (named(ObjectType::Service, args), &args.namespace),
            Some(DescribeKind::NetworkPolicy(args)) => (named(ObjectType::NetworkPolicy, args), &args.namespace),
            Some(DescribeKind::ConfigMap(args)) => (named(ObjectType::ConfigMap, args), &args.namespace),
            Some(DescribeKind::Secret(args)) => (named(ObjectType::Secret, args), &args.namespace),
            Some(DescribeKind::PersistentVolumeClaim(args)) => (named(ObjectType::PersistentVolumeClaim, args), &args.namespace),
            Some(DescribeKind::Node { name }) => return Some((Described::Node(name.clone()), None)),
            Some(DescribeKind::Source { name }) => return Some((Described::Source(name.clone()), None)),
            None => return Some((self.object.clone()?, self.namespace.namespace.as_deref())),
        };
        Some((Described::Object(asked.0, asked.1), namespace.namespace.as_deref()))
    }
}

pub(super) fn run(args: &DescribeArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let Some((described, namespace)) = args.asked() else { bail!("name an object, such as deploy/web") };
    let client = context.client()?;
    let color = context.color();
    context.block_on(async {
        match described {
            Described::Object(ObjectType::Pod, name) => run_pod(&client, &name, namespace, color).await?,
            Described::Object(ObjectType::Workload(kind), name) => run_workload(&client, kind, &name, namespace, color).await?,
            Described::Object(ObjectType::Service, name) => run_service(&client, &name, namespace, color).await?,
            Described::Object(ObjectType::NetworkPolicy, name) => run_network_policy(&client, &name, namespace).await?,
            Described::Object(object_type, name) => run_other(&client, object_type, &name, namespace, color).await?,
            Described::Node(name) => run_node(&client, name.as_deref(), color).await?,
            Described::Source(name) => run_source(&client, name.as_deref(), color).await?,
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn run_source(client: &Client, name: Option<&str>, color: bool) -> anyhow::Result<()> {
    let name = source_name::ask_alone(client, name).await?;
    let source: SourceObject = client.get(Target::new(OWN, &["sources", &name])).await?;
    let history: History = client.get(Target::new(OWN, &["sources", &name, "history"])).await?;
    let events = events_about(client, "Source", &name).await?;
    let now = Timestamp::now();
    let mut out = io::stdout().lock();
    out.write_all(fold(&source::describe(&source, &history, now), terminal_width()).as_bytes())?;
    Ok(write_events(&mut out, &events, now, color)?)
}

async fn run_node(client: &Client, name: Option<&str>, color: bool) -> anyhow::Result<()> {
    let nodes: ServedList = client.get(ObjectType::Node.collection(None)).await?;
    let is_meant = |node: &&Value| name.is_none_or(|name| metadata(node, "name") == name);
    let Some(node) = nodes.items.iter().find(is_meant) else { bail!("node {:?} not found", name.unwrap_or_default()) };
    let events = events_about(client, "Node", metadata(node, "name")).await?;
    let mut out = io::stdout().lock();
    out.write_all(fold(&other::describe(node, &own_annotations()), terminal_width()).as_bytes())?;
    Ok(write_events(&mut out, &events, Timestamp::now(), color)?)
}

async fn run_other(
    client: &Client,
    object_type: ObjectType,
    name: &str,
    namespace: Option<&str>,
    color: bool,
) -> anyhow::Result<()> {
    let object = workloads::find_object(client, object_type, name, namespace).await?;
    let [namespace, name, uid] = ["namespace", "name", "uid"].map(|field| metadata(&object, field));
    let events = match object["kind"].as_str() {
        Some(kind) if !namespace.is_empty() => events_of(client, Involved { kind, namespace, name, uid }).await?,
        Some(_) | None => Vec::new(),
    };
    let mut out = io::stdout().lock();
    out.write_all(fold(&other::describe(&object, &own_annotations()), terminal_width()).as_bytes())?;
    Ok(write_events(&mut out, &events, Timestamp::now(), color)?)
}

async fn run_pod(client: &Client, name: &str, namespace: Option<&str>, color: bool) -> anyhow::Result<()> {
    let pod = find(client, name, namespace).await?;
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let involved = Involved { kind: "Pod", namespace: namespace_of(&pod), name: name_of(&pod), uid };
    let events = events_of(client, involved).await?;
    let problems = problems_of(client, annotation(&pod, SOURCE_ANNOTATION)).await?;
    // Without problems there is no need to ask for the owners.
    let owners = if problems.is_empty() { Vec::new() } else { workloads::owners_of(client, &pod).await? };
    let refused: Vec<String> = problems.iter().filter_map(|problem| refused_edit(problem, &pod, &owners)).collect();
    let policies = network_policy::selecting(client, &pod).await?;
    let now = Timestamp::now();
    let mut out = io::stdout().lock();
    out.write_all(fold(&describe(&pod, &refused, &policies, now), terminal_width()).as_bytes())?;
    Ok(write_events(&mut out, &events, now, color)?)
}

async fn run_service(client: &Client, name: &str, namespace: Option<&str>, color: bool) -> anyhow::Result<()> {
    let object = workloads::find_object(client, ObjectType::Service, name, namespace).await?;
    let [namespace, name, uid] = ["namespace", "name", "uid"].map(|field| metadata(&object, field));
    let slices = slices_of(client, &object).await?;
    let unserved = unserved::of_service(client, &object).await?;
    let events = events_of(client, Involved { kind: "Service", namespace, name, uid }).await?;
    let mut out = io::stdout().lock();
    out.write_all(fold(&service::describe(&object, &slices, &unserved, &own_annotations()), terminal_width()).as_bytes())?;
    Ok(write_events(&mut out, &events, Timestamp::now(), color)?)
}

async fn run_network_policy(client: &Client, name: &str, namespace: Option<&str>) -> anyhow::Result<()> {
    let policy = workloads::find_object(client, ObjectType::NetworkPolicy, name, namespace).await?;
    let selected = network_policy::selected(client, &policy).await?;
    let denied = network_policy::denied(client, &policy, &selected).await?;
    let text = network_policy::describe(&policy, &selected, &denied);
    Ok(io::stdout().lock().write_all(fold(&text, terminal_width()).as_bytes())?)
}

async fn run_workload(client: &Client, kind: WorkloadKind, name: &str, namespace: Option<&str>, color: bool) -> anyhow::Result<()> {
    let object = workloads::find(client, kind, name, namespace).await?;
    let [namespace, name, uid] = ["namespace", "name", "uid"].map(|field| metadata(&object, field));
    let events = events_of(client, Involved { kind: kind.as_str(), namespace, name, uid }).await?;
    let is_this = |key: &ObjectKey| key.kind == kind.as_str() && key.namespace == namespace && key.name == name;
    let problems = problems_of(client, workloads::annotation(&object, SOURCE_ANNOTATION)).await?.into_iter();
    let is_refused = |problem: &Problem| problem.severity == Severity::Error && problem.object.as_ref().is_some_and(is_this);
    let related = workload::related(client, kind, &object, problems.filter(is_refused).collect()).await?;
    let now = Timestamp::now();
    let mut out = io::stdout().lock();
    out.write_all(fold(&workload::describe(kind, &object, &related, now), terminal_width()).as_bytes())?;
    Ok(write_events(&mut out, &events, now, color)?)
}

/// The problems of the revision that a source last fetched: an object whose edit is refused runs as it was before that edit.
async fn problems_of(client: &Client, source: Option<&str>) -> Result<Vec<Problem>, ClientError> {
    let Some(source) = source else { return Ok(Vec::new()) };
    match client.get::<SourceObject>(Target::new(OWN, &["sources", source])).await {
        Ok(source) => Ok(source.status.problems),
        // The source may have left the configuration meanwhile.
        Err(ClientError::Refused { code: 404, .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Text of a problem that keeps an edit of the pod, or of a workload above it, from counting.
fn refused_edit(problem: &Problem, pod: &Pod, owners: &[ObjectKey]) -> Option<String> {
    if is_refused_edit(problem, pod) {
        return Some(problem.to_string());
    }
    let owner = problem.object.as_ref().filter(|key| problem.severity == Severity::Error && owners.contains(key))?;
    Some(format!("{}/{}: {problem}", owner.kind, owner.name))
}

fn is_refused_edit(problem: &Problem, pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    let is_this = |key: &ObjectKey| {
        key.kind == "Pod"
            && key.namespace == namespace_of(pod)
            && name_of(pod).strip_suffix(node).and_then(|name| name.strip_suffix('-')) == Some(key.name.as_str())
    };
    problem.severity == Severity::Error && problem.object.as_ref().is_some_and(is_this)
}

/// Everything but the events.
fn describe(pod: &Pod, refused: &[String], policies: &[String], now: Timestamp) -> String {
    let empty_spec = PodSpec::default();
    let empty_status = PodStatus::default();
    let spec = pod.spec.as_ref().unwrap_or(&empty_spec);
    let status = pod.status.as_ref().unwrap_or(&empty_status);
    let row = PodRow::of(pod);
    let mut text = Description::default();
    text.field("Name", name_of(pod));
    text.field("Namespace", namespace_of(pod));
    text.field("UID", pod.metadata.uid.as_deref().unwrap_or_default());
    text.field("Node", spec.node_name.as_deref().unwrap_or_default());
    text.field("Source", annotation(pod, SOURCE_ANNOTATION).unwrap_or("<none>"));
    text.field("Revision", annotation(pod, REVISION_ANNOTATION).unwrap_or("<none>"));
    text.field("Manifest", annotation(pod, ORIGIN_ANNOTATION).unwrap_or("<none>"));
    for problem in refused {
        text.field("Rejected Edit", problem);
    }
    workload::controlled_by(&mut text, pod);
    if let Some(created) = pod.metadata.creation_timestamp.as_ref() {
        text.field("Created", &format!("{} ({} ago)", created.0, age_since(Some(created.0), now)));
    }
    text.entries("Labels", pod.metadata.labels.as_ref());
    text.entries("Annotations", Some(&foreign_annotations(pod)));
    text.field("Status", &row.status);
    text.field("Ready", &row.ready_column());
    if let Some(reason) = &status.reason {
        text.field("Reason", reason);
    }
    if let Some(message) = &status.message {
        text.field("Message", message);
    }
    let ips: Vec<&str> = status.pod_ips.iter().flatten().map(|ip| ip.ip.as_str()).collect();
    text.field("IPs", if ips.is_empty() { "<none>".to_owned() } else { ips.join(", ") }.as_str());
    text.field("QoS Class", status.qos_class.as_deref().unwrap_or("<none>"));
    networks::networks(&mut text, pod);
    if spec.host_network == Some(true) {
        text.field("Host Network", "true");
    }
    if !policies.is_empty() {
        text.field("NetworkPolicies", &policies.join("\n"));
    }
    container::containers(
        &mut text,
        "Init Containers",
        spec.init_containers.as_deref(),
        status.init_container_statuses.as_deref(),
        now,
    );
    container::containers(&mut text, "Containers", Some(&spec.containers), status.container_statuses.as_deref(), now);
    conditions(&mut text, status, now);
    volumes(&mut text, spec.volumes.as_deref().unwrap_or_default());
    text.finish()
}

/// Annotations that are shown in their own fields.
const fn own_annotations() -> [&'static str; 5] {
    [SOURCE_ANNOTATION, REVISION_ANNOTATION, ORIGIN_ANNOTATION, ANNOTATION_NETWORK_STATUS, ONLY_PODS_OF_ANNOTATION]
}

/// Annotations that are not shown in their own fields.
fn foreign_annotations(pod: &Pod) -> BTreeMap<String, String> {
    let all = pod.metadata.annotations.iter().flatten();
    all.filter(|(key, _)| !own_annotations().contains(&key.as_str())).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn conditions(text: &mut Description, status: &PodStatus, now: Timestamp) {
    let Some(conditions) = status.conditions.as_ref().filter(|conditions| !conditions.is_empty()) else { return };
    text.heading("Conditions");
    let rows: Vec<(&str, String)> = conditions
        .iter()
        .map(|condition| {
            let since = condition.last_transition_time.as_ref().map(|time| format!("for {}", age_since(Some(time.0), now)));
            let why = condition.message.as_deref().or(condition.reason.as_deref());
            let parts: Vec<&str> = [Some(condition.status.as_str()), since.as_deref(), why].into_iter().flatten().collect();
            (condition.type_.as_str(), parts.join(", "))
        })
        .collect();
    text.indented_rows(1, &rows);
}

fn volumes(text: &mut Description, volumes: &[Volume]) {
    if volumes.is_empty() {
        return;
    }
    text.heading("Volumes");
    let rows: Vec<(&str, String)> = volumes.iter().map(|volume| (volume.name.as_str(), volume_kind(volume))).collect();
    text.indented_rows(1, &rows);
}

fn volume_kind(volume: &Volume) -> String {
    if let Some(host_path) = &volume.host_path {
        let kind = host_path.type_.as_deref().filter(|kind| !kind.is_empty());
        return format!("hostPath {}{}", host_path.path, kind.map(|kind| format!(" ({kind})")).unwrap_or_default());
    }
    if let Some(empty_dir) = &volume.empty_dir {
        let medium = empty_dir.medium.as_deref().filter(|medium| !medium.is_empty()).unwrap_or("disk");
        let limit = empty_dir.size_limit.as_ref().map(|limit| format!(", limit {}", limit.0)).unwrap_or_default();
        return format!("emptyDir on {}{limit}", medium.to_lowercase());
    }
    if let Some(source) = &volume.config_map {
        return format!("config map {}{}", source.name, projected(source.items.as_deref(), source.optional));
    }
    if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or_default();
        return format!("secret {name}{}", projected(source.items.as_deref(), source.optional));
    }
    if let Some(source) = &volume.projected {
        let sources = source.sources.iter().flatten().map(|source| match (&source.config_map, &source.secret) {
            (Some(source), _) => format!("config map {}{}", source.name, projected(source.items.as_deref(), source.optional)),
            (None, Some(source)) => format!("secret {}{}", source.name, projected(source.items.as_deref(), source.optional)),
            (None, None) => "fields of the pod".to_owned(),
        });
        return format!("projected from {}", sources.collect::<Vec<_>>().join(", "));
    }
    // Of any other kind: its one field besides the name says which.
    let json = serde_json::to_value(volume).unwrap_or_default();
    let kind = json.as_object().and_then(|fields| fields.keys().find(|key| *key != "name").cloned());
    kind.unwrap_or_else(|| "emptyDir on disk".to_owned())
}

/// Describes the projected keys of an object, and whether it is optional.
fn projected(items: Option<&[KeyToPath]>, optional: Option<bool>) -> String {
    let items: Vec<String> = items.into_iter().flatten().map(|item| format!("{} as {}", item.key, item.path)).collect();
    let items = if items.is_empty() { String::new() } else { format!(" ({})", items.join(", ")) };
    format!("{items}{}", if optional == Some(true) { " (optional)" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_in_trouble_is_described() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {
                "name": "web-edge", "namespace": "default", "uid": "u-1", "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"app": "web", "tier": "front"},
                "annotations": {"podstead.dev/source": "manifests", "podstead.dev/revision": "abc", "podstead.dev/origin": "web.yaml:3:1"},
            },
            "spec": {
                "nodeName": "edge",
                "containers": [{
                    "name": "web", "image": "nginx:1.27", "command": ["nginx"], "args": ["-g", "daemon off;"],
                    "ports": [{"containerPort": 80, "protocol": "TCP", "hostPort": 8080}],
                    "env": [{"name": "A", "value": "1"}, {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                    "envFrom": [{"prefix": "P_", "configMapRef": {"name": "conf"}}, {"secretRef": {"name": "s", "optional": true}}],
                    "resources": {"limits": {"memory": "64Mi"}},
                    "volumeMounts": [{"name": "cfg", "mountPath": "/etc/web", "readOnly": true}],
                }],
                "volumes": [{"name": "cfg", "hostPath": {"path": "/srv", "type": "Directory"}}, {"name": "tmp", "emptyDir": {"medium": "Memory"}},
                    {"name": "keys", "secret": {"secretName": "tls", "optional": true}},
                    {"name": "all", "projected": {"sources": [{"configMap": {"name": "conf", "items": [{"key": "a", "path": "b"}]}}, {"downwardAPI": {}}]}}],
            },
            "status": {
                "phase": "Running", "qosClass": "Burstable",
                "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": "2026-01-01T00:04:00Z"}],
                "containerStatuses": [{
                    "name": "web", "image": "nginx:1.27", "imageID": "sha256:00", "ready": false, "restartCount": 3,
                    "containerID": "podstead://0123",
                    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}},
                    "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": "2026-01-01T00:03:50Z", "finishedAt": "2026-01-01T00:04:00Z"}},
                }],
            },
        }))
        .unwrap();
        let policies = ["deny (Ingress)".to_owned(), "names (Egress)".to_owned()];
        insta::assert_snapshot!(describe(&pod, &[], &policies, "2026-01-01T00:05:00Z".parse().unwrap()));
    }
}
