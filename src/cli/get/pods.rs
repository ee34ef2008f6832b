//! `podstead get pods`.

use super::OutputArgs;
use crate::client::{Client, ClientError};
use crate::output::{ObjectWriter, OutputFormat, say_nothing_found};
use crate::pods::{NamespaceArgs, ServedList, ServedPod, collection, find, name_of, namespace_of, source_of};
use crate::table::{Cell, Style, Table};
use crate::watch::{WatchEvent, watch};
use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use podstead_api::show::{PodRow, age_since};
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct PodsArgs {
    /// Only this pod; the "-<node>" suffix may be omitted
    name: Option<String>,
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Only pods with these labels, e.g. app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Only pods with these fields, e.g. status.phase=Running
    #[arg(long, value_name = "FIELDS")]
    field_selector: Option<String>,
    /// Add a column with the labels
    #[arg(long)]
    show_labels: bool,
    #[command(flatten)]
    output: OutputArgs,
    /// After listing, watch for changes
    #[arg(short, long)]
    watch: bool,
}

pub(super) async fn run(args: &PodsArgs, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let mut namespace = args.namespace.namespace.clone();
    let mut fields = args.field_selector.clone();
    if let Some(name) = &args.name {
        // Resolved first, so that everything after deals with one whole name.
        let pod = find(client, name, namespace.as_deref()).await?;
        namespace = Some(namespace_of(&pod).to_owned());
        let by_name = format!("metadata.name={}", name_of(&pod));
        fields = Some(fields.map_or(by_name.clone(), |fields| format!("{fields},{by_name}")));
    }
    let target = || {
        let target = collection("pods", namespace.as_deref());
        target.with_some("labelSelector", args.selector.as_ref()).with_some("fieldSelector", fields.as_ref())
    };
    let list: ServedList = client.get(target()).await?;
    let mut items = list.items;
    args.output.sort(&mut items, |pod| pod)?;
    let pods: Vec<ServedPod> = items.into_iter().map(ServedPod::parse).collect::<Result<_, ClientError>>()?;
    let mut printer = PodPrinter::new(args, &pods, color);
    printer.print(&pods)?;
    if args.watch {
        let mut events = watch(client, target(), &list.metadata.resource_version).await?;
        loop {
            match events.next().await? {
                WatchEvent::Changed(object) | WatchEvent::Deleted(object) => printer.print_one(ServedPod::parse(object)?)?,
            }
        }
    }
    if pods.is_empty() {
        say_nothing_found(namespace.as_deref())?;
    }
    Ok(ExitCode::SUCCESS)
}

struct PodPrinter {
    format: OutputFormat,
    with_namespace: bool,
    show_labels: bool,
    single: bool,
    table: Table,
    writer: ObjectWriter,
}

impl PodPrinter {
    fn new(args: &PodsArgs, pods: &[ServedPod], color: bool) -> Self {
        let elsewhere = pods.iter().any(|served| namespace_of(&served.pod) != "default");
        let with_namespace =
            args.namespace.all_namespaces || (elsewhere && args.namespace.namespace.is_none() && args.name.is_none());
        let mut headings = vec!["NAME", "READY", "STATUS", "RESTARTS", "AGE"];
        if with_namespace {
            headings.insert(0, "NAMESPACE");
        }
        if args.output.output.is_wide() {
            headings.extend(["IP", "NODE", "SOURCE", "IMAGE"]);
        }
        if args.show_labels {
            headings.push("LABELS");
        }
        let table = Table::new(headings, color);
        let table = if args.output.no_headers { table.without_headings() } else { table };
        Self {
            format: args.output.output.clone(),
            with_namespace,
            show_labels: args.show_labels,
            single: args.name.is_some(),
            table,
            writer: args.output.writer(),
        }
    }

    fn print(&mut self, pods: &[ServedPod]) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if self.format.is_table() {
            let now = Timestamp::now();
            let rows: Vec<_> = pods.iter().map(|served| self.row(&served.pod, now)).collect();
            if !rows.is_empty() {
                self.table.write(&mut out, &rows)?;
            }
        } else {
            let values: Vec<_> = pods.iter().map(|served| served.value.clone()).collect();
            self.writer.write(&mut out, "pod", &values, self.single)?;
        }
        Ok(out.flush()?)
    }

    fn print_one(&mut self, pod: ServedPod) -> anyhow::Result<()> {
        self.single = true;
        self.print(&[pod])
    }

    fn row(&self, pod: &Pod, now: Timestamp) -> Vec<Cell> {
        let row = PodRow::of(pod);
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let mut cells: Vec<Cell> = vec![
            name_of(pod).into(),
            row.ready_column().into(),
            Cell::styled(&row.status, style_of(&row)),
            row.restarts_column(now).into(),
            age_since(created, now).into(),
        ];
        if self.with_namespace {
            cells.insert(0, namespace_of(pod).into());
        }
        if self.format.is_wide() {
            let or_none = |value: Option<&str>| value.filter(|value| !value.is_empty()).unwrap_or("<none>").to_owned();
            let spec = pod.spec.as_ref();
            let images: Vec<_> =
                spec.into_iter().flat_map(|spec| &spec.containers).filter_map(|container| container.image.as_deref()).collect();
            cells.push(or_none(pod.status.as_ref().and_then(|status| status.pod_ip.as_deref())).into());
            cells.push(or_none(spec.and_then(|spec| spec.node_name.as_deref())).into());
            cells.push(source_of(pod).into());
            cells.push(images.join(",").into());
        }
        if self.show_labels {
            cells.push(labels_column(pod.metadata.labels.iter().flatten()).into());
        }
        cells
    }
}

/// `app=web,tier=front`, or `<none>`.
pub(super) fn labels_column<'a>(labels: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let labels: Vec<String> = labels.map(|(name, value)| format!("{name}={value}")).collect();
    if labels.is_empty() { "<none>".to_owned() } else { labels.join(",") }
}

/// Green as it should be, yellow on the way, red when something has to be done.
pub(crate) fn style_of(row: &PodRow) -> Style {
    if row.is_well() {
        return Style::Good;
    }
    match row.status.as_str() {
        "Running" | "Pending" | "ContainerCreating" | "PodInitializing" | "Terminating" | "NotReady" => Style::Pending,
        status if status.starts_with("Init:") && status[5..].starts_with(|c: char| c.is_ascii_digit()) => Style::Pending,
        _ => Style::Bad,
    }
}
