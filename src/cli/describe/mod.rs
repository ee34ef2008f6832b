//! `podstead describe`.

mod container;
mod networks;
mod writer;

use super::Context;
use super::client::{Client, ClientError, OWN, Target};
use super::get::{seen_column, type_cell};
use super::pods::{PodNamespaceArgs, ServedList, annotation, collection, find, name_of, namespace_of};
use super::table::{Cell, Table};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, KeyToPath, Pod, PodSpec, PodStatus, Volume};
use podstead_api::SourceObject;
use podstead_api::published::{ORIGIN_ANNOTATION, REVISION_ANNOTATION, SOURCE_ANNOTATION};
use podstead_api::show::{PodRow, age_since};
use podstead_manifest::{ObjectKey, Problem};
use podstead_pod::Severity;
use podstead_pod::identity::ANNOTATION_NETWORK_STATUS;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use writer::Description;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct DescribeArgs {
    #[command(subcommand)]
    kind: DescribeKind,
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
}

pub(super) fn run(args: &DescribeArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    context.block_on(async {
        match &args.kind {
            DescribeKind::Pod { name, namespace } => {
                let pod = find(&client, name, namespace.namespace.as_deref()).await?;
                let events = events_of(&client, &pod).await?;
                let refused = refused_edits(&client, &pod).await?;
                let now = Timestamp::now();
                let mut out = io::stdout().lock();
                out.write_all(describe(&pod, &refused, now).as_bytes())?;
                write_events(&mut out, &events, now, context.color())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn events_of(client: &Client, pod: &Pod) -> Result<Vec<Event>, ClientError> {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let fields = format!("involvedObject.kind=Pod,involvedObject.name={},involvedObject.uid={uid}", name_of(pod));
    let list: ServedList = client.get(collection("events", Some(namespace_of(pod))).with("fieldSelector", &fields)).await?;
    let typed: Result<Vec<Event>, _> = list.items.into_iter().map(serde_json::from_value).collect();
    let mut events = typed.map_err(|source| ClientError::NotUnderstood { source })?;
    events.sort_by_key(|event| event.last_timestamp.as_ref().map(|time| time.0));
    Ok(events)
}

/// The faults of the pod's definition in the revision that its source last fetched: the pod runs as it was before that edit.
async fn refused_edits(client: &Client, pod: &Pod) -> Result<Vec<Problem>, ClientError> {
    let Some(source) = annotation(pod, SOURCE_ANNOTATION) else { return Ok(Vec::new()) };
    let source = match client.get::<SourceObject>(Target::new(OWN, &["sources", source])).await {
        Ok(source) => source,
        // The source may have left the configuration meanwhile.
        Err(ClientError::Refused { code: 404, .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    Ok(source.status.problems.into_iter().filter(|problem| is_refused_edit(problem, pod)).collect())
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

fn write_events(out: &mut impl Write, events: &[Event], now: Timestamp, color: bool) -> io::Result<()> {
    if events.is_empty() {
        return writeln!(out, "Events:              <none>");
    }
    writeln!(out, "Events:")?;
    let rows: Vec<Vec<Cell>> = events
        .iter()
        .map(|event| {
            vec![
                format!("  {}", seen_column(event, now)).into(),
                type_cell(event),
                event.reason.as_deref().unwrap_or_default().into(),
                event.message.as_deref().unwrap_or_default().into(),
            ]
        })
        .collect();
    Table::new(vec!["  AGE", "TYPE", "REASON", "MESSAGE"], color).write(out, &rows)
}

/// Everything but the events.
fn describe(pod: &Pod, refused: &[Problem], now: Timestamp) -> String {
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
        text.field("Rejected Edit", &problem.to_string());
    }
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

/// Annotations that are not shown in their own fields.
fn foreign_annotations(pod: &Pod) -> BTreeMap<String, String> {
    let own = [SOURCE_ANNOTATION, REVISION_ANNOTATION, ORIGIN_ANNOTATION, ANNOTATION_NETWORK_STATUS];
    let all = pod.metadata.annotations.iter().flatten();
    all.filter(|(key, _)| !own.contains(&key.as_str())).map(|(key, value)| (key.clone(), value.clone())).collect()
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
        insta::assert_snapshot!(describe(&pod, &[], "2026-01-01T00:05:00Z".parse().unwrap()));
    }
}
