//! One attempt to accept an artifact: judge, decide, make durable. Blocks.

use crate::pod::SourceId;
use crate::source::{Artifact, Place, Revision};
use crate::store::last_good::{LastGood, LastGoodError, Record};
use crate::store::{CheckContext, Set, UndeltaStore, check};
use jiff::Timestamp;

/// What is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InForce {
    pub(super) revision: Revision,
    pub(super) place: Option<Place>,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Durable, to be handed on.
    Accepted { store: UndeltaStore, set: Set },
    /// Nothing usable is there, and it is not where the last good set was read from: nobody can tell whether it was emptied.
    Held,
    /// Not durable, so not accepted.
    NotWritten(LastGoodError),
}

/// Whether an emptiness is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emptiness {
    /// Only of the place that the last good set was read from.
    OfTheSamePlace,
    /// Somebody said that it is meant.
    Meant,
}

/// Judges `artifact` on top of `store` and makes the result durable.
pub(super) fn attempt(
    source: &SourceId,
    store: &UndeltaStore,
    in_force: Option<&InForce>,
    artifact: &Artifact,
    emptiness: Emptiness,
    context: &CheckContext,
    last_good: &LastGood,
) -> Outcome {
    let next = store.apply(artifact, &|file, bytes| check(file, bytes, context));
    if emptiness == Emptiness::OfTheSamePlace && is_doubtful(store, &next, in_force, artifact) {
        return Outcome::Held;
    }
    let set = next.set(source, &artifact.revision);
    let now_in_force = InForce { revision: artifact.revision.clone(), place: artifact.place.clone() };
    if in_force != Some(&now_in_force) || !store.keeps_the_same_as(&next) {
        let InForce { revision, place } = now_in_force;
        let record = Record { revision, place, accepted_at: Timestamp::now(), files: next.kept() };
        if let Err(error) = last_good.save(&record) {
            return Outcome::NotWritten(error);
        }
    }
    Outcome::Accepted { store: next, set }
}

/// Whether everything that is in force would go because something else stands where it was read from: a mount point without its mount,
/// a directory made anew (promise P2). Files that cannot be used are no statement either, and must not make the other place the one
/// whose emptiness is believed.
fn is_doubtful(store: &UndeltaStore, next: &UndeltaStore, in_force: Option<&InForce>, artifact: &Artifact) -> bool {
    let elsewhere = artifact.place.is_some() && in_force.is_some_and(|in_force| in_force.place != artifact.place);
    elsewhere && next.reads_nothing() && !store.is_empty()
}
