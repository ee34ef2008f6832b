//! Artifacts in registries: Debian's docker-registry, and a server that answers as no registry should.

mod artifact;
mod crash;
mod follow;
mod hostile;
mod jobs;
mod registry;
#[expect(dead_code, reason = "the tests of hosts use the rest")]
#[path = "../../node/support/registry.rs"]
mod registry_server;
mod signed;
#[expect(dead_code, reason = "the tests of images use the rest")]
#[path = "../../images/signing.rs"]
mod signing;

use crate::follower::DEADLINE;
use crate::following::{Followed, Following};
use crate::support::{eventually, program, requester};
use podstead::artifact::{Artifact, SourceReport};
use podstead::image::{RegistryConfig, Repositories};
use podstead::job::launch::{JobSettings, Launcher};
use podstead::pod::SourceId;
use podstead::source::PodSource;
use podstead::source::git::ReadLimits;
use podstead::source::oci::{OciFollow, OciOptions, OciSource};
use podstead::source::tree_job::ArtifactJobs;
use podstead::sys::machine_key::MachineKey;
use podstead::telemetry::events::{EventRecorder, NoEvents};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Registries as the daemon reaches them, and a directory for the source's state.
struct Bench {
    directory: tempfile::TempDir,
    repositories: Repositories,
}

impl Bench {
    fn new(registry: RegistryConfig) -> Self {
        Self { directory: tempfile::tempdir().unwrap(), repositories: repositories(registry) }
    }

    fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// Options that poll quickly.
    fn options(&self, url: &str, follow: OciFollow) -> OciOptions {
        options(&self.repositories, url, follow, &self.state())
    }
}

fn jobs(settings: JobSettings, events: Arc<dyn EventRecorder>) -> Arc<ArtifactJobs> {
    Arc::new(ArtifactJobs::new(Arc::new(Launcher::new(JobSettings { program: program(), ..settings })), events))
}

fn repositories(registry: RegistryConfig) -> Repositories {
    Repositories::new(&[registry], Arc::new(NoEvents), requester())
}

fn options(repositories: &Repositories, url: &str, follow: OciFollow, state: &Path) -> OciOptions {
    OciOptions {
        repositories: repositories.clone(),
        url: url.parse().unwrap(),
        follow,
        path: String::new(),
        interval: Duration::from_millis(30),
        timeout: DEADLINE,
        jobs: jobs(JobSettings::default(), Arc::new(NoEvents)),
        limits: ReadLimits::default(),
        keys: Vec::new(),
        allow_rollback: false,
        state: state.to_owned(),
        machine_key: MachineKey::new([7; 32]),
    }
}

fn tag(name: &str) -> OciFollow {
    OciFollow::Tag(name.to_owned())
}

fn versions(range: &str) -> OciFollow {
    OciFollow::Semver(range.parse().unwrap())
}

impl Followed for OciOptions {
    fn source(self) -> impl PodSource {
        OciSource::new(SourceId::new("fleet"), self)
    }

    /// While docker-registry takes or deletes a tag, it lists it and does not have it for a moment.
    fn is_before_artifact(report: &SourceReport) -> bool {
        match report {
            SourceReport::Failed(reason) => reason.ends_with("(404 Not Found)"),
            SourceReport::Recovered => true,
            _ => false,
        }
    }
}

/// The files of an artifact, those that cannot be read with a `!` before the reason.
fn files(artifact: &Artifact) -> Vec<(String, String)> {
    let text = |content: &podstead::artifact::FileContent| match content {
        Ok(bytes) => String::from_utf8_lossy(&bytes.read()).into_owned(),
        Err(reason) => format!("! {reason}"),
    };
    artifact.files.iter().map(|(name, content)| (name.clone(), text(content))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
}
