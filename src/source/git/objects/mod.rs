//! Objects on disk: read straight from the object database, without a work tree, by a [job](super::job). Everything here blocks.
//!
//! Two kinds of places: the copy of a remote repository ([`Store`]), which podstead owns and may delete and fetch again at any time, and
//! a repository of somebody else's on this host, which is only read. Whatever cannot be read is [`GitError::Damaged`] and never an absence.
//!
//! Each object has the name that it was asked for by, and commits, tags and trees are taken apart here: what a job could do is to keep objects back.

mod compact;
mod copy;
mod files;
mod history;
mod local;
mod receive;
mod store;

pub(super) use copy::{Copy, State};
pub(super) use files::{IS_LFS, IS_SYMLINK, SUBMODULE};
pub(super) use local::{open_repository, references};
pub(super) use store::Store;

use super::error::{DamageError, GitError};
use super::format::{Commit, Fault, Kind, MAX_STRUCTURE, Tag, Tree};
use super::job::{Failure, Found, JobError, ObjectJobs, Owner, Session};
use super::protocol::ObjectId;
use crate::one_line::one_line;
use podstead_artifact::CommitSummary;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Tags of tags of tags that are followed.
const MAX_TAGS: usize = 8;

/// Kind and content of a commit or tag.
type Structure = (Kind, Arc<[u8]>);

/// An object database, open for reading.
///
/// One type because all reads share one job and its limits; each kind of read has a file of its own.
pub(super) struct Objects {
    session: RefCell<Session>,
    jobs: Arc<ObjectJobs>,
    /// Named in errors.
    path: PathBuf,
    /// Commits whose parents are not here.
    shallow: BTreeSet<ObjectId>,
    /// Commits and tags that a reference leads to: they are looked at more than once.
    kept: RefCell<HashMap<ObjectId, Structure>>,
}

/// Commit that a reference leads to, and the tags in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peeled {
    /// The annotated tags on the way, outermost first.
    pub(super) tags: Vec<ObjectId>,
    /// The commit.
    pub(super) commit: ObjectId,
}

/// A failure while objects are passed on.
enum Interrupted {
    /// Of the job.
    Job(Failure),
    /// Of whoever took them.
    Taker(GitError),
}

impl From<Failure> for Interrupted {
    fn from(failure: Failure) -> Self {
        Self::Job(failure)
    }
}

impl From<GitError> for Interrupted {
    fn from(error: GitError) -> Self {
        Self::Taker(error)
    }
}

impl Objects {
    /// The objects below `directory`, without anything else that a repository has: no configuration, no references, no locks. `path` is the repository.
    fn open(
        directory: &Path,
        path: &Path,
        owner: Owner,
        jobs: &Arc<ObjectJobs>,
        shallow: BTreeSet<ObjectId>,
    ) -> Result<Self, GitError> {
        let session = jobs.read(directory, owner).map_err(|error| explained(jobs, path, error.into()))?;
        Ok(Self { session: RefCell::new(session), jobs: jobs.clone(), path: path.to_owned(), shallow, kept: RefCell::default() })
    }

    /// Reports whether the object is here, complete or not.
    pub(super) fn has(&self, id: ObjectId) -> Result<bool, GitError> {
        Ok(self.sizes(&[id])?.first().is_some_and(Option::is_some))
    }

    /// Follows annotated tags to a commit.
    pub(super) fn peel(&self, id: ObjectId) -> Result<Peeled, GitError> {
        let mut tags = Vec::new();
        let mut at = id;
        while tags.len() < MAX_TAGS {
            match self.structure(at)? {
                (Kind::Commit, _) => return Ok(Peeled { tags, commit: at }),
                (Kind::Tag, bytes) => {
                    tags.push(at);
                    at = Tag::parse(&bytes).map_err(malformed(Kind::Tag, at))?.target;
                }
                (Kind::Tree | Kind::Blob, _) => break,
            }
        }
        Err(GitError::NotACommit(id))
    }

    /// The subject and the author of a commit.
    pub(super) fn summary(&self, id: ObjectId) -> Result<CommitSummary, GitError> {
        let commit = self.commit(id)?;
        Ok(CommitSummary { subject: one_line(&commit.subject), author: one_line(&commit.author) })
    }

    /// The bytes of a commit or tag, which were hashed.
    pub(super) fn raw(&self, id: ObjectId) -> Result<Arc<[u8]>, GitError> {
        Ok(self.structure(id)?.1)
    }

    fn commit(&self, id: ObjectId) -> Result<Commit, GitError> {
        match self.structure(id)? {
            (Kind::Commit, bytes) => Commit::parse(&bytes).map_err(malformed(Kind::Commit, id)),
            (_, _) => Err(malformed(Kind::Commit, id)(OTHER_KIND)),
        }
    }

    /// A commit or a tag. Of another kind, only that.
    fn structure(&self, id: ObjectId) -> Result<Structure, GitError> {
        if let Some(kept) = self.kept.borrow().get(&id) {
            return Ok(kept.clone());
        }
        let mut found = None;
        self.each(&[id], MAX_STRUCTURE, |_, object| {
            found = Some(match object {
                Found::Object(kind, bytes) => (kind, bytes.into()),
                Found::Large(_) => (Kind::Blob, Arc::default()),
                Found::Missing => return Err(self.missing(id)),
            });
            Ok(())
        })?;
        let found: Structure = found.ok_or_else(|| self.missing(id))?;
        self.kept.borrow_mut().insert(id, found.clone());
        Ok(found)
    }

    /// Passes directories to `take`, with their places in `ids`.
    fn trees(&self, ids: &[ObjectId], mut take: impl FnMut(usize, Tree) -> Result<(), GitError>) -> Result<(), GitError> {
        self.each(ids, MAX_STRUCTURE, |at, object| match object {
            Found::Object(Kind::Tree, bytes) => take(at, Tree::parse(&bytes).map_err(malformed(Kind::Tree, ids[at]))?),
            Found::Object(Kind::Commit | Kind::Blob | Kind::Tag, _) => Err(malformed(Kind::Tree, ids[at])(OTHER_KIND)),
            Found::Large(_) => Err(malformed(Kind::Tree, ids[at])(Fault("it is too large"))),
            Found::Missing => Err(self.missing(ids[at])),
        })
    }

    fn tree(&self, id: ObjectId) -> Result<Tree, GitError> {
        let mut found = Tree::default();
        self.trees(&[id], |_, tree| {
            found = tree;
            Ok(())
        })?;
        Ok(found)
    }

    /// Passes the content of files to `take`, with their places in `ids`; of those with more than `each` bytes, their size.
    fn contents(
        &self,
        ids: &[ObjectId],
        each: u64,
        mut take: impl FnMut(usize, Result<Vec<u8>, u64>) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        self.each(ids, each, |at, object| match object {
            Found::Object(Kind::Blob, bytes) => take(at, Ok(bytes)),
            Found::Object(Kind::Commit | Kind::Tree | Kind::Tag, _) => Err(malformed(Kind::Blob, ids[at])(OTHER_KIND)),
            Found::Large(size) => take(at, Err(size)),
            Found::Missing => Err(self.missing(ids[at])),
        })
    }

    fn each(
        &self,
        ids: &[ObjectId],
        each: u64,
        mut take: impl FnMut(usize, Found) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        let taken = self.session.borrow_mut().get(ids, each, |at, found| take(at, found).map_err(Interrupted::from));
        taken.map_err(|interrupted| match interrupted {
            Interrupted::Job(failure) => self.explained(failure),
            Interrupted::Taker(error) => error,
        })
    }

    /// The sizes of objects, as the job says.
    fn sizes(&self, ids: &[ObjectId]) -> Result<Vec<Option<u64>>, GitError> {
        self.session.borrow_mut().sizes(ids).map_err(|failure| self.explained(failure))
    }

    /// The job told another size of an object before it sent it.
    fn lied(&self) -> GitError {
        self.explained(JobError::BadAnswer("another size of an object than before".to_owned()).into())
    }

    fn missing(&self, id: ObjectId) -> GitError {
        damage(&self.path, DamageError::State(format!("object {id} is missing")))
    }

    fn explained(&self, failure: Failure) -> GitError {
        explained(&self.jobs, &self.path, failure)
    }
}

const OTHER_KIND: Fault = Fault("the object is of another kind");

fn malformed(kind: Kind, id: ObjectId) -> impl Fn(Fault) -> GitError {
    move |fault| GitError::Malformed { kind: kind.to_string(), id, fault: fault.to_string() }
}

/// The error of a job that read the repository at `path`, which an operator may have to know of.
fn explained(jobs: &ObjectJobs, path: &Path, failure: Failure) -> GitError {
    match failure {
        Failure::Job(error) if error.is_of_the_disk() => damage(path, DamageError::State(UNREADABLE.to_owned())),
        Failure::Job(JobError::Prepare(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            damage(path, DamageError::Read(error))
        }
        Failure::Job(error) => {
            jobs.tell(&error, path);
            GitError::Job(error)
        }
        Failure::Damaged(told) | Failure::Pack(told) | Failure::TooMuch(told) | Failure::Disk(told) => {
            damage(path, DamageError::Git(told.to_string()))
        }
        Failure::Cut => damage(path, DamageError::State("a pack was cut off".to_owned())),
        Failure::Collision(id) => {
            GitError::Malformed { kind: "object".to_owned(), id, fault: super::format::Collision.to_string() }
        }
    }
}

const UNREADABLE: &str = "a pack cannot be read from the disk";

fn damage(path: &Path, source: DamageError) -> GitError {
    GitError::Damaged { path: path.to_owned(), source }
}
