//! Patches among the files of one source: their objects, and objects that they keep from changing.

use super::share::Share;
use super::{Judge, UndeltaStore};
use crate::check::Accepted;
use podstead_artifact::{Artifact, FileContent};
use podstead_manifest::{ObjectKey, Patch, PatchesByObject, Problem};
use podstead_pod::{Origin, Position, Severity};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A patch and the layer that it belongs to.
#[derive(Clone, Debug)]
struct InForce {
    layer: usize,
    patch: Arc<Patch>,
}

/// Two patches of one name in one layer.
#[derive(Debug)]
struct Twice {
    winner: Arc<Patch>,
    loser: Arc<Patch>,
}

impl UndeltaStore {
    /// Checks those files again whose objects have other patches than at their last check.
    pub(super) fn patch(&mut self, before: &UndeltaStore, artifact: &Artifact, judge: Judge<'_>) {
        let (patches, _) = self.patches();
        let layers = self.layers_of_objects();
        for (name, content) in &artifact.files {
            let Some(share) = self.files.get_mut(name) else { continue };
            let wanted = patches_for(share, &patches, &layers);
            *share = Share::next_patched(share, before.files.get(name), name, content, &wanted, judge);
        }
    }

    /// The patches that count, in the order of their application, and those that do not because an earlier file of their layer has one of
    /// the same name. One of a later layer takes the place of the same of an earlier one.
    fn patches(&self) -> (Vec<InForce>, Vec<Twice>) {
        let (mut by_name, mut losers) = (BTreeMap::<&ObjectKey, InForce>::new(), Vec::new());
        for (layer, _, share) in self.ranked() {
            for patch in &share.given_patches {
                match by_name.get(patch.key()) {
                    Some(winner) if winner.layer == layer => {
                        losers.push(Twice { winner: Arc::clone(&winner.patch), loser: Arc::clone(patch) })
                    }
                    Some(_) => {}
                    None => {
                        by_name.insert(patch.key(), InForce { layer, patch: Arc::clone(patch) });
                    }
                }
            }
        }
        let mut patches: Vec<InForce> = by_name.into_values().collect();
        let order = |InForce { layer, patch }: &InForce| (*layer, patch.origin().file.clone(), patch.origin().position);
        patches.sort_by_cached_key(order);
        (patches, losers)
    }

    /// The layers that have an object, by its key.
    fn layers_of_objects(&self) -> BTreeMap<ObjectKey, BTreeSet<usize>> {
        let mut layers: BTreeMap<ObjectKey, BTreeSet<usize>> = BTreeMap::new();
        // Without patches nobody asks.
        if self.files.values().any(|share| !share.given_patches.is_empty() || !share.broken_patches.is_empty()) {
            for share in self.files.values() {
                for key in share.names() {
                    layers.entry(key.clone()).or_default().insert(share.layer());
                }
            }
        }
        layers
    }

    /// Keeps the last good version of what patches changed or should change that are not known as they should be.
    pub(super) fn hold_patched(&mut self, before: &UndeltaStore) {
        self.note_changes(before);
        let held = self.held();
        if held.is_empty() {
            return;
        }
        let last_good: BTreeMap<&ObjectKey, Accepted> =
            before.claims().into_iter().map(|(key, (winner, _))| (key, winner.clone())).collect();
        for key in held {
            let last_good = last_good.get(&key);
            let holder = self.ranked().find(|(_, _, share)| share.names().contains(&key)).map(|(_, name, _)| name.clone());
            // In no file: what is gone needs no patch.
            let Some(holder) = holder else { continue };
            for (name, share) in &mut self.files {
                let is_holder = *name == holder;
                if is_holder || (last_good.is_none() && share.objects().iter().any(|object| *object.key == key)) {
                    Arc::make_mut(share).hold(&key, last_good.filter(|_| is_holder).cloned());
                }
            }
        }
    }

    /// Notes with each file which objects its patches change. A file that cannot be read changes what it changed before.
    fn note_changes(&mut self, before: &UndeltaStore) {
        let mut changes: BTreeMap<String, BTreeSet<ObjectKey>> = BTreeMap::new();
        for touch in self.files.values().flat_map(|share| &share.touched) {
            changes.entry(touch.patch.file.to_string()).or_default().insert(touch.object.clone());
        }
        for (name, share) in &mut self.files {
            let mut now = changes.remove(name).unwrap_or_default();
            let is_for = |key: &&ObjectKey| share.is_unclear() || share.broken_patches.iter().any(|target| target.selects(key));
            now.extend(share.changes.iter().filter(is_for).cloned());
            if now != share.changes {
                Arc::make_mut(share).changes = now;
            }
        }
        // A patch that is gone may have moved into a file that became unreadable.
        let all = |store: &UndeltaStore| store.files.values().flat_map(|share| share.changes.clone()).collect::<BTreeSet<_>>();
        let lost: BTreeSet<ObjectKey> = all(before).difference(&all(self)).cloned().collect();
        let was_unclear = |name: &String| before.files.get(name).is_some_and(|share| share.is_unclear());
        let adopter = self.files.iter_mut().find(|(name, share)| share.is_unclear() && !was_unclear(name));
        if let Some((_, share)) = adopter.filter(|_| !lost.is_empty()) {
            Arc::make_mut(share).changes.extend(lost);
        }
    }

    /// The objects that a patch keeps from being what their own documents say.
    fn held(&self) -> BTreeSet<ObjectKey> {
        let layers = self.layers_of_objects();
        let mut held = BTreeSet::new();
        for share in self.files.values() {
            if share.is_unclear() {
                held.extend(share.changes.iter().cloned());
            }
            for target in &share.broken_patches {
                // A layer that has the object anew does not want it.
                let is_for = |(key, layers): &(&ObjectKey, &BTreeSet<usize>)| {
                    target.selects(key) && layers.last().is_some_and(|layer| *layer <= share.layer())
                };
                held.extend(layers.iter().filter(is_for).map(|(key, _)| key.clone()));
            }
        }
        for (layer, _, share) in self.ranked() {
            let is_uppermost = |key: &ObjectKey| layers.get(key).and_then(BTreeSet::last).is_none_or(|last| *last == layer);
            let is_refused = |key: &ObjectKey| share.names_broken(key) && is_uppermost(key);
            held.extend(share.touched.iter().map(|touch| &touch.object).filter(|key| is_refused(key)).cloned());
        }
        held
    }

    /// Reports on patches that change nothing.
    pub(super) fn idle_patches(&self) -> Vec<Problem> {
        let (patches, losers) = self.patches();
        let mut problems: Vec<Problem> = losers.iter().map(Twice::problem).collect();
        // What cannot be read may hold what they are for.
        if patches.is_empty() || self.files.values().any(|share| share.is_unclear()) {
            return problems;
        }
        let touched: BTreeSet<_> = self.files.values().flat_map(|share| &share.touched).map(|touch| place(&touch.patch)).collect();
        let idle = patches.iter().filter(|InForce { patch, .. }| !touched.contains(&place(patch.origin())));
        problems.extend(idle.map(|InForce { patch, .. }| without_target(patch)));
        problems
    }
}

impl Share {
    /// `share` if it was checked with these patches, else a new share with them.
    fn next_patched(
        share: &Arc<Share>,
        before: Option<&Arc<Share>>,
        name: &str,
        content: &FileContent,
        patches: &PatchesByObject,
        judge: Judge<'_>,
    ) -> Arc<Share> {
        if share.was_judged_with(patches) {
            return Arc::clone(share);
        }
        Share::next(before, name, share.layer(), content, Some(patches), judge)
    }
}

/// The patches that may be for objects of a file.
fn patches_for(share: &Share, patches: &[InForce], layers: &BTreeMap<ObjectKey, BTreeSet<usize>>) -> PatchesByObject {
    if patches.is_empty() {
        return PatchesByObject::new();
    }
    let of_object = |key: &ObjectKey| {
        // A later layer that has the object anew has patches of its own for it.
        let anew = layers.get(key).and_then(|layers| layers.range(share.layer() + 1..).next());
        let counts = |layer: usize| layer >= share.layer() && anew.is_none_or(|anew| layer < *anew);
        let is_for = |in_force: &&InForce| counts(in_force.layer) && in_force.patch.target().selects(key);
        patches.iter().filter(is_for).map(|in_force| Arc::clone(&in_force.patch)).collect::<Vec<_>>()
    };
    let named = share.names().into_iter().map(|key| (key.clone(), of_object(key)));
    named.filter(|(_, patches)| !patches.is_empty()).collect()
}

fn place(origin: &Origin) -> (&str, Position) {
    (&origin.file, origin.position)
}

fn problem(patch: &Patch, severity: Severity, code: &str, field: &str, message: String, hint: &str) -> Problem {
    Problem {
        severity,
        code: code.to_owned(),
        file: patch.origin().file.to_string(),
        position: Some(patch.origin().position),
        field: field.to_owned(),
        message,
        hint: Some(hint.to_owned()),
        object: Some(patch.key().clone()),
    }
}

impl Twice {
    fn problem(&self) -> Problem {
        let Self { winner, loser } = self;
        let message = format!("Patch {} is already defined at {}", loser.key().name, winner.origin());
        let hint = "the first file in lexical order is used; rename or remove one of them";
        problem(loser, Severity::Error, "duplicate-object", "metadata.name", message, hint)
    }
}

/// A patch that names one object misses it; one for any that fit may find none on this host.
fn without_target(patch: &Patch) -> Problem {
    let severity = if patch.target().is_definite() { Severity::Error } else { Severity::Warning };
    let message = format!("no {} in the patch's layer or an earlier one", patch.target());
    let hint = "use the object's name as written in its manifest, without the node's name";
    problem(patch, severity, PATCH_WITHOUT_TARGET, "target", message, hint)
}

/// The class of patches that change nothing.
pub const PATCH_WITHOUT_TARGET: &str = "patch-without-target";
