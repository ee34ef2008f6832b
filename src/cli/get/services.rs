//! `podstead get services` and `podstead get endpointslices`.

use super::OutputArgs;
use super::rows::{RowPrinter, Rows, Wanted};
use crate::client::{Client, ClientError, Target};
use crate::pods::NamespaceArgs;
use crate::table::Cell;
use clap::Args;
use podstead_api::services::{service_cells, slice_cells};
use serde_json::Value;
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
    /// After listing, watch for changes
    #[arg(short, long)]
    watch: bool,
}

/// Kind of object to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plural {
    Services,
    EndpointSlices,
}

pub(super) async fn run(args: &ServicesArgs, plural: Plural, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let (group, path) = match plural {
        Plural::Services => ("/api/v1", "services"),
        Plural::EndpointSlices => ("/apis/discovery.k8s.io/v1", "endpointslices"),
    };
    let namespaces = format!("{group}/namespaces");
    let named = args.name.as_deref();
    // A name is one of the namespace "default" unless another one is given.
    let namespace = args.namespaces.namespace.as_deref().or(named.map(|_| "default"));
    let wanted = Wanted {
        collection: match namespace {
            Some(namespace) => Target::new(&namespaces, &[namespace, path]),
            None => Target::new(group, &[path]),
        },
        named: named.map(|name| (name, Target::new(&namespaces, &[namespace.unwrap_or_default(), path, name]))),
        watch: args.watch,
    };
    let is_wide = args.output.output.is_wide();
    let mut headings = vec!["NAMESPACE", "NAME"];
    headings.extend(match plural {
        Plural::Services => &["TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)"][..],
        Plural::EndpointSlices => &["ADDRESSTYPE", "PORTS", "ENDPOINTS"],
    });
    if is_wide && plural == Plural::Services {
        headings.push("SELECTOR");
    }
    let printer = RowPrinter::new(ServiceRows { plural, is_wide }, headings, &args.output, color);
    printer.run(&wanted, wanted.list(client).await?, args.namespaces.namespace.as_deref(), client).await
}

#[derive(Debug)]
struct ServiceRows {
    plural: Plural,
    is_wide: bool,
}

impl Rows for ServiceRows {
    fn kind(&self) -> &'static str {
        match self.plural {
            Plural::Services => "service",
            Plural::EndpointSlices => "endpointslice.discovery.k8s.io",
        }
    }

    fn rows(&self, object: &Value) -> Result<Vec<Vec<Cell>>, ClientError> {
        Ok(vec![row(object, self.plural, self.is_wide)])
    }
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
