//! Durable, atomic writes: temporary file in the same directory, fsync, rename, fsync of the directory.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Replaces `path` with `content`. After a power cut the file is the old one or the new one, never a mix.
/// The directory must exist; the file gets `mode`. A temporary file `.<name>.tmp` may be left by a crash and is overwritten next time.
pub fn write_durable(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    replace(path, content, mode)?;
    sync_parent(path)
}

/// As [`write_durable`], but atomic only: for files that need not survive a power cut (under the run directory).
pub fn write_atomic(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    write_temporary(path, content, mode, false).and_then(|temporary| fs::rename(temporary, path))
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
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Makes a directory and those that lead to it, and all their names durable, whoever made them: what is written into it durably is only as
/// durable as the names that lead to it, and one that is there may be of a process that died before it could sync. Costs a sync per
/// ancestor on the same file system: for directories that hold nothing durable yet. Those that are missing get `mode`.
pub fn make_directories(directory: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(directory)?;
    let device = fs::metadata(directory)?.dev();
    for parent in directory.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
        if fs::metadata(parent)?.dev() != device {
            break;
        }
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let temporary = write_temporary(path, content, mode, true)?;
    fs::rename(temporary, path)
}

fn write_temporary(path: &Path, content: &[u8], mode: u32, sync: bool) -> io::Result<std::path::PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "path has no file name"))?;
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
    if sync {
        file.sync_all()?;
    }
    Ok(temporary)
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
    fn removing_twice_succeeds() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.json");
        write_durable(&path, b"x", 0o600).unwrap();
        remove_durable(&path).unwrap();
        remove_durable(&path).unwrap();
    }
}
