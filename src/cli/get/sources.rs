//! `podstead get sources`.

use super::OutputArgs;
use crate::client::{Client, ClientError, OWN, Target};
use crate::fold::{fold, terminal_width};
use crate::output::say_nothing_found;
use crate::pods::ServedList;
use crate::printable::printable;
use crate::table::{Cell, Style, Table};
use clap::Args;
use jiff::Timestamp;
use podstead_api::{SourceObject, refused_objects, since};
use podstead_telemetry::counted;
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct SourcesArgs {
    /// Only this source
    name: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(args: &SourcesArgs, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let items: Vec<Value> = match &args.name {
        Some(name) => vec![client.get(Target::new(OWN, &["sources", name])).await?],
        None => client.get::<ServedList>(Target::new(OWN, &["sources"])).await?.items,
    };
    let mut out = io::stdout().lock();
    let format = &args.output.output;
    if !format.is_table() {
        args.output.writer().write(&mut out, "source", &items, args.name.is_some())?;
        return Ok(ExitCode::SUCCESS);
    }
    if items.is_empty() {
        say_nothing_found(None)?;
        return Ok(ExitCode::SUCCESS);
    }
    let typed: Result<Vec<SourceObject>, _> = items.into_iter().map(serde_json::from_value).collect();
    let typed = typed.map_err(|source| ClientError::NotUnderstood { source })?;
    let mut headings = vec!["NAME", "KIND", "REVISION", "PODS", "REJECTED", "CONTACT", "CHANGED", "STATUS"];
    if format.is_wide() {
        headings.extend(["FETCHED", "ACCEPTED", "APPLIED", "LOCATION"]);
    }
    let table = Table::new(headings, color);
    let mut table = if args.output.no_headers { table.without_headings() } else { table };
    let now = Timestamp::now();
    let rows: Vec<_> = typed.iter().map(|source| row(source, format.is_wide(), now)).collect();
    table.write(&mut out, &rows)?;
    // Beside the table: an error is longer than a line.
    for source in &typed {
        if let Some(error) = &source.status.last_error {
            let text = format!("\n{}: {}\n", source.metadata.name, printable(error));
            out.write_all(fold(&text, terminal_width()).as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(source: &SourceObject, wide: bool, now: Timestamp) -> Vec<Cell> {
    let status = &source.status;
    let revision = |revision: &Option<String>| short_revision(revision.as_deref().unwrap_or("<none>")).to_owned();
    let refused = refused_objects(&status.problems);
    let mut cells: Vec<Cell> = vec![
        source.metadata.name.as_str().into(),
        source.spec.kind.as_str().into(),
        revision(&status.accepted_revision).into(),
        status.pods.to_string().into(),
        Cell::styled(refused.to_string(), if refused > 0 { Style::Bad } else { Style::Plain }),
        since(status.last_contact_at, now).into(),
        since(status.fetched_at, now).into(),
        match (&status.last_error, &status.hold) {
            (Some(_), _) => Cell::styled("failed", Style::Bad),
            (None, Some(hold)) => Cell::styled(hold.kind.word(), Style::Pending),
            (None, None) if refused > 0 => Cell::styled(format!("{} rejected", counted(refused, "object")), Style::Bad),
            (None, None) => Cell::styled("ok", Style::Good),
        },
    ];
    if wide {
        cells.push(revision(&status.fetched_revision).into());
        cells.push(since(status.accepted_at, now).into());
        cells.push(format!("{} ({})", revision(&status.applied_revision), since(status.applied_at, now)).into());
        cells.push(source.spec.location.as_str().into());
    }
    cells
}

/// Prefix of a revision, long enough to distinguish revisions.
pub(crate) fn short_revision(revision: &str) -> &str {
    let digits = revision.split_once(':').map_or(revision, |(_, digits)| digits);
    digits.get(..12).unwrap_or(digits)
}
