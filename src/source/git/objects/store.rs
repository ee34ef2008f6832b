//! Directory of the copy of a remote repository.
//!
//! ```text
//! <directory>/lock         one process at a time
//! <directory>/repository/  the copy in use
//! <directory>/fresh/       a copy that is being made; removed at start
//! ```
//!
//! A copy is put in place as a whole, by exchanging the two directories. It is a cache: what it loses is fetched again.

use super::copy::Copy;
use crate::git::error::GitError;
use crate::git::job::ObjectJobs;
use podstead_sys::atomic_file::sync_parent;
use podstead_sys::remove_tree::remove_tree;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of one source's copy, held by this process until the last clone, and the last [`Copy`] in it, is dropped: work that was
/// begun continues for a while after the source has ended.
#[derive(Clone, Debug)]
pub(in crate::git) struct Store {
    held: Arc<Held>,
}

#[derive(Debug)]
pub(super) struct Held {
    directory: PathBuf,
    jobs: Arc<ObjectJobs>,
    /// Locked as long as it is open.
    _lock: File,
}

impl Held {
    /// The starter of the jobs that read and write here.
    pub(super) fn jobs(&self) -> &Arc<ObjectJobs> {
        &self.jobs
    }
}

impl Store {
    /// Locks the directory, which need not exist, and removes what an earlier process left half done. `None` when another process, or an
    /// earlier incarnation of the source that has not ended yet, holds it.
    pub(in crate::git) fn open(directory: &Path, jobs: &Arc<ObjectJobs>) -> Result<Option<Self>, GitError> {
        let failed = disk("open", directory);
        DirBuilder::new().mode(0o700).recursive(true).create(directory).map_err(&failed)?;
        let lock = File::options().create(true).truncate(false).write(true).open(directory.join("lock")).map_err(&failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(errno) => return Err(failed(errno.into())),
        }
        let store = Self { held: Arc::new(Held { directory: directory.to_owned(), jobs: jobs.clone(), _lock: lock }) };
        remove(&store.fresh_path()).map_err(&failed)?;
        if fs::symlink_metadata(store.current().path()).is_ok_and(|found| !found.is_dir()) {
            remove(store.current().path()).map_err(&failed)?;
        }
        store.current().remove_leftovers()?;
        Ok(Some(store))
    }

    /// The copy in use, which may be empty.
    pub(in crate::git) fn current(&self) -> Copy {
        Copy::new(self.held.directory.join("repository"), &self.held)
    }

    fn fresh_path(&self) -> PathBuf {
        self.held.directory.join("fresh")
    }

    /// A new, empty copy beside the one in use.
    pub(in crate::git) fn fresh(&self) -> Result<Copy, GitError> {
        let path = self.fresh_path();
        remove(&path).map_err(disk("remove", &path))?;
        Ok(Copy::new(path, &self.held))
    }

    /// Puts the fresh copy in place of the one in use.
    pub(in crate::git) fn adopt_fresh(&self) -> Result<(), GitError> {
        let (fresh, current) = (self.fresh_path(), self.held.directory.join("repository"));
        let failed = disk("replace", &current);
        match renameat_with(CWD, &fresh, CWD, &current, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            // Nothing to exchange with, or a file system that cannot: a crash in between costs a fetch.
            Err(_) => {
                remove(&current).map_err(&failed)?;
                fs::rename(&fresh, &current).map_err(&failed)?;
            }
        }
        sync_parent(&current).map_err(&failed)?;
        remove(&fresh).map_err(&failed)
    }
}

/// Removes whatever stands at a path.
fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => remove_tree(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// An error of the disk, with what was to be done.
pub(super) fn disk(what: &'static str, path: &Path) -> impl Fn(io::Error) -> GitError + use<> {
    let path = path.to_owned();
    move |source| GitError::Disk { what, path: path.clone(), source }
}
