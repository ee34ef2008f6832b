//! A pack as it comes: indexed while it is received, in place only when it is whole and durable.

use super::copy::{Copy, State};
use super::store::disk;
use crate::git::error::GitError;
use crate::git::protocol::{ObjectId, PackScan};
use bytes::Bytes;
use git2::Indexer;
use std::collections::BTreeSet;
use std::io::{self, Write};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Pieces that wait for the disk. More would only be memory.
const PIECES: usize = 4;

/// libgit2 writes packs through a memory map, after writing one byte of the last page of each piece. A piece of at most one page thus has
/// all its pages before they are touched, and a full disk is an error; with larger pieces it would be SIGBUS, the end of the process.
const PAGE: usize = 4096;

/// A pack that is being received.
pub(in crate::git) struct Receiver {
    /// Takes the bytes; dropped at the end of the pack.
    pub(in crate::git) bytes: mpsc::Sender<Bytes>,
    /// The name of the pack; `None` for one without objects.
    pub(in crate::git) name: JoinHandle<Result<Option<String>, GitError>>,
}

impl Copy {
    /// Receives a pack. It ends when the sender is dropped, and only then reports whether it was complete; nothing else happens to it until
    /// [`Copy::complete`].
    pub(in crate::git) fn receive(&self, location: String) -> Receiver {
        let (bytes, received) = mpsc::channel(PIECES);
        let copy = self.clone();
        Receiver { bytes, name: tokio::task::spawn_blocking(move || copy.index(received, &location)) }
    }

    fn index(&self, mut bytes: mpsc::Receiver<Bytes>, location: &str) -> Result<Option<String>, GitError> {
        podstead_libgit2::initialise();
        self.make_directories()?;
        let broken = |error: &git2::Error| match error.class() {
            git2::ErrorClass::Os | git2::ErrorClass::Filesystem => {
                disk("write a pack to", self.path())(io::Error::other(error.message().to_owned()))
            }
            _ => GitError::Unreachable {
                location: location.to_owned(),
                reason: format!("received a damaged pack: {}", error.message()),
            },
        };
        let mut indexer = Indexer::new(None, &self.incoming(), 0o600, false).map_err(|error| broken(&error))?;
        let mut scan = PackScan::new();
        while let Some(piece) = bytes.blocking_recv() {
            scan.push(&piece).map_err(|error| GitError::of_protocol(location, error))?;
            for page in piece.chunks(PAGE) {
                indexer.write_all(page).map_err(|error| match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                    Some(error) => broken(error),
                    None => disk("write a pack to", self.path())(error),
                })?;
            }
        }
        if !scan.is_whole() {
            return Err(GitError::Unreachable { location: location.to_owned(), reason: "the pack was cut off".to_owned() });
        }
        if scan.is_empty() {
            return Ok(None);
        }
        indexer.commit().map(Some).map_err(|error| broken(&error))
    }

    /// Puts a received pack in place and records that what `target` leads to is here now, with its history down to `shallow`, and that
    /// nothing else is wanted.
    pub(in crate::git) fn complete(
        &self,
        name: Option<&str>,
        target: ObjectId,
        shallow: BTreeSet<ObjectId>,
    ) -> Result<(), GitError> {
        if let Some(name) = name {
            self.place(name)?;
        }
        let before = self.state()?;
        let objects = self.objects(&shallow)?;
        let commits = vec![objects.peel(target)?.commit];
        let shallow = objects.boundary(&commits)?;
        let base_bytes = if before.base_bytes == 0 { self.weight()?.1 } else { before.base_bytes };
        self.save(&State::new(commits, shallow, base_bytes))
    }
}
