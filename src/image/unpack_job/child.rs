//! The job itself.

use super::super::limits::Used;
use super::stream::{StreamError, unpack_stream};
use super::wire::{Failed, FailedKind, Message, Request, messages};
use podstead_job::channel::Channel;
use podstead_job::child::{self, Begun};
use podstead_job::confine::{self, Rights};
use podstead_job::filter::FILES;
use podstead_job::user::JobUser;
use podstead_sys::process;
use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

/// Bytes read at once.
const READ: usize = 256 << 10;
/// Entries and bytes between two reports of progress.
const REPORT: Used = Used { entries: 2048, implicit_directories: 256, path_memory: u64::MAX, bytes: 8 << 20 };

/// Does the task that the daemon sends to standard input, and ends.
pub fn run() -> ExitCode {
    // Containers start while images are pulled.
    process::give_way();
    let Some(Begun { channel, request, descriptors }) = child::begin::<Request>() else { return ExitCode::FAILURE };
    let mut descriptors = descriptors.into_iter();
    let (Some(tree), Some(bytes)) = (descriptors.next(), descriptors.next()) else { return ExitCode::FAILURE };
    child::tell_panics(&channel, |text| Message::Failed(Failed { kind: FailedKind::Panic, text }));
    let answer = match confined(&request, &tree) {
        Ok(()) => File::open("/").ok().map(|root| unpack(&channel, &request, bytes, root.into())),
        Err(error) => Some(vec![failed(FailedKind::Confine, &error)]),
    };
    for message in answer.unwrap_or_default() {
        if channel.send(&message).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Gives up all rights but those that unpacking needs.
fn confined(request: &Request, tree: &OwnedFd) -> Result<(), confine::ConfineError> {
    confine::confine(&Rights {
        user: JobUser { uid: request.uid, gid: request.gid, is_own: true },
        keep: confine::UNPACK,
        tree,
        limits: request.rlimits,
        calls: &[FILES],
    })
}

fn unpack(channel: &Channel, request: &Request, bytes: OwnedFd, root: OwnedFd) -> Vec<Message> {
    let source = BufReader::with_capacity(READ, File::from(bytes));
    #[cfg(feature = "testing")]
    let source = match super::attack::begin(source, channel) {
        super::attack::Begun::Layer(source) => source,
        super::attack::Begun::Attacked(answer) => return answer,
    };
    let mut told = Used::default();
    let tell = |used: Used| {
        if is_worth_telling(&used, &told) && channel.send(&Message::Progress(used)).is_ok() {
            told = used;
        }
    };
    match unpack_stream(source, root, &request.limits, tell) {
        Ok((diff_id, unpacked, used)) => messages(unpacked, diff_id, used),
        Err(error) => vec![told_failure(&error)],
    }
}

fn is_worth_telling(used: &Used, told: &Used) -> bool {
    used.since(told).is_some_and(|more| {
        more.entries >= REPORT.entries || more.implicit_directories >= REPORT.implicit_directories || more.bytes >= REPORT.bytes
    })
}

fn told_failure(error: &StreamError) -> Message {
    match error {
        StreamError::Decompress(error) => failed(FailedKind::Decompress, error),
        StreamError::Limit(exceeded) => failed(FailedKind::Limit(*exceeded), exceeded),
        StreamError::Unpack(super::super::unpack::UnpackError::Limit(exceeded)) => failed(FailedKind::Limit(*exceeded), exceeded),
        StreamError::Unpack(error) if is_full(error) => failed(FailedKind::Full, error),
        StreamError::Unpack(error) => failed(FailedKind::Unpack, error),
        StreamError::Panicked => Message::Failed(Failed { kind: FailedKind::Panic, text: "a thread panicked".to_owned() }),
    }
}

fn is_full(error: &(dyn Error + 'static)) -> bool {
    super::super::explain::is_for_want_of_space(error)
}

fn failed(kind: FailedKind, error: &(dyn Error + 'static)) -> Message {
    Message::Failed(Failed { kind, text: chain(error) })
}

/// `error` and its causes.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_now_and_then() {
        let told = Used { entries: 10, ..Used::default() };
        assert!(!is_worth_telling(&Used { entries: 11, ..told }, &told));
        assert!(is_worth_telling(&Used { entries: 10 + REPORT.entries, ..told }, &told));
        assert!(is_worth_telling(&Used { bytes: REPORT.bytes, ..told }, &told));
    }

    #[test]
    fn limits_in_the_archive_are_told_as_limits() {
        use super::super::super::limits::{Bound, Exceeded};
        let exceeded = Exceeded { bound: Bound::Entries, limit: 5 };
        let error = StreamError::Unpack(super::super::super::unpack::UnpackError::Limit(exceeded));
        let Message::Failed(Failed { kind, text }) = told_failure(&error) else { panic!("no failure") };
        assert_eq!((kind, text), (FailedKind::Limit(exceeded), exceeded.to_string()));
    }
}
