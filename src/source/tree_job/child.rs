//! The job itself.

use super::wire::{FailedKind, Message, Request, write};
use crate::oci::tree;
use crate::tree_rules::ReadLimits;
use podstead_job::child::{self, Begun};
use podstead_job::confine;
use podstead_job::user::JobUser;
use podstead_telemetry::error_chain;
use std::fs::File;
use std::io::{BufWriter, Read};
use std::process::ExitCode;

/// Does the task that the daemon sends to standard input, and ends.
pub fn run() -> ExitCode {
    let Some(Begun { channel, request, descriptors }) = child::begin::<Request>() else { return ExitCode::FAILURE };
    let mut descriptors = descriptors.into_iter().map(File::from);
    let (Some(archive), Some(answer)) = (descriptors.next(), descriptors.next()) else { return ExitCode::FAILURE };
    child::tell_panics(&channel, |text| Message::Failed(FailedKind::Panic, text));
    let user = JobUser { uid: request.uid, gid: request.gid, is_own: true };
    let message = match confine::confine_without_files(user, &request.rlimits) {
        Ok(()) => read(&request, archive, answer),
        Err(error) => Message::Failed(FailedKind::Confine, error_chain(&error).to_string()),
    };
    if channel.send(&message).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read(request: &Request, mut archive: File, answer: File) -> Message {
    let refused = |reason: String| Message::Failed(FailedKind::Refused, reason);
    let mut bytes = Vec::new();
    if let Err(error) = archive.read_to_end(&mut bytes) {
        return refused(error.to_string());
    }
    #[cfg(feature = "testing")]
    let answer = match super::attack::attack(&bytes, answer) {
        super::attack::Tried::Nothing(answer) => answer,
        super::attack::Tried::Attack(message) => return message,
    };
    match tree::read(&bytes, &request.path, &ReadLimits::from(request.limits)) {
        Ok(found) => match write(&found, BufWriter::new(answer)) {
            Ok(()) => Message::Read,
            Err(error) => refused(error.to_string()),
        },
        Err(error) => refused(error_chain(&error).to_string()),
    }
}
