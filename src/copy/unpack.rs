//! From a stream to files.

use super::CopyError;
use super::frame::{Entry, FrameReader, Kind};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, chownat, fchmod, fchown, fstat, mkdirat, open, openat, symlinkat, unlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Place of the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To a path that the caller names, whose parents are made: what exists is overwritten, a file goes into a directory under this name,
    /// and a directory's contents into a directory. Owners and modes are those of new files, and links are not made.
    Local {
        /// The path.
        path: PathBuf,
        /// Name of the source.
        name: OsString,
    },
    /// To a path in a container, in a directory that exists: under this name if the path is a directory. What exists is replaced.
    Container {
        /// The path.
        path: PathBuf,
        /// Name of the source.
        name: OsString,
        /// Owners and modes that are kept.
        owners: Owners,
    },
}

/// Owners and modes of what is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// Those of the stream.
    Kept,
    /// Of the user who copies; modes of the stream without what the umask forbids.
    OfUser,
}

/// Result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Files that were made.
    pub files: u64,
    /// Links that were left out.
    pub links_left_out: u64,
}

/// A directory that is being filled.
struct Open {
    directory: OwnedFd,
    /// Set when it is complete: it may be one that its owner must not write to.
    mode: Option<u32>,
}

struct Unpacking {
    /// `None`: local.
    owners: Option<Owners>,
    /// The directories of the present path.
    open: Vec<Open>,
    /// Names of those below the root.
    path: Vec<Vec<u8>>,
    done: Unpacked,
}

/// Makes what the stream holds, and reads it to its end.
pub fn unpack(source: impl Read, target: &Target) -> Result<Unpacked, CopyError> {
    let mut reader = FrameReader::new(source)?;
    let root = reader.next_entry()?.filter(|entry| entry.path.is_empty());
    let root = root.ok_or_else(|| CopyError::refused(b".", "the stream begins without its root"))?;
    let owners = match target {
        Target::Local { .. } => None,
        Target::Container { owners, .. } => Some(*owners),
    };
    let mut unpacking = Unpacking { owners, open: Vec::new(), path: Vec::new(), done: Unpacked::default() };
    unpacking.root(&root, target, &mut reader)?;
    while let Some(entry) = reader.next_entry()? {
        unpacking.below(&entry, &mut reader)?;
    }
    unpacking.close_to(0)?;
    Ok(unpacking.done)
}

/// Opens the directory in which the root is made, and gives the root's name there.
fn place(target: &Target, root: &Entry) -> Result<(OwnedFd, OsString), CopyError> {
    let (path, name, into_directory) = match target {
        Target::Local { path, name } => (path, name, root.kind == Kind::File),
        Target::Container { path, name, .. } => (path, name, true),
    };
    let ends_with_slash = path.as_os_str().as_bytes().ends_with(b"/");
    let is_directory = fs::metadata(path).is_ok_and(|found| found.is_dir());
    if ends_with_slash && !is_directory && into_directory {
        return Err(CopyError::refused(path.as_os_str().as_bytes(), "not a directory"));
    }
    let whole = if is_directory && into_directory { path.join(name) } else { path.clone() };
    let shown = whole.as_os_str().as_bytes();
    // `..` and `/` have no name: they are directories that exist.
    let (parent, name) = match (whole.parent(), whole.file_name()) {
        (Some(parent), Some(name)) => (parent.to_owned(), name.to_owned()),
        _ => (whole.clone(), OsString::from(".")),
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".").to_owned() } else { parent };
    if matches!(target, Target::Local { .. }) {
        fs::create_dir_all(&parent).map_err(|error| CopyError::file("create the directory of", shown, error))?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = open(&parent, flags, Mode::empty()).map_err(|error| CopyError::file("open the directory of", shown, error))?;
    Ok((opened, name))
}

impl Unpacking {
    fn root<R: Read>(&mut self, root: &Entry, target: &Target, reader: &mut FrameReader<R>) -> Result<(), CopyError> {
        let (parent, name) = place(target, root)?;
        let is_local = self.owners.is_none();
        match &root.kind {
            // The caller's own links are followed, where the caller has named them.
            Kind::Directory if is_local && is_directory(&parent, &name) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let directory = openat(&parent, &name, flags, Mode::empty());
                let directory = directory.map_err(|error| CopyError::file("open", name.as_bytes(), error))?;
                self.open.push(Open { directory, mode: None });
                Ok(())
            }
            Kind::Directory => self.directory(&parent, &name, root),
            Kind::File if is_local => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
                let opened = openat(&parent, &name, flags, Mode::from_raw_mode(0o666));
                let opened = opened.map_err(|error| CopyError::file("create", name.as_bytes(), error))?;
                self.fill(opened, name.as_bytes(), reader)
            }
            Kind::File => self.file(&parent, &name, root, reader),
            Kind::Symlink(_) => Err(CopyError::refused(name.as_bytes(), "the root of the stream is a link")),
        }
    }

    fn below<R: Read>(&mut self, entry: &Entry, reader: &mut FrameReader<R>) -> Result<(), CopyError> {
        let shown = entry.path.join(&b'/');
        let Some((name, parents)) = entry.path.split_last() else {
            return Err(CopyError::refused(b".", "the stream has a second root"));
        };
        let common = self.path.iter().zip(parents).take_while(|(a, b)| a == b).count();
        self.close_to(common + 1)?;
        if common != parents.len() || self.open.len() != common + 1 {
            return Err(CopyError::refused(&shown, "its directory is not in the stream before it"));
        }
        let name = OsString::from_vec(name.clone());
        // Duplicated, so that the stack may grow meanwhile.
        let parent = self.open[common].directory.try_clone().map_err(|error| CopyError::file("open", &shown, error))?;
        match &entry.kind {
            Kind::Directory => {
                self.directory(&parent, &name, entry)?;
                self.path.push(name.into_vec());
                Ok(())
            }
            Kind::File => self.file(&parent, &name, entry, reader),
            Kind::Symlink(target) => self.link(&parent, &name, entry, target),
        }
    }

    /// Completes the directories behind the first `count`.
    fn close_to(&mut self, count: usize) -> Result<(), CopyError> {
        while self.open.len() > count {
            let path = self.path.join(&b'/');
            self.path.pop();
            let Some(Open { directory, mode: Some(mode) }) = self.open.pop() else { continue };
            fchmod(&directory, Mode::from_raw_mode(mode)).map_err(|error| CopyError::file("set the mode of", &path, error))?;
        }
        Ok(())
    }

    fn directory(&mut self, parent: &OwnedFd, name: &OsStr, entry: &Entry) -> Result<(), CopyError> {
        let failed = |operation| move |error: Errno| CopyError::file(operation, &path_of(entry, name), error);
        let made_with = match self.owners {
            None => 0o777,
            Some(Owners::Kept) => 0o700,
            // Its owner has to open it.
            Some(Owners::OfUser) => entry.mode & 0o777 | 0o700,
        };
        let mut made = mkdirat(parent, name, Mode::from_raw_mode(made_with));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut opened = openat(parent, name, flags, Mode::empty());
        // A link or a file is in the way: it is replaced in a container, and left alone here.
        if made == Err(Errno::EXIST) && matches!(opened, Err(Errno::LOOP | Errno::NOTDIR)) && self.owners.is_some() {
            unlinkat(parent, name, AtFlags::empty()).map_err(failed("replace"))?;
            made = mkdirat(parent, name, Mode::from_raw_mode(made_with));
            opened = openat(parent, name, flags, Mode::empty());
        }
        match made {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed("create")(error)),
        }
        let directory = opened.map_err(failed("open"))?;
        if self.owners == Some(Owners::Kept) {
            fchown(&directory, Some(Uid::from_raw(entry.uid)), Some(Gid::from_raw(entry.gid)))
                .map_err(failed("set the owner of"))?;
        }
        let mode = match self.owners {
            None => None,
            Some(Owners::Kept) => Some(entry.mode),
            // One that was there keeps its mode.
            Some(Owners::OfUser) if made.is_err() => None,
            Some(Owners::OfUser) => {
                // Without what the umask forbids.
                Some(fstat(&directory).map_err(failed("inspect"))?.st_mode & (entry.mode | 0o7000) & 0o7777)
            }
        };
        self.open.push(Open { directory, mode });
        Ok(())
    }

    fn file<R: Read>(
        &mut self,
        parent: &OwnedFd,
        name: &OsStr,
        entry: &Entry,
        reader: &mut FrameReader<R>,
    ) -> Result<(), CopyError> {
        let path = path_of(entry, name);
        let failed = |operation| move |error: Errno| CopyError::file(operation, &path_of(entry, name), error);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Some(owners) = self.owners else {
            let opened = openat(parent, name, flags | OFlags::TRUNC, Mode::from_raw_mode(0o666)).map_err(failed("create"))?;
            return self.fill(opened, &path, reader);
        };
        let mode = Mode::from_raw_mode(if owners == Owners::Kept { 0o600 } else { entry.mode & 0o777 });
        let mut opened = openat(parent, name, flags | OFlags::EXCL, mode);
        if matches!(opened, Err(Errno::EXIST)) {
            opened = match unlinkat(parent, name, AtFlags::empty()) {
                Ok(()) => openat(parent, name, flags | OFlags::EXCL, mode),
                // A file that is a mount, such as one of a volume, cannot be replaced.
                Err(Errno::BUSY) => openat(parent, name, flags | OFlags::TRUNC, mode),
                Err(error) => Err(error),
            };
        }
        let opened = opened.map_err(failed("create"))?;
        if owners == Owners::Kept {
            fchown(&opened, Some(Uid::from_raw(entry.uid)), Some(Gid::from_raw(entry.gid))).map_err(failed("set the owner of"))?;
            fchmod(&opened, Mode::from_raw_mode(entry.mode)).map_err(failed("set the mode of"))?;
        }
        self.fill(opened, &path, reader)
    }

    fn fill<R: Read>(&mut self, opened: OwnedFd, path: &[u8], reader: &mut FrameReader<R>) -> Result<(), CopyError> {
        let mut file = File::from(opened);
        while let Some(piece) = reader.piece()? {
            file.write_all(piece).map_err(|error| CopyError::file("write", path, error))?;
        }
        self.done.files += 1;
        Ok(())
    }

    fn link(&mut self, parent: &OwnedFd, name: &OsStr, entry: &Entry, target: &[u8]) -> Result<(), CopyError> {
        let failed = |operation| move |error: Errno| CopyError::file(operation, &path_of(entry, name), error);
        let Some(owners) = self.owners else {
            self.done.links_left_out += 1;
            return Ok(());
        };
        let target = OsStr::from_bytes(target);
        let mut made = symlinkat(target, parent, name);
        if made == Err(Errno::EXIST) {
            unlinkat(parent, name, AtFlags::empty()).map_err(failed("replace"))?;
            made = symlinkat(target, parent, name);
        }
        made.map_err(failed("create"))?;
        if owners == Owners::Kept {
            let (uid, gid) = (Some(Uid::from_raw(entry.uid)), Some(Gid::from_raw(entry.gid)));
            chownat(parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW).map_err(failed("set the owner of"))?;
        }
        Ok(())
    }
}

fn path_of(entry: &Entry, name: &OsStr) -> Vec<u8> {
    if entry.path.is_empty() { name.as_bytes().to_vec() } else { entry.path.join(&b'/') }
}

fn is_directory(parent: &OwnedFd, name: &OsStr) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).is_ok()
}
