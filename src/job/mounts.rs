//! The empty mount namespace that jobs enter. One process makes it for all jobs of a daemon, when the first of them starts; it outlives that process.

use crate::channel::Channel;
use crate::launch::Job;
use podstead_sys::{empty_mounts, process};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Name of the task on the command line.
pub const TASK: &str = "mounts";
/// Any directory that each host has. Nothing happens to it on the host.
const SCRATCH: &str = "/tmp";
/// A copy of some thousand mounts, which comes before, takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Has a mount namespace with nothing in it until the daemon has taken it.
pub fn run() -> ExitCode {
    process::close_others();
    let Ok((mut channel, (), _)) = Channel::open::<()>() else { return ExitCode::FAILURE };
    // It may be a link.
    let made = std::fs::canonicalize(SCRATCH).and_then(|scratch| empty_mounts::make(Path::new(&scratch)));
    let told = channel.send(&made.map_err(|error| error.to_string()));
    // The daemon says no more, but for the end.
    let _ended = channel.receive::<()>();
    if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Takes the namespace of a process that [runs](run).
pub(crate) fn take(job: &Job) -> io::Result<OwnedFd> {
    let made = job.messages().next_within::<Result<(), String>>(PATIENCE).map_err(io::Error::other)?;
    match made {
        Some(Ok(())) => empty_mounts::of_process(job.id()),
        Some(Err(error)) => Err(io::Error::other(error)),
        None => Err(io::Error::other("the process that makes it ended")),
    }
}
