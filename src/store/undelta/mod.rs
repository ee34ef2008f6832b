//! Content of one source, object by object, tolerant of broken files. **Pure**.
//!
//! As client-go's undelta store, every change pushes the whole content. Unlike the kubelet's, a failure is not an absence (promise P2):
//!
//! * An object that is refused, a file that cannot be read or parsed, or that was truncated to nothing: what it gave before stays.
//! * An object is gone when its file is gone, or is good and does not hold it any more. When in the same revision some file *becomes*
//!   unreadable, the object may have moved into it, and stays until that file can be read.
//! * An object with `immutable: true` whose data differ: the earlier version stays, as an API server refuses the change. It can go, and
//!   come back otherwise in a later revision.
//! * Two files with one object: that of the later layer gives it, and in one layer the first in lexical order; it continues to give it
//!   while it is broken there. Where a later layer never had a good version, that of the earlier layer is used.
//! * A patch changes objects of its own layer and of earlier ones, up to the layer that defines the object again, in order of layers, files
//!   and documents. The file of the object gives the result. When a patch is refused, cannot be read or does not fit, the objects that it
//!   is for, or changed before, keep their last good version; one that has none does not exist until the patch is corrected.
//!
//! Only files whose bytes or patches changed are checked again (promise P6).

mod patching;
mod share;

#[cfg(test)]
mod patch_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use patching::PATCH_WITHOUT_TARGET;

use super::check::{Accepted, AcceptedObject, Checked};
use super::{Set, SetPod, SetWorkload};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use podstead_artifact::{Artifact, Layers};
use podstead_manifest::{Ignored, ObjectKey, PatchesByObject, Problem};
use podstead_pod::{Revision, Severity, SourceId};
use serde::{Deserialize, Serialize};
use share::Share;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Checks a file: [`check`](super::check::check) in the product.
pub type Judge<'a> = &'a dyn Fn(&str, &[u8], &PatchesByObject) -> Checked;

/// State of one file on disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptFile {
    /// Its objects.
    pub objects: Vec<Accepted>,
    /// Any other object may be in it as well: it could not be read or parsed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclear: bool,
    /// Its layer: an object of a higher one replaces the same of a lower one. 0 where the source has no layers.
    #[serde(default, skip_serializing_if = "is_lowest")]
    pub layer: usize,
    /// The objects that its patches changed: they stay as they are when it cannot be read.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub changes: BTreeSet<ObjectKey>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_lowest(layer: &usize) -> bool {
    *layer == 0
}

/// Every object that is used, by key: that of the highest layer, and in one layer that of the first file.
pub fn in_use(files: &KeptFiles) -> BTreeMap<&ObjectKey, &Accepted> {
    let mut files: Vec<&KeptFile> = files.values().collect();
    files.sort_by_key(|file| Reverse(file.layer));
    let mut objects = BTreeMap::new();
    for object in files.into_iter().flat_map(|file| &file.objects) {
        objects.entry(&*object.key).or_insert(object);
    }
    objects
}

/// State on disk, by file.
pub type KeptFiles = BTreeMap<String, KeptFile>;

/// The content of one source. A value: applying an artifact makes another one, which replaces it once it is durable.
#[derive(Clone, Debug, Default)]
pub struct UndeltaStore {
    files: BTreeMap<String, Arc<Share>>,
    layers: Arc<Layers>,
}

impl UndeltaStore {
    /// The content that was accepted before a restart. Every file is checked again when it is read.
    pub fn restore(files: KeptFiles) -> Self {
        let files = files.into_iter().map(|(name, file)| (name, Arc::new(Share::restored(file)))).collect();
        Self { files, layers: Arc::default() }
    }

    /// The same content, with these layers for the files that are read from now on.
    #[must_use]
    pub fn in_layers(self, layers: &Arc<Layers>) -> Self {
        Self { layers: Arc::clone(layers), ..self }
    }

    /// Every object that is used, by key.
    pub fn objects(&self) -> Vec<&Accepted> {
        self.claims().into_values().map(|(winner, _)| winner).collect()
    }

    /// The content without the objects that `is_refused`, and these.
    #[must_use]
    pub fn without(mut self, is_refused: &dyn Fn(&Accepted) -> bool) -> (Self, Vec<Accepted>) {
        let mut refused = Vec::new();
        for share in self.files.values_mut().filter(|share| share.objects().iter().any(is_refused)) {
            refused.extend(Arc::make_mut(share).take_out(is_refused));
        }
        (self, refused)
    }

    /// Returns the state to write to disk.
    pub fn kept(&self) -> KeptFiles {
        let files = self.files.iter().map(|(name, share)| (name.clone(), share.kept()));
        files.filter(|(_, file)| !file.objects.is_empty() || file.unclear || !file.changes.is_empty()).collect()
    }

    /// Reports whether [`UndeltaStore::kept`] of both is the same.
    pub fn keeps_the_same_as(&self, other: &UndeltaStore) -> bool {
        self.kept() == other.kept()
    }

    /// Every object, those included that another file's takes the place of.
    pub fn accepted(&self) -> impl Iterator<Item = &Accepted> {
        self.files.values().flat_map(|share| share.objects())
    }

    /// Reports whether it has a file of this name.
    pub fn has_file(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Reports whether the file of this name gives objects, used or not.
    pub fn has_objects_of(&self, name: &str) -> bool {
        self.files.get(name).is_some_and(|share| !share.objects().is_empty())
    }

    /// Reports whether it has no objects.
    pub fn is_empty(&self) -> bool {
        self.files.values().all(|share| share.objects().is_empty())
    }

    /// Reports whether no object comes from the present files: there are none, or all objects are kept from before.
    pub fn reads_nothing(&self) -> bool {
        !self.files.values().any(|share| share.gives_anew())
    }

    /// The same content, with the files that have such a problem to be checked again; `None` when none has.
    pub fn without_judgements(&self, is_such: impl Fn(&Problem) -> bool) -> Option<Self> {
        let mut next = self.clone();
        let mut any = false;
        for share in next.files.values_mut().filter(|share| share.problems().iter().any(&is_such)) {
            Arc::make_mut(share).forget_judgement();
            any = true;
        }
        any.then_some(next)
    }

    /// The content after `artifact`.
    #[must_use]
    pub fn apply(&self, artifact: &Artifact, judge: Judge<'_>) -> UndeltaStore {
        let next = |name: &String, content| {
            let layer = self.layers.rank(name).map_or(0, |rank| rank + 1);
            (name.clone(), Share::next(self.files.get(name), name, layer, content, None, judge))
        };
        let files = artifact.files.iter().map(|(name, content)| next(name, content));
        let mut next = UndeltaStore { files: files.collect(), layers: Arc::clone(&self.layers) };
        next.patch(self, artifact, judge);
        for orphan in self.orphans(&next) {
            if let Some(name) = next.adopter_of(&orphan.key, self)
                && let Some(share) = next.files.get_mut(&name)
            {
                Arc::make_mut(share).adopt(&name, orphan);
            }
        }
        next.hold_patched(self);
        next.keep_immutable(self);
        next
    }

    /// Gives each object that `before` does not have the time `now` as that of its creation; the others keep theirs, or none. The time that
    /// a manifest claims does not count.
    pub fn note_creation(&mut self, before: &UndeltaStore, now: Timestamp) {
        let known: BTreeMap<&ObjectKey, Option<&Time>> =
            before.accepted().map(|accepted| (&*accepted.key, accepted.object.created_at())).collect();
        // As it is written, which is what a restart reads.
        let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
        for (name, share) in &mut self.files {
            if !before.files.get(name).is_some_and(|same| Arc::ptr_eq(same, share)) {
                let created = |key: &ObjectKey| known.get(key).map_or(Some(&now), |known| *known).cloned();
                Arc::make_mut(share).note_creation(&created);
            }
        }
    }

    /// Reverts changes of immutable objects.
    fn keep_immutable(&mut self, before: &UndeltaStore) {
        let fixed = before.claims().into_values().map(|(winner, _)| winner).filter(|object| object.object.is_immutable());
        let claims = self.claims();
        let changed = |fixed: &&Accepted| claims.get(&*fixed.key).is_some_and(|(now, _)| !now.object.has_data_of(&fixed.object));
        let kept: Vec<Accepted> = fixed.filter(changed).cloned().collect();
        for fixed in kept {
            let holder = self.ranked().find(|(_, _, share)| share.objects().iter().any(|object| object.key == fixed.key));
            let holder = holder.map(|(_, name, _)| name.clone());
            if let Some(share) = holder.and_then(|name| self.files.get_mut(&name)) {
                Arc::make_mut(share).keep_immutable(fixed);
            }
        }
    }

    /// The whole content as a SET.
    pub fn set(&self, source: &SourceId, revision: &Revision) -> Set {
        let mut set = Set {
            source: source.clone(),
            revision: revision.clone(),
            pods: BTreeMap::new(),
            config_maps: BTreeMap::new(),
            secrets: BTreeMap::new(),
            claims: BTreeMap::new(),
            workloads: BTreeMap::new(),
            network: BTreeMap::new(),
            problems: self.files.values().flat_map(|share| share.problems().iter().cloned()).collect(),
        };
        for (key, (winner, losers)) in self.claims() {
            match &winner.object {
                AcceptedObject::Pod(pod) => {
                    set.pods.insert(key.clone(), SetPod { pod: pod.clone(), origin: winner.origin.clone() });
                }
                AcceptedObject::ConfigMap(config_map) => {
                    set.config_maps.insert(key.clone(), config_map.clone());
                }
                AcceptedObject::PersistentVolumeClaim(claim) => {
                    set.claims.insert(key.clone(), claim.clone());
                }
                AcceptedObject::Workload(workload) => {
                    let workload = SetWorkload { workload: workload.clone(), origin: winner.origin.clone() };
                    set.workloads.insert(key.clone(), workload);
                }
                AcceptedObject::Network(object) => {
                    set.network.insert(Arc::clone(&winner.key), object.clone());
                }
                AcceptedObject::Secret(secret) => {
                    set.secrets.insert(key.clone(), secret.clone());
                }
            }
            set.problems.extend(losers.into_iter().map(|loser| duplicate(winner, loser)));
        }
        // A map that is filled in order is half empty; one that is made of another is not.
        set.network = std::mem::take(&mut set.network).into_iter().collect();
        set.problems.extend(self.idle_patches());
        set.problems.extend(Ignored::warnings(self.files.values().flat_map(|share| &share.ignored)));
        set
    }

    /// Every object: the one that is used, and those that are not because an earlier file of the same layer has the same. An object that
    /// a later layer replaces is in neither: that is what layers are for.
    fn claims(&self) -> BTreeMap<&ObjectKey, (&Accepted, Vec<&Accepted>)> {
        let mut claims: BTreeMap<&ObjectKey, (usize, &Accepted, Vec<&Accepted>)> = BTreeMap::new();
        for (layer, _, share) in self.ranked() {
            for object in share.objects() {
                match claims.get_mut(&*object.key) {
                    Some((of, _, losers)) if *of == layer => losers.push(object),
                    Some(_) => {}
                    None => {
                        claims.insert(&*object.key, (layer, object, Vec::new()));
                    }
                }
            }
        }
        claims.into_iter().map(|(key, (_, winner, losers))| (key, (winner, losers))).collect()
    }

    /// All files in order of precedence: the last layer first, and the files of a layer in lexical order.
    fn ranked(&self) -> impl Iterator<Item = (usize, &String, &Arc<Share>)> {
        let mut files: Vec<_> = self.files.iter().map(|(name, share)| (share.layer(), name, share)).collect();
        files.sort_by_key(|(layer, _, _)| Reverse(*layer));
        files.into_iter()
    }

    /// Objects in use that are missing from `next`.
    fn orphans(&self, next: &UndeltaStore) -> Vec<Accepted> {
        let present: BTreeSet<&ObjectKey> =
            next.files.values().flat_map(|share| share.objects()).map(|object| &*object.key).collect();
        self.claims().into_values().map(|(winner, _)| winner).filter(|object| !present.contains(&*object.key)).cloned().collect()
    }

    /// The file that an orphan may have moved into: one that names it and is refused, else one that cannot be told and could before.
    fn adopter_of(&self, key: &ObjectKey, before: &UndeltaStore) -> Option<String> {
        let names_it = self.files.iter().find(|(_, share)| share.names_broken(key));
        let became_unclear = || {
            let was_unclear = |name: &String| before.files.get(name).is_some_and(|share| share.is_unclear());
            self.files.iter().find(|(name, share)| share.is_unclear() && !was_unclear(name))
        };
        names_it.or_else(became_unclear).map(|(name, _)| name.clone())
    }
}

/// The report on an object that an earlier file has as well.
fn duplicate(winner: &Accepted, loser: &Accepted) -> Problem {
    let key = &loser.key;
    Problem {
        severity: Severity::Error,
        code: "duplicate-object".to_owned(),
        file: loser.origin.file.to_string(),
        position: Some(loser.origin.position),
        field: "metadata.name".to_owned(),
        message: format!("{} {}/{} is already defined at {}", key.kind, key.namespace, key.name, winner.origin),
        hint: Some("the first file in lexical order is used; rename or remove one of them".to_owned()),
        object: Some(ObjectKey::clone(key)),
    }
}
