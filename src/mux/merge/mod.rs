//! The merge: the wanted pods of every source, compared with those that were sent to the sync loop. **Pure**: time and new UIDs are
//! arguments.
//!
//! Level-triggered: each SET leads to one comparison of the whole wanted state with the whole sent state, so that no order of SETs can
//! leave anything behind. Unchanged pods are the same `Arc` in both and cost one comparison of pointers.

mod conflict;
mod objects;
mod stamp;
mod target;

#[cfg(test)]
mod apart_test;
#[cfg(test)]
mod properties;
#[cfg(test)]
pub(crate) mod tests;

pub use conflict::{Claimant, Conflict, ConflictKind};
pub use objects::ObjectConflict;

use super::{PodOp, PodUpdate};
use jiff::Timestamp;
use podstead_pod::identity::seen;
use podstead_pod::objects::{ObjectName, Objects};
use podstead_pod::sharing::Sharing;
use podstead_pod::{DesiredPod, PodFullName, PodUid, SourceId};
use podstead_store::Set;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use target::{Claim, Claims, Target, outranks};

/// Makes UIDs; [`PodUid::random`] in the product.
pub type NewUid<'a> = &'a mut dyn FnMut() -> PodUid;

/// Result of one SET.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// Operations in the order in which they shall be acted on.
    pub updates: Vec<PodUpdate>,
    /// All manifests that are not used at present because another one has their name or UID.
    pub conflicts: Vec<Conflict>,
    /// ConfigMaps and Secrets as they are now, if anything about them changed.
    pub objects: Option<Arc<Objects>>,
    /// All objects that are not used at present because an earlier source has one of their name.
    pub object_conflicts: Vec<ObjectConflict>,
}

/// Last SET of a source.
#[derive(Debug)]
struct Delivery {
    claims: Claims,
    objects: objects::Own,
    refused: objects::Refused,
}

/// A pod that the sync loop knows.
#[derive(Clone, Debug)]
struct Told {
    desired: Arc<DesiredPod>,
    /// The claim that it was made from.
    claim: Claim,
}

/// The state of the mux.
#[derive(Debug)]
pub struct Merge {
    /// All configured sources, and which of them goes before which other.
    sharing: Arc<Sharing>,
    /// Restricted sources that are not configured any more.
    formerly_restricted: BTreeSet<SourceId>,
    /// The last SET of each source that delivered.
    delivered: BTreeMap<SourceId, Arc<Delivery>>,
    /// ConfigMaps and Secrets as they were sent.
    objects: Arc<Objects>,
    told: BTreeMap<PodFullName, Told>,
    /// Pods found in records at start that no SET has claimed so far.
    adoptable: BTreeMap<PodFullName, Arc<DesiredPod>>,
    /// Other incarnations found at start under a name that has a newer one, to be removed once all sources are ready.
    superseded: Vec<Arc<DesiredPod>>,
    /// Pods to be created again: when the set that wants them is delivered, or once all sources are ready.
    recreate: BTreeSet<PodUid>,
}

impl Merge {
    /// `known` are the pods of the records on disk that are not being terminated: when a source
    /// claims one it keeps its UID, and when all sources are ready those that none claims are removed.
    pub fn new(sources: impl Into<Sharing>, known: Vec<DesiredPod>) -> Self {
        let mut adoptable: BTreeMap<PodFullName, Arc<DesiredPod>> = BTreeMap::new();
        let mut superseded = Vec::new();
        let mut known: Vec<_> = known.into_iter().map(Arc::new).collect();
        known.sort_by_cached_key(|desired| (seen(&desired.pod), desired.uid.clone()));
        for desired in known {
            superseded.extend(adoptable.insert(desired.full_name.clone(), desired));
        }
        Self {
            sharing: Arc::new(sources.into()),
            formerly_restricted: BTreeSet::new(),
            delivered: BTreeMap::new(),
            objects: Arc::default(),
            told: BTreeMap::new(),
            adoptable,
            superseded,
            recreate: BTreeSet::new(),
        }
    }

    /// Reports whether every configured source has delivered a SET (kubelet rule B5), so that removals may be emitted.
    pub fn sources_ready(&self) -> bool {
        self.sharing.order().all(|source| self.delivered.contains_key(source))
    }

    /// The pods that the sync loop knows.
    pub fn desired(&self) -> impl Iterator<Item = &Arc<DesiredPod>> {
        self.told.values().map(|told| &told.desired)
    }

    /// Replaces what `set.source` wants. A SET of a source that is not configured changes nothing.
    pub fn apply(&mut self, set: Set, now: Timestamp, new_uid: NewUid<'_>) -> Applied {
        let source = set.source.clone();
        if !self.sharing.order().any(|known| *known == source) {
            return Applied::default();
        }
        let objects = objects::objects_of(&set);
        let refused = objects::refused_of(&set, &objects);
        let delivery = Delivery { objects, refused, claims: target::claims_of(set) };
        let first = self.delivered.insert(source.clone(), Arc::new(delivery)).is_none();
        let mut turn = self.compare(now, new_uid);
        if first {
            turn.announce(source.clone());
        }
        turn.delivered = Some(source);
        turn.into_applied()
    }

    /// ConfigMaps and Secrets as they are now.
    pub fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    /// Joins the objects of all sources again.
    fn compare_objects(&mut self, turn: &mut Turn) {
        let of = |source: &SourceId| self.delivered.get(source).map(|delivery| &delivery.objects);
        let (mut objects, conflicts) = objects::union(&self.sharing, of);
        for (source, delivery) in self.sharing.order().filter_map(|source| Some((source, self.delivered.get(source)?))) {
            delivery.refused.iter().for_each(|(name, fault)| objects.refuse(source, name.clone(), Arc::clone(fault)));
        }
        turn.object_conflicts = conflicts;
        turn.changed = objects.changes(&self.objects);
        if objects != *self.objects {
            self.objects = Arc::new(objects);
            turn.objects = Some(Arc::clone(&self.objects));
        }
    }

    /// Replaces the configured sources. What a source that is not among them wanted is not wanted any more; it is
    /// removed when all sources are ready, the new ones included. A removed source that never sent a SET counts as ready: its ADD is empty.
    pub fn configure(&mut self, sources: impl Into<Sharing>, now: Timestamp, new_uid: NewUid<'_>) -> Applied {
        let sharing: Sharing = sources.into();
        let stays = |source: &SourceId| sharing.order().any(|known| known == source);
        let (gone, unheard): (Vec<_>, Vec<_>) =
            (self.sharing.order().filter(|source| !stays(source)).cloned()).partition(|source| self.delivered.contains_key(source));
        let restricted = gone.iter().chain(&unheard).filter(|source| self.sharing.is_restricted(source)).cloned();
        self.formerly_restricted.extend(restricted.collect::<Vec<_>>());
        self.formerly_restricted.retain(|source| !stays(source));
        self.delivered.retain(|source, _| stays(source));
        self.sharing = Arc::new(sharing);
        let mut turn = self.compare(now, new_uid);
        // Somebody has to tell of objects that changed; without any source no pod is left to hear of it.
        turn.delivered = self.sharing.order().next().cloned();
        let mut applied = turn.into_applied();
        applied.updates.extend(unheard.into_iter().map(|source| PodUpdate {
            source,
            op: PodOp::Add,
            pods: Vec::new(),
            objects: Vec::new(),
        }));
        applied
    }

    /// Makes another incarnation of a finished pod: REMOVE, then ADD with a new UID (with the same one where the manifest fixes it).
    /// A UID that is not, or no longer, that of a wanted pod changes nothing. Before its own source has delivered the request is kept.
    pub fn recreate(&mut self, uid: &PodUid, now: Timestamp, new_uid: NewUid<'_>) -> Applied {
        let wanted = self.told.values().map(|told| &told.desired).chain(self.adoptable.values());
        if wanted.into_iter().any(|desired| desired.uid == *uid) {
            self.recreate.insert(uid.clone());
        }
        self.compare(now, new_uid).into_applied()
    }

    /// Compares the wanted with the sent state, and makes them equal as far as that is allowed now.
    fn compare(&mut self, now: Timestamp, new_uid: NewUid<'_>) -> Turn {
        let ready = self.sources_ready();
        let deliveries: Vec<Arc<Delivery>> =
            self.sharing.order().filter_map(|source| self.delivered.get(source)).cloned().collect();
        let sources: BTreeMap<PodFullName, SourceId> = self.incumbents();
        let incumbent = |name: &PodFullName| sources.get(name);
        let mut target = target::union(deliveries.iter().map(|delivery| &delivery.claims), &self.sharing, &incumbent);
        self.refuse_held_uids(&mut target, ready);

        let mut turn = Turn { conflicts: std::mem::take(&mut target.conflicts), ..Turn::default() };
        for (full_name, claim) in &target.claims {
            self.grant(full_name, claim, ready, now, new_uid, &mut turn);
        }
        for (full_name, claim) in &target.refused {
            self.keep_known(full_name, &claim.source, &mut turn);
        }
        if ready {
            turn.remove.append(&mut self.superseded);
            let wanted = |name: &PodFullName| target.claims.contains_key(name) || target.refused.contains_key(name);
            turn.remove.extend(self.told.extract_if(.., |name, _| !wanted(name)).map(|(_, told)| told.desired));
            turn.remove.extend(self.adoptable.extract_if(.., |name, _| !wanted(name)).map(|(_, desired)| desired));
            self.recreate.clear();
        }
        self.compare_objects(&mut turn);
        turn
    }

    /// Moves claims with a fixed UID that a pod of another name has, and keeps, from the granted to the refused.
    /// A refused pod keeps the UID that it has, so each round may refuse more.
    fn refuse_held_uids(&self, target: &mut Target<'_>, ready: bool) {
        loop {
            let keeps = |desired: &DesiredPod| match target.claims.get(&desired.full_name) {
                Some(claim) => claim.fixed_uid().is_none_or(|fixed| fixed == desired.uid),
                None => target.refused.contains_key(&desired.full_name),
            };
            let held: BTreeMap<&PodUid, &Arc<DesiredPod>> = (self.told.values().map(|told| &told.desired))
                .chain(self.adoptable.values())
                .filter(|desired| !ready || keeps(desired))
                .map(|desired| (&desired.uid, desired))
                .collect();
            let holder_of = |full_name: &PodFullName, claim: &Claim| {
                let holder = held.get(&claim.fixed_uid()?).copied()?;
                (holder.full_name != *full_name).then_some(holder)
            };
            let refused: Vec<_> = (target.claims.iter())
                .filter_map(|(full_name, claim)| Some((*full_name, *claim, holder_of(full_name, claim)?)))
                .collect();
            if refused.is_empty() {
                return;
            }
            for (full_name, claim, holder) in refused {
                // A restricted source does not hold a UID against an unrestricted one.
                if ready && outranks(&self.sharing, &claim.source, &holder.source) {
                    target.claims.remove(&holder.full_name);
                    target.refused.remove(&holder.full_name);
                    target.conflicts.push(Conflict {
                        full_name: holder.full_name.clone(),
                        kind: ConflictKind::SameUid(holder.uid.clone()),
                        winner: claim.claimant(),
                        loser: Claimant { source: holder.source.clone(), origin: holder.origin.clone() },
                    });
                    continue;
                }
                target.claims.remove(full_name);
                target.refused.insert(full_name, claim);
                target.conflicts.push(Conflict {
                    full_name: full_name.clone(),
                    kind: ConflictKind::SameUid(holder.uid.clone()),
                    winner: Claimant { source: holder.source.clone(), origin: holder.origin.clone() },
                    loser: claim.claimant(),
                });
            }
        }
    }

    /// Updates the sent state with one wanted pod.
    fn grant(&mut self, full_name: &PodFullName, claim: &Claim, ready: bool, now: Timestamp, new_uid: NewUid<'_>, turn: &mut Turn) {
        let fixed = claim.fixed_uid();
        let is_replaced = self.told.get(full_name).is_some_and(|told| self.is_replaced(&told.desired.source, &claim.source));
        if let Some(told) = self.told.get_mut(full_name) {
            let uid = &told.desired.uid;
            let is_another = is_replaced || fixed.as_ref().is_some_and(|fixed| fixed != uid);
            let is_asked = self.recreate.contains(uid);
            if is_another || is_asked {
                // The set that wants the pod was delivered, and still wants it: a restart waits for no other source.
                if ready || !is_another {
                    self.recreate.remove(uid);
                    let next = stamp::desired(full_name, fixed.unwrap_or_else(new_uid), claim, now);
                    turn.remove.push(std::mem::replace(&mut told.desired, next.clone()));
                    told.claim = claim.clone();
                    turn.add.push(next);
                }
            } else if claim_differs(&told.claim, claim) {
                told.desired = stamp::successor(&told.desired, claim, now);
                told.claim = claim.clone();
                turn.update.push(told.desired.clone());
            }
            return;
        }
        let desired = match self.adoptable.get(full_name) {
            None => stamp::desired(full_name, fixed.unwrap_or_else(new_uid), claim, now),
            Some(known) if self.is_reserved(known, &claim.source) => return,
            Some(known)
                if fixed.as_ref().is_some_and(|fixed| *fixed != known.uid)
                    || self.is_replaced(&known.source, &claim.source)
                    || self.recreate.contains(&known.uid) =>
            {
                if !ready {
                    return;
                }
                turn.remove.extend(self.adoptable.remove(full_name));
                stamp::desired(full_name, fixed.unwrap_or_else(new_uid), claim, now)
            }
            Some(known) => {
                let desired = stamp::successor(known, claim, now);
                self.adoptable.remove(full_name);
                desired
            }
        };
        turn.add.push(desired.clone());
        self.told.insert(full_name.clone(), Told { desired, claim: claim.clone() });
    }

    /// A pod found at start whose manifest is refused now continues with its recorded manifest.
    fn keep_known(&mut self, full_name: &PodFullName, claimant: &SourceId, turn: &mut Turn) {
        if self.adoptable.get(full_name).is_none_or(|known| self.is_reserved(known, claimant)) {
            return;
        }
        if let Some(desired) = self.adoptable.remove(full_name) {
            turn.add.push(desired.clone());
            self.told.insert(full_name.clone(), Told { claim: Claim::of_record(&desired), desired });
        }
    }

    /// A pod found at start whose own source goes before `claimant` and has not delivered yet is left for that source: else it would
    /// change to the claimant's version and back, with two restarts, whenever the sources report in another order.
    fn is_reserved(&self, known: &DesiredPod, claimant: &SourceId) -> bool {
        self.sharing.rank(&known.source) < self.sharing.rank(claimant) && !self.delivered.contains_key(&known.source)
    }

    /// Reports whether the pod must be replaced by a new incarnation for `claimant`, because its volumes belong to another source.
    /// A source that is not configured any more may have been renamed, and what it left is its successor's.
    fn is_replaced(&self, known: &SourceId, claimant: &SourceId) -> bool {
        let was_unrestricted = !self.formerly_restricted.contains(known) && self.sharing.rank(known) == usize::MAX;
        match was_unrestricted {
            true => self.sharing.is_restricted(claimant),
            false => self.sharing.are_apart(known, claimant),
        }
    }

    /// The sources of the pods that are there; nothing where no source is restricted, for then they do not matter.
    fn incumbents(&self) -> BTreeMap<PodFullName, SourceId> {
        let told = self.told.values().map(|told| &told.desired).chain(self.adoptable.values());
        let sources = told.map(|desired| (desired.full_name.clone(), desired.source.clone()));
        if self.sharing.restricts_any() { sources.collect() } else { BTreeMap::new() }
    }
}

/// Reports whether the sync loop needs an update. The position inside the file is left out: an edit further up would else touch every pod
/// below it.
fn claim_differs(old: &Claim, new: &Claim) -> bool {
    let Claim { source, revision: _, origin, pod } = old;
    *source != new.source || origin.file != new.origin.file || !(Arc::ptr_eq(pod, &new.pod) || *pod == new.pod)
}

/// Operations of one comparison, by kind.
#[derive(Debug, Default)]
struct Turn {
    remove: Vec<Arc<DesiredPod>>,
    add: Vec<Arc<DesiredPod>>,
    update: Vec<Arc<DesiredPod>>,
    conflicts: Vec<Conflict>,
    announced: Option<SourceId>,
    /// The source whose SET led to it.
    delivered: Option<SourceId>,
    objects: Option<Arc<Objects>>,
    object_conflicts: Vec<ObjectConflict>,
    /// Objects that differ from the sent ones.
    changed: Vec<ObjectName>,
}

impl Turn {
    /// Sends the first SET of `source` even if it adds nothing.
    fn announce(&mut self, source: SourceId) {
        self.announced = Some(source);
    }

    fn into_applied(self) -> Applied {
        let mut updates = by_source(PodOp::Remove, self.remove);
        let mut adds = by_source(PodOp::Add, self.add);
        if let Some(source) = self.announced {
            // Last of all ADDs: it may be the one that makes all sources ready, and then every other pod must be known.
            let own = adds.extract_if(.., |update| update.source == source).next();
            adds.push(own.unwrap_or(PodUpdate { source, op: PodOp::Add, pods: Vec::new(), objects: Vec::new() }));
        }
        updates.append(&mut adds);
        updates.extend(by_source(PodOp::Update, self.update));
        // Pods that refer to a changed object look again when all edits of the same SET are known: else a commit that changes both would
        // restart their containers twice.
        match (updates.last_mut(), self.delivered) {
            (Some(last), _) => last.objects = self.changed,
            (None, Some(source)) if !self.changed.is_empty() => {
                updates.push(PodUpdate { source, op: PodOp::Update, pods: Vec::new(), objects: self.changed });
            }
            (None, _) => {}
        }
        Applied { updates, conflicts: self.conflicts, objects: self.objects, object_conflicts: self.object_conflicts }
    }
}

/// One operation per source, its pods in manifest order.
fn by_source(op: PodOp, pods: Vec<Arc<DesiredPod>>) -> Vec<PodUpdate> {
    let mut grouped: BTreeMap<SourceId, Vec<Arc<DesiredPod>>> = BTreeMap::new();
    for pod in pods {
        grouped.entry(pod.source.clone()).or_default().push(pod);
    }
    let ordered = grouped.into_iter().map(|(source, mut pods)| {
        pods.sort_by(|a, b| (&a.origin.file, a.origin.position, &a.uid).cmp(&(&b.origin.file, b.origin.position, &b.uid)));
        PodUpdate { source, op, pods, objects: Vec::new() }
    });
    ordered.collect()
}
