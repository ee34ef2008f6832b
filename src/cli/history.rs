//! `podstead history`.

use super::client::{OWN, Target};
use super::output::OutputFormat;
use super::printable::printable;
use super::table::{Cell, Style, Table};
use super::{Context, source_name};
use clap::Args;
use jiff::Timestamp;
use podstead_api::short_revision;
use podstead_api::show::age_since;
use podstead_store::history::{History, HistoryEntry, RefusedObject, RevisionState};
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    /// Name of the source; may be omitted if the host has only one
    #[arg(value_name = "SOURCE")]
    source: Option<String>,
    /// Output format
    #[arg(short, long, default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(args: &HistoryArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let history: History = context.block_on(async {
        let source = source_name::ask_alone(&client, args.source.as_deref()).await?;
        Ok(client.get(Target::new(OWN, &["sources", &source, "history"])).await?)
    })?;
    let mut out = io::stdout().lock();
    match &args.output {
        OutputFormat::Structured(form) => form.write(&mut out, &serde_json::to_value(&history)?, "revisions")?,
        OutputFormat::Name => history.revisions.iter().try_for_each(|entry| writeln!(out, "{}", entry.revision))?,
        OutputFormat::Table | OutputFormat::Wide if history.revisions.is_empty() => {
            writeln!(io::stderr(), "No revision has been accepted yet.")?
        }
        OutputFormat::Table | OutputFormat::Wide => {
            let wide = args.output.is_wide();
            let mut headings = vec!["NUMBER", "REVISION", "ACCEPTED", "OBJECTS"];
            headings.extend(wide.then_some(["PODS", "CONFIGMAPS", "SECRETS"]).into_iter().flatten());
            headings.push("STATE");
            let has_commits = history.revisions.iter().any(|entry| entry.commit.is_some());
            headings.extend(has_commits.then_some("SUBJECT"));
            headings.extend((has_commits && wide).then_some("AUTHOR"));
            let now = Timestamp::now();
            let rows: Vec<_> = history.revisions.iter().map(|entry| row(entry, has_commits, wide, now)).collect();
            Table::new(headings, context.color()).write(&mut out, &rows)?;
        }
    }
    if args.output.is_table() {
        write_refused(&mut out, &history)?;
    }
    for unreadable in &history.unreadable {
        writeln!(io::stderr(), "cannot read: {unreadable}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists the refused objects of each revision below the table.
fn write_refused(out: &mut impl Write, history: &History) -> io::Result<()> {
    for entry in history.revisions.iter().filter(|entry| !entry.refused.is_empty()) {
        writeln!(out, "\nobjects rejected in revision {}:", entry.number)?;
        for RefusedObject { object, place, message } in &entry.refused {
            let object = object.as_ref().map(|object| format!(" {object}:")).unwrap_or_default();
            writeln!(out, "  {place}:{object} {}", printable(message))?;
        }
    }
    Ok(())
}

fn row(entry: &HistoryEntry, has_commits: bool, wide: bool, now: Timestamp) -> Vec<Cell> {
    let revision = entry.revision.0.as_str();
    let mut cells: Vec<Cell> = vec![
        entry.number.to_string().into(),
        if wide { revision } else { short_revision(revision) }.into(),
        age_since(Some(entry.accepted_at), now).into(),
        entry.objects().to_string().into(),
    ];
    if wide {
        cells.extend([entry.pods, entry.config_maps, entry.secrets].map(|count| Cell::from(count.to_string())));
    }
    cells.push(Cell::styled(state(entry), style(entry)));
    if has_commits {
        let commit = entry.commit.as_ref();
        cells.push(printable(commit.map_or("", |commit| &commit.subject)).into());
        if wide {
            cells.push(printable(commit.map_or("", |commit| &commit.author)).into());
        }
    }
    cells
}

/// `in force, 2 rejected`, `restored from 3`, `accepted`.
fn state(entry: &HistoryEntry) -> String {
    let mut words = Vec::new();
    if entry.in_force {
        words.push("in force".to_owned());
    }
    match (entry.state, entry.restored_from, entry.refused.len()) {
        (RevisionState::Accepted, _, _) if entry.in_force => {}
        (RevisionState::Restored, Some(number), _) => words.push(format!("restored from {number}")),
        (state, _, 0) => words.push(state.word().to_owned()),
        (RevisionState::PartlyRefused, _, refused) => words.push(format!("{refused} rejected")),
        (state, _, _) => words.push(state.word().to_owned()),
    }
    words.join(", ")
}

fn style(entry: &HistoryEntry) -> Style {
    match (entry.refused.is_empty(), entry.in_force) {
        (false, _) => Style::Bad,
        (true, true) => Style::Good,
        (true, false) => Style::Plain,
    }
}
