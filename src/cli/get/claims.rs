//! `podstead get persistentvolumeclaims`, which is also `podstead volume ls`.

use super::OutputArgs;
use super::rows::{RowPrinter, Rows, Wanted};
use crate::client::{Client, ClientError, Target};
use crate::pods::{NamespaceArgs, ServedList, collection};
use crate::table::{Cell, Style};
use clap::Args;
use jiff::Timestamp;
use podstead_api::published::SOURCE_ANNOTATION;
use podstead_api::show::{age_since, human_size};
use podstead_api::{USED_BY_ANNOTATION, USED_BYTES_ANNOTATION};
use podstead_pod::claims::RECLAIM_POLICY_ANNOTATION;
use serde_json::Value;
use std::process::ExitCode;

const PLURAL: &str = "persistentvolumeclaims";

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct ClaimsArgs {
    /// Only the object with this name; in --namespace, default: the namespace "default"
    name: Option<String>,
    #[command(flatten)]
    namespaces: NamespaceArgs,
    /// Only objects with these labels, e.g. app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Only objects with these fields, e.g. metadata.name=data
    #[arg(long, value_name = "FIELDS")]
    field_selector: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    /// After listing, watch for changes; sizes are measured when listing
    #[arg(short, long)]
    watch: bool,
}

/// A claim as served.
#[derive(Clone, Debug)]
pub(crate) struct ServedClaim(Value);

impl ServedClaim {
    fn text<'a>(value: &'a Value, absent: &'a str) -> &'a str {
        value.as_str().filter(|text| !text.is_empty()).unwrap_or(absent)
    }

    /// Its namespace.
    pub(crate) fn namespace(&self) -> &str {
        Self::text(&self.0["metadata"]["namespace"], "")
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        Self::text(&self.0["metadata"]["name"], "")
    }

    /// `Bound`, `Released` and so on.
    pub(crate) fn phase(&self) -> &str {
        Self::text(&self.0["status"]["phase"], "")
    }

    /// Names of the pods that use it.
    pub(crate) fn users(&self) -> &str {
        Self::text(&self.0["metadata"]["annotations"][USED_BY_ANNOTATION], "<none>")
    }

    /// True if pods use it.
    pub(crate) fn is_used(&self) -> bool {
        self.0["metadata"]["annotations"][USED_BY_ANNOTATION].is_string()
    }

    /// Size of its data on disk.
    pub(crate) fn used(&self) -> String {
        let bytes = self.0["metadata"]["annotations"][USED_BYTES_ANNOTATION].as_str().and_then(|bytes| bytes.parse().ok());
        bytes.map_or_else(|| "<unknown>".to_owned(), human_size)
    }
}

/// All of a namespace, or of all, measured.
pub(crate) async fn ask(client: &Client, namespace: Option<&str>) -> Result<Vec<ServedClaim>, ClientError> {
    let target = collection("persistentvolumeclaims", namespace).with_flag("measure", true);
    Ok(client.get::<ServedList>(target).await?.items.into_iter().map(ServedClaim).collect())
}

pub(crate) async fn run(args: &ClaimsArgs, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let named = args.name.as_deref();
    // A name is one of the namespace "default" unless another one is given.
    let namespace = args.namespaces.namespace.as_deref().or(named.map(|_| "default"));
    let place = |name| Target::new("/api/v1/namespaces", &[namespace.unwrap_or_default(), PLURAL, name]);
    let named = named.map(|name| (name, place(name).with_flag("measure", true)));
    let collection = collection(PLURAL, namespace).with_some("labelSelector", args.selector.as_ref());
    let collection = collection.with_some("fieldSelector", args.field_selector.as_ref().filter(|_| args.name.is_none()));
    let wanted = Wanted { collection, named, watch: args.watch };
    // The version first: a change while sizes are measured is told by the watch.
    let mut listed = wanted.list(client).await?;
    if args.name.is_none() {
        let measured = ask(client, namespace).await?.into_iter().map(|claim| claim.0);
        let is_selected = |claim: &Value| {
            let identity = |claim: &Value| [claim["metadata"]["namespace"].clone(), claim["metadata"]["name"].clone()];
            listed.items.iter().any(|selected| identity(selected) == identity(claim))
        };
        listed.items = measured.filter(is_selected).collect();
    }
    let is_wide = args.output.output.is_wide();
    let mut headings = vec!["NAMESPACE", "NAME", "STATUS", "CAPACITY", "USED", "USED BY", "AGE"];
    if is_wide {
        headings.extend(["ACCESS MODES", "RECLAIM POLICY", "SOURCE"]);
    }
    let printer = RowPrinter::new(ClaimRows { is_wide }, headings, &args.output, color);
    printer.run(&wanted, listed, args.namespaces.namespace.as_deref(), client).await
}

#[derive(Debug)]
struct ClaimRows {
    is_wide: bool,
}

impl Rows for ClaimRows {
    fn kind(&self) -> &'static str {
        "persistentvolumeclaim"
    }

    fn rows(&self, object: &Value) -> Result<Vec<Vec<Cell>>, ClientError> {
        Ok(vec![row(&ServedClaim(object.clone()), self.is_wide, Timestamp::now())])
    }
}

fn row(claim: &ServedClaim, wide: bool, now: Timestamp) -> Vec<Cell> {
    let ServedClaim(item) = claim;
    let annotations = &item["metadata"]["annotations"];
    let modes = item["spec"]["accessModes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
    let created_at = item["metadata"]["creationTimestamp"].as_str().and_then(|time| time.parse().ok());
    let phase = match claim.phase() {
        // Highlighted, because no pod refers to the data that uses space.
        "Released" => Cell::styled("Released", Style::Pending),
        phase => phase.into(),
    };
    let mut cells = vec![
        claim.namespace().into(),
        claim.name().into(),
        phase,
        ServedClaim::text(&item["spec"]["resources"]["requests"]["storage"], "<unknown>").into(),
        claim.used().into(),
        claim.users().into(),
        age_since(created_at, now).into(),
    ];
    if wide {
        cells.push(modes.join(",").into());
        cells.push(ServedClaim::text(&annotations[RECLAIM_POLICY_ANNOTATION], "").into());
        cells.push(ServedClaim::text(&annotations[SOURCE_ANNOTATION], "<none>").into());
    }
    cells
}
