//! Input of the checks: files of this host, its configuration, its daemon.

use super::super::client::{Client, ClientError, OWN, Target};
use super::super::context::Context;
use super::super::pods::{ServedList, list};
use super::super::trouble::{Evidence, gather};
use super::super::unserved::{self, Unserved};
use super::super::workloads::list_all;
use k8s_openapi::api::core::v1::Pod;
use podstead_api::{DaemonObject, SourceObject};
use podstead_config::Config;
use podstead_sys::layout::Paths;
use podstead_sys::mounts::{MountEntry, mounts};
use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for all responses of the daemon.
const PATIENCE: Duration = Duration::from_secs(15);

/// Files below a root, which is `/` but for tests.
#[derive(Clone, Debug)]
pub(super) struct Files {
    root: PathBuf,
}

impl Files {
    pub(super) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// True for the files of the host itself, and not those of a test.
    pub(super) fn is_of_the_host(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The path below the root.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Content of a file, if there is one that can be read.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        fs::read(self.at(path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file that holds one number.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.split_whitespace().next()?.parse().ok()
    }

    /// True if the path exists.
    pub(super) fn has(&self, path: &str) -> bool {
        self.at(path).try_exists().unwrap_or(false)
    }
}

/// Names in a directory; none of one that cannot be read.
pub(super) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Responses of the daemon.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    pub(super) daemon: DaemonObject,
    pub(super) sources: Vec<SourceObject>,
    pub(super) pods: Vec<Pod>,
    pub(super) workloads: Vec<Value>,
    /// Ports of Services without endpoints.
    pub(super) unserved: Vec<Unserved>,
    pub(super) evidence: Evidence,
}

/// Reasons for missing responses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Silence {
    /// There is no socket.
    NoSocket,
    /// The socket exists, but nothing listens.
    NobodyListens,
    /// This user may not ask.
    NotAllowed,
    /// Another reason, or an answer that is none.
    Other(String),
}

/// Everything that the checks look at.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) files: Files,
    /// The configuration or its error; with an error, `paths` are the defaults.
    pub(super) config: Result<Box<Config>, String>,
    pub(super) paths: Paths,
    pub(super) socket: PathBuf,
    pub(super) answers: Result<Answers, Silence>,
    pub(super) mounts: Vec<MountEntry>,
    pub(super) is_root: bool,
}

impl Host {
    /// Looks at this host.
    pub(super) fn look(context: &Context) -> anyhow::Result<Self> {
        let config = context.load_config().map(Box::new).map_err(|error| podstead_telemetry::error_chain(&error).to_string());
        let paths = config.as_ref().map_or_else(|_| Paths::default(), |config| config.paths.clone());
        let socket = context.socket().unwrap_or_else(|_| paths.api_socket());
        let client = Client::new(socket.clone());
        let answers = context.block_on(async { Ok(tokio::time::timeout(PATIENCE, ask(&client)).await) })?;
        let answers = match answers {
            Ok(Ok(answers)) => Ok(answers),
            Ok(Err(error)) => Err(silence(&error)),
            Err(_) => Err(Silence::Other(format!("no response within {} s", PATIENCE.as_secs()))),
        };
        let is_root = rustix::process::geteuid().is_root();
        Ok(Self { files: Files::new("/"), config, paths, socket, answers, mounts: mounts().unwrap_or_default(), is_root })
    }
}

async fn ask(client: &Client) -> anyhow::Result<Answers> {
    let daemon: DaemonObject = client.get(Target::new(OWN, &["daemon"])).await?;
    let sources: ServedList = client.get(Target::new(OWN, &["sources"])).await?;
    let sources = sources.items.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
    let pods = list(client, None).await?;
    let workloads = list_all(client).await?;
    let evidence = gather(client, &pods, &workloads).await;
    let unserved = unserved::gather(client, &pods).await?;
    Ok(Answers { daemon, sources, pods, workloads, unserved, evidence })
}

fn silence(error: &anyhow::Error) -> Silence {
    let unreachable = error.chain().find_map(|cause| match cause.downcast_ref::<ClientError>() {
        Some(ClientError::Unreachable(unreachable)) => Some(unreachable),
        _ => None,
    });
    match unreachable.map(|unreachable| unreachable.error.kind()) {
        Some(io::ErrorKind::NotFound) => Silence::NoSocket,
        Some(io::ErrorKind::ConnectionRefused) => Silence::NobodyListens,
        Some(io::ErrorKind::PermissionDenied) => Silence::NotAllowed,
        Some(_) | None => Silence::Other(format!("{error:#}")),
    }
}
