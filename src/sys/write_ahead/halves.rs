//! The state of a log in memory: where the next batch goes, what is durable, and which half may be emptied.

use super::batch::{self, Logged};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A batch in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    half: usize,
    /// Counts the batches of the log, from 1.
    number: u64,
}

/// A place for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    half: usize,
    pub(super) generation: u64,
    pub(super) sequence: u64,
    /// Byte of the log.
    pub(super) offset: u64,
}

/// One half of the log.
#[derive(Debug, Default)]
struct Half {
    generation: u64,
    batches: u64,
    bytes: u64,
    /// Files that its batches are about.
    files: BTreeSet<PathBuf>,
    /// Batches whose files are being changed.
    under_way: usize,
}

/// Health of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Good,
    /// It failed, and may have batches that are no longer so.
    Broken,
    /// It failed, and is removed.
    GivenUp,
}

/// Next work of the checkpoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Empty this half, whose files these are.
    Empty { half: usize, files: BTreeSet<PathBuf> },
    /// Wait until something changes.
    Wait,
    /// Wait until then, unless something changes.
    WaitUntil(Instant),
    /// There is nothing to empty, or nothing can be done.
    End,
}

#[derive(Debug)]
pub(super) struct Halves {
    /// Bytes of each.
    capacity: u64,
    halves: [Half; 2],
    /// The one that batches go to.
    active: usize,
    next_generation: u64,
    /// Number of the last batch, and of the last one that is durable.
    appended: u64,
    durable: u64,
    is_syncing: bool,
    /// Files that are removed without a sync; the next batch tells.
    removed: BTreeSet<PathBuf>,
    last_batch: Instant,
    /// Somebody waits for the log to be empty.
    is_hurried: bool,
    health: Health,
    /// The checkpoint runs.
    pub(super) has_checkpoint: bool,
}

impl Halves {
    /// Two empty halves. No earlier batch may have this generation or a later one.
    pub(super) fn new(capacity: u64, generation: u64) -> Self {
        Self {
            capacity,
            halves: [Half { generation, ..Half::default() }, Half::default()],
            active: 0,
            next_generation: generation + 1,
            appended: 0,
            durable: 0,
            is_syncing: false,
            removed: BTreeSet::new(),
            last_batch: Instant::now(),
            is_hurried: false,
            health: Health::Good,
            has_checkpoint: false,
        }
    }

    /// A place for a batch with so many bytes of changes; `None` while there is none.
    pub(super) fn place(&mut self, payload: usize) -> Option<Place> {
        if !self.fits(payload) {
            if self.halves[1 - self.active].batches > 0 {
                return None;
            }
            self.turn();
        }
        let half = &self.halves[self.active];
        let offset = self.active as u64 * self.capacity + half.bytes;
        Some(Place { half: self.active, generation: half.generation, sequence: half.batches, offset })
    }

    fn fits(&self, payload: usize) -> bool {
        self.halves[self.active].bytes + batch::size(payload) as u64 <= self.capacity
    }

    /// Lets batches go to the other half, which is empty.
    fn turn(&mut self) {
        self.active = 1 - self.active;
        self.halves[self.active] = Half { generation: self.next_generation, ..Half::default() };
        self.next_generation += 1;
    }

    /// The files that were removed, for a batch with these changes to tell. More than a quarter of a half is not told.
    pub(super) fn removed(&self, changes: &[Logged<'_>]) -> Vec<u8> {
        let is_written =
            |path: &Path| changes.iter().any(|change| matches!(change, Logged::Write { path: written, .. } if *written == path));
        let removed: Vec<_> = self.removed.iter().filter(|path| !is_written(path)).map(|path| Logged::Remove { path }).collect();
        let bytes = batch::payload(&removed);
        if bytes.len() as u64 > self.capacity / 4 { Vec::new() } else { bytes }
    }

    /// A batch was written to its place.
    pub(super) fn appended(&mut self, place: Place, bytes: u64, changes: &[Logged<'_>]) -> Ticket {
        let half = &mut self.halves[place.half];
        half.batches += 1;
        half.bytes += bytes;
        half.under_way += 1;
        half.files.extend(changes.iter().map(|change| change.path().to_owned()));
        half.files.append(&mut self.removed);
        self.appended += 1;
        self.last_batch = Instant::now();
        Ticket { half: place.half, number: self.appended }
    }

    pub(super) const fn is_durable(&self, ticket: Ticket) -> bool {
        self.durable >= ticket.number
    }

    /// Begins a sync; returns the number of the last batch that it makes durable. `None` while there is another one.
    pub(super) const fn begin_sync(&mut self) -> Option<u64> {
        if self.is_syncing {
            return None;
        }
        self.is_syncing = true;
        Some(self.appended)
    }

    pub(super) fn end_sync(&mut self, upto: u64, is_durable: bool) {
        self.is_syncing = false;
        if is_durable {
            self.durable = self.durable.max(upto);
        } else {
            self.break_down();
        }
    }

    /// The files of a batch have their content.
    pub(super) const fn applied(&mut self, ticket: Ticket) {
        self.halves[ticket.half].under_way -= 1;
    }

    /// Returns true if a half has a batch about the file.
    pub(super) fn is_about(&self, path: &Path) -> bool {
        self.halves.iter().any(|half| half.files.contains(path))
    }

    /// Notes that a file is removed without a sync.
    pub(super) fn remove_later(&mut self, path: &Path) {
        if self.is_about(path) {
            self.removed.insert(path.to_owned());
        }
    }

    /// Has both halves emptied as soon as can be.
    pub(super) const fn hurry(&mut self) {
        self.is_hurried = true;
    }

    /// Returns what the checkpoint has to do.
    pub(super) fn next(&mut self, rest: std::time::Duration, now: Instant) -> Next {
        if self.health != Health::Good {
            return Next::End;
        }
        let other = 1 - self.active;
        if self.halves[other].batches == 0 {
            if self.halves[self.active].batches == 0 {
                self.is_hurried = false;
                return Next::End;
            }
            let due = self.last_batch + rest;
            if !self.is_hurried && now < due {
                return Next::WaitUntil(due);
            }
            self.turn();
        }
        let half = 1 - self.active;
        match &self.halves[half] {
            Half { under_way: 0, files, .. } => Next::Empty { half, files: files.clone() },
            _ => Next::Wait,
        }
    }

    /// First byte of a half.
    pub(super) const fn start(&self, half: usize) -> u64 {
        half as u64 * self.capacity
    }

    /// A half was emptied.
    pub(super) fn emptied(&mut self, half: usize) {
        self.halves[half] = Half::default();
        let halves = &self.halves;
        self.removed.retain(|path| halves.iter().any(|half| half.files.contains(path)));
    }

    /// The log failed.
    pub(super) fn break_down(&mut self) {
        if self.health == Health::Good {
            self.health = Health::Broken;
        }
    }

    /// The log is removed.
    pub(super) const fn given_up(&mut self) {
        self.health = Health::GivenUp;
    }

    pub(super) fn is_broken(&self) -> bool {
        self.health != Health::Good
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.health == Health::GivenUp
    }
}
