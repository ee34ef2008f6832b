//! Durable, atomic writes: temporary file in the same directory, fsync, rename, fsync of the directory.
//!
//! With a journal that [keeps the order](keeps_order) of changes, the content is written back instead of the first fsync: each fsync is a commit of the
//! journal, which writes some blocks beside those of the file and waits for the disk to empty its cache.

pub use super::ordered_journal::keeps_order;
use super::ordered_journal::write_back;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Replaces `path` with `content`. After a power cut the file is the old one or the new one, never a mix.
/// The directory must exist; the file gets `mode`. A temporary file `.<name>.tmp` may be left by a crash and is overwritten next time.
pub fn write_durable(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    stage(path, content, mode)?.put()
}

/// As [`write_durable`], in a directory that is made as by [`make_directories`]: what can be read at `path` has durable names.
pub fn write_durable_with_directories(path: &Path, content: &[u8], mode: u32, directory_mode: u32) -> io::Result<()> {
    let directory = path.parent().ok_or_else(no_name)?;
    DirBuilder::new().recursive(true).mode(directory_mode).create(directory)?;
    stage(path, content, mode)?.after(|| sync_names(directory))?.put()
}

/// Content on disk that is to replace a file, and is not seen yet.
#[derive(Debug)]
#[must_use]
pub struct Staged {
    temporary: PathBuf,
    path: PathBuf,
    keeps_order: bool,
}

/// Begins a [`write_durable`].
pub fn stage(path: &Path, content: &[u8], mode: u32) -> io::Result<Staged> {
    let (temporary, file) = write_temporary(path, content, mode)?;
    let keeps_order = keeps_order(&temporary);
    if keeps_order { write_back(&file) } else { file.sync_all() }?;
    Ok(Staged { temporary, path: path.to_owned(), keeps_order })
}

impl Staged {
    /// Makes names durable that have to be before the file is replaced, by `sync`. They were changed before, on the file system of the file: a journal
    /// that keeps the order makes them durable with the file, so that nothing is to be done.
    pub fn after(self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<Self> {
        if !self.keeps_order {
            sync()?;
        }
        Ok(self)
    }

    /// Replaces the file, durably.
    pub fn put(self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.path)?;
        sync_parent(&self.path)
    }
}

/// As [`write_durable`], but atomic only: for files that need not survive a power cut (under the run directory).
pub fn write_atomic(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    write_temporary(path, content, mode).and_then(|(temporary, _)| fs::rename(temporary, path))
}

/// Removes `path` durably. NotFound is success.
pub fn remove_durable(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Ok(()) => sync_parent(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes entries of the directory that holds `path` durable.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), sync_directory)
}

/// Makes the entries of a directory durable.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Makes a directory and those that lead to it, and all their names durable, whoever made them: what is written into it durably is only as
/// durable as the names that lead to it, and one that is there may be of a process that died before it could sync. Costs a sync per
/// ancestor on the same file system: for directories that hold nothing durable yet. Those that are missing get `mode`.
pub fn make_directories(directory: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(directory)?;
    sync_names(directory)
}

/// Makes the names durable that lead to a directory on its file system.
fn sync_names(directory: &Path) -> io::Result<()> {
    let device = fs::metadata(directory)?.dev();
    for parent in directory.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
        if fs::metadata(parent)?.dev() != device {
            break;
        }
        sync_directory(parent)?;
    }
    Ok(())
}

fn no_name() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "path has no file name")
}

pub(crate) fn write_temporary(path: &Path, content: &[u8], mode: u32) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or_else(no_name)?;
    let mut temporary_name = std::ffi::OsString::from(".");
    temporary_name.push(name);
    temporary_name.push(".tmp");
    let temporary = path.with_file_name(temporary_name);
    // A left-over may have other permissions: start from nothing.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
    file.write_all(content)?;
    Ok((temporary, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn content_and_mode_replace_those_of_an_older_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.json");
        write_durable(&path, b"one", 0o644).unwrap();
        write_durable(&path, b"two", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_temporary_file_left_by_a_crash_does_not_matter() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.json");
        fs::write(directory.path().join(".record.json.tmp"), b"half").unwrap();
        write_durable(&path, b"whole", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn directories_are_made_with_those_that_lead_to_them_and_may_be_there() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c");
        for _ in 0..2 {
            make_directories(&deep, 0o750).unwrap();
            assert_eq!(fs::metadata(root.path().join("a")).unwrap().permissions().mode() & 0o777, 0o750);
            assert!(deep.is_dir());
        }
        fs::write(root.path().join("file"), "x").unwrap();
        make_directories(&root.path().join("file/below"), 0o750).unwrap_err();
    }

    #[test]
    fn file_is_written_with_its_directories() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b/record.json");
        for content in ["one", "two"] {
            write_durable_with_directories(&path, content.as_bytes(), 0o600, 0o750).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(fs::metadata(root.path().join("a")).unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(fs::read_dir(root.path().join("a/b")).unwrap().count(), 1, "no temporary file is left");
        write_durable_with_directories(Path::new("/"), b"x", 0o600, 0o750).unwrap_err();
    }

    #[test]
    fn staged_content_is_not_seen_before_put() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.json");
        write_durable(&path, b"one", 0o600).unwrap();
        let staged = stage(&path, b"two", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        staged.put().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }

    #[test]
    fn removing_twice_succeeds() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.json");
        write_durable(&path, b"x", 0o600).unwrap();
        remove_durable(&path).unwrap();
        remove_durable(&path).unwrap();
    }
}
