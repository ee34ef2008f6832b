//! `podstead image`.

mod progress;
mod verify;

use super::client::{Client, OWN, Target};
use super::object_type::ObjectType;
use super::{Context, get};
use clap::{Args, Subcommand};
use podstead_api::show::human_size;
use podstead_api::{ImportAnswer, ImportRequest, PinRequest, PruneRequest, PullLine, PullRequest};
use podstead_runtime::PruneReport;
use progress::Progress;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct ImageArgs {
    #[command(subcommand)]
    command: ImageCommand,
}

#[derive(Debug, Subcommand)]
enum ImageCommand {
    /// List images
    #[command(visible_alias = "list")]
    Ls(get::HostArgs),
    /// Import an OCI layout or a docker archive
    Import {
        /// Path of the archive; the daemon must be able to read it
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Pull an image from its registry
    Pull {
        /// The image, e.g. docker.io/library/nginx:1.27
        #[arg(required = true, value_name = "IMAGE")]
        references: Vec<String>,
    },
    /// Show pulls under way, with their progress
    ///
    /// FROM are the hosts that deliver layers: the registry or its mirrors. WAITING is the reason why nothing comes. With -o json or yaml, each layer
    /// has its bytes, also those found from an interrupted download and those that came a second time.
    Pulls(get::HostArgs),
    /// Remove images that nothing needs
    ///
    /// Images of pods, of the revisions in force and of those that can be restored, preloaded and pinned images stay.
    Prune {
        /// Also images that were fetched by hand within 24 hours, or used just now
        #[arg(long)]
        all: bool,
        /// Only show what would be removed, and why the others stay
        #[arg(long)]
        dry_run: bool,
    },
    /// Compare stored images with their checksums
    ///
    /// Reads all files from the disk. Exit code 1 means that an image is damaged. Damaged files of images that nothing can bring back stay in use.
    Verify(verify::VerifyArgs),
    /// Keep an image even if nothing needs it
    Pin {
        /// Image name as shown by `podstead image ls`
        #[arg(required = true, value_name = "IMAGE")]
        references: Vec<String>,
    },
    /// Undo `podstead image pin`
    Unpin {
        /// Image name as shown by `podstead image ls`
        #[arg(required = true, value_name = "IMAGE")]
        references: Vec<String>,
    },
    /// Remove an image
    ///
    /// Its space is free at once, except layers that other images or running containers have.
    Rm {
        /// Remove the name of an image that is needed, too; running containers keep their layers
        #[arg(long)]
        force: bool,
        /// Image name as shown by `podstead image ls`
        #[arg(required = true, value_name = "IMAGE")]
        references: Vec<String>,
    },
}

pub(super) fn run(args: &ImageArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    context.block_on(async {
        match &args.command {
            ImageCommand::Ls(args) => return get::list_of_host(args, ObjectType::Image, &client, context.color()).await,
            ImageCommand::Pulls(args) => return get::list_of_host(args, ObjectType::Pull, &client, context.color()).await,
            ImageCommand::Verify(args) => return verify::run(args, &client).await,
            ImageCommand::Import { paths } => {
                for path in paths {
                    import(&client, path).await?;
                }
            }
            ImageCommand::Pull { references } => {
                for reference in references {
                    pull(&client, reference).await?;
                }
            }
            ImageCommand::Prune { all, dry_run } => prune(&client, PruneRequest { all: *all, dry_run: *dry_run }).await?,
            ImageCommand::Pin { references } => pin(&client, references, true).await?,
            ImageCommand::Unpin { references } => pin(&client, references, false).await?,
            ImageCommand::Rm { references, force } => {
                for reference in references {
                    let target = Target::new(OWN, &["images"]).with("reference", reference);
                    client.delete(if *force { target.with("force", "true") } else { target }).await?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn prune(client: &Client, request: PruneRequest) -> anyhow::Result<()> {
    let report: PruneReport = client.post(Target::new(OWN, &["images", "prune"]), &request).await?;
    let mut out = io::stdout();
    for image in &report.images {
        let name = if image.references.is_empty() { image.digest.clone() } else { image.references.join(", ") };
        match (&image.kept, request.dry_run) {
            (Some(reason), true) => writeln!(out, "kept {name}: {reason}")?,
            (Some(_), false) => {}
            (None, true) => writeln!(out, "would remove {name}")?,
            (None, false) => writeln!(out, "removed {name}")?,
        }
    }
    let tense = if request.dry_run { "would free" } else { "freed" };
    writeln!(out, "{tense} {}", human_size(report.freed_bytes))?;
    Ok(())
}

async fn pin(client: &Client, references: &[String], pinned: bool) -> anyhow::Result<()> {
    for reference in references {
        let request = PinRequest { reference: reference.clone(), pinned };
        let _status: serde_json::Value = client.post(Target::new(OWN, &["images", "pin"]), &request).await?;
    }
    Ok(())
}

async fn import(client: &Client, path: &std::path::Path) -> anyhow::Result<()> {
    // The daemon has another working directory.
    let path = std::path::absolute(path)?;
    let answer: ImportAnswer = client.post(Target::new(OWN, &["images", "import"]), &ImportRequest { path }).await?;
    for reference in answer.references {
        writeln!(io::stdout(), "{reference}")?;
    }
    Ok(())
}

async fn pull(client: &Client, reference: &str) -> anyhow::Result<()> {
    let request = PullRequest { reference: reference.to_owned() };
    let mut lines = client.post_lines(Target::new(OWN, &["images", "pull"]), &request).await?;
    let mut progress = Progress::on_stderr();
    while let Some(line) = lines.next_json::<PullLine>().await? {
        match line {
            PullLine::Progress(layer) => progress.show(&layer),
            PullLine::Done { digest } => {
                progress.finish();
                writeln!(io::stdout(), "{digest}")?;
                return Ok(());
            }
            PullLine::Failed { message } => {
                progress.finish();
                anyhow::bail!(message);
            }
        }
    }
    anyhow::bail!("the daemon closed the connection during the pull of {reference:?}; check podstead get images")
}
