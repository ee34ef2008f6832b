//! The helper: a short-lived process that makes one process in a container, as the shim's child, and ends.
//!
//! The only place that runs libcontainer, which changes its caller in many ways (working directory, OOM score, descriptors, zombies), and
//! which must not be called by a process with threads. In: a job on the command line, the shim's configuration, the container's spec in
//! its bundle, the container's stdio as its own. Out: [`HelperMessage`]s on a socket, and the terminal's master if there is one.

mod copy;
mod create;
mod dev;
mod exec;
mod execute;
mod home;
mod mounts;
mod places;
mod report;
mod root;
mod stage;
mod trace;
mod trees;
mod users;

use super::helper_job::{HelperMessage, Stage};
use podstead_container::protocol::ShimConfig;
use podstead_sys::process::{inherited_descriptor, reset_signals};
use report::Report;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

/// Reason why the job was not done; becomes a [`HelperMessage::Failed`].
#[derive(Debug)]
pub(super) struct Failure {
    stage: Stage,
    reason: String,
}

impl Failure {
    /// Before the OCI runtime had its turn.
    fn create(reason: impl Into<String>) -> Self {
        Self { stage: Stage::Create, reason: reason.into() }
    }

    /// By making its process or executing the program.
    fn execute(reason: impl Into<String>) -> Self {
        Self { stage: Stage::Execute, reason: reason.into() }
    }

    /// Found before the OCI runtime had its turn, which is whose business it is with runc.
    fn of_runtime(self) -> Self {
        Self { stage: Stage::Execute, ..self }
    }
}

/// Turns an error into a [`Failure`] that says what was tried.
trait Attempt<T> {
    fn attempt(self, what: &str) -> Result<T, Failure>;
}

impl<T, E: std::error::Error> Attempt<T> for Result<T, E> {
    fn attempt(self, what: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure::create(format!("{what}: {}", super::explain(&error))))
    }
}

/// Runs the job that `words` describe; the last word is the number of the socket.
pub(super) fn run(words: &[&str]) -> ExitCode {
    reset_signals();
    let socket = words.last().and_then(|word| word.parse().ok()).and_then(|number| inherited_descriptor(number).ok());
    let Some(socket) = socket else { return ExitCode::FAILURE };
    let mut report = Report::new(UnixStream::from(socket));
    let result = match words {
        ["start", config, container, _] => read_config(config).and_then(|config| create::run(&config, container, &mut report)),
        ["exec", config, container, process, spec, _] => {
            read_config(config).and_then(|config| exec::run(&config, container, process, spec, &mut report))
        }
        _ => Err(Failure::create("unknown helper job")),
    };
    let (message, code) = match result {
        Ok(()) => (HelperMessage::Started, ExitCode::SUCCESS),
        Err(Failure { stage, reason }) => (HelperMessage::Failed { stage, reason }, ExitCode::FAILURE),
    };
    report.send(&message);
    code
}

fn read_config(path: &str) -> Result<ShimConfig, Failure> {
    let text = std::fs::read(Path::new(path)).attempt("read the sandbox's configuration")?;
    serde_json::from_slice(&text).attempt("decode the sandbox's configuration")
}
