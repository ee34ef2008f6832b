//! `podstead history`.

use super::client::{OWN, Target};
use super::get::short_revision;
use super::output::OutputFormat;
use super::table::{Cell, Style, Table};
use super::{Context, source_name};
use crate::api::show::age_since;
use crate::source::history::{History, HistoryEntry};
use clap::Args;
use jiff::Timestamp;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    /// The source; may be left out where there is one
    #[arg(value_name = "SOURCE")]
    source: Option<String>,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table)]
    output: OutputFormat,
}

pub(super) fn run(args: &HistoryArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let history: History = context.block_on(async {
        let source = source_name::ask_alone(&client, args.source.as_deref()).await?;
        Ok(client.get(Target::new(OWN, &["sources", &source, "history"])).await?)
    })?;
    let mut out = io::stdout().lock();
    match args.output {
        OutputFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&history)?)?,
        OutputFormat::Yaml => write!(out, "{}", crate::manifest::to_yaml(&serde_json::to_value(&history)?))?,
        OutputFormat::Name => history.revisions.iter().try_for_each(|entry| writeln!(out, "{}", entry.revision))?,
        OutputFormat::Table | OutputFormat::Wide if history.revisions.is_empty() => {
            writeln!(io::stderr(), "Nothing was accepted yet.")?
        }
        OutputFormat::Table | OutputFormat::Wide => {
            let wide = args.output == OutputFormat::Wide;
            let headings = vec!["NUMBER", "REVISION", "ACCEPTED", "PODS", "CONFIGMAPS", "SECRETS", ""];
            let now = Timestamp::now();
            let rows: Vec<_> = history.revisions.iter().map(|entry| row(entry, wide, now)).collect();
            Table::new(headings, context.color()).write(&mut out, &rows)?;
        }
    }
    for unreadable in &history.unreadable {
        writeln!(io::stderr(), "not readable: {unreadable}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(entry: &HistoryEntry, wide: bool, now: Timestamp) -> Vec<Cell> {
    let restored = entry.restored_from.map(|number| format!("as {number}")).unwrap_or_default();
    let revision = entry.revision.0.as_str();
    vec![
        entry.number.to_string().into(),
        if wide { revision } else { short_revision(revision) }.into(),
        age_since(Some(entry.accepted_at), now).into(),
        entry.pods.to_string().into(),
        entry.config_maps.to_string().into(),
        entry.secrets.to_string().into(),
        match entry.in_force {
            true => Cell::styled(format!("in force {restored}").trim_end(), Style::Good),
            false => restored.into(),
        },
    ]
}
