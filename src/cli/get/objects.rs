//! `podstead get configmaps` and `podstead get secrets`.

use super::OutputArgs;
use crate::client::{Client, Target};
use crate::output::say_nothing_found;
use crate::pods::{NamespaceArgs, ServedList, collection};
use crate::table::{Cell, Table};
use clap::Args;
use podstead_api::KEYS_ANNOTATION;
use podstead_api::published::SOURCE_ANNOTATION;
use serde_json::Value;
use std::io;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct ObjectsArgs {
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
    ConfigMaps,
    Secrets,
}

pub(super) async fn run(args: &ObjectsArgs, plural: Plural, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let (path, singular) = match plural {
        Plural::ConfigMaps => ("configmaps", "configmap"),
        Plural::Secrets => ("secrets", "secret"),
    };
    let namespace = args.namespaces.namespace.as_deref();
    let items: Vec<Value> = match &args.name {
        Some(name) => {
            let target = Target::new("/api/v1/namespaces", &[namespace.unwrap_or("default"), path, name]);
            vec![client.get(target).await?]
        }
        None => client.get::<ServedList>(collection(path, namespace)).await?.items,
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
    let mut headings = vec!["NAMESPACE", "NAME"];
    headings.extend(match plural {
        Plural::ConfigMaps => &["DATA", "SOURCE"][..],
        Plural::Secrets => &["TYPE", "DATA", "SOURCE"],
    });
    if format.is_wide() {
        headings.push("KEYS");
    }
    let table = Table::new(headings, color);
    let mut table = if args.output.no_headers { table.without_headings() } else { table };
    let rows: Vec<_> = items.iter().map(|item| row(item, plural, format.is_wide())).collect();
    table.write(&mut out, &rows)?;
    Ok(ExitCode::SUCCESS)
}

fn row(item: &Value, plural: Plural, wide: bool) -> Vec<Cell> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &item["metadata"];
    let keys = keys(item);
    let mut cells: Vec<Cell> = vec![text(&metadata["namespace"]).into(), text(&metadata["name"]).into()];
    match plural {
        Plural::ConfigMaps => cells.push(keys.len().to_string().into()),
        Plural::Secrets => cells.extend([text(&item["type"]).into(), keys.len().to_string().into()]),
    }
    cells.push(text(&metadata["annotations"][SOURCE_ANNOTATION]).into());
    if wide {
        cells.push(keys.join(", ").into());
    }
    cells
}

fn keys(item: &Value) -> Vec<String> {
    if let Some(keys) = item["metadata"]["annotations"][KEYS_ANNOTATION].as_str() {
        return keys.split(", ").filter(|key| !key.is_empty()).map(str::to_owned).collect();
    }
    let fields = ["data", "binaryData"].into_iter().filter_map(|field| item[field].as_object());
    fields.flat_map(|field| field.keys().cloned()).collect()
}
