//! A source that is followed, and waiting for its reports.

use crate::follower::DEADLINE;
use podstead::artifact::{Artifact, SourceReport, Wishes};
use podstead::pod::SourceId;
use podstead::source::PodSource;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Options of a source that can be followed.
pub(crate) trait Followed {
    fn source(self) -> impl PodSource;

    /// True for reports that may come before an artifact.
    fn is_before_artifact(_: &SourceReport) -> bool {
        false
    }

    /// True for reports that may come before a failure.
    fn is_before_failure(_: &SourceReport) -> bool {
        false
    }
}

/// Reports of a source, until it is dropped.
#[derive(Debug)]
pub(crate) struct Following {
    pub(crate) reports: mpsc::Receiver<(SourceId, SourceReport)>,
    task: JoinHandle<()>,
    is_before_artifact: fn(&SourceReport) -> bool,
    is_before_failure: fn(&SourceReport) -> bool,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Following {
    pub(crate) fn start<F: Followed>(options: F) -> Self {
        let (sender, reports) = mpsc::channel(1);
        let source = Box::new(options.source());
        let task = tokio::spawn(source.run(sender, Wishes::none()));
        Self { reports, task, is_before_artifact: F::is_before_artifact, is_before_failure: F::is_before_failure }
    }

    pub(crate) async fn next(&mut self) -> SourceReport {
        let began = Instant::now();
        let report = tokio::time::timeout(DEADLINE, self.reports.recv()).await;
        report.unwrap_or_else(|_| panic!("no report in {:?}", began.elapsed())).unwrap().1
    }

    /// The next artifact, without another report before it than its source may give.
    pub(crate) async fn artifact(&mut self) -> Artifact {
        loop {
            match self.next().await {
                SourceReport::Artifact(artifact) => return artifact,
                other => assert!((self.is_before_artifact)(&other), "{other:?}"),
            }
        }
    }

    /// The body of the next artifact.
    pub(crate) async fn body(&mut self) -> String {
        let artifact = self.artifact().await;
        String::from_utf8(artifact.files["body"].as_ref().unwrap().read()).unwrap()
    }

    /// The next failure, without another report before it than its source may give.
    pub(crate) async fn failure(&mut self) -> String {
        loop {
            match self.next().await {
                SourceReport::Failed(reason) => return reason,
                other => assert!((self.is_before_failure)(&other), "{other:?}"),
            }
        }
    }

    /// Waits for a failure with this text. Other failures and recoveries may come before.
    pub(crate) async fn failure_with(&mut self, text: &str) {
        let deadline = Instant::now() + DEADLINE;
        let mut told = String::new();
        while !told.contains(text) {
            assert!(Instant::now() < deadline, "not {text:?}, but {told:?}");
            match self.next().await {
                SourceReport::Failed(reason) => told = reason,
                SourceReport::Recovered => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) async fn recovered(&mut self) {
        let report = self.next().await;
        assert!(matches!(report, SourceReport::Recovered), "{report:?}");
    }

    /// Nothing was reported although the server was asked again.
    pub(crate) fn silent(&mut self) {
        let report = self.reports.try_recv();
        assert!(matches!(report, Err(mpsc::error::TryRecvError::Empty)), "{report:?}");
    }
}
