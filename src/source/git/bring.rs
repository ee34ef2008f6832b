//! Fetches the objects of a revision, and replaces the copy on disk when it is damaged.
//!
//! * Where any revision may follow, only the commit and its files are fetched (`deepen 1`), as a difference to what is here.
//! * Where the revision has to descend from the last accepted one, so much of its history comes that this can be told: usually the last
//!   64 generations, of which only new ones are fetched; if the accepted commit is not among them 1024, and then all.
//! * Whatever cannot be read, a fresh copy is fetched beside it, and takes its place when it is complete.

use super::error::GitError;
use super::floor::Floor;
use super::follow::blocking;
use super::objects::{Copy, Objects, State, Store};
use super::protocol::{Fetch, ObjectId};
use super::remote::{Remote, Session};
use super::select::Target;
use podstead_telemetry::error_chain;
use std::collections::BTreeSet;
use std::time::Duration;

/// Generations of history that are fetched, one step after the other, until it is known whether the accepted commit is among them. The
/// last one is git's own word for all of it.
const DEPTHS: [u32; 3] = [64, 1024, i32::MAX.unsigned_abs()];

/// Limit of one fetch: a server that sends a byte now and then must not block the source for ever.
const LONGEST_FETCH: Duration = Duration::from_secs(3600);

/// One fetch: remote, local store, target and rules.
pub(super) struct Bringing<'a> {
    pub(super) remote: &'a Remote,
    pub(super) store: &'a Store,
    pub(super) target: &'a Target,
    pub(super) floor: &'a Floor,
    /// True if tag names are trusted only when they are signed.
    pub(super) signed_names: bool,
    /// Bytes of one pack.
    pub(super) limit: u64,
}

/// Fetches missing objects and passes them to `judge`.
pub(super) async fn bring<T: Send + 'static>(
    bringing: Bringing<'_>,
    session: Option<Session>,
    judge: impl Fn(&Objects) -> Result<T, GitError> + Clone + Send + 'static,
) -> Result<T, GitError> {
    let damage = match bringing.brought_to(&bringing.store.current(), session, judge.clone()).await {
        Err(error @ GitError::Damaged { .. }) => error,
        other => return other,
    };
    let damage = error_chain(&damage).to_string();
    tracing::warn!(error = %damage, "local copy of the repository is damaged; fetching a fresh copy");
    let store = bringing.store.clone();
    let fresh = blocking(move || store.fresh()).await?;
    let judged = match bringing.brought_to(&fresh, None, judge).await {
        // The revision is to blame, not the copy.
        Err(error) if !error.is_of_the_revision() => return Err(GitError::NotHealed { damage, source: Box::new(error) }),
        judged => judged,
    };
    let store = bringing.store.clone();
    blocking(move || store.adopt_fresh()).await?;
    judged
}

/// State of the local copy.
struct Here {
    /// Complete commits.
    commits: Vec<ObjectId>,
    /// Commits without their parents.
    shallow: BTreeSet<ObjectId>,
    /// The objects, if the target is one of the complete commits.
    complete: Option<Objects>,
    /// True if the local history is enough for the ancestor check.
    lineage: bool,
}

impl Bringing<'_> {
    async fn brought_to<T: Send + 'static>(
        &self,
        copy: &Copy,
        mut session: Option<Session>,
        judge: impl Fn(&Objects) -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, GitError> {
        let mut here = self.look(copy).await?;
        let depths = if self.ancestor().is_some() { &DEPTHS[..] } else { &[1] };
        for depth in depths {
            if here.complete.is_some() && here.lineage {
                break;
            }
            let (have, shallow) = (here.commits, here.shallow.into_iter().collect());
            let fetch = Fetch { want: Some(self.target.id), have, shallow, depth: *depth };
            here = self.fetch(copy, fetch, session.take()).await?;
        }
        let (copy, complete) = (copy.clone(), here.complete);
        blocking(move || match complete {
            Some(objects) => judge(&objects),
            None => judge(&copy.objects(&copy.state()?.shallow)?),
        })
        .await
    }

    /// Returns the commit that the target must descend from.
    fn ancestor(&self) -> Option<ObjectId> {
        let ancestor = match self.floor {
            Floor::None => None,
            Floor::Descendant { again: Some(again), .. } if *again == self.target.id => None,
            Floor::Descendant { of, .. } => Some(*of),
            Floor::Version { otherwise, .. } => self.signed_names.then_some(*otherwise),
        };
        ancestor.filter(|ancestor| *ancestor != self.target.id)
    }

    async fn look(&self, copy: &Copy) -> Result<Here, GitError> {
        let (copy, target, ancestor) = (copy.clone(), self.target.id, self.ancestor());
        // Only the object of an annotated tag leads to a commit with another name. It saves a job to know that nothing is here.
        let may_be_tag = self.target.reference.as_ref().is_none_or(|reference| reference.starts_with("refs/tags/"));
        blocking(move || {
            let state = copy.state()?;
            let missing =
                |state: State| Here { commits: state.commits, shallow: state.shallow, complete: None, lineage: ancestor.is_none() };
            if state.commits.is_empty() || !(may_be_tag || state.commits.contains(&target)) {
                return Ok(missing(state));
            }
            let objects = copy.objects(&state.shallow)?;
            // What was received and not recorded (the process ended in between) is as good as not here.
            let commit = if objects.has(target)? { Some(objects.peel(target)?.commit) } else { None };
            match commit.filter(|commit| state.commits.contains(commit)) {
                Some(commit) => here(state, objects, commit, ancestor),
                None => Ok(missing(state)),
            }
        })
        .await
    }

    /// Fetches into `copy`, after which the target is complete in it.
    async fn fetch(&self, copy: &Copy, fetch: Fetch, session: Option<Session>) -> Result<Here, GitError> {
        let mut session = match session {
            Some(session) => session,
            None => self.remote.connect().await?,
        };
        let receiver = copy.receive(self.remote.location().to_owned());
        // The sender is dropped at the end of this, which is the end of the pack for the receiver. If the receiver ended first, the
        // session does not know why.
        let fetched = match tokio::time::timeout(LONGEST_FETCH, session.fetch(&fetch, self.limit, receiver.bytes)).await {
            Ok(fetched) => fetched,
            Err(_) => Err(GitError::Unreachable {
                location: self.remote.location().to_owned(),
                reason: format!("the fetch took longer than {} s", LONGEST_FETCH.as_secs()),
            }),
        };
        let received = receiver.name.await;
        let boundaries = fetched?;
        let name = received.map_err(|error| GitError::Setup(format!("receive a pack: {error}")))??;
        let mut shallow: BTreeSet<ObjectId> = fetch.shallow.into_iter().chain(boundaries.shallow).collect();
        boundaries.unshallow.iter().for_each(|id| {
            shallow.remove(id);
        });
        let (copy, target, ancestor) = (copy.clone(), self.target.id, self.ancestor());
        blocking(move || {
            let (objects, commit) = copy.complete(name.as_deref(), target, shallow)?;
            here(copy.state()?, objects, commit, ancestor)
        })
        .await
    }
}

/// The objects that are present where `commit` is complete.
fn here(state: State, objects: Objects, commit: ObjectId, ancestor: Option<ObjectId>) -> Result<Here, GitError> {
    let lineage = match ancestor {
        None => true,
        Some(ancestor) => objects.descends(commit, ancestor)? || objects.boundary(&[commit])?.is_empty(),
    };
    Ok(Here { commits: state.commits, shallow: state.shallow, complete: Some(objects), lineage })
}
