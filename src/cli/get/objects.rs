//! `podstead get configmaps` and `podstead get secrets`.

use super::OutputArgs;
use super::rows::{RowPrinter, Rows, Wanted};
use crate::client::{Client, ClientError, Target};
use crate::pods::{NamespaceArgs, collection};
use crate::table::Cell;
use clap::Args;
use podstead_api::KEYS_ANNOTATION;
use podstead_api::published::SOURCE_ANNOTATION;
use serde_json::Value;
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
    /// After listing, watch for changes
    #[arg(short, long)]
    watch: bool,
}

/// Kind of object to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plural {
    ConfigMaps,
    Secrets,
}

pub(super) async fn run(args: &ObjectsArgs, plural: Plural, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let path = match plural {
        Plural::ConfigMaps => "configmaps",
        Plural::Secrets => "secrets",
    };
    let named = args.name.as_deref();
    // A name is one of the namespace "default" unless another one is given.
    let namespace = args.namespaces.namespace.as_deref().or(named.map(|_| "default"));
    let place = |name| Target::new("/api/v1/namespaces", &[namespace.unwrap_or_default(), path, name]);
    let named = named.map(|name| (name, place(name)));
    let wanted = Wanted { collection: collection(path, namespace), named, watch: args.watch };
    let is_wide = args.output.output.is_wide();
    let mut headings = vec!["NAMESPACE", "NAME"];
    headings.extend(match plural {
        Plural::ConfigMaps => &["DATA", "SOURCE"][..],
        Plural::Secrets => &["TYPE", "DATA", "SOURCE"],
    });
    if is_wide {
        headings.push("KEYS");
    }
    let printer = RowPrinter::new(ObjectRows { plural, is_wide }, headings, &args.output, color);
    printer.run(&wanted, wanted.list(client).await?, args.namespaces.namespace.as_deref(), client).await
}

#[derive(Debug)]
struct ObjectRows {
    plural: Plural,
    is_wide: bool,
}

impl Rows for ObjectRows {
    fn kind(&self) -> &'static str {
        match self.plural {
            Plural::ConfigMaps => "configmap",
            Plural::Secrets => "secret",
        }
    }

    fn rows(&self, object: &Value) -> Result<Vec<Vec<Cell>>, ClientError> {
        Ok(vec![row(object, self.plural, self.is_wide)])
    }
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
