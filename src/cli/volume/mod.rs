//! `podstead volume`: the directories behind PersistentVolumeClaims.

mod archive;
mod backup;
mod block;

use super::client::{Client, OWN, Target};
use super::get::{self, ServedClaim, TypeArgs, ask_claims};
use super::object_type::ObjectType;
use super::{Context, EXIT_FAILED};
use anyhow::bail;
use clap::{Args, Subcommand};
use podstead_telemetry::counted;
use serde_json::{Value, json};
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct VolumeArgs {
    #[command(subcommand)]
    command: VolumeCommand,
}

#[derive(Debug, Subcommand)]
enum VolumeCommand {
    /// List claims and the size of their data
    #[command(visible_alias = "list")]
    Ls(TypeArgs),
    /// Write the data of a claim to an archive, or the content of its block device to an image; the pods that use it are stopped meanwhile
    Export(backup::ExportArgs),
    /// Replace the data of a claim by that of an archive, or the content of its block device by an image; the pods that use it are stopped meanwhile
    Import(backup::ImportArgs),
    /// Delete the data of released claims, which are in no source any more
    Prune(PruneArgs),
}

/// Selection of claims to prune.
#[derive(Debug, Args)]
struct PruneArgs {
    /// Only these claims; fails if a source still has the claim or a pod uses it [default: all released and unused claims]
    #[arg(value_name = "CLAIM")]
    names: Vec<String>,
    /// Only in this namespace [default: all namespaces; with CLAIM: the namespace "default"]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

pub(super) fn run(args: &VolumeArgs, context: &Context) -> anyhow::Result<ExitCode> {
    match &args.command {
        VolumeCommand::Ls(args) => {
            let client = context.client()?;
            context.block_on(async { get::list(args, ObjectType::PersistentVolumeClaim, &client, context.color()).await })
        }
        VolumeCommand::Prune(args) => {
            let client = context.client()?;
            context.block_on(async { prune(args, &client).await })
        }
        VolumeCommand::Export(args) => backup::export(args, context),
        VolumeCommand::Import(args) => backup::import(args, context),
    }
}

async fn prune(args: &PruneArgs, client: &Client) -> anyhow::Result<ExitCode> {
    let namespace = match &args.namespace {
        None if !args.names.is_empty() => Some("default"),
        namespace => namespace.as_deref(),
    };
    let claims = ask_claims(client, namespace).await?;
    let chosen = choose(&claims, &args.names)?;
    let mut out = io::stdout().lock();
    if args.names.is_empty() {
        for claim in claims.iter().filter(|claim| claim.phase() == "Released" && claim.is_used()) {
            writeln!(out, "keeping {}/{}: used by {}", claim.namespace(), claim.name(), claim.users())?;
        }
    }
    if chosen.is_empty() {
        writeln!(out, "no claims are released and unused")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes {
        writeln!(out, "The data of {} will be deleted permanently:", counted(chosen.len(), "claim"))?;
        for claim in &chosen {
            writeln!(out, "  {}/{}  {}", claim.namespace(), claim.name(), claim.used())?;
        }
        if !io::stdin().is_terminal() {
            bail!("nothing was deleted: cannot ask for confirmation because standard input is not a terminal; use --yes");
        }
        write!(out, "Delete them? [y/N] ")?;
        out.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            writeln!(out, "nothing was deleted")?;
            return Ok(ExitCode::from(EXIT_FAILED));
        }
    }
    let mut whole = true;
    for claim in chosen {
        let (namespace, name) = (claim.namespace(), claim.name());
        let target = Target::new(OWN, &["namespaces", namespace, "persistentvolumeclaims", name, "prune"]);
        match client.post::<Value>(target, &json!({})).await {
            Ok(_) => writeln!(out, "{namespace}/{name} deleted ({})", claim.used())?,
            // The others can be deleted all the same.
            Err(error) => {
                whole = false;
                writeln!(io::stderr(), "podstead: {:#}", anyhow::Error::new(error))?;
            }
        }
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

/// Those of these names, whatever stands against it: the daemon says what. Without names, those that can be deleted.
fn choose<'a>(claims: &'a [ServedClaim], names: &[String]) -> anyhow::Result<Vec<&'a ServedClaim>> {
    if names.is_empty() {
        return Ok(claims.iter().filter(|claim| claim.phase() == "Released" && !claim.is_used()).collect());
    }
    let mut chosen = Vec::new();
    for name in names {
        match claims.iter().find(|claim| claim.name() == name) {
            Some(claim) => chosen.push(claim),
            None => bail!("claim {name:?} not found in the namespace; podstead volume ls lists all claims"),
        }
    }
    Ok(chosen)
}
