//! `podstead cp`: files to and from a container, without a program of its image.

mod place;
mod stream;

use super::Socket;
use crate::Context;
use crate::logs::default_container;
use crate::pods::{PodNamespaceArgs, pod_target};
use crate::workloads::choose_pod;
use anyhow::{anyhow, bail};
use clap::Args;
use place::{Local, Remote, Way, way};
use podstead_copy::{Target as CopyTarget, pack, unpack};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use stream::{Ending, PieceReader, PieceWriter};

/// Arguments.
#[derive(Debug, Args)]
#[command(
    override_usage = "podstead cp [OPTIONS] <PATH> <POD>:<PATH>\n       podstead cp [OPTIONS] <POD>:<PATH> <PATH>",
    after_help = "A path in a container is absolute, or begins in the working directory of the container. Files in the container are read and written with \
                  the rights of its user; its image needs no tar. A file goes into a directory that exists. The contents of a directory of a container \
                  go into the local directory; a local directory goes below a directory of the container that exists. Symbolic links of a container \
                  are not copied."
)]
pub(crate) struct CopyArgs {
    /// What is copied: a file or directory here, or in a container
    #[arg(value_name = "SOURCE")]
    source: String,
    /// Where it goes: in a container, or here
    #[arg(value_name = "TARGET")]
    target: String,
    /// Name of the container [default: the one in the annotation kubectl.kubernetes.io/default-container, or the first one]
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    #[command(flatten)]
    namespace: PodNamespaceArgs,
    /// In the container, do not keep owners and modes
    #[arg(long)]
    no_preserve: bool,
}

pub(crate) fn run(args: &CopyArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let way = match way(&args.source, &args.target) {
        Ok(way) => way,
        Err(reason) => {
            writeln!(io::stderr(), "podstead: {reason}; see podstead cp --help")?;
            return Ok(ExitCode::from(crate::EXIT_UNUSABLE));
        }
    };
    context.block_on(async {
        match way {
            Way::Into(local, remote) => upload(args, &local, &remote, context).await,
            Way::From(remote, local) => download(args, &remote, &local, context).await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the streams of a process in the container that copies as `query` says.
async fn open(args: &CopyArgs, remote: &Remote, query: &[(&str, &str)], context: &Context) -> anyhow::Result<Socket> {
    let client = context.client()?;
    let namespace = match (&remote.namespace, &args.namespace.namespace) {
        (Some(of_pod), Some(given)) if of_pod != given => bail!("namespace {of_pod:?} of {} is not {given:?}", remote.pod),
        (of_pod, given) => of_pod.as_deref().or(given.as_deref()),
    };
    let pod = choose_pod(&client, &remote.pod, namespace).await?;
    let container = match &args.container {
        Some(container) => container.clone(),
        None => default_container(&pod, "copying files of", "")?,
    };
    let mut target = pod_target(&pod, &["exec"]).with("container", &container);
    for (name, value) in query {
        target = target.with(name, value);
    }
    Ok(client.open(target).await?)
}

async fn upload(args: &CopyArgs, local: &Local, remote: &Remote, context: &Context) -> anyhow::Result<()> {
    let path = local.path.clone();
    // Before anything is asked: a mistake here must not make anything there.
    std::fs::metadata(&path).map_err(|error| anyhow!("{}: {error}", path.display()))?;
    let name = std::path::absolute(&path)?.canonicalize().ok().and_then(|whole| whole.file_name().map(OsString::from));
    let name =
        path.file_name().map(OsString::from).or(name).ok_or_else(|| anyhow!("{}: a directory without a name", path.display()))?;
    let name = name.into_string().map_err(|name| anyhow!("{}: the name is not valid UTF-8", Path::new(&name).display()))?;
    let preserve = if args.no_preserve { "false" } else { "true" };
    let socket = open(args, remote, &[("copyInto", &remote.path), ("name", &name), ("preserve", preserve)], context).await?;
    let (sender, receiver) = stream::pieces();
    let packing = tokio::task::spawn_blocking(move || pack(&path, PieceWriter::new(sender)));
    let ending = stream::send(socket, receiver).await?;
    match packing.await? {
        Ok(left_out) => {
            ending.judge(remote)?;
            for line in left_out {
                writeln!(io::stderr(), "left out {line}")?;
            }
            Ok(())
        }
        // That the other end has gone is a consequence.
        Err(error) => Err(ending.reason_in(remote).unwrap_or_else(|| error.into())),
    }
}

async fn download(args: &CopyArgs, remote: &Remote, local: &Local, context: &Context) -> anyhow::Result<()> {
    let name = Path::new(&remote.path).file_name().map_or_else(|| OsString::from("root"), OsString::from);
    let target = CopyTarget::Local { path: local.path.clone(), name };
    let socket = open(args, remote, &[("copyFrom", &remote.path)], context).await?;
    let (sender, receiver) = stream::pieces();
    let unpacking = tokio::task::spawn_blocking(move || unpack(PieceReader::new(receiver), &target));
    let ending = stream::receive(socket, sender).await?;
    match unpacking.await? {
        Ok(unpacked) => {
            ending.judge(remote)?;
            if unpacked.links_left_out > 0 {
                writeln!(io::stderr(), "left out symbolic links: {}", unpacked.links_left_out)?;
            }
            Ok(())
        }
        Err(error) => Err(ending.reason_in(remote).unwrap_or_else(|| error.into())),
    }
}

impl Ending {
    /// An error if the process in the container failed.
    fn judge(self, remote: &Remote) -> anyhow::Result<()> {
        self.reason_in(remote).map_or(Ok(()), Err)
    }

    /// The reason for which the process in the container failed, and where that was: paths are often the same on both sides.
    fn reason_in(self, remote: &Remote) -> Option<anyhow::Error> {
        self.reason().map(|reason| anyhow!("in {}: {reason:#}", remote.pod))
    }
}
