//! One attempt to accept an artifact: check, decide, write to disk. Blocks.

use crate::history::Hold;
use crate::last_good::{LastGood, LastGoodError, Record, Stamp, State};
use crate::revisions::{diff, outcome};
use crate::{CheckContext, Prepared, Set, UndeltaStore, prepare};
use jiff::Timestamp;
use podstead_artifact::Artifact;
use podstead_artifact::layers::NoLayer;
use podstead_manifest::PatchesByObject;
use podstead_pod::SourceId;
use podstead_sys::tick::Tick;
use std::collections::BTreeMap;

/// Files of a source on disk.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    pub(super) last_good: LastGood,
    /// Earlier revisions that are kept.
    pub(super) history_limit: usize,
}

/// Result of an attempt.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Accepted and on disk; to be passed on. Its files were checked by then.
    Accepted { store: UndeltaStore, set: Box<Set>, stamp: Box<Stamp>, checked: Tick },
    /// Empty, and read from another location than the last good set, so that it may be a missing mount.
    Held,
    /// Nothing of it is for this host.
    NotForThisHost(NoLayer),
    /// Not durable, so not accepted.
    NotWritten(LastGoodError),
}

/// Treatment of an empty artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emptiness {
    /// Accepted only from the location of the last good set.
    OfTheSamePlace,
    /// Accepted, because an operator asked for it.
    Meant,
}

/// Checks the part of `artifact` for this host on top of `store`, and writes the result to disk.
pub(super) fn attempt(
    source: &SourceId,
    store: &UndeltaStore,
    in_force: Option<&Stamp>,
    artifact: &Artifact,
    emptiness: Emptiness,
    context: &CheckContext,
    shelf: &Shelf,
) -> Outcome {
    let prepared = match (prepare(artifact, store, context), emptiness) {
        (Ok(prepared), _) => prepared,
        (Err(_), Emptiness::Meant) => Prepared::without_kustomizations(Artifact { files: BTreeMap::new(), ..artifact.clone() }),
        (Err(error), Emptiness::OfTheSamePlace) => return Outcome::NotForThisHost(error),
    };
    let artifact = &prepared.artifact;
    let check = |file: &str, bytes: &[u8], patches: &PatchesByObject| prepared.check(file, bytes, context, patches);
    let mut next = store.clone().in_layers(&context.layers).apply(artifact, &check);
    next.note_creation(store, Timestamp::now());
    if emptiness == Emptiness::OfTheSamePlace && is_doubtful(store, &next, in_force, artifact) {
        return Outcome::Held;
    }
    let set = Box::new(next.set(source, &artifact.revision));
    let checked = Tick::now();
    let same = in_force.filter(|stamp| stamp.revision == artifact.revision && store.keeps_the_same_as(&next));
    let (state, refused) = outcome(&set.problems, || diff(&store.kept(), &next.kept()).is_empty());
    let kept = match same {
        Some(stamp) if stamp.place == artifact.place && stamp.policy.as_ref().is_some_and(|policy| context.has_policy(policy)) => {
            Ok(stamp.clone())
        }
        // Read from elsewhere or judged by another configuration, and the same: no other revision.
        Some(stamp) => {
            let stamp = Stamp { place: artifact.place.clone(), policy: Some(context.policy()), ..stamp.clone() };
            let record = Record { stamp: stamp.clone(), files: next.kept() };
            shelf.last_good.save(&State { hold: None, in_force: Some(record) }).map(|()| stamp)
        }
        None => put_in_force(shelf, in_force, None, |number| Record {
            stamp: Stamp {
                state,
                refused,
                commit: artifact.commit.clone(),
                number,
                revision: artifact.revision.clone(),
                place: artifact.place.clone(),
                accepted_at: Timestamp::now(),
                restored_from: None,
                newest: None,
                policy: Some(context.policy()),
            },
            files: next.kept(),
        }),
    };
    match kept {
        Ok(stamp) => Outcome::Accepted { store: next, set, stamp: Box::new(stamp), checked },
        Err(error) => Outcome::NotWritten(error),
    }
}

/// Makes the record that `make` gives for the next number durable, on top of what was in force. Returns its stamp.
pub(super) fn put_in_force(
    shelf: &Shelf,
    in_force: Option<&Stamp>,
    hold: Option<Hold>,
    make: impl FnOnce(u64) -> Record,
) -> Result<Stamp, LastGoodError> {
    let superseded = in_force.map(|stamp| stamp.number);
    let record = make(shelf.last_good.next_number(superseded)?);
    let stamp = record.stamp.clone();
    shelf.last_good.advance(superseded, &State { hold, in_force: Some(record) }, shelf.history_limit)?;
    Ok(stamp)
}

/// Reports whether all objects in force would go because another directory is at the path: a mount point without its mount,
/// a newly created directory (promise P2). Files that cannot be used are no statement either, and must not make the other place the one
/// whose emptiness is believed.
fn is_doubtful(store: &UndeltaStore, next: &UndeltaStore, in_force: Option<&Stamp>, artifact: &Artifact) -> bool {
    let elsewhere = artifact.place.is_some() && in_force.is_some_and(|stamp| stamp.place != artifact.place);
    elsewhere && next.reads_nothing() && !store.is_empty()
}
