//! `podstead get sources`.

use super::OutputArgs;
use super::rows::{RowPrinter, Rows, Wanted};
use crate::client::{Client, ClientError, OWN, Target};
use crate::fold::{fold, terminal_width};
use crate::printable::printable;
use crate::table::{Cell, Style};
use clap::Args;
use jiff::Timestamp;
use podstead_api::{SourceObject, refused_objects, since};
use podstead_telemetry::counted;
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct SourcesArgs {
    /// Only this source
    name: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    /// After listing, watch for changes
    #[arg(short, long)]
    watch: bool,
}

pub(super) async fn run(args: &SourcesArgs, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let named = args.name.as_deref().map(|name| (name, Target::new(OWN, &["sources", name])));
    let wanted = Wanted { collection: Target::new(OWN, &["sources"]), named, watch: args.watch };
    let is_wide = args.output.output.is_wide();
    let mut headings = vec!["NAME", "KIND", "REVISION", "PODS", "REJECTED", "CONTACT", "CHANGED", "STATUS"];
    if is_wide {
        headings.extend(["FETCHED", "ACCEPTED", "APPLIED", "LOCATION"]);
    }
    let printer = RowPrinter::new(SourceRows { is_wide }, headings, &args.output, color);
    printer.run(&wanted, wanted.list(client).await?, None, client).await
}

#[derive(Debug)]
struct SourceRows {
    is_wide: bool,
}

fn typed(object: &Value) -> Result<SourceObject, ClientError> {
    serde_json::from_value(object.clone()).map_err(|source| ClientError::NotUnderstood { source })
}

impl Rows for SourceRows {
    fn kind(&self) -> &'static str {
        "source"
    }

    fn rows(&self, object: &Value) -> Result<Vec<Vec<Cell>>, ClientError> {
        Ok(vec![row(&typed(object)?, self.is_wide, Timestamp::now())])
    }

    /// An error is longer than a line.
    fn write_below(&self, out: &mut impl Write, object: &Value) -> anyhow::Result<()> {
        let source = typed(object)?;
        if let Some(error) = &source.status.last_error {
            let text = format!("\n{}: {}\n", source.metadata.name, printable(error));
            out.write_all(fold(&text, terminal_width()).as_bytes())?;
        }
        Ok(())
    }
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
