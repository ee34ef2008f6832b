//! Bundles in a directory and on media, with a store of images.

mod crash;
mod follow;
mod hostile;
mod jobs;
mod made;
mod media;
mod signed;

use crate::following::{Followed, Following};
use podstead::artifact::{Artifact, SourceReport};
use podstead::image::{ImageStore, ImageStoreConfig, JobSettings, Reserve};
use podstead::pod::SourceId;
use podstead::runtime::ImageService;
use podstead::source::PodSource;
use podstead::source::bundle::{BundleOptions, BundleSource};
use podstead::source::git::ReadLimits;
use podstead::source::tree_job::ArtifactJobs;
use podstead::sys::machine_key::MachineKey;
use podstead::telemetry::events::NoEvents;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn open_store(root: &Path) -> Arc<ImageStore> {
    assert!(nix::unistd::geteuid().is_root(), "images have files of all owners: these tests need root");
    let reserve = Reserve { storage_percent: 0, storage_at_least: 0, inodes_percent: 0 };
    // The program that the jobs of a store are: this test is another one.
    let program = match std::env::var_os("PODSTEAD_BIN_DIR") {
        Some(directory) => Path::new(&directory).join("podstead"),
        None => env!("CARGO_BIN_EXE_podstead").into(),
    };
    let jobs = JobSettings { program, ..JobSettings::default() };
    ImageStore::open(root, ImageStoreConfig { reserve, jobs, ..ImageStoreConfig::default() }, Arc::new(NoEvents)).unwrap()
}

/// Options that look often.
fn options_at(state: &Path, directory: &Path, images: &Arc<ImageStore>) -> BundleOptions {
    BundleOptions {
        directory: directory.to_owned(),
        removable: false,
        labelled: None,
        name: None,
        host: "edge-1".into(),
        interval: Duration::from_millis(30),
        signature: None,
        allow_rollback: false,
        digests_only: false,
        has_last_good: false,
        limits: ReadLimits::default(),
        jobs: Arc::new(ArtifactJobs::new(Arc::clone(images.launcher()), Arc::new(NoEvents))),
        images: Arc::clone(images),
        state: state.to_owned(),
        machine_key: MachineKey::new([7; 32]),
    }
}

/// A directory for bundles, a store of images, and a place for the state of the source.
struct Bench {
    directory: tempfile::TempDir,
    images: Arc<ImageStore>,
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let images = open_store(&directory.path().join("images"));
        std::fs::create_dir(directory.path().join("in")).unwrap();
        Self { directory, images }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Puts a bundle into the directory as a whole.
    fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path("unfinished"), bytes).unwrap();
        std::fs::rename(self.path("unfinished"), self.path("in").join(name)).unwrap();
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.path("in").join(name)).unwrap();
    }

    fn options(&self) -> BundleOptions {
        options_at(&self.path("state"), &self.path("in"), &self.images)
    }

    async fn references(&self) -> Vec<String> {
        let mut found: Vec<String> = self.images.list().await.unwrap().into_iter().flat_map(|image| image.references).collect();
        found.sort();
        found
    }

    fn layers(&self) -> usize {
        std::fs::read_dir(self.path("images/layers")).unwrap().count()
    }

    /// A source that told that there is nothing.
    async fn start(&self) -> Following {
        let mut source = Following::start(self.options());
        assert_eq!(source.artifact().await.revision.0, "none");
        source
    }
}

impl Followed for BundleOptions {
    fn source(self) -> impl PodSource {
        BundleSource::new(SourceId::new("fleet"), self)
    }

    fn is_before_artifact(report: &SourceReport) -> bool {
        matches!(report, SourceReport::Recovered)
    }

    fn is_before_failure(report: &SourceReport) -> bool {
        matches!(report, SourceReport::Recovered)
    }
}

fn pod(name: &str, image: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, image: '{image}'}}]}}\n")
}

/// Names of the files of an artifact.
fn names(artifact: &Artifact) -> Vec<&str> {
    artifact.files.keys().map(String::as_str).collect()
}
