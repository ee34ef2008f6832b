//! `podstead rollout`: the progress and the revisions of a rollout. Both only read: a workload is changed in its source.

mod progress;

use super::Context;
use super::client::Client;
use super::object_type::{ObjectType, parse_object};
use super::output::OutputFormat;
use super::pods::{PodNamespaceArgs, ServedList};
use super::table::{Cell, Table};
use super::watch::{WatchEvent, watch};
use super::workloads::{annotation, find, is_controlled_by, list, metadata};
use anyhow::{anyhow, bail};
use clap::{ArgAction, Args, Subcommand};
use podstead_workload::object::WorkloadKind;
use progress::{Progress, progress};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Annotation of a ReplicaSet with the number of its revision (`pkg/controller/deployment/util` of Kubernetes).
pub(super) const REVISION_NUMBER: &str = "deployment.kubernetes.io/revision";
/// Annotation with the reason of a change, which authors set (`kubectl rollout history` shows it).
const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct RolloutArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the progress of a rollout until it is complete
    Status(StatusArgs),
    /// List the revisions of a Deployment
    History(HistoryArgs),
}

#[derive(Debug, Args)]
struct StatusArgs {
    /// Deployment, StatefulSet or DaemonSet, such as deploy/web
    #[arg(value_name = "TYPE/NAME", value_parser = parse_object)]
    object: (ObjectType, String),
    #[command(flatten)]
    namespace: PodNamespaceArgs,
    /// Wait until the rollout is complete
    #[arg(short, long, value_name = "BOOL", action = ArgAction::Set, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    watch: bool,
    /// Number of seconds to wait at most; 0: without limit
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    timeout: u64,
}

#[derive(Debug, Args)]
struct HistoryArgs {
    /// Deployment, such as deploy/web
    #[arg(value_name = "TYPE/NAME", value_parser = parse_object)]
    object: (ObjectType, String),
    #[command(flatten)]
    namespace: PodNamespaceArgs,
    /// Output format; json and the like have the ReplicaSets
    #[arg(short, long, default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(args: &RolloutArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    context.block_on(async {
        match &args.action {
            Action::Status(args) => status(args, &client).await,
            Action::History(args) => history(args, &client, context.color()).await,
        }
    })
}

/// The kind of the argument.
fn kind_of(object_type: ObjectType) -> anyhow::Result<WorkloadKind> {
    match object_type {
        ObjectType::Workload(kind) => Ok(kind),
        ObjectType::Pod
        | ObjectType::ConfigMap
        | ObjectType::Secret
        | ObjectType::PersistentVolumeClaim
        | ObjectType::Service
        | ObjectType::EndpointSlice
        | ObjectType::NetworkPolicy
        | ObjectType::Namespace
        | ObjectType::Node
        | ObjectType::Event
        | ObjectType::Source
        | ObjectType::Image
        | ObjectType::Pull => {
            bail!("{} are not rolled out: name a Deployment, StatefulSet or DaemonSet", object_type.qualified_plural())
        }
    }
}

async fn status(args: &StatusArgs, client: &Client) -> anyhow::Result<ExitCode> {
    if args.timeout == 0 {
        return wait(args, client).await;
    }
    let waited = tokio::time::timeout(Duration::from_secs(args.timeout), wait(args, client)).await;
    waited.unwrap_or_else(|_| Err(anyhow!("timed out after {} seconds", args.timeout)))
}

async fn wait(args: &StatusArgs, client: &Client) -> anyhow::Result<ExitCode> {
    let (object_type, name) = &args.object;
    let kind = kind_of(*object_type)?;
    let removed = || anyhow!("{}/{name} was removed", object_type.qualified_singular());
    let namespace = metadata(&find(client, kind, name, args.namespace.namespace.as_deref()).await?, "namespace").to_owned();
    let target = ObjectType::Workload(kind).collection(Some(&namespace)).with("fieldSelector", &format!("metadata.name={name}"));
    let list: ServedList = client.get(target.clone()).await?;
    let mut present = list.items.into_iter().next().ok_or_else(removed)?;
    let mut events = watch(client, target, &list.metadata.resource_version).await?;
    let mut last = String::new();
    loop {
        let (text, is_complete) = match progress(kind, &present).map_err(anyhow::Error::msg)? {
            Progress::Waiting(text) => (text, false),
            Progress::Complete(text) => (text, true),
        };
        if text != last {
            writeln!(io::stdout(), "{text}")?;
        }
        last = text;
        if is_complete || !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        present = match events.next().await? {
            WatchEvent::Changed(object) => object,
            WatchEvent::Deleted(_) => return Err(removed()),
        };
    }
}

async fn history(args: &HistoryArgs, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let (object_type, name) = &args.object;
    if kind_of(*object_type)? != WorkloadKind::Deployment {
        bail!("only Deployments list their revisions; podstead history lists those of a source");
    }
    let deployment = find(client, WorkloadKind::Deployment, name, args.namespace.namespace.as_deref()).await?;
    let sets = list(client, WorkloadKind::ReplicaSet, Some(metadata(&deployment, "namespace"))).await?;
    let mut revisions: Vec<&Value> = sets.iter().filter(|set| is_controlled_by(set, metadata(&deployment, "uid"))).collect();
    revisions.sort_by_key(|set| number(set));
    let mut out = io::stdout().lock();
    match &args.output {
        OutputFormat::Structured(form) => form.write(&mut out, &json!({ "items": revisions }), "items")?,
        OutputFormat::Name => revisions.iter().try_for_each(|set| writeln!(out, "replicaset.apps/{}", metadata(set, "name")))?,
        OutputFormat::Table | OutputFormat::Wide => {
            let rows: Vec<Vec<Cell>> = revisions.into_iter().map(row).collect();
            Table::new(vec!["REVISION", "REPLICASET", "REPLICAS", "IMAGES", "CHANGE-CAUSE"], color).write(&mut out, &rows)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The number of the revision of a ReplicaSet; 0 if it has none.
pub(super) fn number(set: &Value) -> u64 {
    annotation(set, REVISION_NUMBER).and_then(|number| number.parse().ok()).unwrap_or_default()
}

fn row(set: &Value) -> Vec<Cell> {
    let containers = set["spec"]["template"]["spec"]["containers"].as_array();
    let images: Vec<&str> = containers.into_iter().flatten().filter_map(|container| container["image"].as_str()).collect();
    vec![
        number(set).to_string().into(),
        metadata(set, "name").into(),
        set["spec"]["replicas"].as_u64().unwrap_or_default().to_string().into(),
        images.join(",").into(),
        annotation(set, CHANGE_CAUSE).unwrap_or("<none>").into(),
    ]
}
