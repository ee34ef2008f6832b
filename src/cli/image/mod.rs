//! `podstead image`.

mod progress;

use super::client::{Client, OWN, Target};
use super::{Context, get};
use clap::{Args, Subcommand};
use podstead_api::{ImportAnswer, ImportRequest, PullLine, PullRequest};
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
    Ls(get::ImagesArgs),
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
    /// Remove an image
    Rm {
        /// Image name as shown by `podstead image ls`
        #[arg(required = true, value_name = "IMAGE")]
        references: Vec<String>,
    },
}

pub(super) fn run(args: &ImageArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    context.block_on(async {
        match &args.command {
            ImageCommand::Ls(args) => return get::list_images(args, &client, context.color()).await,
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
            ImageCommand::Rm { references } => {
                for reference in references {
                    client.delete(Target::new(OWN, &["images"]).with("reference", reference)).await?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    })
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
