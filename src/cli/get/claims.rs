//! `podstead get persistentvolumeclaims`, which is also `podstead volume ls`.

use super::OutputArgs;
use crate::client::{Client, ClientError, Target};
use crate::output::say_nothing_found;
use crate::pods::{NamespaceArgs, ServedList, collection};
use crate::table::{Cell, Style, Table};
use clap::Args;
use jiff::Timestamp;
use podstead_api::published::SOURCE_ANNOTATION;
use podstead_api::show::{age_since, human_size};
use podstead_api::{USED_BY_ANNOTATION, USED_BYTES_ANNOTATION};
use podstead_pod::claims::RECLAIM_POLICY_ANNOTATION;
use serde_json::Value;
use std::io;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct ClaimsArgs {
    /// Only the object with this name; in --namespace, default: the namespace "default"
    name: Option<String>,
    #[command(flatten)]
    namespaces: NamespaceArgs,
    #[command(flatten)]
    output: OutputArgs,
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
    let namespace = args.namespaces.namespace.as_deref();
    let items = match &args.name {
        Some(name) => {
            let target = Target::new("/api/v1/namespaces", &[namespace.unwrap_or("default"), "persistentvolumeclaims", name]);
            vec![ServedClaim(client.get(target.with_flag("measure", true)).await?)]
        }
        None => ask(client, namespace).await?,
    };
    let mut out = io::stdout().lock();
    let format = &args.output.output;
    if !format.is_table() {
        let values: Vec<Value> = items.into_iter().map(|claim| claim.0).collect();
        args.output.writer().write(&mut out, "persistentvolumeclaim", &values, args.name.is_some())?;
    } else if items.is_empty() {
        say_nothing_found(namespace)?;
    } else {
        let mut headings = vec!["NAMESPACE", "NAME", "STATUS", "CAPACITY", "USED", "USED BY", "AGE"];
        if format.is_wide() {
            headings.extend(["ACCESS MODES", "RECLAIM POLICY", "SOURCE"]);
        }
        let table = Table::new(headings, color);
        let mut table = if args.output.no_headers { table.without_headings() } else { table };
        let now = Timestamp::now();
        let rows: Vec<_> = items.iter().map(|claim| row(claim, format.is_wide(), now)).collect();
        table.write(&mut out, &rows)?;
    }
    Ok(ExitCode::SUCCESS)
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
