//! `podstead get events`.

use super::OutputArgs;
use crate::client::{Client, ClientError};
use crate::object_type::{ObjectType, parse_object};
use crate::output::{ObjectWriter, say_nothing_found};
use crate::pods::{NamespaceArgs, ServedList, collection, find, name_of, namespace_of};
use crate::table::{Cell, Style, Table};
use crate::watch::{WatchEvent, watch};
use crate::workloads;
use anyhow::bail;
use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use podstead_api::show::{age_since, human_duration};
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Only events of this pod, or of a workload or a Service, such as deploy/web
    #[arg(long = "for", value_name = "POD|TYPE/NAME")]
    object: Option<String>,
    /// Only events of this type
    #[arg(long, value_name = "TYPE", value_parser = ["Normal", "Warning"])]
    r#type: Option<String>,
    /// Only events with these fields, e.g. reason=BackOff
    #[arg(long, value_name = "FIELDS")]
    field_selector: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    /// After listing, watch for new events
    #[arg(short, long)]
    watch: bool,
}

pub(super) async fn run(args: &EventsArgs, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let mut namespace = args.namespace.namespace.clone();
    let mut fields = Vec::new();
    if let Some(argument) = &args.object {
        let (kind, found_namespace, name) = involved(client, argument, namespace.as_deref()).await?;
        namespace = Some(found_namespace);
        fields.push(format!("involvedObject.kind={kind},involvedObject.name={name}"));
    }
    fields.extend(args.r#type.iter().map(|kind| format!("type={kind}")));
    fields.extend(args.field_selector.clone());
    let target = || collection("events", namespace.as_deref()).with("fieldSelector", &fields.join(","));
    let list: ServedList = client.get(target()).await?;
    let mut items = list.items;
    // The newest last, where a terminal shows it.
    items.sort_by_cached_key(last_seen);
    args.output.sort(&mut items, |event| event)?;
    let mut headings = vec!["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"];
    if args.namespace.all_namespaces {
        headings.insert(0, "NAMESPACE");
    }
    let table = Table::new(headings, color);
    let table = if args.output.no_headers { table.without_headings() } else { table };
    let mut printer = Printer { args, table, writer: args.output.writer() };
    printer.print(&items, false)?;
    if args.watch {
        let mut events = watch(client, target(), &list.metadata.resource_version).await?;
        loop {
            match events.next().await? {
                WatchEvent::Changed(object) => printer.print(&[object], true)?,
                // It is only forgotten.
                WatchEvent::Deleted(_) => {}
            }
        }
    }
    if items.is_empty() {
        say_nothing_found(namespace.as_deref())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Kind, namespace and name of the object that is meant.
async fn involved(client: &Client, argument: &str, namespace: Option<&str>) -> anyhow::Result<(&'static str, String, String)> {
    let (object_type, name) = match argument.contains('/') {
        true => parse_object(argument).map_err(anyhow::Error::msg)?,
        false => (ObjectType::Pod, argument.to_owned()),
    };
    match object_type {
        ObjectType::Pod => {
            let pod = find(client, &name, namespace).await?;
            Ok(("Pod", namespace_of(&pod).to_owned(), name_of(&pod).to_owned()))
        }
        ObjectType::Workload(kind) => {
            let workload = workloads::find(client, kind, &name, namespace).await?;
            Ok((kind.as_str(), workloads::metadata(&workload, "namespace").to_owned(), name))
        }
        ObjectType::Service => {
            let service = workloads::find_object(client, object_type, &name, namespace).await?;
            Ok(("Service", workloads::metadata(&service, "namespace").to_owned(), name))
        }
        ObjectType::ConfigMap
        | ObjectType::Secret
        | ObjectType::PersistentVolumeClaim
        | ObjectType::EndpointSlice
        | ObjectType::NetworkPolicy
        | ObjectType::Namespace
        | ObjectType::Node => {
            bail!("there are no events of {}", object_type.qualified_plural())
        }
    }
}

fn last_seen(event: &Value) -> Option<Timestamp> {
    event["lastTimestamp"].as_str()?.parse().ok()
}

struct Printer<'a> {
    args: &'a EventsArgs,
    table: Table,
    writer: ObjectWriter,
}

impl Printer<'_> {
    fn print(&mut self, events: &[Value], single: bool) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if self.args.output.output.is_table() {
            let now = Timestamp::now();
            let typed = |value: &Value| serde_json::from_value::<Event>(value.clone());
            let rows: Result<Vec<_>, _> = events.iter().map(|event| Ok(self.row(&typed(event)?, now))).collect();
            let rows = rows.map_err(|source| ClientError::NotUnderstood { source })?;
            if !rows.is_empty() {
                self.table.write(&mut out, &rows)?;
            }
        } else {
            self.writer.write(&mut out, "event", events, single)?;
        }
        Ok(out.flush()?)
    }

    fn row(&self, event: &Event, now: Timestamp) -> Vec<Cell> {
        let object = &event.involved_object;
        let kind = object.kind.as_deref().unwrap_or_default().to_lowercase();
        let mut subject = format!("{kind}/{}", object.name.as_deref().unwrap_or_default());
        if let (true, Some(part)) = (self.args.output.output.is_wide(), &object.field_path) {
            subject = format!("{subject} {part}");
        }
        let mut cells = vec![
            seen_column(event, now).into(),
            type_cell(event),
            event.reason.as_deref().unwrap_or_default().into(),
            subject.into(),
            event.message.as_deref().unwrap_or_default().into(),
        ];
        if self.args.namespace.all_namespaces {
            cells.insert(0, event.metadata.namespace.as_deref().unwrap_or_default().into());
        }
        cells
    }
}

/// Normal or Warning.
pub(crate) fn type_cell(event: &Event) -> Cell {
    match event.type_.as_deref() {
        Some("Warning") => Cell::styled("Warning", Style::Bad),
        kind => kind.unwrap_or_default().into(),
    }
}

/// `3m` or `3m (x5 over 10m)`.
pub(crate) fn seen_column(event: &Event, now: Timestamp) -> String {
    let first = event.first_timestamp.as_ref().map(|time| time.0);
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let seen = age_since(last, now);
    match (event.count, first, last) {
        (Some(count), Some(first), Some(last)) if count > 1 => {
            format!("{seen} (x{count} over {})", human_duration(last.duration_since(first).as_secs()))
        }
        _ => seen,
    }
}
