//! Files that may be bundles: in the directory, in the folder `podstead` of file systems that others mount, and in that of the medium with the label
//! that the configuration names, which is mounted here for as long as its files are open.
//!
//! Somebody else made a removable file system, so that no symlink on it is followed. In the directory, which belongs to root, they are:
//! `podstead bundle apply` makes one.

use super::error::BundleError;
use podstead_sys::{file_lease, medium, mounts};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Ending of the names of bundles.
const ENDING: &str = ".bundle";
/// Folder on removable file systems.
const FOLDER: &str = "podstead";
/// Types of file systems on media. Those of FUSE are not among them: a program of any user can stand behind one, and let readers wait.
const MEDIA: [&str; 13] =
    ["vfat", "exfat", "msdos", "ext2", "ext3", "ext4", "iso9660", "udf", "ntfs3", "btrfs", "xfs", "f2fs", "hfsplus"];
/// Bundles that are looked at in one place.
const MAX_FILES: usize = 100;

/// An open file that may be a bundle.
#[derive(Debug)]
pub(super) struct Found {
    /// Its name for people.
    pub(super) path: PathBuf,
    pub(super) file: File,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub(super) struct Looked {
    pub(super) found: Vec<Found>,
    pub(super) problems: Vec<BundleError>,
}

/// Opens all files that may be bundles, except those that are being written. Blocks.
pub(super) fn look(directory: &Path, removable: bool, labelled: Option<&Path>) -> Looked {
    let mut looked = Looked::default();
    let open = |name: &OsString| {
        let path = directory.join(name);
        // Opening a FIFO would wait for a writer.
        let opened = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(&path);
        (path, opened)
    };
    looked.add(directory, names(directory), open);
    if removable {
        for point in media(&mounts::mounts().unwrap_or_default(), directory) {
            if let Ok(top) = File::open(&point) {
                looked.add_medium(&point, &top);
            }
        }
    }
    if let Some(device) = labelled {
        match medium::mount_medium(device) {
            Ok(top) => looked.add_medium(device, &top),
            Err(error) if is_absent(&error) => {}
            Err(source) => looked.problems.push(BundleError::Mount { device: device.to_owned(), source }),
        }
    }
    looked
}

/// Returns true if there is no medium: no device, or nothing in the reader.
fn is_absent(error: &io::Error) -> bool {
    let absent = [Errno::NOENT, Errno::NOMEDIUM, Errno::NXIO, Errno::NODEV];
    absent.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

impl Looked {
    /// Adds what is in the folder below `top`, the directory at the top of the file system at `point`.
    fn add_medium(&mut self, point: &Path, top: impl AsFd) {
        let folder = point.join(FOLDER);
        let below = |path: PathBuf, flags: OFlags| {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            openat2(&top, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve).map(File::from).map_err(io::Error::from)
        };
        let listed = below(FOLDER.into(), OFlags::RDONLY | OFlags::DIRECTORY).and_then(|opened| names_in(&opened));
        self.add(&folder, listed, |name| {
            (folder.join(name), below(Path::new(FOLDER).join(name), OFlags::RDONLY | OFlags::NONBLOCK))
        });
    }

    fn add(&mut self, place: &Path, names: io::Result<Vec<OsString>>, open: impl Fn(&OsString) -> (PathBuf, io::Result<File>)) {
        let names = match names {
            Ok(names) => names,
            // A medium that is not there, or none at all.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return,
            Err(source) => return self.problems.push(BundleError::List { path: place.to_owned(), source }),
        };
        for name in names.into_iter().take(MAX_FILES) {
            let (path, opened) = open(&name);
            match opened.and_then(regular) {
                Ok(file) if file_lease::is_open_for_writing(&file).unwrap_or(false) => {}
                Ok(file) => self.found.push(Found { path, file }),
                // It went away, or the symlink of a command that was interrupted leads nowhere.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => self.problems.push(BundleError::Open { path, source }),
            }
        }
    }
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

fn names(directory: &Path) -> io::Result<Vec<OsString>> {
    names_in(&File::open(directory)?)
}

/// The names of bundles, in their order.
fn names_in(directory: &File) -> io::Result<Vec<OsString>> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name.ends_with(ENDING.as_bytes()) && !name.starts_with(b".") {
            names.push(std::ffi::OsStr::from_bytes(name).to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Mount points of file systems that may be media, without the one of the host itself.
fn media(mounts: &[mounts::MountEntry], directory: &Path) -> Vec<PathBuf> {
    let is_medium = |mount: &&mounts::MountEntry| {
        MEDIA.contains(&mount.kind.as_str()) && mount.root == Path::new("/") && mount.point != Path::new("/")
    };
    let mut points: Vec<PathBuf> = mounts.iter().filter(is_medium).map(|mount| mount.point.clone()).collect();
    // What is mounted at the directory itself was looked at.
    points.retain(|point| point.join(FOLDER) != directory);
    points.sort();
    points.dedup();
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_others_are_looked_at() {
        let line = |id: u32, root: &str, point: &str, kind: &str| format!("{id} 1 8:{id} {root} {point} rw - {kind} /dev/x rw\n");
        let content = [
            line(1, "/", "/", "ext4"),
            line(2, "/", "/media/stick", "vfat"),
            line(3, "/", "/proc", "proc"),
            line(4, "/sub", "/mnt/bind", "ext4"),
            line(5, "/", "/home/eve/fuse", "fuseblk"),
            line(6, "/", "/media/stick", "vfat"),
            line(7, "/", "/srv/in", "ext4"),
        ];
        let mounts = mounts::parse_mountinfo(content.concat().as_bytes());
        assert_eq!(media(&mounts, Path::new("/srv/in/podstead")), [PathBuf::from("/media/stick")]);
    }

    #[test]
    fn only_closed_files_with_the_ending_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("a.bundle"), "x").unwrap();
        std::fs::write(at(".b.bundle"), "x").unwrap();
        std::fs::write(at("c.tar"), "x").unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("d.bundle")).unwrap();
        std::os::unix::fs::symlink(at("a.bundle"), at("e.bundle")).unwrap();
        std::fs::create_dir(at("f.bundle")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("g.bundle"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        let writer = File::create(at("h.bundle")).unwrap();
        let looked = look(directory.path(), false, None);
        let names = |looked: &Looked| -> Vec<String> {
            looked.found.iter().map(|found| found.path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&looked), ["a.bundle", "e.bundle"]);
        assert_eq!(looked.problems.len(), 2, "{:?}", looked.problems);
        drop((looked, writer));
        assert_eq!(names(&look(directory.path(), false, None)), ["a.bundle", "e.bundle", "h.bundle"]);
        let gone = look(&at("nothing"), false, None);
        assert!(gone.found.is_empty() && gone.problems.is_empty());
    }
}
