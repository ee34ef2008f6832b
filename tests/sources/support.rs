//! Other programs.

use crate::follower::DEADLINE;
use podstead::fetch::Requester;
use podstead::job::launch::{JobSettings, Launcher};
use podstead::telemetry::events::{EventRecorder, EventType, Subject};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
struct Nobody;

impl EventRecorder for Nobody {
    fn record(&self, _: &Subject, _: EventType, _: &str, _: &str) {}
}

/// The program that jobs are: this test is another one.
pub(crate) fn program() -> PathBuf {
    assert!(nix::unistd::geteuid().is_root(), "jobs give up rights that only root has: these tests need root");
    match std::env::var_os("PODSTEAD_BIN_DIR") {
        Some(directory) => Path::new(&directory).join("podstead"),
        None => env!("CARGO_BIN_EXE_podstead").into(),
    }
}

/// Requests of jobs. A process whose steps are counted until it is killed asks by itself: steps of a job are not on the disk.
pub(crate) fn requester() -> Requester {
    if std::env::var_os("VICTIM_STATE").is_some() {
        return Requester::here();
    }
    let settings = JobSettings { program: program(), ..JobSettings::default() };
    Requester::jobs(Arc::new(Launcher::new(settings)), Arc::new(Nobody))
}

/// Runs a command that has to succeed; returns what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{error}", output.status);
    out.into_owned()
}

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + DEADLINE;
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
