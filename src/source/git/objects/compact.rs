//! Keeping a copy small: libgit2 collects no garbage, and every fetch adds a pack.
//!
//! Only the last commit and its files are needed. They are copied, without the network, into a fresh copy, which then replaces
//! the old one.

use super::copy::{Copy, State};
use super::store::{Store, disk};
use super::{Objects, damage, oid};
use crate::git::error::GitError;
use crate::git::protocol::ObjectId;
use std::fs;

/// Number of packs before the copy is compacted.
const MAX_PACKS: usize = 50;
/// Growth of the copy, in bytes, before it is compacted.
const MAX_GROWTH: u64 = 64 << 20;

impl Store {
    /// Copies what belongs to `commit` and nothing else, if the copy in use has grown enough. Returns whether it did.
    pub(in crate::git) fn compact(&self, commit: ObjectId) -> Result<bool, GitError> {
        let current = self.current();
        let state = current.state()?;
        let (packs, bytes) = current.weight()?;
        if packs < MAX_PACKS && bytes < state.base_bytes.saturating_mul(2).saturating_add(MAX_GROWTH) {
            return Ok(false);
        }
        let fresh = self.fresh()?;
        fresh.make_directories()?;
        fresh.take_over(&current.objects(&state.shallow)?, commit)?;
        self.adopt_fresh()?;
        tracing::debug!(directory = %current.path().display(), packs, bytes, "compacted");
        Ok(true)
    }
}

impl Copy {
    fn take_over(&self, objects: &Objects, commit: ObjectId) -> Result<(), GitError> {
        let damaged = |error: git2::Error| damage(self.path(), error.into());
        let mut builder = objects.repository.packbuilder().map_err(damaged)?;
        builder.set_threads(1);
        builder.insert_commit(oid(commit)).map_err(damaged)?;
        builder.write(&self.incoming(), 0o600).map_err(damaged)?;
        let failed = disk("list", self.path());
        for entry in fs::read_dir(self.incoming()).map_err(&failed)? {
            let name = entry.map_err(&failed)?.file_name().to_string_lossy().into_owned();
            if let Some(name) = name.strip_prefix("pack-").and_then(|name| name.strip_suffix(".idx")) {
                self.place(name)?;
            }
        }
        let base_bytes = self.weight()?.1;
        self.save(&State::new(vec![commit], [commit].into(), base_bytes))
    }
}
