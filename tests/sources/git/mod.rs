//! The git source on repositories that git made, behind servers that people run.

mod content;
mod crash;
mod healing;
mod http;
mod jobs;
mod misbehaviour;
#[cfg(feature = "openpgp")]
mod openpgp;
mod references;
mod repository;
mod rollback;
pub(crate) mod servers;
mod signatures;
mod ssh;

use crate::follower::{DEADLINE, content};
use crate::support::program;
use podstead::artifact::wake::Waker;
use podstead::job::launch::{JobSettings, Launcher};
use podstead::pod::SourceId;
use podstead::source::git::job::ObjectJobs;
use podstead::source::git::{Follow, GitLimits, GitOptions, GitSource, SshOptions};
use podstead::source::http_client::HttpAccess;
use podstead::telemetry::events::{EventRecorder, NoEvents};
use podstead::{
    artifact::{Artifact, SourceReport},
    pod::Revision,
    source::PodSource,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Options for the branch `main` of `url`, with the copy in `state`.
fn options(url: &str, state: &Path) -> GitOptions {
    GitOptions {
        url: url.parse().unwrap(),
        follow: Follow::Branch("main".into()),
        path: String::new(),
        http: HttpAccess::default(),
        ssh: SshOptions::default(),
        // Only wishes lead to polls.
        interval: Duration::from_secs(3600),
        timeout: Duration::from_secs(20),
        limits: GitLimits::default(),
        trust: None,
        allow_rollback: false,
        last_accepted: None,
        store: state.join("git"),
        jobs: jobs(JobSettings::default(), Arc::new(NoEvents)),
    }
}

/// The starter of jobs: this test is another program.
fn jobs(settings: JobSettings, events: Arc<dyn EventRecorder>) -> Arc<ObjectJobs> {
    Arc::new(ObjectJobs::new(Arc::new(Launcher::new(JobSettings { program: program(), ..settings })), events))
}

/// A source that runs until the value is dropped.
struct Running {
    reports: mpsc::Receiver<(SourceId, SourceReport)>,
    waker: Waker,
    task: tokio::task::JoinHandle<()>,
}

fn start(options: GitOptions) -> Running {
    let (sender, reports) = mpsc::channel(4);
    let (waker, wishes) = Waker::new();
    let source = Box::new(GitSource::new(SourceId::new("fleet"), options));
    Running { reports, waker, task: tokio::spawn(source.run(sender, wishes)) }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    /// The next report that is not an inquiry.
    async fn next(&mut self) -> SourceReport {
        loop {
            let (_, report) = tokio::time::timeout(DEADLINE, self.reports.recv()).await.expect("no report in time").unwrap();
            if !matches!(report, SourceReport::Inquiry(_)) {
                return report;
            }
        }
    }

    /// Lets it poll; everything that it reports of that.
    async fn poll(&mut self) -> Vec<SourceReport> {
        let waker = self.waker.clone();
        let asked = tokio::spawn(async move { waker.sync().await });
        let mut reports = Vec::new();
        loop {
            let (_, report) = tokio::time::timeout(DEADLINE, self.reports.recv()).await.expect("no answer in time").unwrap();
            match report {
                SourceReport::Inquiry(_) => break,
                other => reports.push(other),
            }
        }
        asked.abort();
        reports
    }

    async fn artifact(&mut self) -> Artifact {
        match self.next().await {
            SourceReport::Artifact(artifact) => artifact,
            other => panic!("no artifact: {other:?}"),
        }
    }

    async fn failure(&mut self) -> String {
        match self.next().await {
            SourceReport::Failed(text) => text,
            other => panic!("no failure: {other:?}"),
        }
    }

    /// Lets it poll, which must lead to an artifact.
    async fn polled_artifact(&mut self) -> Artifact {
        match self.poll().await.pop() {
            Some(SourceReport::Artifact(artifact)) => artifact,
            other => panic!("no artifact: {other:?}"),
        }
    }

    /// Lets it poll, which must fail.
    async fn polled_failure(&mut self) -> String {
        match self.poll().await.pop() {
            Some(SourceReport::Failed(text)) => text,
            other => panic!("no failure: {other:?}"),
        }
    }
}

/// `name=content`, in order.
fn shown(artifact: &Artifact) -> String {
    content(artifact).iter().map(|(name, text)| format!("{name}={text}")).collect::<Vec<_>>().join(" ")
}

fn revision(commit: &str) -> Revision {
    Revision(commit.to_owned())
}
