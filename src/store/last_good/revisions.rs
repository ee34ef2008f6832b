//! Replacing the set in force while keeping earlier ones.

use super::{FILE_MODE, LastGood, LastGoodError, REVISIONS, Record, State, head_of, make_directory};
use podstead_sys::atomic_file;
use podstead_sys::write_ahead::Change;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;

/// An earlier revision that is kept and cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{number}")]
pub struct Unreadable {
    /// Its number.
    pub number: u64,
    /// The reason.
    pub source: LastGoodError,
}

/// One step on disk. A start after any of them finds the state before or the state after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Links the file in force to its name among the earlier revisions as well.
    Archive(u64),
    /// Puts the new state in force.
    Replace,
    /// Removes an earlier revision.
    Prune(u64),
}

/// Returns the steps, in order, when `superseded` goes out of force, `archived` are kept already, and `limit` earlier revisions
/// shall be kept. A number above `superseded` is left from a file in force that was lost; it stays for people to look at. `base_of` gives the number of the set
/// that a file has the changes to, `next_base` that of the new one: these are kept beyond the limit.
pub(super) fn steps(
    superseded: Option<u64>,
    archived: &BTreeSet<u64>,
    limit: usize,
    next_base: Option<u64>,
    base_of: impl Fn(u64) -> Option<u64>,
) -> Vec<Step> {
    let is_needed = |number: &u64| limit > 0 || next_base == Some(*number);
    let kept: BTreeSet<u64> = archived.iter().copied().chain(superseded.filter(is_needed)).collect();
    let archive = superseded.filter(|number| kept.contains(number) && !archived.contains(number)).map(Step::Archive);
    let surplus = kept.len().saturating_sub(limit);
    let bases: BTreeSet<u64> = match surplus {
        0 => BTreeSet::new(),
        _ => kept.iter().skip(surplus).filter_map(|number| base_of(*number)).chain(next_base).collect(),
    };
    let prunes = kept.into_iter().take(surplus).filter(|number| !bases.contains(number)).map(Step::Prune);
    archive.into_iter().chain([Step::Replace]).chain(prunes).collect()
}

impl LastGood {
    /// Puts `state` in force durably. What was in force, `superseded`, is kept, and with it the newest `limit` earlier revisions.
    pub fn advance(&self, superseded: Option<u64>, state: &State, limit: usize) -> Result<(), LastGoodError> {
        let at = |path: PathBuf| move |source| LastGoodError::Write { path, source };
        let archived = self.numbers()?;
        // A write that fails leaves none: nobody knows then what is on disk, and the next set is written as a whole.
        let base = self.base().take();
        if let Some(base) = base.as_ref().filter(|base| superseded == Some(base.name.number)) {
            // The changes name it. Where nothing becomes of them, the next step of its kind removes it.
            self.archive(base.name.number).map_err(at(self.revision_path(base.name.number)))?;
        }
        let (bytes, base) = self.encode(state, base).map_err(at(self.path()))?;
        let number = state.in_force.as_ref().map(|record| record.stamp.number);
        let next_base = base.as_ref().map(|base| base.name.number).filter(|base| Some(*base) != number);
        // One that a crash left archived stays as it is, also where the file in force was saved anew since then.
        let base_of = |number: u64| {
            let path = if archived.contains(&number) { self.revision_path(number) } else { self.path() };
            head_of(&path)?.base
        };
        for step in steps(superseded, &archived, limit, next_base, base_of) {
            let path = match step {
                Step::Archive(number) => self.revision_path(number),
                Step::Replace | Step::Prune(_) => self.path(),
            };
            match (step, self.take_step(step, &bytes, superseded)) {
                (_, Ok(())) => {}
                // The new state is in force: what is too much is removed by the next one.
                (Step::Prune(number), Err(error)) => {
                    tracing::warn!(source = %self.source, number, %error, "cannot remove an old revision");
                }
                (Step::Archive(_) | Step::Replace, Err(source)) => return Err(LastGoodError::Write { path, source }),
            }
        }
        *self.base() = base;
        Ok(())
    }

    /// Takes a step of replacing the set of this number.
    pub(super) fn take_step(&self, step: Step, bytes: &[u8], superseded: Option<u64>) -> io::Result<()> {
        match step {
            Step::Archive(number) => self.archive(number),
            Step::Replace => self.replace_archived(bytes.to_vec(), superseded),
            Step::Prune(number) => self.prune(number),
        }
    }

    /// The number that comes after everything that was ever in force, as far as the disk knows.
    pub fn next_number(&self, in_force: Option<u64>) -> Result<u64, LastGoodError> {
        let newest = self.numbers()?.last().copied().max(in_force).unwrap_or(0);
        Ok(newest + 1)
    }

    /// The newest `limit` earlier revisions, newest first: one beyond it may be there as the base of another. Unreadable ones are reported, not left out.
    pub fn earlier(&self, in_force: Option<u64>, limit: usize) -> Result<Vec<Result<Record, Unreadable>>, LastGoodError> {
        let mut found = Vec::new();
        // A crash between two steps leaves the one in force there as well.
        for number in self.numbers()?.into_iter().rev().filter(|number| Some(*number) != in_force).take(limit) {
            match self.read(&self.revision_path(number)) {
                Ok(Some((State { hold: _, in_force: Some(record) }, _))) if record.stamp.number == number => found.push(Ok(record)),
                Ok(Some(_)) => {
                    let error = LastGoodError::Damaged(self.revision_path(number));
                    found.push(Err(Unreadable { number, source: error }));
                }
                Ok(None) => {}
                Err(source) => found.push(Err(Unreadable { number, source })),
            }
        }
        Ok(found)
    }

    /// Puts the new state in force, after the name that the one before has among the earlier revisions.
    fn replace_archived(&self, bytes: Vec<u8>, superseded: Option<u64>) -> io::Result<()> {
        let Some(to) = superseded.map(|number| self.revision_path(number)) else { return self.replace(bytes) };
        match to.try_exists()? {
            true => self.write_ahead.write(&[Change::Link { from: self.path(), to }, self.replacement(bytes)]),
            false => self.replace(bytes),
        }
    }

    /// Not durably: a revision that a power cut brings back is removed by the next step of this kind.
    fn prune(&self, number: u64) -> io::Result<()> {
        let path = self.revision_path(number);
        self.write_ahead.removes(&path);
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Durable with the next [`Step::Replace`].
    pub(super) fn archive(&self, number: u64) -> io::Result<()> {
        let target = self.revision_path(number);
        make_directory(&self.directory.join(REVISIONS))?;
        match fs::hard_link(self.path(), &target) {
            Ok(()) => Ok(()),
            // A crash came after it the last time; the files of a number are always the same ones, though the base that they are written on may be another.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            // The file in force was removed by somebody; there is nothing to keep.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            // No file system that a state directory should lie on is without links; but it works.
            Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
                atomic_file::write_durable(&target, &fs::read(self.path())?, FILE_MODE)
            }
            Err(error) => Err(error),
        }
    }

    /// The numbers that are kept.
    fn numbers(&self) -> Result<BTreeSet<u64>, LastGoodError> {
        let path = self.directory.join(REVISIONS);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Err(source) => return Err(LastGoodError::Read { path, source }),
        };
        let mut numbers = BTreeSet::new();
        for entry in entries {
            let name = entry.map_err(|source| LastGoodError::Read { path: path.clone(), source })?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse::<u64>().ok());
            numbers.extend(number);
        }
        Ok(numbers)
    }

    pub(super) fn revision_path(&self, number: u64) -> PathBuf {
        self.directory.join(REVISIONS).join(format!("{number}.json"))
    }
}
