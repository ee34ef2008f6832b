//! Directories in which layers are built: emptied at start, on the file system of the store, so that a finished layer only has to be
//! renamed.

use super::limits::Limits;
use super::list_job::{Form, ListError, Listing};
use super::unpack_job::Unpacker;
use podstead_sys::remove_tree::remove_tree;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The tree of a layer inside its directory, beside its record.
pub const TREE: &str = "fs";

/// Time for which jobs of a process that was killed may still write.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// The staging directory.
#[derive(Clone, Debug)]
pub struct Staging {
    path: Arc<PathBuf>,
    next: Arc<AtomicU64>,
    unpacker: Arc<Unpacker>,
}

impl Staging {
    /// Removes leftovers of a crash at `path` and creates an empty directory. `unpacker` fills its directories.
    pub fn open(path: PathBuf, unpacker: Arc<Unpacker>) -> io::Result<Self> {
        remove_leftovers(&path)?;
        private_directory(&path)?;
        Ok(Self { path: Arc::new(path), next: Arc::default(), unpacker })
    }

    /// A new directory with an empty tree that belongs to root and has mode 0755, as a container's `/` has if no layer says otherwise.
    pub fn directory(&self) -> io::Result<StagingDirectory> {
        let directory = StagingDirectory { path: Some(self.fresh()), unpacker: Arc::clone(&self.unpacker) };
        private_directory(directory.path())?;
        let tree = directory.tree();
        std::fs::create_dir(&tree)?;
        std::fs::set_permissions(&tree, std::fs::Permissions::from_mode(0o755))?;
        Ok(directory)
    }

    /// Lists an archive with a job.
    pub(super) fn list(&self, archive: File, form: Form, limits: &Limits) -> Result<Listing, ListError> {
        self.unpacker.lister().list(archive, form, limits)
    }

    /// A path that nothing has.
    pub fn fresh(&self) -> PathBuf {
        self.path.join(self.next.fetch_add(1, Ordering::Relaxed).to_string())
    }

    /// Removes the tree at `path` so that a power cut leaves either all of it or nothing: it moves here first.
    pub fn discard(&self, path: &Path) -> io::Result<()> {
        let doomed = self.fresh();
        match std::fs::rename(path, &doomed) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            result => result?,
        }
        podstead_sys::atomic_file::sync_parent(path)?;
        remove_tree(&doomed)
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes what an earlier process left. A job of it that has not ended yet may write for an instant: it ends when it cannot read on.
fn remove_leftovers(path: &Path) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match remove_tree(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && begun.elapsed() < LAST_WRITES => {
                std::thread::yield_now();
            }
            result => return result,
        }
    }
}

/// A directory in staging, removed when dropped.
#[derive(Debug)]
pub struct StagingDirectory {
    /// `None` once it moved away.
    path: Option<PathBuf>,
    unpacker: Arc<Unpacker>,
}

impl StagingDirectory {
    /// The directory.
    pub fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    /// The unpacker of its layers.
    pub(super) fn unpacker(&self) -> &Unpacker {
        &self.unpacker
    }

    /// Directory for the layer's files.
    pub fn tree(&self) -> PathBuf {
        self.path().join(TREE)
    }

    /// Renames it to `target`. If that exists it is as good, and this one is removed.
    pub fn publish(mut self, target: &Path) -> io::Result<()> {
        match std::fs::rename(self.path(), target) {
            Ok(()) => {
                self.path = None;
                Ok(())
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl StagingDirectory {
    /// Puts it into the place of `target`, which moves to `aside`, in one step: who has `target` mounted keeps what it was.
    pub fn exchange(mut self, target: &Path, aside: &Path) -> io::Result<()> {
        std::fs::rename(self.path(), aside)?;
        self.path = None;
        renameat_with(CWD, aside, CWD, target, RenameFlags::EXCHANGE)?;
        Ok(())
    }
}

impl Drop for StagingDirectory {
    fn drop(&mut self) {
        if let Some(path) = self.path.take()
            && let Err(error) = remove_tree(&path)
        {
            // The next start empties the staging directory.
            tracing::warn!(path = %path.display(), %error, "cannot remove a staging directory");
        }
    }
}

/// Makes a directory that only root may enter: images hold setuid programs. One that exists is fine.
pub fn private_directory(path: &Path) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_telemetry::events::NoEvents;

    fn open(path: PathBuf) -> Staging {
        Staging::open(path, Arc::new(Unpacker::new(Default::default(), Arc::new(NoEvents)))).unwrap()
    }

    #[test]
    fn what_a_crash_left_is_gone_after_opening() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("staging");
        std::fs::create_dir_all(path.join("0/fs/etc")).unwrap();
        let staging = open(path.clone());
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
        let layer = staging.directory().unwrap();
        assert!(layer.tree().is_dir());
        drop(layer);
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn a_tree_of_any_depth_is_gone_after_opening() {
        use rustix::fs::{Mode, OFlags, mkdirat, openat};
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("staging");
        std::fs::create_dir_all(path.join("0/fs")).unwrap();
        let mut innermost: std::os::fd::OwnedFd = std::fs::File::open(path.join("0/fs")).unwrap().into();
        for _ in 0..20_000 {
            mkdirat(&innermost, "d", Mode::from_raw_mode(0o700)).unwrap();
            innermost = openat(&innermost, "d", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        }
        drop(innermost);
        open(path.clone());
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn the_second_of_two_equal_layers_gives_way() {
        let directory = tempfile::tempdir().unwrap();
        let staging = open(directory.path().join("staging"));
        let target = directory.path().join("layer");
        let (first, second) = (staging.directory().unwrap(), staging.directory().unwrap());
        std::fs::write(first.tree().join("first"), b"").unwrap();
        first.publish(&target).unwrap();
        second.publish(&target).unwrap();
        assert!(target.join("fs/first").is_file());
        assert_eq!(std::fs::read_dir(staging.path()).unwrap().count(), 0);
        staging.discard(&target).unwrap();
        staging.discard(&target).unwrap();
        assert!(!target.is_dir());
    }
}
