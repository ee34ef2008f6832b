//! Ancestry of commits.

use super::{Objects, object_id, oid};
use crate::git::error::GitError;
use crate::git::protocol::ObjectId;
use std::collections::{BTreeSet, HashSet, VecDeque};

/// Commits that are looked at; a history of that length between two revisions is no update.
const MAX_COMMITS: usize = 1_000_000;

impl Objects {
    /// Reports whether `newer` is `older` or a descendant of it. Goes no further than the history that is here.
    pub(in crate::git) fn descends(&self, newer: ObjectId, older: ObjectId) -> Result<bool, GitError> {
        let mut found = false;
        self.walk(newer, |commit, _| {
            found = commit == older;
            !found
        })?;
        Ok(found)
    }

    /// The commits without their parents that the history of `tips` ends in.
    pub(in crate::git) fn boundary(&self, tips: &[ObjectId]) -> Result<BTreeSet<ObjectId>, GitError> {
        let mut boundary = BTreeSet::new();
        for tip in tips {
            self.walk(*tip, |commit, cut| {
                if cut {
                    boundary.insert(commit);
                }
                true
            })?;
        }
        Ok(boundary)
    }

    /// Visits the history of `tip` while `go_on` returns true; its argument is whether the commit's parents are missing.
    fn walk(&self, tip: ObjectId, mut go_on: impl FnMut(ObjectId, bool) -> bool) -> Result<(), GitError> {
        let mut seen = HashSet::from([tip]);
        let mut next = VecDeque::from([tip]);
        while let Some(id) = next.pop_front() {
            let cut = self.shallow.contains(&id);
            if !go_on(id, cut) {
                return Ok(());
            }
            if cut {
                continue;
            }
            let commit = self.repository.find_commit(oid(id)).map_err(|error| self.damaged(error))?;
            next.extend(commit.parent_ids().map(object_id).filter(|parent| seen.insert(*parent)));
            if seen.len() > MAX_COMMITS {
                return Err(GitError::Limit(format!("the history has more than {MAX_COMMITS} commits")));
            }
        }
        Ok(())
    }
}
