//! A write-ahead log: small files become durable by one sync of a log that is written in place, and each file goes to the disk later.
//!
//! A file that is replaced durably costs a commit of the file system's journal, which writes several blocks and waits for whatever else is on its way to
//! the disk, such as an image that is being pulled. A block of a file that has its place on the disk already needs no commit. So the content is
//! appended to the log, the log is synced, and the file is replaced without a sync: after a power cut, [`WriteAheadLog::open`] replaces it again.
//!
//! ```text
//! <state>/write-ahead.log
//!     first half    batches, each a number of whole blocks: generation, number in the half, hash, changes
//!     second half   the same; batches go to one half until it is full, then to the other
//! ```
//!
//! A half is emptied when the files that it is about are on the disk: as soon as batches go to the other half, or [`REST`] after the last
//! one. Then nothing of it is replayed, so that an older podstead, which does not know the log, finds everything in the files.
//!
//! Nor is anything replayed in the boot in which it was written, of which a mark in the run directory tells: the files are what the kernel has of them, with
//! later changes that need not outlive a power cut.
//!
//! The log is used where the journal of the file system [keeps the order](super::atomic_file::keeps_order) of changes: what a power cut finds are the
//! files as they were at one moment, which no replay of later changes can mix up. Everywhere else each file is synced.

mod batch;
mod checkpoint;
mod halves;
mod replay;
#[cfg(test)]
mod tests;

use crate::{atomic_file, boot, ordered_journal};
use batch::Logged;
use halves::{Halves, Ticket};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time after the last batch after which the log is emptied.
pub const REST: Duration = Duration::from_secs(20);

/// Bytes of a half of the log.
const HALF: u64 = 512 << 10;

/// Part of a half that a batch takes at most. What is larger is written to its file at once, which costs less than writing it twice.
const LARGEST_PART: u64 = 8;

/// A change of files, which has an absolute path below the directory of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Makes a directory, which may be there.
    Directory {
        /// The directory.
        path: PathBuf,
        /// Its mode, and that of directories above it that are missing.
        mode: u32,
    },
    /// Gives a file another name as well. One that has the name already stays; a file that is missing gets none.
    Link {
        /// The file.
        from: PathBuf,
        /// Its other name.
        to: PathBuf,
    },
    /// Replaces a file.
    Write {
        /// The file; its directory must be there, or be made by a change before.
        path: PathBuf,
        /// Its content.
        content: Vec<u8>,
        /// Its mode.
        mode: u32,
    },
    /// Removes a file, which may be missing.
    Remove {
        /// The file.
        path: PathBuf,
    },
}

impl Change {
    /// The file that it makes, replaces or removes.
    fn path(&self) -> &Path {
        match self {
            Self::Directory { path, .. } | Self::Link { to: path, .. } | Self::Write { path, .. } | Self::Remove { path } => path,
        }
    }
}

/// Writes small files durably. Clones write to the same log.
#[derive(Clone, Debug, Default)]
pub struct WriteAheadLog(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    /// Directory of the files, and of the log.
    root: PathBuf,
    /// The log itself.
    path: PathBuf,
    file: File,
    /// The file system that has the log: a commit of another one is not waited for.
    device: u64,
    largest_batch: u64,
    rest: Duration,
    state: Mutex<Halves>,
    /// Something of `state` changed.
    changed: Condvar,
}

impl WriteAheadLog {
    /// No log: each file is synced.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Opens the log of the directory `root`, or makes one. After a power cut, everything that it has is in the files again; `mark` is a file that does not
    /// outlive one. Returns [`Self::none`] on a file system whose journal does not keep the order of changes, and where the log cannot be read or
    /// written, which is reported.
    pub fn open(root: &Path, mark: &Path) -> Self {
        Self::open_with(root, mark, HALF, REST, atomic_file::keeps_order(root)).unwrap_or_else(|error| {
            tracing::error!(directory = %root.display(), %error, "cannot open the write-ahead log: each file is synced until podstead is restarted");
            Self::none()
        })
    }

    fn open_with(root: &Path, mark: &Path, half: u64, rest: Duration, keeps_order: bool) -> io::Result<Self> {
        let path = root.join(FILE);
        let generation = match fs::read(&path) {
            Ok(bytes) => {
                let logged = replay::read(&bytes, half);
                let log = OpenOptions::new().write(true).open(&path)?;
                match boot::is_marked(mark) {
                    true => write_back(root, &log, logged.files())?,
                    false => replay::replay(root, &logged),
                }
                // With another length it is of another version, or its making was cut short.
                if !keeps_order || bytes.len() as u64 != 2 * half {
                    atomic_file::remove_durable(&path)?;
                } else if logged.has_changes() {
                    empty(&log, half)?;
                }
                logged.next_generation()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => 1,
            Err(error) => return Err(error),
        };
        if !keeps_order {
            return Ok(Self::none());
        }
        boot::put_mark(mark)?;
        if !path.try_exists()? {
            // Written, and not only allocated: the first write to a block that was never written needs a commit.
            atomic_file::write_durable(&path, &vec![0; usize::try_from(2 * half).map_err(io::Error::other)?], 0o600)?;
        }
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let shared = Shared {
            root: root.to_owned(),
            path,
            device: file.metadata()?.dev(),
            file,
            largest_batch: half / LARGEST_PART,
            rest,
            state: Mutex::new(Halves::new(half, generation)),
            changed: Condvar::new(),
        };
        Ok(Self(Some(Arc::new(shared))))
    }

    /// Makes changes durable, in their order and all or none of them. Blocks.
    ///
    /// # Errors
    ///
    /// Errors of the disk: then the changes may be there or not, and they may be there only after a power cut.
    pub fn write(&self, changes: &[Change]) -> io::Result<()> {
        let Some(shared) = &self.0 else { return write_files(changes) };
        let prepared = Prepared::of(shared, changes)?;
        let payload = batch::payload(&prepared.logged);
        if payload.len() as u64 > shared.largest_batch || !prepared.is_on_device {
            shared.forget(&prepared.logged)?;
            return write_files(changes);
        }
        let Some(ticket) = shared.append(&prepared.logged, &payload)? else { return write_files(changes) };
        let written = shared.sync(ticket).and_then(|()| prepared.put());
        shared.applied(ticket, written.is_err());
        written
    }

    /// Makes a file durable that is there already; one that is missing is success. Blocks.
    ///
    /// # Errors
    ///
    /// Errors of the disk.
    pub fn secure(&self, path: &Path) -> io::Result<()> {
        let Some(shared) = &self.0 else { return sync_file(path) };
        let (content, mode) = match File::open(path).and_then(|file| Ok((file.metadata()?.mode() & 0o7777, fs::read(path)?))) {
            Ok((mode, content)) => (content, mode),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let logged = [Logged::Write { path: path.strip_prefix(&shared.root).map_err(io::Error::other)?, content: &content, mode }];
        let payload = batch::payload(&logged);
        if payload.len() as u64 > shared.largest_batch || !shared.is_on_device(path) {
            shared.forget(&logged)?;
            return sync_file(path);
        }
        let Some(ticket) = shared.append(&logged, &payload)? else { return sync_file(path) };
        let synced = shared.sync(ticket);
        shared.applied(ticket, synced.is_err());
        if !path.try_exists()? {
            // Removed meanwhile, perhaps before the batch.
            self.removes(path);
        }
        synced
    }

    /// Empties the log, for whoever reads the files without it. Blocks.
    pub fn empty(&self) {
        let Some(shared) = &self.0 else { return };
        let mut state = shared.state();
        while state.has_checkpoint && !state.is_broken() {
            state.hurry();
            shared.changed.notify_all();
            state = shared.wait(state);
        }
    }

    /// Says that a file or directory is about to be removed, or to get another name, without a sync. Without it, a power cut within [`REST`] could bring the file back.
    pub fn removes(&self, path: &Path) {
        if let Some(shared) = &self.0
            && let Ok(path) = path.strip_prefix(&shared.root)
        {
            shared.state().remove_later(path);
        }
    }
}

/// Name of the log.
const FILE: &str = "write-ahead.log";

/// Makes sure that nothing of a log is replayed.
fn empty(log: &File, half: u64) -> io::Result<()> {
    for start in [0, half] {
        log.write_all_at(&[0; batch::BLOCK], start)?;
    }
    log.sync_data()
}

/// Changes whose content is on the file system, so that a full disk refuses them before they are logged.
struct Prepared<'a> {
    logged: Vec<Logged<'a>>,
    /// Names to give when the log is durable.
    names: Vec<Name<'a>>,
    /// All files are on the file system of the log.
    is_on_device: bool,
}

enum Name<'a> {
    /// A file that is to replace another one, under its temporary name.
    Replace(PathBuf, &'a Path),
    Remove(&'a Path),
}

impl<'a> Prepared<'a> {
    fn of(shared: &Shared, changes: &'a [Change]) -> io::Result<Self> {
        let below = |path: &'a Path| path.strip_prefix(&shared.root).map_err(io::Error::other);
        let (mut logged, mut names) = (Vec::with_capacity(changes.len()), Vec::with_capacity(changes.len()));
        let mut is_on_device = true;
        for change in changes {
            match change {
                Change::Directory { path, mode } => {
                    DirBuilder::new().recursive(true).mode(*mode).create(path)?;
                    logged.push(Logged::Directory { path: below(path)?, mode: *mode });
                }
                // Before the log is synced: the name says the same before the change and after it.
                Change::Link { from, to } => {
                    if link(from, to)? {
                        let sha256 = batch::sha256(&fs::read(to)?);
                        logged.push(Logged::Link { from: below(from)?, to: below(to)?, sha256 });
                    }
                }
                Change::Write { path, content, mode } => {
                    names.push(Name::Replace(atomic_file::write_temporary(path, content, *mode)?.0, path));
                    logged.push(Logged::Write { path: below(path)?, content, mode: *mode });
                }
                Change::Remove { path } => {
                    names.push(Name::Remove(path));
                    logged.push(Logged::Remove { path: below(path)? });
                }
            }
            // Whatever leads to the file was made by now.
            is_on_device &= shared.is_on_device(change.path());
        }
        Ok(Self { logged, names, is_on_device })
    }

    fn put(self) -> io::Result<()> {
        self.names.into_iter().try_for_each(|name| match name {
            Name::Replace(temporary, path) => fs::rename(temporary, path),
            Name::Remove(path) => remove(path),
        })
    }
}

/// Gives a file another name; returns false if it is missing.
fn link(from: &Path, to: &Path) -> io::Result<bool> {
    match fs::hard_link(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !from.try_exists()? => Ok(false),
        // No file system that a state directory should be on is without links; but it works.
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
            atomic_file::write_durable(to, &fs::read(from)?, 0o600).map(|()| true)
        }
        Err(error) => Err(error),
    }
}

/// Makes a file durable with its name. A journal that keeps the order has the name in the commit that has the file.
fn sync_file(path: &Path) -> io::Result<()> {
    let name = || if atomic_file::keeps_order(path) { Ok(()) } else { atomic_file::sync_parent(path) };
    match File::open(path).and_then(|file| file.sync_all()).and_then(|()| name()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes changes durable without a log: names that have to be there before a file is replaced are synced before, unless the journal keeps the order.
fn write_files(changes: &[Change]) -> io::Result<()> {
    let mut names: Vec<&Path> = Vec::new();
    let name_of = |path: &Path| path.parent().map(Path::to_owned).ok_or(io::ErrorKind::InvalidInput);
    for change in changes {
        match change {
            Change::Directory { path, mode } => match DirBuilder::new().mode(*mode).create(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => atomic_file::make_directories(path, *mode)?,
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => names.extend(path.parent()),
            },
            Change::Link { from, to } => {
                link(from, to)?;
                names.extend(to.parent());
            }
            Change::Write { path, content, mode } => {
                let own = name_of(path)?;
                let before = || names.iter().filter(|name| **name != own).try_for_each(|name| atomic_file::sync_directory(name));
                atomic_file::stage(path, content, *mode)?.after(before)?.put()?;
                names.clear();
            }
            Change::Remove { path } => atomic_file::remove_durable(path)?,
        }
    }
    Ok(())
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, Halves> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports whether a file is on the file system of the log.
    fn is_on_device(&self, path: &Path) -> bool {
        path.parent().and_then(|directory| fs::metadata(directory).ok()).is_some_and(|directory| directory.dev() == self.device)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, Halves>) -> MutexGuard<'a, Halves> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a batch, which is not durable yet; `None` if the log cannot be used any more.
    fn append(self: &Arc<Self>, changes: &[Logged<'_>], payload: &[u8]) -> io::Result<Option<Ticket>> {
        let mut state = self.state();
        loop {
            if state.is_broken() {
                return self.give_up(&mut state).map(|()| None);
            }
            let removed = state.removed(changes);
            let Some(place) = state.place(removed.len() + payload.len()) else {
                state = self.wait(state);
                continue;
            };
            if place.sequence == 0 {
                // The other half is full.
                self.changed.notify_all();
            }
            let bytes = batch::encode(place.generation, place.sequence, &removed, payload);
            if let Err(error) = self.file.write_all_at(&bytes, place.offset) {
                state.break_down();
                return Err(error);
            }
            let ticket = state.appended(place, bytes.len() as u64, changes);
            checkpoint::ensure(self, &mut state);
            return Ok(Some(ticket));
        }
    }

    /// Waits until a batch is durable. One of those that wait syncs the log for all.
    fn sync(&self, ticket: Ticket) -> io::Result<()> {
        let mut state = self.state();
        loop {
            if state.is_durable(ticket) {
                return Ok(());
            }
            if state.is_broken() {
                return Err(io::Error::other("the write-ahead log cannot be synced"));
            }
            let Some(upto) = state.begin_sync() else {
                state = self.wait(state);
                continue;
            };
            drop(state);
            let synced = self.file.sync_data();
            state = self.state();
            state.end_sync(upto, synced.is_ok());
            self.changed.notify_all();
            synced?;
        }
    }

    /// The files of a batch have been changed, or could not be.
    fn applied(&self, ticket: Ticket, failed: bool) {
        let mut state = self.state();
        state.applied(ticket);
        if failed {
            // The log says what the files do not: the next write sees to it.
            state.break_down();
        }
        self.changed.notify_all();
    }

    /// Empties the log if it has changes of one of these files, which are about to be changed past it.
    fn forget(self: &Arc<Self>, changes: &[Logged<'_>]) -> io::Result<()> {
        let mut state = self.state();
        while !state.is_broken() && changes.iter().any(|change| state.is_about(change.path())) {
            state.hurry();
            checkpoint::ensure(self, &mut state);
            self.changed.notify_all();
            state = self.wait(state);
        }
        if state.is_broken() { self.give_up(&mut state) } else { Ok(()) }
    }

    /// Stops using a log that failed, so that no replay undoes what is written past it from now on.
    fn give_up(&self, state: &mut Halves) -> io::Result<()> {
        if state.is_given_up() {
            return Ok(());
        }
        rustix::fs::syncfs(&self.file)?;
        atomic_file::remove_durable(&self.path)?;
        state.given_up();
        tracing::error!(log = %self.path.display(), "the write-ahead log failed: each file is synced until podstead is restarted");
        Ok(())
    }
}

/// Writes files below `root` to the disk, and everything that was changed before.
fn write_back<'a>(root: &Path, log: &File, files: impl Iterator<Item = &'a Path>) -> io::Result<()> {
    for path in files {
        match File::open(root.join(path)) {
            Ok(file) => ordered_journal::write_back(&file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    // A change of its own: the commit that has it has all that came before.
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    rustix::fs::futimens(log, &rustix::fs::Timestamps { last_access: now, last_modification: now })?;
    log.sync_all()
}
