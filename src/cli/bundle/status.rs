//! `podstead bundle status`.

use super::apply;
use crate::client::{OWN, Target};
use crate::context::Context;
use crate::output::OutputFormat;
use crate::printable::printable;
use crate::table::{Cell, Style, Table};
use anyhow::bail;
use clap::Args;
use jiff::Timestamp;
use podstead_api::show::age_since;
use podstead_api::{SourceObject, short_revision};
use podstead_store::history::{History, HistoryEntry};
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Name of a source of the type bundle [default: all]
    #[arg(value_name = "SOURCE")]
    source: Option<String>,
    /// Output format
    #[arg(short, long, default_value = "table")]
    output: OutputFormat,
}

/// The bundle of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Standing {
    source: String,
    /// The bundle in force: name, serial and date.
    #[serde(skip_serializing_if = "Option::is_none")]
    bundle: Option<String>,
    /// Digest of its document.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_at: Option<Timestamp>,
    /// Reason why another bundle is not taken, or is not complete yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(super) fn run(args: &StatusArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let standings: Vec<Standing> = context.block_on(async {
        let mut standings = Vec::new();
        for source in apply::sources(&client).await?.iter().filter(|source| source.spec.kind == "bundle") {
            if args.source.as_ref().is_some_and(|wanted| *wanted != source.metadata.name) {
                continue;
            }
            let history: History = client.get(Target::new(OWN, &["sources", &source.metadata.name, "history"])).await?;
            standings.push(standing(source, &history));
        }
        Ok(standings)
    })?;
    if let (Some(wanted), true) = (&args.source, standings.is_empty()) {
        bail!("this host has no source {wanted:?} of the type bundle");
    }
    let mut out = io::stdout().lock();
    match &args.output {
        OutputFormat::Structured(form) => form.write(&mut out, &serde_json::json!({ "items": standings }), "items")?,
        OutputFormat::Name => standings.iter().try_for_each(|standing| writeln!(out, "{}", printable(&standing.source)))?,
        OutputFormat::Table | OutputFormat::Wide => {
            let now = Timestamp::now();
            let rows: Vec<_> = standings.iter().map(|standing| row(standing, now)).collect();
            Table::new(vec!["SOURCE", "BUNDLE", "REVISION", "ACCEPTED", "SIGNED BY", "STATUS"], context.color())
                .write(&mut out, &rows)?;
            out.write_all(beside(&standings).as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn standing(source: &SourceObject, history: &History) -> Standing {
    let in_force = history.revisions.iter().find(|entry| entry.in_force);
    // Before the first bundle, the source has a revision without one.
    let commit = in_force.and_then(|entry| entry.commit.as_ref());
    let of_bundle = |value: fn(&HistoryEntry) -> String| in_force.filter(|_| commit.is_some()).map(value);
    Standing {
        source: source.metadata.name.clone(),
        bundle: commit.map(|commit| commit.subject.clone()),
        revision: of_bundle(|entry| entry.revision.0.clone()),
        signer: commit.map(|commit| commit.author.clone()).filter(|signer| !signer.is_empty()),
        accepted_at: in_force.filter(|_| commit.is_some()).map(|entry| entry.accepted_at),
        problem: source.status.last_error.clone(),
    }
}

fn row(standing: &Standing, now: Timestamp) -> Vec<Cell> {
    let Standing { source, bundle, revision, signer, accepted_at, problem } = standing;
    let text = |text: &Option<String>| Cell::from(text.as_deref().unwrap_or("<none>"));
    vec![
        source.as_str().into(),
        text(bundle),
        text(&revision.as_deref().map(short_revision).map(|revision| revision.to_string())),
        Cell::from(accepted_at.map_or_else(|| "<none>".to_owned(), |at| age_since(Some(at), now))),
        text(signer),
        if problem.is_some() { Cell::styled("failed", Style::Bad) } else { Cell::styled("ok", Style::Good) },
    ]
}

/// The problems, which are too long for a cell.
fn beside(standings: &[Standing]) -> String {
    let problems = standings.iter().filter_map(|standing| Some((&standing.source, standing.problem.as_ref()?)));
    problems.map(|(source, problem)| format!("\n{}: {}\n", printable(source), printable(problem))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn source(error: Option<&str>) -> SourceObject {
        let status = json!({"pods": 0, "problems": [], "lastError": error});
        let (metadata, spec) = (json!({"name": "fleet"}), json!({"kind": "bundle", "location": "/b"}));
        let object = json!({"apiVersion": "v", "kind": "Source", "metadata": metadata, "spec": spec, "status": status});
        serde_json::from_value(object).unwrap()
    }

    fn history(commit: serde_json::Value) -> History {
        let entry = |number: u64, in_force: bool, commit: &serde_json::Value| {
            json!({
                "number": number, "revision": format!("sha256:{number}"), "acceptedAt": "2026-01-01T00:00:00Z", "inForce": in_force,
                "commit": commit, "pods": 1, "configMaps": 0, "secrets": 0, "workloads": 0,
            })
        };
        serde_json::from_value(json!({"source": "fleet", "revisions": [entry(2, false, &commit), entry(1, true, &commit)]}))
            .unwrap()
    }

    #[test]
    fn bundle_in_force_is_shown_with_its_problem() {
        let commit = json!({"subject": "shop 12 of 2026-01-01T00:00:00Z", "author": "anna"});
        let shown = standing(&source(Some("the medium is gone")), &history(commit));
        assert_eq!(
            (shown.bundle.as_deref(), shown.revision.as_deref()),
            (Some("shop 12 of 2026-01-01T00:00:00Z"), Some("sha256:1"))
        );
        assert_eq!((shown.signer.as_deref(), shown.problem.as_deref()), (Some("anna"), Some("the medium is gone")));
        assert_eq!(shown.accepted_at, Some("2026-01-01T00:00:00Z".parse().unwrap()));
        assert_eq!(beside(&[shown]), "\nfleet: the medium is gone\n");
    }

    #[test]
    fn source_without_bundle_has_none() {
        let shown = standing(&source(None), &history(serde_json::Value::Null));
        let none =
            Standing { source: "fleet".into(), bundle: None, revision: None, signer: None, accepted_at: None, problem: None };
        assert_eq!(shown, none);
    }
}
