//! `podstead sync`.

use super::client::{Client, OWN, Target};
use super::pods;
use super::{Context, EXIT_FAILED};
use anyhow::bail;
use clap::Args;
use futures_util::future::try_join_all;
use podstead_api::published::SOURCE_ANNOTATION;
use podstead_api::{PruneAnswer, SourceObject, SyncAnswer};
use podstead_telemetry::counted;
use serde::Deserialize;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct SyncArgs {
    /// Wait until the current content of the source is in force; exit with 1 if any of it is rejected
    #[arg(long, conflicts_with = "prune")]
    wait: bool,
    /// Number of seconds to wait at most
    #[arg(long, value_name = "SECONDS", default_value_t = 300, requires = "wait")]
    timeout: u64,
    /// Remove the pods of a source that cannot be fetched, or that became empty unexpectedly; asks for confirmation
    #[arg(long, requires = "source")]
    prune: bool,
    /// With --prune: do not ask for confirmation
    #[arg(short, long, requires = "prune")]
    yes: bool,
    /// Name of the source [default: all sources]
    #[arg(value_name = "SOURCE")]
    source: Option<String>,
}

pub(super) fn run(args: &SyncArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    match &args.source {
        Some(source) if args.prune => context.block_on(prune(&client, source, args.yes)),
        source => context.block_on(sync(&client, source.as_deref(), args)),
    }
}

async fn prune(client: &Client, source: &str, yes: bool) -> anyhow::Result<ExitCode> {
    if !yes && !confirm(client, source).await? {
        writeln!(io::stdout(), "no pods were removed")?;
        return Ok(ExitCode::from(EXIT_FAILED));
    }
    let target = Target::new(OWN, &["sources", source, "prune"]);
    let answer: PruneAnswer = client.post(target, &serde_json::json!({})).await?;
    let removed =
        if answer.removed_pods == 0 { String::new() } else { format!(": removed {}", counted(answer.removed_pods, "pod")) };
    writeln!(io::stdout(), "source {source} is now empty{removed}")?;
    Ok(ExitCode::SUCCESS)
}

/// Lists the pods that would be removed and asks for permission on the terminal.
async fn confirm(client: &Client, source: &str) -> anyhow::Result<bool> {
    let pods = pods_of(client, source).await?;
    let mut out = io::stdout().lock();
    match pods.len() {
        // Claims go, too, and their data with them.
        0 => writeln!(out, "This removes all objects of source {source}, which has no pods.")?,
        some => writeln!(out, "This removes {} of source {source}:", counted(some, "pod"))?,
    }
    for pod in &pods {
        writeln!(out, "  {pod}")?;
    }
    if !io::stdin().is_terminal() {
        bail!("no pods were removed: cannot ask for confirmation because standard input is not a terminal; use --yes");
    }
    write!(out, "Remove them? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The pods of a source, as `namespace/name`.
async fn pods_of(client: &Client, source: &str) -> anyhow::Result<Vec<String>> {
    let list: pods::ServedList = client.get(pods::collection("pods", None)).await?;
    let owned = |pod: &&serde_json::Value| pod["metadata"]["annotations"][SOURCE_ANNOTATION] == source;
    let name = |pod: &serde_json::Value| {
        let part = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
        format!("{}/{}", part("namespace"), part("name"))
    };
    Ok(list.items.iter().filter(owned).map(name).collect())
}

async fn sync(client: &Client, source: Option<&str>, args: &SyncArgs) -> anyhow::Result<ExitCode> {
    let names = match source {
        Some(source) => vec![source.to_owned()],
        None => all(client).await?,
    };
    let asked = try_join_all(names.iter().map(|name| async move {
        let target = Target::new(OWN, &["sources", name, "sync"]).with_flag("wait", args.wait);
        client.post::<SyncAnswer>(target, &serde_json::json!({})).await.map(|answer| (name, answer))
    }));
    let Ok(answers) = tokio::time::timeout(Duration::from_secs(args.timeout), asked).await else {
        bail!("sync timed out after {} seconds", args.timeout)
    };
    let mut out = io::stdout().lock();
    let mut whole = true;
    for (name, answer) in answers? {
        whole &= answer.error.is_none() && answer.refused == 0;
        writeln!(out, "{}", told(name, &answer))?;
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

async fn all(client: &Client) -> anyhow::Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Sources {
        items: Vec<SourceObject>,
    }
    let sources: Sources = client.get(Target::new(OWN, &["sources"])).await?;
    Ok(sources.items.into_iter().map(|source| source.metadata.name).collect())
}

/// Revision of a source that has never found a bundle.
const NO_BUNDLE: &str = "none";

/// One line about one source.
fn told(name: &str, answer: &SyncAnswer) -> String {
    let SyncAnswer { waited, revision, pods, error, refused } = answer;
    match (waited, error, revision) {
        (false, _, _) => format!("source {name}: sync requested"),
        (true, Some(error), _) => format!("source {name}: {error}"),
        (true, None, None) => format!("source {name}: no revision is in force"),
        (true, None, Some(revision)) if revision == NO_BUNDLE => format!("source {name}: there is no bundle yet"),
        (true, None, Some(revision)) => {
            let refused = match refused {
                0 => String::new(),
                1 => "; 1 object is rejected, see podstead status".to_owned(),
                more => format!("; {more} objects are rejected, see podstead status"),
            };
            // Pods of workloads are not counted.
            let pods = if *pods == 0 { String::new() } else { format!(", {}", counted(*pods, "pod")) };
            format!("source {name}: {revision} is in force{pods}{refused}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_told_in_a_line() {
        let answer = SyncAnswer { waited: true, revision: Some("sha256:1".into()), pods: 2, error: None, refused: 0 };
        assert_eq!(told("a", &answer), "source a: sha256:1 is in force, 2 pods");
        let none = SyncAnswer { revision: Some(NO_BUNDLE.into()), pods: 0, ..answer.clone() };
        assert_eq!(told("a", &none), "source a: there is no bundle yet");
        assert!(told("a", &SyncAnswer { refused: 1, ..answer.clone() }).contains("1 object is rejected"));
        assert_eq!(told("a", &SyncAnswer { error: Some("gone".into()), ..answer.clone() }), "source a: gone");
        assert_eq!(told("a", &SyncAnswer { waited: false, ..answer }), "source a: sync requested");
    }
}
