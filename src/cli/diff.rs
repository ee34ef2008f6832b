//! `podstead diff`: compares the revision in force with an earlier one.

use super::client::{OWN, Target};
use super::output::OutputFormat;
use super::printable::printable;
use super::table::Style;
use super::{Context, EXIT_FAILED, source_name};
use clap::Args;
use podstead_api::short_revision;
use podstead_manifest::to_yaml;
use podstead_store::history::{Change, FieldChange, HistoryEntry, ObjectChange, RevisionDiff};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// Name of the source; may be omitted if the host has only one
    #[arg(value_name = "SOURCE")]
    source: Option<String>,
    /// Number in the history or prefix of a revision [default: the last one before without rejected objects]
    #[arg(value_name = "REVISION")]
    revision: Option<String>,
    /// Output format
    #[arg(short, long, default_value = "table")]
    output: OutputFormat,
    /// Exit with 1 if there is a difference
    #[arg(long)]
    exit_code: bool,
}

pub(super) fn run(args: &DiffArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let (source, diff): (String, RevisionDiff) = context.block_on(async {
        let chosen = source_name::ask(&client, args.source.as_deref(), args.revision.as_deref()).await?;
        let target = Target::new(OWN, &["sources", &chosen.source, "diff"]).with_some("revision", chosen.revision.as_deref());
        Ok((chosen.source, client.get(target).await?))
    })?;
    let mut out = io::stdout().lock();
    match &args.output {
        OutputFormat::Structured(form) => form.write(&mut out, &serde_json::to_value(&diff)?, "objects")?,
        OutputFormat::Name => {
            for ObjectChange { kind, namespace, name, change: _ } in &diff.objects {
                writeln!(out, "{}/{namespace}/{name}", kind.to_lowercase())?;
            }
        }
        OutputFormat::Table | OutputFormat::Wide => out.write_all(text(&source, &diff, context.color()).as_bytes())?,
    }
    let differs = args.exit_code && !diff.objects.is_empty();
    Ok(if differs { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
}

/// The comparison in the manner of `diff -u`.
pub(super) fn text(source: &str, diff: &RevisionDiff, color: bool) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    write_text(&mut text, source, diff, color).ok();
    text
}

fn write_text(text: &mut String, source: &str, diff: &RevisionDiff, color: bool) -> std::fmt::Result {
    let title = |entry: &HistoryEntry| {
        let in_force = if entry.in_force { ", in force" } else { "" };
        format!("{source} {} (number {}{in_force})", short_revision(&entry.revision.0), entry.number)
    };
    writeln!(text, "{}", Style::Bold.paint(&format!("--- {}", title(&diff.from)), color))?;
    writeln!(text, "{}", Style::Bold.paint(&format!("+++ {}", title(&diff.to)), color))?;
    if diff.objects.is_empty() {
        return writeln!(text, "no differences");
    }
    for ObjectChange { kind, namespace, name, change } in &diff.objects {
        let object = format!("{kind} {namespace}/{name}");
        match change {
            Change::Added => writeln!(text, "{}", Style::Good.paint(&format!("+ {object}"), color))?,
            Change::Removed => writeln!(text, "{}", Style::Bad.paint(&format!("- {object}"), color))?,
            Change::Changed(fields) => {
                writeln!(text, "~ {object}")?;
                fields.iter().try_for_each(|field| write_field(text, field, color))?;
            }
        }
    }
    Ok(())
}

fn write_field(text: &mut String, change: &FieldChange, color: bool) -> std::fmt::Result {
    writeln!(text, "    {}", printable(&change.field))?;
    for (sign, style, value) in [("-", Style::Bad, &change.before), ("+", Style::Good, &change.after)] {
        for line in value.iter().flat_map(lines) {
            writeln!(text, "      {}", style.paint(&format!("{sign} {}", printable(&line)), color))?;
        }
    }
    Ok(())
}

fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.lines().map(str::to_owned).collect(),
        other => to_yaml(other).lines().map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn diff(objects: Value) -> RevisionDiff {
        let entry = |number, revision: &str, in_force| {
            json!({
                "number": number, "revision": revision, "acceptedAt": "2026-01-01T00:00:00Z", "inForce": in_force, "pods": 1,
                "configMaps": 0, "secrets": 0,
            })
        };
        let (from, to) = (entry(2, "sha256:aaaaaaaaaaaaaaaa", false), entry(3, "bbbbbbbbbbbbbbbb", true));
        serde_json::from_value(json!({"from": from, "to": to, "objects": objects})).unwrap()
    }

    #[test]
    fn a_comparison_is_written_in_the_manner_of_diff() {
        let object =
            |kind: &str, name: &str, change: Value| json!({"kind": kind, "namespace": "default", "name": name, "change": change});
        let fields = json!({"changed": [
            {"field": "data[\"app.conf\"]", "before": "a\nb", "after": "a\n\u{1b}[31mc"},
            {"field": "metadata.labels", "after": {"app": "web"}},
        ]});
        let objects =
            [object("ConfigMap", "c", fields), object("Pod", "new", json!("added")), object("Pod", "old", json!("removed"))];
        insta::assert_snapshot!(text("fleet", &diff(json!(objects)), false));
        assert!(text("fleet", &diff(json!([])), false).ends_with("no differences\n"));
    }
}
