//! `podstead import`: manifests from compose files, Quadlet units and `docker run` commands.
//!
//! Each reader makes [`Service`](model::Service)s; [`manifests`] writes them. What cannot be carried over is a note, which is a comment in the manifest
//! and a line of the report.

mod compose;
mod compose_fields;
mod compose_files;
mod compose_merge;
mod devices;
mod docker_run;
mod env_file;
mod exports;
mod manifests;
mod model;
mod quadlet;
mod text;
mod words;

use crate::Context;
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use model::Project;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    #[command(subcommand)]
    from: From,
}

#[derive(Debug, Subcommand)]
enum From {
    /// A compose file
    Compose(ComposeArgs),
    /// A directory of Quadlet units of podman
    Quadlet(QuadletArgs),
    /// A docker run or podman run command
    Run(RunArgs),
}

#[derive(Debug, Args)]
struct ComposeArgs {
    /// The compose file, and files that override it
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
struct QuadletArgs {
    /// Directory with .container, .pod and .volume files
    directory: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The command as one argument, such as 'docker run -d --name web -p 80:80 nginx'
    command: String,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
struct OutputArgs {
    /// Directory to write a file for each service to [default: all manifests to standard output]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Namespace of the objects
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
}

pub(super) fn run(args: &ImportArgs, _context: &Context) -> anyhow::Result<ExitCode> {
    let (project, output) = match &args.from {
        From::Compose(args) => (compose::read(&args.files)?, &args.output),
        From::Quadlet(args) => (quadlet::read(&args.directory)?, &args.output),
        From::Run(args) => (docker_run::parse(&args.command, &std::env::current_dir()?)?, &args.output),
    };
    write(&project, output)?;
    let mut err = io::stderr().lock();
    let notes = project.notes.iter().map(|note| format!("{}: {note}", project.origin));
    let of_services =
        project.services.iter().flat_map(|service| service.notes.iter().map(|note| format!("{}: {note}", service.name)));
    let notes: Vec<String> = notes.chain(of_services).collect();
    if !notes.is_empty() {
        writeln!(err, "Check what could not be carried over as it is:")?;
        notes.iter().try_for_each(|note| writeln!(err, "  {note}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(project: &Project, output: &OutputArgs) -> anyhow::Result<()> {
    let files = manifests::files(project, output.namespace.as_deref());
    let Some(directory) = &output.output else {
        let texts: Vec<String> = files.into_iter().map(|(_, text)| text).collect();
        return Ok(io::stdout().lock().write_all(texts.join("---\n").as_bytes())?);
    };
    if directory.extension().is_some_and(|ending| ending == "yaml" || ending == "yml") && !directory.is_dir() {
        bail!(
            "{} is not a directory: each service gets a file of its own; without --output, all manifests go to standard output",
            directory.display()
        );
    }
    fs::create_dir_all(directory).with_context(|| format!("create {}", directory.display()))?;
    for (name, text) in files {
        let path = directory.join(name);
        let create = fs::File::options().write(true).create_new(true).open(&path);
        let mut file = create.with_context(|| format!("create {}: files are never overwritten", path.display()))?;
        file.write_all(text.as_bytes())?;
        writeln!(io::stdout(), "{}", path.display())?;
    }
    Ok(())
}
