//! Files that change together: readers see all of the old ones or all of the new ones, as the kubelet's AtomicWriter has it.
//!
//! ```text
//! <volume>/..2025_06_01_12_00_00.3f9a0c11/conf/a     the files
//! <volume>/..data -> ..2025_06_01_12_00_00.3f9a0c11  replaced by one rename
//! <volume>/conf   -> ..data/conf                     what the container sees; one link per first component
//! ```
//!
//! A crash leaves at most a directory that nothing refers to, `..data_tmp`, or links that do not match the files yet; the next write mends
//! all of it, also when the files are the same.

use podstead_pod::files::{VolumeFile, VolumeFiles};
use rustix::fs::Gid;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

const DATA: &str = "..data";
const NEW_DATA: &str = "..data_tmp";
const DIRECTORY: u32 = 0o755;
const SET_GROUP: u32 = 0o2000;
/// Mode bits that a group needs to read a file that is its by `fsGroup`.
const GROUP_READS: u32 = 0o440;

/// Writes volumes of one pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicWriter {
    /// `fsGroup`: owns the files and may read them.
    pub(super) group: Option<u32>,
}

impl AtomicWriter {
    /// Makes `volume`, a directory whose parent exists, hold exactly `files`. `stamp` names the directory of the files if one is written,
    /// and must not have been used for this volume before. Whether anything was written.
    pub(super) fn write(self, volume: &Path, files: &VolumeFiles, stamp: &str) -> io::Result<bool> {
        self.make(volume)?;
        let present = present(volume)?;
        let is_same = match &present {
            Some(directory) => self.holds(&volume.join(directory), files)?,
            None => false,
        };
        let current = match present {
            Some(present) if is_same => present,
            Some(_) | None => {
                let name = PathBuf::from(format!("..{stamp}"));
                if let Err(error) = self.fill(&volume.join(&name), files) {
                    // If the removal fails, too, the next write removes it.
                    fs::remove_dir_all(volume.join(&name)).ok();
                    return Err(error);
                }
                remove_any(&volume.join(NEW_DATA))?;
                symlink(&name, volume.join(NEW_DATA))?;
                fs::rename(volume.join(NEW_DATA), volume.join(DATA))?;
                name
            }
        };
        link(volume, files)?;
        tidy(volume, &current, files)?;
        Ok(!is_same)
    }

    /// Returns true if the volume was ever written.
    pub(super) fn is_written(volume: &Path) -> bool {
        present(volume).is_ok_and(|present| present.is_some())
    }

    fn make(self, volume: &Path) -> io::Result<()> {
        match DirBuilder::new().mode(DIRECTORY).create(volume) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.own_directory(volume)
    }

    /// Sets mode and group regardless of the umask.
    fn own_directory(self, directory: &Path) -> io::Result<()> {
        let metadata = fs::symlink_metadata(directory)?;
        if let Some(group) = self.group.filter(|group| *group != metadata.gid()) {
            rustix::fs::chown(directory, None, Some(Gid::from_raw(group)))?;
        }
        let mode = if self.group.is_some() { DIRECTORY | SET_GROUP } else { DIRECTORY };
        if metadata.mode() & 0o7777 != mode { fs::set_permissions(directory, Permissions::from_mode(mode)) } else { Ok(()) }
    }

    fn mode(self, file: &VolumeFile) -> u32 {
        if self.group.is_some() { file.mode | GROUP_READS } else { file.mode }
    }

    /// Returns true if the directory contains exactly these files.
    fn holds(self, directory: &Path, files: &VolumeFiles) -> io::Result<bool> {
        for (path, file) in files {
            let path = directory.join(path);
            let metadata = match fs::symlink_metadata(&path) {
                Ok(metadata) => metadata,
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(false),
                Err(error) => return Err(error),
            };
            let is_owned = self.group.unwrap_or(0) == metadata.gid() && metadata.mode() & 0o7777 == self.mode(file);
            if !metadata.is_file() || !is_owned || fs::read(&path)? != file.content {
                return Ok(false);
            }
        }
        Ok(count_files(directory)? == files.len())
    }

    fn fill(self, directory: &Path, files: &VolumeFiles) -> io::Result<()> {
        DirBuilder::new().mode(DIRECTORY).create(directory)?;
        self.own_directory(directory)?;
        for (path, file) in files {
            let path = Path::new(path);
            if !path.components().all(|component| matches!(component, Component::Normal(_))) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{path:?} points outside the volume")));
            }
            let mut parent = directory.to_owned();
            for component in path.parent().into_iter().flat_map(Path::components) {
                parent.push(component);
                self.make(&parent)?;
            }
            let mut written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(directory.join(path))?;
            written.write_all(&file.content)?;
            if let Some(group) = self.group {
                rustix::fs::fchown(&written, None, Some(Gid::from_raw(group)))?;
            }
            written.set_permissions(Permissions::from_mode(self.mode(file)))?;
        }
        Ok(())
    }
}

/// The directory that `..data` names.
fn present(volume: &Path) -> io::Result<Option<PathBuf>> {
    match fs::read_link(volume.join(DATA)) {
        Ok(target) => {
            let is_ours = target.components().count() == 1 && target.as_os_str().as_bytes().starts_with(b"..");
            Ok(Some(target).filter(|target| is_ours && volume.join(target).is_dir()))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => Ok(None),
        Err(error) => Err(error),
    }
}

fn count_files(directory: &Path) -> io::Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        count += if entry.file_type()?.is_dir() { count_files(&entry.path())? } else { 1 };
    }
    Ok(count)
}

fn first_components(files: &VolumeFiles) -> BTreeSet<&OsStr> {
    files.keys().filter_map(|path| Path::new(path).components().next()).map(Component::as_os_str).collect()
}

/// One link per first component.
fn link(volume: &Path, files: &VolumeFiles) -> io::Result<()> {
    for name in first_components(files) {
        let (link, target) = (volume.join(name), Path::new(DATA).join(name));
        if fs::read_link(&link).is_ok_and(|present| present == target) {
            continue;
        }
        remove_any(&link)?;
        symlink(target, link)?;
    }
    Ok(())
}

/// Removes links to files that are gone, and directories that no reader is led to any more.
fn tidy(volume: &Path, current: &Path, files: &VolumeFiles) -> io::Result<()> {
    let wanted = first_components(files);
    for entry in fs::read_dir(volume)? {
        let name = entry?.file_name();
        let is_own = name.as_bytes().starts_with(b"..");
        let stays = if is_own { name == DATA || name == current.as_os_str() } else { wanted.contains(name.as_os_str()) };
        if !stays {
            remove_any(&volume.join(name))?;
        }
    }
    Ok(())
}

fn remove_any(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn files(list: &[(&str, &str)]) -> VolumeFiles {
        let file = |content: &str| VolumeFile { mode: 0o640, content: content.as_bytes().to_vec() };
        list.iter().map(|(path, content)| ((*path).to_owned(), file(content))).collect()
    }

    const NOBODY: AtomicWriter = AtomicWriter { group: None };

    fn names(volume: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(volume).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_reached_through_data_and_nothing_else_is_there() {
        let root = tempfile::tempdir().unwrap();
        let volume = root.path().join("v");
        assert!(NOBODY.write(&volume, &files(&[("a", "1"), ("d/b", "2"), ("d/e/c", "3")]), "1").unwrap());
        assert_eq!(names(&volume), ["..1", "..data", "a", "d"]);
        assert_eq!(fs::read_link(volume.join("d")).unwrap(), Path::new("..data/d"));
        assert_eq!(fs::read(volume.join("d/e/c")).unwrap(), b"3");
        assert_eq!(fs::metadata(volume.join("a")).unwrap().mode() & 0o7777, 0o640);
        assert!(NOBODY.write(&volume, &files(&[("a", "1"), ("x", "4")]), "2").unwrap());
        assert_eq!(names(&volume), ["..2", "..data", "a", "x"]);
        NOBODY.write(&volume, &files(&[]), "3").unwrap();
        assert_eq!(names(&volume), ["..3", "..data"]);
    }

    #[test]
    fn the_same_files_are_not_written_again() {
        let root = tempfile::tempdir().unwrap();
        let volume = root.path().join("v");
        let same = files(&[("a", "1"), ("d/b", "2")]);
        NOBODY.write(&volume, &same, "1").unwrap();
        assert!(!NOBODY.write(&volume, &same, "2").unwrap());
        assert_eq!(names(&volume), ["..1", "..data", "a", "d"]);
        let mut other_mode = same.clone();
        other_mode.get_mut("a").unwrap().mode = 0o600;
        for (stamp, other) in [("3", other_mode), ("4", files(&[("a", "1")])), ("5", files(&[("a", "1"), ("d/c", "2")]))] {
            assert!(NOBODY.write(&volume, &other, stamp).unwrap(), "{other:?}");
            assert!(NOBODY.write(&volume, &same, &format!("{stamp}-again")).unwrap());
        }
    }

    #[test]
    fn the_group_owns_what_it_may_read() {
        let root = tempfile::tempdir().unwrap();
        let volume = root.path().join("v");
        let secret = VolumeFiles::from([("d/s".to_owned(), VolumeFile { mode: 0o400, content: b"x".to_vec() })]);
        let writer = AtomicWriter { group: Some(4321) };
        writer.write(&volume, &secret, "1").unwrap();
        let seen = |path: &str| fs::metadata(volume.join(path)).map(|file| (file.gid(), file.mode() & 0o7777)).unwrap();
        assert_eq!((seen(""), seen("d"), seen("d/s")), ((4321, 0o2755), (4321, 0o2755), (4321, 0o440)));
        assert!(!writer.write(&volume, &secret, "2").unwrap());
        assert!(NOBODY.write(&volume, &secret, "3").unwrap());
        assert_eq!((seen(""), seen("d/s")), ((4321, 0o755), (0, 0o400)));
    }

    #[test]
    fn what_a_crash_leaves_at_any_step_is_mended_by_the_next_write() {
        let (old, new) = (files(&[("a", "1"), ("gone", "1")]), files(&[("a", "2"), ("come", "2")]));
        type Leave = fn(&Path);
        let crash: [(&str, Leave); 4] = [
            ("in the middle of the files", |volume| {
                fs::create_dir(volume.join("..9")).unwrap();
                fs::write(volume.join("..9/a"), "half").unwrap();
            }),
            ("before the rename", |volume| symlink("..9", volume.join("..data_tmp")).unwrap()),
            ("after the rename", |volume| {
                fs::create_dir(volume.join("..9")).unwrap();
                fs::write(volume.join("..9/a"), "2").unwrap();
                fs::write(volume.join("..9/come"), "2").unwrap();
                symlink("..9", volume.join("..data_tmp")).unwrap();
                fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
            }),
            ("a target that is gone", |volume| fs::remove_dir_all(volume.join("..1")).unwrap()),
        ];
        for (when, leave) in crash {
            for (next, stamp) in [(&new, "2"), (&old, "3")] {
                let root = tempfile::tempdir().unwrap();
                let volume = root.path().join("v");
                NOBODY.write(&volume, &old, "1").unwrap();
                leave(&volume);
                NOBODY.write(&volume, next, stamp).unwrap();
                assert_eq!(names(&volume).len(), 4, "{when}: {:?}", names(&volume));
                for (path, file) in next {
                    assert_eq!(fs::read(volume.join(path)).unwrap(), file.content, "{when}");
                }
            }
        }
    }

    #[test]
    fn a_path_that_leaves_the_volume_is_refused_and_nothing_stays() {
        let root = tempfile::tempdir().unwrap();
        let volume = root.path().join("v");
        NOBODY.write(&volume, &files(&[("../x", "1")]), "1").unwrap_err();
        assert_eq!(names(&volume), Vec::<String>::new());
    }

    #[test]
    fn a_reader_sees_old_or_new_files_and_never_a_mix() {
        let root = tempfile::tempdir().unwrap();
        let volume = root.path().join("v");
        NOBODY.write(&volume, &files(&[("a", "0"), ("b", "0")]), "0").unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..300 {
                    let text = round.to_string();
                    NOBODY.write(&volume, &files(&[("a", &text), ("b", &text)]), &text).unwrap();
                }
                is_over.store(true, Ordering::Release);
            });
            let mut seen = 0;
            while !is_over.load(Ordering::Acquire) {
                // One look at `..data`, as a reader that opens the directory first.
                let Ok(data) = fs::canonicalize(volume.join(DATA)) else { continue };
                let (Ok(a), Ok(b)) = (fs::read_to_string(data.join("a")), fs::read_to_string(data.join("b"))) else { continue };
                assert_eq!(a, b);
                seen += 1;
            }
            assert!(seen > 0);
        });
    }
}
