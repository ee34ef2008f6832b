//! A followed path, and waiting for what its source says.

use podstead::pod::SourceId;
use podstead::source::dir::{DirectoryOptions, DirectorySource};
use podstead::{
    artifact::{Artifact, FileContent, SourceReport, Wishes},
    source::PodSource,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Longer than anything may take on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A source that runs until the value is dropped.
pub(crate) struct Follower {
    reports: mpsc::Receiver<(SourceId, SourceReport)>,
    task: tokio::task::JoinHandle<()>,
    /// Number of artifacts received.
    pub(crate) artifacts: usize,
}

/// Timing for tests: what no event tells is found soon, and nothing else is found by polling.
pub(crate) fn options() -> DirectoryOptions {
    DirectoryOptions { look: Duration::from_millis(50), relist: Duration::from_secs(3600), ..DirectoryOptions::default() }
}

pub(crate) fn follow(path: &Path) -> Follower {
    follow_with(path, options())
}

pub(crate) fn follow_with(path: &Path, options: DirectoryOptions) -> Follower {
    let (sender, reports) = mpsc::channel(4);
    let source = Box::new(DirectorySource::new(SourceId::new("manifests"), path, options));
    Follower { reports, task: tokio::spawn(source.run(sender, Wishes::none())), artifacts: 0 }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Follower {
    /// The next report.
    pub(crate) async fn next(&mut self) -> SourceReport {
        let (_, report) = tokio::time::timeout(DEADLINE, self.reports.recv()).await.expect("no report in time").unwrap();
        self.artifacts += usize::from(matches!(report, SourceReport::Artifact(_)));
        report
    }

    /// The next report, which must be an artifact.
    pub(crate) async fn artifact(&mut self) -> Artifact {
        match self.next().await {
            SourceReport::Artifact(artifact) => artifact,
            other => panic!("no artifact: {other:?}"),
        }
    }

    /// The next report, which must be a failure.
    pub(crate) async fn failure(&mut self) -> String {
        match self.next().await {
            SourceReport::Failed(text) => text,
            other => panic!("no failure: {other:?}"),
        }
    }

    /// Waits until an artifact has exactly this content. Earlier states may be reported or not.
    pub(crate) async fn content(&mut self, expected: &[(&str, &str)]) -> Artifact {
        let expected = map(expected);
        let deadline = Instant::now() + DEADLINE;
        loop {
            assert!(Instant::now() < deadline, "never became {expected:?}");
            if let SourceReport::Artifact(artifact) = self.next().await
                && content(&artifact) == expected
            {
                return artifact;
            }
        }
    }
}

fn map(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// Files as text; `!` and the reason for one that could not be read.
pub(crate) fn content(artifact: &Artifact) -> BTreeMap<String, String> {
    let text = |content: &FileContent| match content {
        Ok(bytes) => String::from_utf8_lossy(&bytes.read()).into_owned(),
        Err(reason) => format!("!{reason}"),
    };
    artifact.files.iter().map(|(name, content)| (name.clone(), text(content))).collect()
}

/// Writes a file as careful programs do: beside its place, then renamed.
pub(crate) fn put(path: &Path, text: &str) {
    let temporary = path.with_file_name(format!(".{}.new", path.file_name().unwrap().to_str().unwrap()));
    std::fs::write(&temporary, text).unwrap();
    std::fs::rename(temporary, path).unwrap();
}
