//! Objects on disk: read straight from the object database, without a work tree. Everything here blocks.
//!
//! Two kinds of places: the copy of a remote repository ([`Store`]), which podstead owns and may delete and fetch again at any time, and
//! a repository of somebody else's on this host, which is only read. Whatever cannot be read is [`GitError::Damaged`] and never an absence.

mod compact;
mod copy;
mod files;
mod history;
mod local;
mod receive;
mod store;

pub(super) use copy::Copy;
pub(super) use files::{IS_LFS, IS_SYMLINK, SUBMODULE};
pub(super) use store::Store;

use super::error::{DamageError, GitError};
use super::protocol::ObjectId;
use crate::one_line::one_line;
use git2::{ObjectType, Odb, Oid, Repository};
use podstead_artifact::CommitSummary;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Tags of tags of tags that are followed.
const MAX_TAGS: usize = 8;

/// An object database, open for reading.
///
/// One type because all reads share one open database and its limits; each kind of read has a file of its own.
pub(super) struct Objects {
    repository: Repository,
    /// Named in errors.
    path: PathBuf,
    /// Commits whose parents are not here.
    shallow: BTreeSet<ObjectId>,
}

/// Commit that a reference leads to, and the tags in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peeled {
    /// The annotated tags on the way, outermost first.
    pub(super) tags: Vec<ObjectId>,
    /// The commit.
    pub(super) commit: ObjectId,
}

impl Objects {
    /// The objects below `directory`, without anything else that a repository has: no configuration, no references, no locks.
    fn open(directory: &Path, path: &Path, shallow: BTreeSet<ObjectId>) -> Result<Self, GitError> {
        let damaged = |reason: &str| damage(path, DamageError::State(reason.to_owned()));
        let directory = directory.to_str().ok_or_else(|| damaged("its path is not UTF-8"))?;
        let open = || {
            let odb = Odb::new()?;
            odb.add_disk_alternate(directory)?;
            Repository::from_odb(odb)
        };
        let repository = open().map_err(|error| damage(path, error.into()))?;
        Ok(Self { repository, path: path.to_owned(), shallow })
    }

    fn damaged(&self, error: git2::Error) -> GitError {
        damage(&self.path, error.into())
    }

    /// Reports whether the object is here, complete or not.
    pub(super) fn has(&self, id: ObjectId) -> bool {
        self.repository.odb().is_ok_and(|odb| odb.exists(oid(id)))
    }

    /// Follows annotated tags to a commit.
    pub(super) fn peel(&self, id: ObjectId) -> Result<Peeled, GitError> {
        let mut tags = Vec::new();
        let mut at = id;
        while tags.len() < MAX_TAGS {
            let object = self.repository.find_object(oid(at), None).map_err(|error| self.damaged(error))?;
            match (object.kind(), object.as_tag()) {
                (Some(ObjectType::Commit), _) => return Ok(Peeled { tags, commit: at }),
                (_, Some(tag)) => {
                    tags.push(at);
                    at = object_id(tag.target_id());
                }
                _ => break,
            }
        }
        Err(GitError::NotACommit(id))
    }

    /// The subject and the author of a commit.
    pub(super) fn summary(&self, id: ObjectId) -> Result<CommitSummary, GitError> {
        let commit = self.repository.find_commit(oid(id)).map_err(|error| self.damaged(error))?;
        let subject = commit.summary_bytes().unwrap_or_default();
        let author = commit.author();
        let author = [author.name_bytes(), b" <", author.email_bytes(), b">"].concat();
        Ok(CommitSummary { subject: one_line(subject), author: one_line(&author) })
    }

    /// The bytes of a commit or tag, whose hash was verified.
    pub(super) fn raw(&self, id: ObjectId) -> Result<Vec<u8>, GitError> {
        let read = || Ok(self.repository.odb()?.read(oid(id))?.data().to_vec());
        read().map_err(|error| self.damaged(error))
    }
}

fn oid(id: ObjectId) -> Oid {
    // Twenty bytes are always an id.
    Oid::from_bytes(id.as_bytes()).unwrap_or(Oid::ZERO_SHA1)
}

fn object_id(oid: Oid) -> ObjectId {
    let mut bytes = [0; 20];
    bytes.copy_from_slice(&oid.as_bytes()[..20]);
    ObjectId::from_bytes(bytes)
}

fn damage(path: &Path, source: DamageError) -> GitError {
    GitError::Damaged { path: path.to_owned(), source }
}
