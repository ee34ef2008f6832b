//! The job itself.

use super::index::index;
use super::serve::Serving;
use super::wire::{Failed, FailedKind, Message, Request, Work, failed};
use super::{pack, serve};
use podstead_job::channel::Channel;
use podstead_job::child::{self, Begun};
use podstead_job::confine::{self, Rights};
use podstead_job::filter::{FILES, OLD_PACK, PACK};
use podstead_job::user::JobUser;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

/// Does the task that the daemon sends to standard input, and ends.
pub fn run() -> ExitCode {
    let Some(Begun { channel, request, descriptors }) = child::begin::<Request>() else { return ExitCode::FAILURE };
    let mut descriptors = descriptors.into_iter();
    let (Some(tree), Some(bytes)) = (descriptors.next(), descriptors.next()) else { return ExitCode::FAILURE };
    child::tell_panics(&channel, |text| Message::Failed(Failed { kind: FailedKind::Panic, text }));
    // It reads nothing of others, and the files that it looks for are not there afterwards.
    podstead_libgit2::initialise();
    let done = match confined(&request, &tree) {
        Ok(()) => work(channel, request.work, tree, bytes.into()),
        Err(error) => channel.send(&failed(FailedKind::Confine, &error)).is_ok(),
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns true if the daemon heard all answers.
fn work(channel: Channel, work: Work, tree: OwnedFd, bytes: File) -> bool {
    // It is the root directory now.
    drop(tree);
    let answer = match work {
        Work::Index => index(&channel, bytes),
        Work::Pack(commit) => pack::pack(&channel, commit, bytes),
        Work::Read | Work::ReadForeign => match Serving::open() {
            Ok(serving) => return serve::serve(channel, serving, bytes).is_ok(),
            Err(error) => failed(FailedKind::Damaged, &error),
        },
    };
    channel.send(&answer).is_ok()
}

/// Gives up all rights but those that the work needs.
fn confined(request: &Request, tree: &OwnedFd) -> Result<(), confine::ConfineError> {
    let keep = match request.work {
        Work::ReadForeign => confine::READ_ALL,
        Work::Index | Work::Read | Work::Pack(_) => confine::NOTHING,
    };
    confine::confine(&Rights {
        user: JobUser { uid: request.uid, gid: request.gid, is_own: true },
        keep,
        tree,
        limits: request.rlimits,
        calls: &[FILES, PACK, OLD_PACK],
    })
}
