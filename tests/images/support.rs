//! A private store, and images made on the spot.

use podstead::telemetry::events::{EventRecorder, EventType, Subject};
use podstead::{
    image::{ImageStore, ImageStoreConfig, JobSettings},
    runtime::ImageService,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// Comes along with the tests to machines that have no sources.
const SCRIPT: &str = include_str!("../support/make-image.sh");

/// Keeps what was recorded.
#[derive(Debug, Default)]
pub(crate) struct Recorded(Mutex<Vec<(EventType, String, String)>>);

impl EventRecorder for Recorded {
    fn record(&self, _: &Subject, kind: EventType, reason: &str, message: &str) {
        self.0.lock().unwrap().push((kind, reason.to_owned(), message.to_owned()));
    }
}

impl Recorded {
    pub(crate) fn all(&self) -> Vec<(EventType, String, String)> {
        self.0.lock().unwrap().clone()
    }
}

/// A store below a temporary directory.
pub(crate) struct TestStore {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) events: Arc<Recorded>,
}

impl TestStore {
    pub(crate) fn new() -> Self {
        assert!(nix::unistd::geteuid().is_root(), "the image tests make files of all owners: they need root");
        Self { directory: tempfile::tempdir().unwrap(), events: Arc::default() }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("images")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn open(&self) -> Arc<ImageStore> {
        self.open_with(ImageStoreConfig::default())
    }

    pub(crate) fn open_with(&self, config: ImageStoreConfig) -> Arc<ImageStore> {
        let events: Arc<Recorded> = Arc::clone(&self.events);
        ImageStore::open(&self.root(), with_jobs(config), events).unwrap()
    }

    /// Makes an image with `make-image.sh`.
    pub(crate) fn make_image(&self, archive: &str, name: &str, options: &[&str]) -> PathBuf {
        let path = self.path(archive);
        run(Command::new("sh").args(["-c", SCRIPT, "make-image.sh"]).args(options).arg(&path).arg(name));
        path
    }

    pub(crate) fn layers(&self) -> usize {
        std::fs::read_dir(self.root().join("layers")).unwrap().count()
    }

    /// Layers that were partly fetched.
    pub(crate) fn spools(&self) -> usize {
        std::fs::read_dir(self.root().join("spool")).unwrap().count()
    }

    pub(crate) fn staged(&self) -> usize {
        std::fs::read_dir(self.root().join("staging")).unwrap().count()
    }
}

/// The program that the jobs of a store are: the tests are another one.
pub(crate) fn binary() -> PathBuf {
    match std::env::var_os("PODSTEAD_BIN_DIR") {
        Some(directory) => Path::new(&directory).join("podstead"),
        None => env!("CARGO_BIN_EXE_podstead").into(),
    }
}

/// A configuration whose jobs can be started from here.
pub(crate) fn with_jobs(config: ImageStoreConfig) -> ImageStoreConfig {
    ImageStoreConfig { jobs: JobSettings { program: binary(), ..config.jobs }, ..config }
}

/// All references of the store.
pub(crate) async fn references(store: &ImageStore) -> Vec<String> {
    store.list().await.unwrap().into_iter().flat_map(|image| image.references).collect()
}

/// Runs a command that has to succeed; returns what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{error}", output.status);
    out.into_owned()
}

/// Waits until `condition` holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !condition().await {
        assert!(std::time::Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
