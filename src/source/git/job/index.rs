//! Indexing a pack, in the job.

use super::super::protocol::{PackScan, ProtocolError};
use super::wire::{Failed, FailedKind, Message, failed};
use git2::Indexer;
use podstead_job::channel::Channel;
use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// libgit2 writes packs through a memory map, after writing one byte of the last page of each piece. A piece of at most one page thus has
/// all its pages before they are touched, and a full disk is an error; with larger pieces it would be SIGBUS, the end of the job.
const PAGE: usize = 4096;
/// Bytes read at once.
const READ: usize = 64 << 10;
/// Between two reports of progress.
const REPORT: Duration = Duration::from_secs(1);

/// Indexes the pack that comes by `bytes`.
pub(super) fn index(channel: &Channel, bytes: File) -> Message {
    match indexed(channel, bytes) {
        Ok(name) => Message::Indexed(name),
        Err(message) => message,
    }
}

fn indexed(channel: &Channel, mut bytes: File) -> Result<Option<String>, Message> {
    // The daemon reads what the job says when it has sent all of the pack, not before.
    let (is_received, steps, told) = (Cell::new(false), Cell::new(0), Cell::new(Instant::now()));
    let mut indexer = Indexer::new(None, Path::new("/"), 0o600, false).map_err(|error| broken(&error))?;
    indexer.progress(|_| {
        steps.set(steps.get() + 1);
        if is_received.get() && told.get().elapsed() >= REPORT {
            told.set(Instant::now());
            return channel.send(&Message::Progress(steps.get())).is_ok();
        }
        true
    });
    let mut scan = PackScan::new();
    let mut buffer = vec![0; READ];
    loop {
        let count = bytes.read(&mut buffer).map_err(|error| failed(FailedKind::Cut, &error))?;
        if count == 0 {
            break;
        }
        #[cfg(feature = "testing")]
        super::attack::in_pack(&buffer[..count], channel);
        scan.push(&buffer[..count]).map_err(unfit)?;
        for page in buffer[..count].chunks(PAGE) {
            indexer.write_all(page).map_err(|error| match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                Some(error) => broken(error),
                None => failed(FailedKind::Disk, &error),
            })?;
        }
    }
    if !scan.is_whole() {
        return Err(Message::Failed(Failed { kind: FailedKind::Cut, text: "the pack was cut off".to_owned() }));
    }
    if scan.is_empty() {
        return Ok(None);
    }
    is_received.set(true);
    indexer.commit().map(Some).map_err(|error| broken(&error))
}

fn unfit(error: ProtocolError) -> Message {
    let kind = match &error {
        ProtocolError::TooMuch(_) => FailedKind::TooMuch,
        ProtocolError::NotGit(_) | ProtocolError::Refused(_) | ProtocolError::Unsupported(_) => FailedKind::Pack,
    };
    failed(kind, &error)
}

fn broken(error: &git2::Error) -> Message {
    let kind = match error.class() {
        git2::ErrorClass::Os | git2::ErrorClass::Filesystem => FailedKind::Disk,
        _ => FailedKind::Pack,
    };
    let text = match kind {
        FailedKind::Pack => format!("received a damaged pack: {}", error.message()),
        _ => error.message().to_owned(),
    };
    Message::Failed(Failed { kind, text })
}
