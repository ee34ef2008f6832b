//! `podstead get events`.

use super::OutputArgs;
use super::listed::{self, ListOptions};
use crate::client::Client;
use crate::object_type::{ObjectType, parse_object};
use crate::pods::{NamespaceArgs, find, name_of, namespace_of};
use crate::table::{Cell, Style};
use crate::workloads;
use anyhow::bail;
use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use podstead_api::show::{age_since, human_duration};
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
    let options = ListOptions {
        namespace: NamespaceArgs { namespace, ..args.namespace.clone() },
        field_selector: Some(fields.join(",")).filter(|fields| !fields.is_empty()),
        output: args.output.clone(),
        watch: args.watch,
        ..ListOptions::default()
    };
    listed::run_options(&options, ObjectType::Event, client, color).await
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
        | ObjectType::Node
        | ObjectType::Event
        | ObjectType::Source
        | ObjectType::Image
        | ObjectType::Pull => {
            bail!("there are no events of {}", object_type.qualified_plural())
        }
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
