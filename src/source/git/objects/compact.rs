//! Keeping a copy small: libgit2 collects no garbage, and every fetch adds a pack.
//!
//! Only the last commit and its files are needed. They are copied, without the network, into a fresh copy, which then replaces
//! the old one.

use super::copy::{Copy, State};
use super::explained;
use super::store::Store;
use crate::git::error::GitError;
use crate::git::protocol::ObjectId;

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
        fresh.take_over(&current, commit)?;
        self.adopt_fresh()?;
        tracing::debug!(directory = %current.path().display(), packs, bytes, "compacted");
        Ok(true)
    }
}

impl Copy {
    fn take_over(&self, from: &Self, commit: ObjectId) -> Result<(), GitError> {
        from.let_jobs_read()?;
        let copied = self.jobs().copy(commit, &from.objects_path(), &self.incoming());
        if let Some(name) = copied.map_err(|failure| explained(self.jobs(), from.path(), failure))? {
            self.place(&name)?;
        }
        let base_bytes = self.weight()?.1;
        self.save(&State::new(vec![commit], [commit].into(), base_bytes))
    }
}
