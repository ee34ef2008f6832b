//! From files to a stream.

use super::frame::{Entry, FrameWriter, Kind, MAX_PIECE};
use super::{CopyError, MAX_DEPTH, shown};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, fstatfs, open, openat, readlinkat, stat, statat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// File systems that are views of the kernel: `proc`, `sysfs`, `cgroup`, `cgroup2`. Their files have no end or stop who reads them.
const VIEWS: [u64; 4] = [0x9fa0, 0x6265_6572, 0x0027_e0eb, 0x6367_7270];

/// Writes the file or the tree at `root`, which may be a link to it. Returns what was left out, with reasons: sockets, devices and pipes.
pub fn pack(root: &Path, out: impl Write) -> Result<Vec<String>, CopyError> {
    let path = root.as_os_str().as_bytes();
    // Not opened if it is something else: opening may have effects.
    let kind = FileType::from_raw_mode(stat(root).map_err(|error| CopyError::file("open", path, error))?.st_mode);
    if !matches!(kind, FileType::Directory | FileType::RegularFile) {
        return Err(CopyError::refused(path, "neither a file nor a directory"));
    }
    let opened = open(root, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let opened = opened.map_err(|error| CopyError::file("open", path, error))?;
    let out = FrameWriter::new(out).map_err(CopyError::Write)?;
    let mut packing = Packing { out, path: Vec::new(), left_out: Vec::new(), buffer: vec![0; MAX_PIECE] };
    let found = fstat(&opened).map_err(|error| CopyError::file("inspect", path, error))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => packing.directory(opened.as_fd(), &found)?,
        FileType::RegularFile => packing.file(opened, &found)?,
        _ => return Err(CopyError::refused(path, "neither a file nor a directory")),
    }
    packing.out.finish().map_err(CopyError::Write)?;
    Ok(packing.left_out)
}

struct Packing<W> {
    out: FrameWriter<W>,
    /// Components of the present path.
    path: Vec<Vec<u8>>,
    left_out: Vec<String>,
    buffer: Vec<u8>,
}

impl<W: Write> Packing<W> {
    fn here(&self) -> Vec<u8> {
        if self.path.is_empty() { b".".to_vec() } else { self.path.join(&b'/') }
    }

    fn failed(&self, operation: &'static str, error: impl Into<std::io::Error>) -> CopyError {
        CopyError::file(operation, &self.here(), error)
    }

    fn entry(&mut self, kind: Kind, found: &Stat) -> Result<(), CopyError> {
        let entry = Entry { path: self.path.clone(), kind, mode: found.st_mode & 0o7777, uid: found.st_uid, gid: found.st_gid };
        self.out.entry(&entry).map_err(CopyError::Write)
    }

    fn directory(&mut self, directory: BorrowedFd<'_>, found: &Stat) -> Result<(), CopyError> {
        if self.path.len() >= MAX_DEPTH {
            return Err(CopyError::refused(&self.here(), "too many directories inside each other"));
        }
        self.entry(Kind::Directory, found)?;
        let listed = Dir::read_from(directory).map_err(|error| self.failed("list", error))?;
        let mut names: Vec<CString> = Vec::new();
        for found in listed {
            let name = found.map_err(|error| self.failed("list", error))?.file_name().to_owned();
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name);
            }
        }
        names.sort_unstable();
        for name in names {
            self.path.push(name.to_bytes().to_vec());
            self.child(directory, &name)?;
            self.path.pop();
        }
        Ok(())
    }

    /// One name of a directory. What is gone since it was listed is passed over.
    fn child(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> Result<(), CopyError> {
        let found = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            found => found.map_err(|error| self.failed("inspect", error))?,
        };
        let kind = FileType::from_raw_mode(found.st_mode);
        match kind {
            FileType::Symlink => match readlinkat(parent, name, Vec::new()) {
                Err(Errno::NOENT) => Ok(()),
                target => {
                    let target = target.map_err(|error| self.failed("read link", error))?;
                    self.entry(Kind::Symlink(target.into_bytes()), &found)
                }
            },
            FileType::Directory | FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let opened = match openat(parent, name, flags, Mode::empty()) {
                    Err(Errno::NOENT) => return Ok(()),
                    opened => opened.map_err(|error| self.failed("open", error))?,
                };
                let found = fstat(&opened).map_err(|error| self.failed("inspect", error))?;
                match FileType::from_raw_mode(found.st_mode) {
                    FileType::Directory if is_view(&opened) => self.leave_out("a view of the kernel"),
                    FileType::Directory => self.directory(opened.as_fd(), &found)?,
                    FileType::RegularFile => self.file(opened, &found)?,
                    _ => self.leave_out("replaced meanwhile"),
                }
                Ok(())
            }
            FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
                self.leave_out("neither file, directory nor link");
                Ok(())
            }
        }
    }

    fn leave_out(&mut self, reason: &str) {
        self.left_out.push(format!("{}: {reason}", shown(&self.here())));
    }

    fn file(&mut self, opened: OwnedFd, found: &Stat) -> Result<(), CopyError> {
        self.entry(Kind::File, found)?;
        let mut file = File::from(opened);
        loop {
            let count = file.read(&mut self.buffer).map_err(|error| CopyError::file("read", &self.here(), error))?;
            if count == 0 {
                return self.out.end_content().map_err(CopyError::Write);
            }
            self.out.content(&self.buffer[..count]).map_err(CopyError::Write)?;
        }
    }
}

fn is_view(directory: &OwnedFd) -> bool {
    fstatfs(directory).is_ok_and(|system| VIEWS.contains(&u64::try_from(system.f_type).unwrap_or_default()))
}
