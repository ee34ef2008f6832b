//! `podstead get services` and `podstead get endpointslices`.

use super::OutputArgs;
use crate::client::{Client, Target};
use crate::output::say_nothing_found;
use crate::pods::{NamespaceArgs, ServedList};
use crate::table::{Cell, Table};
use clap::Args;
use podstead_api::services::{service_cells, slice_cells};
use serde_json::Value;
use std::io;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct ServicesArgs {
    /// Only the object with this name; in --namespace, default: the namespace "default"
    name: Option<String>,
    #[command(flatten)]
    namespaces: NamespaceArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Kind of object to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plural {
    Services,
    EndpointSlices,
}

pub(super) async fn run(args: &ServicesArgs, plural: Plural, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let (group, path, singular) = match plural {
        Plural::Services => ("/api/v1", "services", "service"),
        Plural::EndpointSlices => ("/apis/discovery.k8s.io/v1", "endpointslices", "endpointslice.discovery.k8s.io"),
    };
    let namespace = args.namespaces.namespace.as_deref();
    let namespaces = format!("{group}/namespaces");
    let items: Vec<Value> = match (&args.name, namespace) {
        (Some(name), _) => vec![client.get(Target::new(&namespaces, &[namespace.unwrap_or("default"), path, name])).await?],
        (None, Some(namespace)) => client.get::<ServedList>(Target::new(&namespaces, &[namespace, path])).await?.items,
        (None, None) => client.get::<ServedList>(Target::new(group, &[path])).await?.items,
    };
    let mut out = io::stdout().lock();
    let format = &args.output.output;
    if !format.is_table() {
        args.output.writer().write(&mut out, singular, &items, args.name.is_some())?;
        return Ok(ExitCode::SUCCESS);
    }
    if items.is_empty() {
        say_nothing_found(namespace)?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_wide = format.is_wide();
    let mut headings = vec!["NAMESPACE", "NAME"];
    headings.extend(match plural {
        Plural::Services => &["TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)"][..],
        Plural::EndpointSlices => &["ADDRESSTYPE", "PORTS", "ENDPOINTS"],
    });
    if is_wide && plural == Plural::Services {
        headings.push("SELECTOR");
    }
    let table = Table::new(headings, color);
    let mut table = if args.output.no_headers { table.without_headings() } else { table };
    let rows: Vec<_> = items.iter().map(|item| row(item, plural, is_wide)).collect();
    table.write(&mut out, &rows)?;
    Ok(ExitCode::SUCCESS)
}

fn row(item: &Value, plural: Plural, is_wide: bool) -> Vec<Cell> {
    let mut cells = match plural {
        Plural::Services => service_cells(item),
        Plural::EndpointSlices => slice_cells(item),
    };
    if plural == Plural::Services && !is_wide {
        // The selector.
        cells.pop();
    }
    let namespace = item["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    std::iter::once(namespace).chain(cells).map(Cell::from).collect()
}
