//! `podstead bundle apply`.

use crate::client::{Client, OWN, Target};
use crate::context::Context;
use anyhow::{Context as _, bail};
use clap::Args;
use podstead_api::{SourceObject, SyncAnswer};
use podstead_image::list_job::Here;
use podstead_source::bundle::archive::{Head, read_head};
use podstead_telemetry::counted;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct ApplyArgs {
    /// The bundle
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Name of the source; may be omitted if the host has only one of the type bundle
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Number of seconds to wait at most
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
}

/// A source of bundles.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chosen {
    name: String,
    directory: PathBuf,
}

pub(super) fn run(args: &ApplyArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let failed = || args.file.display().to_string();
    let head = read_head(&File::open(&args.file).with_context(failed)?, &Here).with_context(failed)?;
    let file = std::fs::canonicalize(&args.file).with_context(failed)?;
    let client = context.client()?;
    context.block_on(async {
        let source = choose(&sources(&client).await?, args.source.as_deref())?;
        let link = show_to(&source, &file, &head)?;
        let asked = tokio::time::timeout(Duration::from_secs(args.timeout), sync(&client, &source.name)).await;
        let Ok(answer) = asked else {
            bail!("{} is not in force after {} seconds; podstead get sources shows when it is", args.file.display(), args.timeout)
        };
        if let Some(link) = link {
            remove(&link)?;
        }
        tell(&source.name, &head, &answer?)
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn sources(client: &Client) -> anyhow::Result<Vec<SourceObject>> {
    #[derive(Deserialize)]
    struct Sources {
        items: Vec<SourceObject>,
    }
    let sources: Sources = client.get(Target::new(OWN, &["sources"])).await?;
    Ok(sources.items)
}

fn choose(sources: &[SourceObject], wanted: Option<&str>) -> anyhow::Result<Chosen> {
    let chosen =
        |source: &SourceObject| Chosen { name: source.metadata.name.clone(), directory: PathBuf::from(&source.spec.location) };
    let of_bundles: Vec<&SourceObject> = sources.iter().filter(|source| source.spec.kind == "bundle").collect();
    let names = || of_bundles.iter().map(|source| source.metadata.name.as_str()).collect::<Vec<_>>().join(", ");
    match (wanted, of_bundles.as_slice()) {
        (_, []) => bail!("this host has no source of the type bundle; add one to the configuration"),
        (None, [only]) => Ok(chosen(only)),
        (None, _) => bail!("name a source with --source; sources of the type bundle: {}", names()),
        (Some(wanted), _) => match of_bundles.iter().find(|source| source.metadata.name == wanted) {
            Some(found) => Ok(chosen(found)),
            None => bail!("source {wanted:?} is not one of the type bundle; these are: {}", names()),
        },
    }
}

/// Makes a symlink in the directory of the source, unless the file is in it. An interrupted command leaves it, and the daemon goes on.
fn show_to(source: &Chosen, file: &Path, head: &Head) -> anyhow::Result<Option<PathBuf>> {
    let failed = || format!("create a link in {}", source.directory.display());
    std::fs::create_dir_all(&source.directory).with_context(failed)?;
    let is_inside =
        file.parent().is_some_and(|parent| std::fs::canonicalize(&source.directory).is_ok_and(|inside| inside == parent));
    if is_inside && file.extension().is_some_and(|ending| ending == "bundle") {
        return Ok(None);
    }
    let link = source.directory.join(format!("apply-{}.bundle", &head.digest().hex()[..16]));
    remove(&link)?;
    symlink(file, &link).with_context(failed)?;
    Ok(Some(link))
}

fn remove(link: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(link) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).with_context(|| format!("remove {}", link.display())),
        Ok(()) | Err(_) => Ok(()),
    }
}

async fn sync(client: &Client, source: &str) -> anyhow::Result<SyncAnswer> {
    let target = Target::new(OWN, &["sources", source, "sync"]).with_flag("wait", true);
    Ok(client.post(target, &serde_json::json!({})).await?)
}

fn tell(source: &str, head: &Head, answer: &SyncAnswer) -> anyhow::Result<()> {
    let SyncAnswer { waited: _, revision, pods, error, refused } = answer;
    let wanted = head.digest().to_string();
    if revision.as_deref() != Some(&wanted) {
        match error {
            Some(error) => bail!("source {source}: {error}"),
            None => bail!(
                "source {source}: {wanted} is not in force: the source is suspended, or a bundle with a higher serial is; see podstead get sources"
            ),
        }
    }
    // Pods of workloads are not counted.
    let pods = if *pods == 0 { String::new() } else { format!(", {}", counted(*pods, "pod")) };
    let refused =
        if *refused == 0 { String::new() } else { format!("; {} rejected, see podstead status", counted(*refused, "object")) };
    let (name, serial) = (&head.document.name, head.document.serial);
    writeln!(io::stdout(), "source {source}: {name} {serial} is in force ({wanted}){pods}{refused}")?;
    match (error, refused.is_empty()) {
        (Some(error), _) => bail!("source {source}: {error}"),
        (None, false) => bail!("source {source}: some objects were rejected"),
        (None, true) => Ok(()),
    }
}
