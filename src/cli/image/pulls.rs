//! `podstead image pulls`.

use crate::client::{Client, ClientError, OWN, Target};
use crate::get::OutputArgs;
use crate::output::{ObjectWriter, say_nothing_found};
use crate::table::{Cell, Table};
use crate::watch::{WatchEvent, watch};
use clap::Args;
use jiff::Timestamp;
use podstead_api::show::{age_since, human_duration, human_size};
use podstead_runtime::PullState;
use serde::Deserialize;
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct PullsArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// After listing, watch for changes
    #[arg(short, long)]
    watch: bool,
}

/// The list as served.
#[derive(Debug, Deserialize)]
struct ServedPulls {
    items: Vec<Value>,
    metadata: ListMetadata,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
}

pub(super) async fn run(args: &PullsArgs, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let target = || Target::new(OWN, &["pulls"]);
    let ServedPulls { mut items, metadata } = client.get(target()).await?;
    args.output.sort(&mut items, |pull| pull)?;
    let mut printer = Printer::new(args, color);
    if items.is_empty() && !args.watch && printer.is_table {
        say_nothing_found(None)?;
        return Ok(ExitCode::SUCCESS);
    }
    printer.print(&items, false)?;
    if args.watch {
        let mut events = watch(client, target(), &metadata.resource_version).await?;
        loop {
            // The last state of one that is over says nothing of how it ended.
            if let WatchEvent::Changed(pull) = events.next().await? {
                printer.print(&[pull], true)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

struct Printer {
    is_table: bool,
    table: Table,
    writer: ObjectWriter,
}

impl Printer {
    fn new(args: &PullsArgs, color: bool) -> Self {
        let table = Table::new(vec!["IMAGE", "PHASE", "DONE", "SIZE", "RATE", "LEFT", "FROM", "AGE", "WAITING"], color);
        let table = if args.output.no_headers { table.without_headings() } else { table };
        Self { is_table: args.output.output.is_table(), table, writer: args.output.writer() }
    }

    fn print(&mut self, pulls: &[Value], single: bool) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if !self.is_table {
            self.writer.write(&mut out, "pull", pulls, single)?;
        } else if !pulls.is_empty() {
            let states: Result<Vec<PullState>, _> = pulls.iter().cloned().map(serde_json::from_value).collect();
            let states = states.map_err(|source| ClientError::NotUnderstood { source })?;
            let now = Timestamp::now();
            self.table.write(&mut out, &states.iter().map(|pull| row(pull, now)).collect::<Vec<_>>())?;
        }
        Ok(out.flush()?)
    }
}

fn row(pull: &PullState, now: Timestamp) -> Vec<Cell> {
    let text = |text: Option<String>| Cell::from(text.filter(|text| !text.is_empty()).unwrap_or_else(|| "<none>".to_owned()));
    vec![
        pull.reference.as_str().into(),
        pull.phase.as_str().into(),
        text(pull.percent().map(|percent| format!("{percent}%"))),
        text((pull.size() > 0).then(|| human_size(pull.size()))),
        text((pull.rate() > 0).then(|| format!("{}/s", human_size(pull.rate())))),
        text(pull.left().map(|left| human_duration(i64::try_from(left.as_secs()).unwrap_or(i64::MAX)))),
        text(Some(pull.hosts().join(","))),
        age_since(Some(pull.began_at), now).into(),
        text(pull.waiting().map(str::to_owned)),
    ]
}
