//! A pack as it comes: indexed by a job while it is received, in place only when it is whole and durable.

use super::copy::{Copy, State};
use super::store::disk;
use super::{Objects, explained};
use crate::git::error::GitError;
use crate::git::job::Failure;
use crate::git::protocol::{ObjectId, ProtocolError};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::io;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Pieces that wait for the disk. More would only be memory.
const PIECES: usize = 4;

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
        self.make_directories()?;
        let incoming = self.incoming();
        let mut indexing = self.jobs().index(&incoming).map_err(|error| explained(self.jobs(), self.path(), error.into()))?;
        while let Some(piece) = bytes.blocking_recv() {
            if !indexing.send(&piece) {
                break;
            }
        }
        // Whoever sends is to stop.
        drop(bytes);
        indexing.finish().map_err(|failure| match failure {
            Failure::Pack(told) => GitError::of_protocol(location, ProtocolError::NotGit(told.to_string())),
            Failure::TooMuch(told) => GitError::of_protocol(location, ProtocolError::TooMuch(told.to_string())),
            Failure::Cut => GitError::Unreachable { location: location.to_owned(), reason: "the pack was cut off".to_owned() },
            Failure::Disk(told) => disk("write a pack to", self.path())(io::Error::other(told)),
            Failure::Job(_) | Failure::Damaged(_) | Failure::Collision(_) => explained(self.jobs(), self.path(), failure),
        })
    }

    /// Puts a received pack in place and records that what `target` leads to is here now, with its history down to `shallow`, and that
    /// nothing else is wanted. Returns the objects and the commit.
    pub(in crate::git) fn complete(
        &self,
        name: Option<&str>,
        target: ObjectId,
        shallow: BTreeSet<ObjectId>,
    ) -> Result<(Objects, ObjectId), GitError> {
        if let Some(name) = name {
            self.place(name)?;
        }
        let before = self.state()?;
        let objects = self.objects(&shallow)?;
        let commit = objects.peel(target)?.commit;
        let shallow = objects.boundary(&[commit])?;
        let base_bytes = if before.base_bytes == 0 { self.weight()?.1 } else { before.base_bytes };
        self.save(&State::new(vec![commit], shallow, base_bytes))?;
        Ok((objects, commit))
    }
}
