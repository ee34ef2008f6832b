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
mod failure;
mod filter;
mod home;
mod mounts;
mod places;
mod program;
mod report;
mod root;
mod stage;
mod system_paths;
mod trace;
mod trees;
mod users;

use super::helper_job::HelperMessage;
use failure::Attempt;
pub(super) use failure::Failure;
use podstead_container::protocol::ShimConfig;
use podstead_sys::process::{inherited_descriptor, reset_signals};
use report::Report;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

/// Runs the job that `words` describe; the last word is the number of the socket.
pub(super) fn run(words: &[&str]) -> ExitCode {
    reset_signals();
    let socket = words.last().and_then(|word| word.parse().ok()).and_then(|number| inherited_descriptor(number).ok());
    let Some(socket) = socket else { return ExitCode::FAILURE };
    let mut report = Report::new(UnixStream::from(socket));
    let result = match words {
        ["start", config, container, empty @ .., _] => read_config(config).and_then(|config| {
            let empty = empty.first().and_then(|word| word.parse().ok()).and_then(|number| inherited_descriptor(number).ok());
            create::run(&config, container, empty, &mut report)
        }),
        ["exec", config, container, process, spec, _] => {
            read_config(config).and_then(|config| exec::run(&config, container, process, spec, &mut report))
        }
        _ => Err(Failure::create("unknown helper job")),
    };
    let (message, code) = match result {
        Ok(()) => (HelperMessage::Started { times: report.take_times() }, ExitCode::SUCCESS),
        Err(Failure { stage, reason }) => (HelperMessage::Failed { stage, reason }, ExitCode::FAILURE),
    };
    report.send(&message);
    code
}

fn read_config(path: &str) -> Result<ShimConfig, Failure> {
    let text = std::fs::read(Path::new(path)).attempt("read the sandbox's configuration")?;
    serde_json::from_slice(&text).attempt("decode the sandbox's configuration")
}
