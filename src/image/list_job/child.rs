//! The job itself.

use super::super::compression::exceeded;
use super::super::tar::TarError;
use super::reader::{TellError, tell};
use super::wire::{FailedKind, Message, Request};
use podstead_job::child::{self, Begun};
use podstead_job::confine;
use podstead_job::user::JobUser;
use podstead_sys::process;
use podstead_telemetry::error_chain;
use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;

/// Bytes written at once.
const WRITE: usize = 256 << 10;

/// Does the task that the daemon sends to standard input, and ends.
pub fn run() -> ExitCode {
    // Containers start while images are imported.
    process::give_way();
    let Some(Begun { channel, request, descriptors }) = child::begin::<Request>() else { return ExitCode::FAILURE };
    let mut descriptors = descriptors.into_iter().map(File::from);
    let (Some(archive), Some(to)) = (descriptors.next(), descriptors.next()) else { return ExitCode::FAILURE };
    child::tell_panics(&channel, |text| Message::Failed(FailedKind::Panic, text));
    let user = JobUser { uid: request.uid, gid: request.gid, is_own: true };
    let message = match confine::confine_without_files(user, &request.rlimits) {
        Ok(()) => list(&request, archive, to),
        Err(error) => Message::Failed(FailedKind::Confine, error_chain(&error).to_string()),
    };
    if channel.send(&message).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tells all entries, and closes the socket for them.
fn list(request: &Request, archive: File, to: File) -> Message {
    #[cfg(feature = "testing")]
    let (archive, to) = match super::attack::attack(archive, request.form, to) {
        super::attack::Tried::Nothing(archive, to) => (archive, to),
        super::attack::Tried::Attack(message) => return message,
    };
    match tell(archive, request.form, &request.limits, BufWriter::with_capacity(WRITE, to)) {
        // Nobody hears it.
        Ok(()) | Err(TellError::Daemon) => Message::Listed,
        Err(TellError::Archive(TarError::Read(error))) => {
            let kind = exceeded(&error).map_or(FailedKind::Read, FailedKind::Limit);
            Message::Failed(kind, error_chain(&error).to_string())
        }
        Err(TellError::Archive(error)) => Message::Failed(FailedKind::Archive, error_chain(&error).to_string()),
    }
}
