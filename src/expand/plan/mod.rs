//! The workloads of all sources and what they want now. **Pure**: time, observations and new UIDs are arguments.
//!
//! Level-triggered: a SET, an observation, the time and images that came mark workloads; [`Expander::plan`] evaluates those that are marked and
//! says what is to be written, sent and shown. An evaluation of one workload costs nothing of the others.

mod canonical;
mod claims;
mod controller_revisions;
#[cfg(test)]
mod edit_tests;
mod evaluate;
mod interface;
#[cfg(test)]
mod lost_memory;
mod names;
#[cfg(test)]
mod properties;
mod show;
#[cfg(test)]
mod tests;
mod unit;

use crate::memory::{KindMemory, LostRestart, LostRestarts, Memories, Memory};
use crate::memory_file::Change;
use crate::observations::{LostContainer, Seen, Sight, WORKLOAD_ANNOTATION};
use crate::shown::ShownWorkload;
use evaluate::{Decision, Situation, evaluate};
pub use interface::{Conflict, EventOf, Expansion, KnownPod, Now, Warm};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use names::{Names, ordinal_names};
use podstead_manifest::ObjectKey;
use podstead_pod::objects::admit_claim;
use podstead_pod::sharing::Sharing;
use podstead_pod::{AdmitContext, DEFAULT_NAMESPACE, PodUid, Severity, SourceId, admit_owned};
use podstead_store::{Set, SetPod};
use podstead_workload::context::{Context, Pods};
use podstead_workload::cron::ObservedRun;
use podstead_workload::event::WorkloadEvent;
use podstead_workload::host_fit::Host;
use podstead_workload::job::verdict::Verdict;
use podstead_workload::moment::Moment;
use podstead_workload::object::{Workload, WorkloadKind};
use podstead_workload::observed::{ObservedPod, Phase};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use unit::{Live, Unit, UnitPod, Wanted};

/// Rounds of one plan: a CronJob makes a Job, whose end is told to the CronJob. More would be a circle.
const ROUNDS: usize = 16;

/// A pod that exists.
#[derive(Debug)]
struct Existing {
    owner: ObjectKey,
    pod: ObservedPod,
    lost: Vec<LostContainer>,
    /// A worker of this daemon published it.
    is_observed: bool,
}

/// The state.
///
/// One type because a decision on one workload depends on all others: names and pods must not be given twice.
#[derive(Debug)]
pub struct Expander {
    sharing: Sharing,
    host: Host,
    admit: AdmitContext,
    /// The last SET of each source, without the pods of workloads.
    sets: BTreeMap<SourceId, Set>,
    units: BTreeMap<ObjectKey, Unit>,
    /// Memory that no source has claimed so far.
    unclaimed: BTreeMap<ObjectKey, Memory>,
    /// Workloads whose memory was lost.
    lost: BTreeSet<ObjectKey>,
    existing: BTreeMap<PodUid, Existing>,
    /// Pods by workload.
    by_owner: BTreeMap<ObjectKey, BTreeSet<PodUid>>,
    names: Names,
    /// Objects of workloads that were withdrawn, until the next plan.
    hidden: Vec<ObjectKey>,
    /// To be evaluated.
    marked: BTreeSet<ObjectKey>,
    /// Sources whose SET is to be sent.
    unsent: BTreeSet<SourceId>,
    were_ready: bool,
}

impl Expander {
    /// `known` are the pods of workloads of which records exist.
    pub fn new(sharing: Sharing, host: Host, admit: AdmitContext, memories: Memories, known: Vec<KnownPod>) -> Self {
        let mut expander = Self {
            sharing,
            host,
            admit,
            sets: BTreeMap::new(),
            units: BTreeMap::new(),
            lost: memories.lost,
            unclaimed: memories.read,
            existing: BTreeMap::new(),
            by_owner: BTreeMap::new(),
            names: Names::default(),
            hidden: Vec::new(),
            marked: BTreeSet::new(),
            unsent: BTreeSet::new(),
            were_ready: false,
        };
        for KnownPod { uid, owner, name, is_terminating } in known {
            let pod = ObservedPod {
                name,
                phase: Phase::Pending,
                ready_since: None,
                is_terminating,
                restarts: 0,
                ends: Vec::new(),
                ended_at: None,
                conditions: Vec::new(),
                deletion_cost: 0,
            };
            // Without the memory of what it did, a Job that has pods is not run again (W97).
            if !expander.unclaimed.contains_key(&owner) {
                expander.lost.insert(owner.clone());
            }
            expander.insert(uid, Existing { owner, pod, lost: Vec::new(), is_observed: false });
        }
        expander
    }

    /// Replaces what a source wants. A SET of a source that is not configured changes nothing.
    pub fn apply(&mut self, set: Set) {
        let source = set.source.clone();
        if !self.sharing.order().any(|known| *known == source) {
            return;
        }
        let before = self.sets.insert(source.clone(), set);
        let keys_before = before.into_iter().flat_map(|set| set.workloads.into_keys());
        let keys: BTreeSet<ObjectKey> = keys_before.chain(self.sets[&source].workloads.keys().cloned()).collect();
        self.unsent.insert(source);
        for key in keys {
            self.choose(&key);
        }
        self.became_ready();
    }

    /// Replaces the configured sources.
    pub fn configure(&mut self, sharing: Sharing) {
        self.sharing = sharing;
        let configured: BTreeSet<SourceId> = self.sharing.order().cloned().collect();
        self.sets.retain(|source, _| configured.contains(source));
        let mut keys: BTreeSet<ObjectKey> = self.units.keys().cloned().collect();
        keys.extend(self.sets.values().flat_map(|set| set.workloads.keys().cloned()));
        for key in keys {
            self.choose(&key);
        }
        self.became_ready();
    }

    /// Replaces the labels of the host.
    pub fn set_host(&mut self, host: Host) {
        if self.host != host {
            self.host = host;
            self.marked.extend(self.units.keys().cloned());
        }
    }

    /// Records what was observed of a pod.
    pub fn observe(&mut self, uid: PodUid, sight: Sight) {
        match sight {
            Sight::Seen(seen) => {
                let Seen { owner, pod, lost } = *seen;
                self.marked.insert(owner.clone());
                self.insert(uid, Existing { owner, pod, lost, is_observed: true });
            }
            Sight::Gone => {
                if let Some(gone) = self.existing.remove(&uid) {
                    if let Some(pods) = self.by_owner.get_mut(&gone.owner) {
                        pods.remove(&uid);
                    }
                    self.marked.insert(gone.owner);
                }
            }
        }
    }

    /// Records that images are in the image store.
    pub fn images_arrived(&mut self, key: &ObjectKey, images: impl IntoIterator<Item = String>) {
        if let Some(Unit::Wanted(live)) = self.units.get_mut(key) {
            live.images.extend(images);
            self.marked.insert(key.clone());
        }
    }

    /// Lets StatefulSets look again at ordinals that wait for the deletion of data (W43).
    pub fn data_were_deleted(&mut self) {
        let sets = self.units.keys().filter(|key| key.kind == WorkloadKind::StatefulSet.as_str());
        self.marked.extend(sets.cloned());
    }

    /// Marks the workloads whose time has come. After a change of the wall clock, and with `clock_changed`, all CronJobs look again.
    pub fn wake(&mut self, moment: Moment, wall: Timestamp, clock_changed: bool) {
        let is_cron = |key: &ObjectKey| key.kind == WorkloadKind::CronJob.as_str();
        let due = self.units.iter().filter(|(key, unit)| match unit {
            Unit::Wanted(live) => live.is_due(moment, wall) || (clock_changed && is_cron(key)),
            Unit::Withdrawn => false,
        });
        let due: Vec<ObjectKey> = due.map(|(key, _)| key.clone()).collect();
        self.marked.extend(due);
    }

    /// Reports whether there is a CronJob, to which the wall clock matters.
    pub fn has_cron_jobs(&self) -> bool {
        self.units.keys().any(|key| key.kind == WorkloadKind::CronJob.as_str())
    }

    /// The CronJob of that name and its memory, for a run by hand.
    pub fn cron_job(&self, key: &ObjectKey) -> Option<(&Workload, Option<&Memory>)> {
        match self.units.get(key)? {
            Unit::Wanted(live) => Some((&live.wanted.workload, live.memory.as_ref())),
            Unit::Withdrawn => None,
        }
    }

    /// Lets the next evaluation of a CronJob begin with a memory in which a run was started by hand.
    pub fn start_run(&mut self, key: &ObjectKey, memory: KindMemory) {
        if let Some(Unit::Wanted(live)) = self.units.get_mut(key) {
            live.by_hand = Some(memory);
            self.marked.insert(key.clone());
        }
    }

    /// Lets a workload make a pod anew that it wants. Returns false if it does not want such a pod, or counts its pods itself.
    pub fn replace_pod(&mut self, key: &ObjectKey, pod: &str) -> bool {
        self.change_by_hand(key, |memory| memory.withdraw(&key.name, pod))
    }

    /// Lets an ended pod of a Job go, which stays counted. Returns false for any other pod.
    pub fn forget_ended_pod(&mut self, key: &ObjectKey, pod: &str) -> bool {
        self.change_by_hand(key, |memory| memory.forget_ended(&key.name, pod))
    }

    /// Lets the next evaluation of a workload begin with a changed memory. Returns what `change` returns, and false without a memory.
    fn change_by_hand(&mut self, key: &ObjectKey, change: impl FnOnce(&mut KindMemory) -> bool) -> bool {
        let Some(Unit::Wanted(live)) = self.units.get_mut(key) else { return false };
        let memory = live.by_hand.take().or_else(|| live.memory.as_ref().map(|memory| memory.kind.clone()));
        let Some(memory) = memory else { return false };
        self.marked.insert(key.clone());
        change(live.by_hand.insert(memory))
    }

    /// Evaluates what is marked.
    pub fn plan(&mut self, now: &Now<'_>) -> Expansion {
        let mut expansion = Expansion::default();
        for _ in 0..ROUNDS {
            let marked = std::mem::take(&mut self.marked);
            let marked = self.in_order(marked);
            if marked.is_empty() {
                break;
            }
            for key in marked {
                self.evaluate(&key, now, &mut expansion);
            }
        }
        self.forget_unclaimed(&mut expansion);
        expansion.withdrawn.append(&mut self.hidden);
        // A workload may have come back under a name that was withdrawn.
        expansion.withdrawn.retain(|key| !expansion.shown.iter().any(|shown| shown.key == *key));
        let unsent = std::mem::take(&mut self.unsent);
        expansion.sets = unsent.iter().filter_map(|source| self.expanded(source)).collect();
        expansion.conflicts = self.conflicts();
        let live = || self.units.values().filter_map(Unit::live);
        expansion.wake = live().filter_map(|live| live.wake).min();
        expansion.wake_wall = live().filter_map(|live| live.wake_wall).min();
        expansion
    }

    fn insert(&mut self, uid: PodUid, existing: Existing) {
        self.by_owner.entry(existing.owner.clone()).or_default().insert(uid.clone());
        self.existing.insert(uid, existing);
    }

    fn sources_ready(&self) -> bool {
        self.sharing.order().all(|source| self.sets.contains_key(source))
    }

    /// Reacts to the first delivery of the last source: removals are allowed, and names that were reserved are free.
    fn became_ready(&mut self) {
        let ready = self.sources_ready();
        if ready && !self.were_ready {
            let keys = self.sets.values().flat_map(|set| set.workloads.keys());
            let reserved: Vec<ObjectKey> = keys.filter(|key| !self.units.contains_key(key)).cloned().collect();
            for key in reserved {
                self.choose(&key);
            }
            self.marked.extend(self.units.keys().cloned());
        }
        self.were_ready = ready;
    }

    /// Makes the unit of a key that of the first source that has it (W93).
    fn choose(&mut self, key: &ObjectKey) {
        let incumbent = self.incumbent(key).into_iter();
        let winner = incumbent.chain(self.sharing.order()).find_map(|source| {
            let set = self.sets.get(source)?;
            let found = set.workloads.get(key)?;
            Some(Wanted {
                workload: Arc::clone(&found.workload),
                source: source.clone(),
                revision: set.revision.clone(),
                origin: found.origin.clone(),
                parent: None,
            })
        });
        match winner {
            Some(wanted) if self.is_reserved(key, &wanted.source) => {}
            Some(wanted) => self.want(key, wanted),
            // A Job of a CronJob is not in any source.
            None if self.units.get(key).and_then(Unit::live).is_some_and(|live| live.wanted.parent.is_some()) => {}
            None => self.withdraw(key),
        }
    }

    /// Among restricted sources, what is there stays: the source of the workload, if none that is unrestricted has it.
    fn incumbent(&self, key: &ObjectKey) -> Option<&SourceId> {
        let live = self.units.get(key).and_then(Unit::live)?;
        let source = &live.wanted.source;
        let has = |source: &&SourceId| self.sets.get(*source).is_some_and(|set| set.workloads.contains_key(key));
        let is_claimed = self.sharing.order().filter(has).any(|source| !self.sharing.is_restricted(source));
        (self.sharing.is_restricted(source) && !is_claimed).then_some(source)
    }

    /// Reports whether a workload of `claimant` goes on from what `known` left. Nothing of another source reaches a restricted one; a source
    /// that is not configured any more may have been renamed.
    fn inherits(&self, claimant: &SourceId, known: &SourceId) -> bool {
        let is_configured = self.sharing.rank(known) != usize::MAX;
        claimant == known
            || match is_configured {
                true => !self.sharing.are_apart(claimant, known),
                false => !self.sharing.is_restricted(claimant),
            }
    }

    /// A workload that an earlier source had before the restart is left for that source until it delivers.
    fn is_reserved(&self, key: &ObjectKey, claimant: &SourceId) -> bool {
        let known = self.unclaimed.get(key).map(|memory| &memory.source);
        known.is_some_and(|known| self.sharing.rank(known) < self.sharing.rank(claimant) && !self.sets.contains_key(known))
    }

    fn want(&mut self, key: &ObjectKey, wanted: Wanted) {
        self.marked.insert(key.clone());
        self.unsent.insert(wanted.source.clone());
        let known = self.units.get(key).and_then(Unit::live).map(|live| &live.wanted.source);
        if known.is_some_and(|known| !self.inherits(&wanted.source, known)) {
            self.withdraw(key);
        }
        match self.units.get_mut(key) {
            Some(Unit::Wanted(live)) => {
                self.unsent.insert(live.wanted.source.clone());
                if live.wanted.workload != wanted.workload {
                    live.images.clear();
                }
                live.wanted = wanted;
            }
            Some(Unit::Withdrawn) | None => {
                let memory = self.unclaimed.remove(key).filter(|memory| self.inherits(&wanted.source, &memory.source));
                self.units.insert(key.clone(), Unit::Wanted(Box::new(Live::new(wanted, memory))));
            }
        }
    }

    fn withdraw(&mut self, key: &ObjectKey) {
        let Some(unit) = self.units.get_mut(key) else { return };
        if let Unit::Wanted(live) = unit {
            self.unsent.insert(live.wanted.source.clone());
            self.hidden.extend(std::mem::take(&mut live.shown).into_keys());
            *unit = Unit::Withdrawn;
        }
        self.names.release(key);
        self.marked.insert(key.clone());
        if key.kind == WorkloadKind::CronJob.as_str() {
            self.withdraw_jobs(key, &BTreeSet::new());
        }
    }

    /// Withdraws the Jobs of a CronJob, but for some.
    fn withdraw_jobs(&mut self, parent: &ObjectKey, wanted: &BTreeSet<ObjectKey>) {
        let is_child = |live: &Live| live.wanted.parent.as_ref() == Some(parent);
        let gone = self.units.iter().filter(|(key, unit)| unit.live().is_some_and(is_child) && !wanted.contains(*key));
        let gone: Vec<ObjectKey> = gone.map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.withdraw(&key);
        }
    }

    /// In the order in which names are given (W9).
    fn in_order(&self, keys: BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
        let mut keys: Vec<_> = keys.into_iter().filter(|key| self.units.contains_key(key)).collect();
        keys.sort_by_cached_key(rank_of);
        keys
    }

    fn pods_of(&self, key: &ObjectKey) -> Pods {
        let uids = self.by_owner.get(key).into_iter().flatten();
        let mut pods = Pods::new();
        for existing in uids.filter_map(|uid| self.existing.get(uid)) {
            // Of two incarnations of a name, the one that is not being stopped counts.
            if !existing.pod.is_terminating || !pods.contains_key(&existing.pod.name) {
                pods.insert(existing.pod.name.clone(), existing.pod.clone());
            }
        }
        pods
    }

    /// Restarts of a Job's containers that followed power cuts: those that are remembered and those that were observed since.
    fn lost_restarts(&self, key: &ObjectKey, known: Option<&Memory>) -> LostRestarts {
        let mut lost = LostRestarts::new();
        if key.kind != WorkloadKind::Job.as_str() {
            return lost;
        }
        let existing = self.by_owner.get(key).into_iter().flatten().filter_map(|uid| self.existing.get(uid));
        for Existing { pod, lost: containers, .. } in existing {
            let prefix = format!("{}/", pod.name);
            let of_pod = known.into_iter().flat_map(|memory| &memory.lost_restarts).filter(|(name, _)| name.starts_with(&prefix));
            lost.extend(of_pod.map(|(name, restart)| (name.clone(), *restart)));
            for LostContainer { container, restarts } in containers {
                let restart = lost.entry(format!("{prefix}{container}")).or_default();
                if *restarts > restart.at {
                    *restart = LostRestart { at: *restarts, number: restart.number + 1 };
                }
            }
        }
        lost
    }

    fn has_pods(&self, key: &ObjectKey) -> bool {
        self.by_owner.get(key).is_some_and(|pods| !pods.is_empty())
    }

    /// All pods of the workload that existed when the daemon started were published since.
    fn are_observed(&self, key: &ObjectKey) -> bool {
        let mut uids = self.by_owner.get(key).into_iter().flatten();
        uids.all(|uid| self.existing.get(uid).is_none_or(|existing| existing.is_observed))
    }

    fn evaluate(&mut self, key: &ObjectKey, now: &Now<'_>, expansion: &mut Expansion) {
        match self.units.get(key) {
            Some(Unit::Wanted(_)) => {}
            Some(Unit::Withdrawn) => return self.finish(key, expansion),
            None => return,
        }
        let Some((decision, lost_restarts)) = self.decide(key, now) else { return };
        self.accept(key, decision, lost_restarts, now, expansion);
    }

    /// Forgets a withdrawn workload once nothing of it is left (W18).
    fn finish(&mut self, key: &ObjectKey, expansion: &mut Expansion) {
        if self.has_pods(key) {
            return;
        }
        self.units.remove(key);
        self.by_owner.remove(key);
        self.lost.remove(key);
        expansion.changes.push(Change { key: key.clone(), content: None, boot: None });
        self.mark_parents(key);
    }

    fn decide(&self, key: &ObjectKey, now: &Now<'_>) -> Option<(Decision, LostRestarts)> {
        let live = self.units.get(key).and_then(Unit::live)?;
        let mut pods = self.pods_of(key);
        let lost_restarts = self.lost_restarts(key, live.memory.as_ref());
        for (name, restart) in &lost_restarts {
            let pod = name.split_once('/').and_then(|(pod, _)| pods.get_mut(pod));
            if let Some(pod) = pod {
                pod.restarts = pod.restarts.saturating_sub(restart.number);
            }
        }
        let (observed, sources_ready) = (self.are_observed(key), self.sources_ready());
        let runs = self.runs_of(key);
        let context = Context {
            moment: now.clocks.moment,
            wall: now.clocks.wall,
            fresh_uid: now.fresh_uid,
            canonical: &canonical::canonical,
            has_images: &|template| unit::images(template).iter().all(|(image, _)| live.images.contains(image)),
            is_exclusive_claim: &|name| self.is_exclusive_claim(&key.namespace, name),
            is_taken: &|name| self.is_taken(key, name),
            is_claim_leaving: &|name| self.is_claim_leaving(&key.namespace, name, now),
            may_remove: observed && sources_ready,
            is_memory_lost: self.lost.contains(key),
            host: &self.host,
        };
        let jobs_in_sources = self.jobs_in_sources(&key.namespace);
        let situation = Situation {
            pods: &pods,
            context: &context,
            observed,
            sources_ready,
            is_memory_lost: self.lost.contains(key),
            runs: &runs,
            jobs_in_sources: &jobs_in_sources,
            clocks: &now.clocks,
            zones: now.zones,
        };
        let memory = live.by_hand.as_ref().or(live.memory.as_ref().map(|memory| &memory.kind));
        Some((evaluate(&live.wanted.workload, memory, &situation), lost_restarts))
    }

    /// Makes a decision the present one.
    fn accept(
        &mut self,
        key: &ObjectKey,
        decision: Decision,
        lost_restarts: LostRestarts,
        now: &Now<'_>,
        expansion: &mut Expansion,
    ) {
        let is_served = self.pods_of(key).values().any(|pod| pod.ready_since.is_some() && !pod.is_terminating);
        let Decision { memory, pods, claims, jobs, shown, events, warm, wake, wake_wall } = decision;
        let Some(Unit::Wanted(live)) = self.units.get_mut(key) else { return };
        let wanted = live.wanted.clone();
        let memory = Memory { source: wanted.source.clone(), kind: memory, lost_restarts };
        let uid = shown.first().and_then(|shown| shown.object["metadata"]["uid"].as_str()).unwrap_or_default().to_owned();
        let is_kept = live.memory.as_ref().is_some_and(|known| known.is_kept_as(&memory));
        let boot = memory.boot().filter(|boot| live.memory.as_ref().and_then(Memory::boot) != Some(*boot));
        let boot = boot.and_then(|boot| serde_json::to_vec(boot).ok());
        if !is_kept || boot.is_some() {
            let content = Some(memory.to_json(now.clocks.moment));
            expansion.changes.push(Change { key: key.clone(), content, boot });
        }
        let was_ended = has_ended(live.memory.as_ref());
        let has_ended = has_ended(Some(&memory));
        let is_new = live.memory.is_none();
        live.memory = Some(memory);
        live.by_hand = None;
        (live.wake, live.wake_wall) = (wake, wake_wall);
        let warm = warm.map(|template| {
            let spec = template.spec.as_ref();
            let secrets = spec.and_then(|spec| spec.image_pull_secrets.as_ref()).into_iter().flatten();
            let images = unit::images(&template).into_iter().filter(|(image, _)| !live.images.contains(image));
            Warm {
                key: key.clone(),
                source: wanted.source.clone(),
                pull_secrets: secrets.map(|secret| secret.name.clone()).collect(),
                images: images.collect(),
                is_served,
            }
        });
        expansion.warm.insert(key.clone(), warm);
        self.lost.remove(key);
        let of = |event| EventOf { key: key.clone(), uid: uid.clone(), event };
        expansion.events.extend(events.into_iter().map(of));
        self.replace_pods(key, pods, claims, &uid, expansion);
        self.replace_shown(key, shown, &wanted, expansion);
        self.replace_jobs(key, jobs, &wanted);
        if was_ended != has_ended || is_new {
            self.mark_parents(key);
        }
    }

    fn replace_pods(
        &mut self,
        key: &ObjectKey,
        pods: Vec<Pod>,
        claims: Vec<PersistentVolumeClaim>,
        uid: &str,
        expansion: &mut Expansion,
    ) {
        let admit = self.admit.clone();
        let Some(Unit::Wanted(live)) = self.units.get_mut(key) else { return };
        let mut before = std::mem::take(&mut live.pods);
        let mut changed = false;
        for mut written in pods {
            written.metadata.namespace = Some(key.namespace.to_string());
            let annotation = format!("{}/{}", key.kind, key.name);
            written.metadata.annotations.get_or_insert_default().insert(WORKLOAD_ANNOTATION.to_owned(), annotation);
            let Some(name) = written.metadata.name.clone() else { continue };
            let pod = match before.remove(&name) {
                Some(pod) if pod.written == written => pod,
                known => {
                    changed = true;
                    let admitted = admit_owned(written.clone(), &admit);
                    let problem = admitted.problems.iter().find(|problem| problem.severity == Severity::Error);
                    if let (Some(problem), None) = (problem, &known) {
                        let message = format!("Error creating: Pod {name:?} is invalid: {}: {}", problem.field, problem.message);
                        let event = WorkloadEvent::warning("FailedCreate", message);
                        expansion.events.push(EventOf { key: key.clone(), uid: uid.to_owned(), event });
                    }
                    UnitPod { written, admitted: admitted.pod.map(Arc::new) }
                }
            };
            live.pods.insert(name, pod);
        }
        changed |= !before.is_empty();
        let claims: BTreeMap<String, Arc<PersistentVolumeClaim>> = claims
            .into_iter()
            .filter_map(|claim| {
                let name = claim.metadata.name.clone()?;
                Some((name, Arc::new(admit_claim(claim).0?)))
            })
            .collect();
        if claims != live.claims {
            live.claims = claims;
            changed = true;
        }
        if !changed {
            return;
        }
        self.unsent.insert(live.wanted.source.clone());
        let mut names: BTreeSet<String> = live.pods.keys().cloned().collect();
        names.extend(ordinal_names(&live.wanted.workload));
        let later = self.names.replace(key, names);
        self.marked.extend(later);
    }

    fn replace_shown(&mut self, key: &ObjectKey, shown: Vec<show::Shown>, wanted: &Wanted, expansion: &mut Expansion) {
        let Some(Unit::Wanted(live)) = self.units.get_mut(key) else { return };
        let mut before = std::mem::take(&mut live.shown);
        for show::Shown { key, object, schedule } in shown {
            let next = ShownWorkload {
                key: key.clone(),
                source: wanted.source.clone(),
                revision: wanted.revision.clone(),
                origin: wanted.origin.clone(),
                object,
                schedule,
            };
            let sum = next.sum();
            if before.remove(&key) != Some(sum) {
                expansion.shown.push(Arc::new(next));
            }
            live.shown.insert(key, sum);
        }
        expansion.withdrawn.extend(before.into_keys());
    }

    /// Makes the Jobs of a CronJob those that it wants.
    fn replace_jobs(&mut self, parent: &ObjectKey, jobs: Vec<Job>, wanted: &Wanted) {
        if parent.kind != WorkloadKind::CronJob.as_str() {
            return;
        }
        let mut wanted_keys = BTreeSet::new();
        for job in jobs {
            let Some(name) = job.metadata.name.clone() else { continue };
            let key = ObjectKey { kind: WorkloadKind::Job.as_str().into(), namespace: parent.namespace.clone(), name: name.into() };
            wanted_keys.insert(key.clone());
            let workload = Arc::new(Workload::Job(Box::new(job)));
            let known = self.units.get(&key).and_then(Unit::live);
            let is_same = known.is_some_and(|live| {
                live.wanted.workload == workload && live.wanted.source == wanted.source && live.wanted.revision == wanted.revision
            });
            if !is_same {
                self.want(&key, Wanted { workload, parent: Some(parent.clone()), ..wanted.clone() });
            }
        }
        self.withdraw_jobs(parent, &wanted_keys);
    }

    /// Jobs of which something exists: one that is wanted and was evaluated, or one that is withdrawn and has pods.
    fn runs_of(&self, key: &ObjectKey) -> BTreeMap<String, ObservedRun> {
        if key.kind != WorkloadKind::CronJob.as_str() {
            return BTreeMap::new();
        }
        let prefix = format!("{}-", key.name);
        let is_own = |job: &ObjectKey| {
            job.kind == WorkloadKind::Job.as_str() && job.namespace == key.namespace && job.name.starts_with(&prefix)
        };
        let units = self.units.iter().filter(|(job, _)| is_own(job));
        let runs = units.filter_map(|(job, unit)| {
            let run = match unit {
                Unit::Wanted(live) => observed_run(live.memory.as_ref()?),
                Unit::Withdrawn => ObservedRun::Active,
            };
            Some((job.name.to_string(), run))
        });
        let mut runs: BTreeMap<String, ObservedRun> = runs.collect();
        // Before the restart: the memory, and pods without one.
        for (job, memory) in self.unclaimed.iter().filter(|(job, _)| is_own(job)) {
            runs.entry(job.name.to_string()).or_insert_with(|| observed_run(memory));
        }
        for job in self.by_owner.iter().filter(|(job, pods)| is_own(job) && !pods.is_empty()).map(|(job, _)| job) {
            runs.entry(job.name.to_string()).or_insert(ObservedRun::Active);
        }
        runs
    }

    /// The CronJob of a Job looks again when the Job changes its stage.
    fn mark_parents(&mut self, key: &ObjectKey) {
        if key.kind != WorkloadKind::Job.as_str() {
            return;
        }
        let is_parent = |parent: &ObjectKey| {
            parent.kind == WorkloadKind::CronJob.as_str()
                && parent.namespace == key.namespace
                && key.name.strip_prefix(parent.name.as_str()).is_some_and(|rest| rest.starts_with('-'))
        };
        let parents: Vec<ObjectKey> = self.units.keys().filter(|parent| is_parent(parent)).cloned().collect();
        self.marked.extend(parents);
    }

    fn jobs_in_sources(&self, namespace: &str) -> BTreeSet<String> {
        let keys = self.sets.values().flat_map(|set| set.workloads.keys());
        let jobs = keys.filter(|key| key.kind == WorkloadKind::Job.as_str() && key.namespace == namespace);
        jobs.map(|key| key.name.to_string()).collect()
    }

    /// A Pod of a manifest has the name, or a workload that comes before.
    fn is_taken(&self, key: &ObjectKey, name: &str) -> bool {
        let is_pod = |set: &Set| {
            set.pods.values().any(|pod| {
                let metadata = &pod.pod.metadata;
                metadata.name.as_deref() == Some(name)
                    && metadata.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE) == key.namespace
            })
        };
        self.names.is_taken(key, name) || self.sets.values().any(is_pod)
    }

    /// Memory of workloads that no source has is forgotten when all have delivered and no pod is left.
    fn forget_unclaimed(&mut self, expansion: &mut Expansion) {
        if !self.sources_ready() {
            return;
        }
        // A Job may still be wanted by its CronJob, which was evaluated by now.
        let (units, by_owner) = (&self.units, &self.by_owner);
        let has_pods = |key: &ObjectKey| by_owner.get(key).is_some_and(|pods| !pods.is_empty());
        let gone = self.unclaimed.extract_if(.., |key, _| !units.contains_key(key) && !has_pods(key));
        expansion.changes.extend(gone.map(|(key, _)| Change { key, content: None, boot: None }));
        // A workload of that name that comes later is another one, and nothing of it was lost.
        self.lost.retain(|key| units.contains_key(key) || has_pods(key));
    }

    /// The SET of a source, with the pods and claims of its workloads.
    fn expanded(&self, source: &SourceId) -> Option<Set> {
        let mut set = self.sets.get(source)?.clone();
        set.workloads.clear();
        let of_source = self.units.iter().filter_map(|(key, unit)| Some((key, unit.live()?)));
        for (key, live) in of_source.filter(|(_, live)| live.wanted.source == *source) {
            for (name, pod) in &live.pods {
                let Some(admitted) = &pod.admitted else { continue };
                // A Pod of a manifest has this name before the name of the host is added to it: its key is another one.
                let key =
                    ObjectKey { kind: "Pod".into(), namespace: key.namespace.clone(), name: format!("{}/{name}", key.kind).into() };
                set.pods.insert(key, SetPod { pod: Arc::clone(admitted), origin: live.wanted.origin.clone() });
            }
            for (name, claim) in &live.claims {
                let kind = "PersistentVolumeClaim".into();
                let key = ObjectKey { kind, namespace: key.namespace.clone(), name: name.into() };
                // One that a source declares is used as it is (W41).
                set.claims.entry(key).or_insert_with(|| Arc::clone(claim));
            }
        }
        Some(set)
    }

    fn conflicts(&self) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        let mut winners: BTreeMap<&ObjectKey, &SourceId> = BTreeMap::new();
        for source in self.sharing.order() {
            for key in self.sets.get(source).into_iter().flat_map(|set| set.workloads.keys()) {
                match winners.get(key) {
                    Some(winner) => {
                        conflicts.push(Conflict { key: key.clone(), winner: (*winner).clone(), loser: source.clone() });
                    }
                    None => {
                        winners.insert(key, source);
                    }
                }
            }
        }
        conflicts
    }
}

/// The place of a workload in the order in which names are given (W9).
fn rank_of(key: &ObjectKey) -> (WorkloadKind, ObjectKey) {
    (WorkloadKind::named(&key.kind).unwrap_or(WorkloadKind::CronJob), key.clone())
}

fn has_ended(memory: Option<&Memory>) -> bool {
    memory.is_some_and(|memory| observed_run(memory) != ObservedRun::Active)
}

/// The outcome of a Job.
fn observed_run(memory: &Memory) -> ObservedRun {
    let KindMemory::Job { job, .. } = &memory.kind else { return ObservedRun::Active };
    match job.ended() {
        Some(Verdict::Complete { .. }) => ObservedRun::Complete { at: job.completed_at() },
        Some(Verdict::Failed { .. }) => ObservedRun::Failed,
        None => ObservedRun::Active,
    }
}
