//! Ancestry of commits.

use super::{Objects, malformed};
use crate::git::error::GitError;
use crate::git::format::{Commit, Fault, Kind};
use crate::git::protocol::ObjectId;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

/// Commits that are looked at; a history of that length between two revisions is no update.
const MAX_COMMITS: usize = 1_000_000;
/// Commits and parents that came and that nobody has asked for yet. If there are more, they are forgotten, and asked for when they are needed.
const MAX_AHEAD: usize = 50_000;
/// Commits that one question starts from.
const FRONT: usize = 500;

/// Parents of commits that came ahead of the walk.
struct Ahead {
    parents: HashMap<ObjectId, Vec<ObjectId>>,
    /// Commits and parents that came.
    weight: usize,
    /// True if the job is to forget what it has answered.
    anew: bool,
}

impl Objects {
    /// Reports whether `newer` is `older` or a descendant of it. Goes no further than the history that is here.
    pub(in crate::git) fn descends(&self, newer: ObjectId, older: ObjectId) -> Result<bool, GitError> {
        let mut found = false;
        self.visit(newer, |commit, _| {
            found = commit == older;
            !found
        })?;
        Ok(found)
    }

    /// The commits without their parents that the history of `tips` ends in.
    pub(in crate::git) fn boundary(&self, tips: &[ObjectId]) -> Result<BTreeSet<ObjectId>, GitError> {
        let mut boundary = BTreeSet::new();
        for tip in tips {
            self.visit(*tip, |commit, cut| {
                if cut {
                    boundary.insert(commit);
                }
                true
            })?;
        }
        Ok(boundary)
    }

    /// Visits the history of `tip` while `go_on` returns true; its argument is whether the commit's parents are missing.
    fn visit(&self, tip: ObjectId, mut go_on: impl FnMut(ObjectId, bool) -> bool) -> Result<(), GitError> {
        let mut seen = HashSet::from([tip]);
        let mut next = VecDeque::from([tip]);
        let mut ahead = Ahead { parents: HashMap::new(), weight: 0, anew: true };
        while let Some(id) = next.pop_front() {
            let cut = self.shallow.contains(&id);
            if !go_on(id, cut) {
                return Ok(());
            }
            if cut {
                continue;
            }
            let parents = match ahead.parents.remove(&id) {
                Some(parents) => parents,
                None => self.look_ahead(id, &next, &mut ahead)?,
            };
            next.extend(parents.into_iter().filter(|parent| seen.insert(*parent)));
            if seen.len() > MAX_COMMITS {
                return Err(GitError::Limit(format!("the history has more than {MAX_COMMITS} commits")));
            }
        }
        Ok(())
    }

    /// The parents of `id`; what comes with them is kept for later.
    fn look_ahead(&self, id: ObjectId, next: &VecDeque<ObjectId>, ahead: &mut Ahead) -> Result<Vec<ObjectId>, GitError> {
        if ahead.weight > MAX_AHEAD {
            *ahead = Ahead { parents: HashMap::new(), weight: 0, anew: true };
        }
        let open = next.iter().filter(|id| !self.shallow.contains(id) && !ahead.parents.contains_key(id));
        let from: Vec<ObjectId> = [id].into_iter().chain(open.copied()).take(FRONT).collect();
        let found = self.session.borrow_mut().walk(&from, std::mem::take(&mut ahead.anew));
        let mut found = found.map_err(|failure| self.explained(failure))?.ok_or_else(|| self.missing(id))?.into_iter();
        let parents = match found.next() {
            Some((_, Kind::Commit, bytes)) => Commit::parse(&bytes).map_err(malformed(Kind::Commit, id))?.parents,
            None => return Err(malformed(Kind::Commit, id)(Fault("it is too large"))),
            Some((_, Kind::Tree | Kind::Blob | Kind::Tag, _)) => return Err(malformed(Kind::Commit, id)(super::OTHER_KIND)),
        };
        for (name, kind, bytes) in found {
            // One that is none is refused when it is asked for.
            if let (Kind::Commit, Ok(commit)) = (kind, Commit::parse(&bytes)) {
                ahead.weight += 1 + commit.parents.len();
                ahead.parents.insert(name, commit.parents);
            }
        }
        Ok(parents)
    }
}
