//! Writing a pack of one commit, in the job.

use super::super::protocol::ObjectId;
use super::serve::{Serving, oid};
use super::wire::{Failed, FailedKind, Message};
use podstead_job::channel::Channel;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::{Duration, Instant};

/// Bytes written at once.
const WRITE: usize = 64 << 10;
/// Between two reports of progress.
const REPORT: Duration = Duration::from_secs(1);

/// Writes `commit` and its files to `bytes`, which is closed afterwards.
pub(super) fn pack(channel: &Channel, commit: ObjectId, bytes: File) -> Message {
    let failed_write = RefCell::new(None::<io::Error>);
    match packed(channel, commit, bytes, &failed_write) {
        Ok(()) => Message::Packed,
        Err(error) => match failed_write.take() {
            // Whoever indexes it knows why.
            Some(error) => Message::Failed(Failed { kind: FailedKind::Cut, text: error.to_string() }),
            None => Message::Failed(Failed { kind: FailedKind::Damaged, text: error.message().to_owned() }),
        },
    }
}

fn packed(channel: &Channel, commit: ObjectId, bytes: File, failed_write: &RefCell<Option<io::Error>>) -> Result<(), git2::Error> {
    let repository = git2::Repository::from_odb(Serving::open()?.into_objects())?;
    let mut builder = repository.packbuilder()?;
    builder.set_threads(1);
    let (mut steps, mut told) = (0, Instant::now());
    builder.set_progress_callback(move |_, _, _| {
        steps += 1;
        if told.elapsed() < REPORT {
            return true;
        }
        told = Instant::now();
        channel.send(&Message::Progress(steps)).is_ok()
    })?;
    builder.insert_commit(oid(commit))?;
    let mut bytes = BufWriter::with_capacity(WRITE, bytes);
    builder.foreach(|piece| match bytes.write_all(piece) {
        Ok(()) => true,
        Err(error) => {
            *failed_write.borrow_mut() = Some(error);
            false
        }
    })?;
    bytes.flush().map_err(|error| {
        let told = git2::Error::from_str("write the pack");
        *failed_write.borrow_mut() = Some(error);
        told
    })
}
