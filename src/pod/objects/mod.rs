//! Objects that stand beside the pods, such as ConfigMaps and Secrets, as pods see them: one immutable view over all sources. **Pure**.
//!
//! The mux makes an [`Objects`] of what the sources deliver; [`references`] says which of them a pod names; [`mod@crate::env`] and
//! volumes read what it says. No text of this module, nor any `Debug`, shows what a Secret holds.

mod admit;
mod fingerprint;
mod network;
mod object;
mod packed;
mod reference;
mod seen;

pub use admit::{admit_claim, admit_config_map, admit_secret};
pub use fingerprint::Fingerprinting;
pub use fingerprint::{Fingerprint, FingerprintKey};
pub use network::{NetworkKind, NetworkObject};
pub use object::{NotText, Object};
pub use packed::PackedObject;
pub(crate) use reference::namespace_of;
pub use reference::references;
pub use seen::SourceView;

use super::sharing::Sharing;
use super::{SmolStr, SourceId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Kind of an object beside the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// `ConfigMap`.
    ConfigMap,
    /// `Secret`.
    Secret,
    /// `PersistentVolumeClaim`.
    PersistentVolumeClaim,
    /// A kind that says how pods are reached.
    Network(NetworkKind),
}

impl ObjectKind {
    /// As `kind` has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ObjectKind::ConfigMap => "ConfigMap",
            ObjectKind::Secret => "Secret",
            ObjectKind::PersistentVolumeClaim => "PersistentVolumeClaim",
            ObjectKind::Network(kind) => kind.as_str(),
        }
    }

    /// The field of the configuration that shares objects of this kind.
    const fn share_field(self) -> &'static str {
        match self {
            ObjectKind::ConfigMap => "configMaps",
            ObjectKind::Secret => "secrets",
            ObjectKind::PersistentVolumeClaim => "persistentVolumeClaims",
            ObjectKind::Network(_) => "subdomains",
        }
    }

    /// As messages of the kubelet have it.
    const fn in_a_sentence(self) -> &'static str {
        match self {
            ObjectKind::ConfigMap => "configmap",
            ObjectKind::Secret => "secret",
            ObjectKind::PersistentVolumeClaim => "persistentvolumeclaim",
            ObjectKind::Network(kind) => kind.in_a_sentence(),
        }
    }
}

/// Name by which a pod refers to an object. Displayed as `ConfigMap shop/web`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Its kind.
    pub kind: ObjectKind,
    /// The pod's namespace, which is the object's.
    pub namespace: SmolStr,
    /// Its name.
    pub name: SmolStr,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

/// Reason why a reference to an object has no value. Says nothing of what the object holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// No source has the object.
    #[error("{kind} {object:?} not found in namespace {namespace:?} ({looked})", kind = name.kind.in_a_sentence(), object = name.name, namespace = name.namespace)]
    NotFound {
        /// The missing object.
        name: ObjectName,
        /// The sources that were searched.
        looked: String,
    },
    /// Sources have the object and refuse it, and no source has it otherwise.
    #[error("{kind} {object:?} not found in namespace {namespace:?}: {refused}", kind = name.kind.in_a_sentence(), object = name.name, namespace = name.namespace)]
    Refused {
        /// The missing object.
        name: ObjectName,
        /// The source with the fault and its place, as in `source site refuses it: web.yaml:3:5: error[...]: ...`.
        refused: String,
    },
    /// Another source has the object and does not share it. Names the owner, because only its configuration can change that, and says
    /// nothing else of the object: of names in its own namespace a pod learns no more than from the 403 of an API server.
    #[error(
        "{kind} {object:?} in namespace {namespace:?} belongs to source {owner} and is not shared with source {reader} (to share it, set with: [{reader}] and {field}: [{object}] under share of source {owner} in podstead's configuration)",
        kind = name.kind.in_a_sentence(), object = name.name, namespace = name.namespace, field = name.kind.share_field()
    )]
    NotShared {
        /// The object.
        name: ObjectName,
        /// The source that has it.
        owner: SourceId,
        /// The source of the pod.
        reader: SourceId,
    },
    /// The object has no such key.
    #[error("couldn't find key {key} in {name} of source {from}")]
    NoKey {
        /// The object.
        name: ObjectName,
        /// The missing key.
        key: String,
        /// The source of the object.
        from: SourceId,
    },
    /// The value of the key cannot be the value of a variable.
    #[error("key {key} of {name} of source {from} is not text")]
    NotText {
        /// The object.
        name: ObjectName,
        /// The key.
        key: String,
        /// The source of the object.
        from: SourceId,
    },
}

/// An object of the view.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The object.
    pub object: Object,
    /// The source that it comes from.
    pub source: SourceId,
}

/// All objects beside the pods of this host, and which source reaches which of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objects {
    sharing: Arc<Sharing>,
    /// In the order of [`Sharing::order`]: sources that have delivered. What the view does not have of them, they do not have.
    has_delivered: Vec<bool>,
    /// Objects of one name are of sources that are apart, in the order of these.
    held: BTreeMap<Arc<ObjectName>, Vec<Held>>,
    /// Faults for which sources refuse objects that they do not have in an accepted version.
    refused: BTreeMap<ObjectName, Vec<(SourceId, Arc<str>)>>,
}

impl Objects {
    /// A view without objects so far.
    pub fn new(sharing: Arc<Sharing>, has_delivered: impl Fn(&SourceId) -> bool) -> Self {
        let has_delivered = sharing.order().map(has_delivered).collect();
        Self { sharing, has_delivered, held: BTreeMap::new(), refused: BTreeMap::new() }
    }

    /// Records that a source refuses an object of this name, and has no accepted version of it. `fault` has file and line.
    pub fn refuse(&mut self, source: &SourceId, name: ObjectName, fault: Arc<str>) {
        self.refused.entry(name).or_default().push((source.clone(), fault));
    }

    /// Adds an object of a source, which comes after those of all earlier ones in the order of [`Sharing::order`]. When no pod would ever use
    /// it, because a source that is not apart has one of this name, that one stays and its source is returned. A claim stands for
    /// one directory: that of an unrestricted source leaves no room for another one. Objects of the network but policies have one name for all pods.
    pub fn add(&mut self, source: &SourceId, name: impl Into<Arc<ObjectName>>, object: Object) -> Option<SourceId> {
        let name = name.into();
        let sharing = &self.sharing;
        let hides = |held: &&Held| {
            let takes_the_place = name.kind == ObjectKind::PersistentVolumeClaim && !sharing.is_restricted(&held.source);
            // A policy of a restricted source selects its pods only: it neither takes the place of another source's policy nor leaves its own to it.
            let is_for_all = matches!(name.kind, ObjectKind::Network(kind) if kind != NetworkKind::NetworkPolicy);
            takes_the_place || is_for_all || !sharing.are_apart(source, &held.source)
        };
        let winner = self.held.get(&name).and_then(|held| held.iter().find(hides)).map(|held| held.source.clone());
        if winner.is_none() {
            // Hardly ever is there another one.
            let held = self.held.entry(name).or_insert_with(|| Vec::with_capacity(1));
            held.push(Held { object, source: source.clone() });
        }
        winner
    }

    /// Gives back memory that is left for more objects: a map that is filled in order is half empty, one that is made of another is not.
    pub fn shrink(&mut self) {
        self.held = std::mem::take(&mut self.held).into_iter().collect();
    }

    /// The objects as pods of a source see them.
    pub fn seen_by<'a>(&'a self, reader: &'a SourceId) -> SourceView<'a> {
        SourceView::new(self, reader)
    }

    /// Rules for the use of objects of other sources.
    pub fn sharing(&self) -> &Arc<Sharing> {
        &self.sharing
    }

    /// The object of this name that has precedence, for administrators of this host; pods see it through [`Objects::seen_by`].
    pub fn first(&self, name: &ObjectName) -> Result<&Held, ObjectError> {
        let first = self.held.get(name).and_then(|held| held.first());
        first.ok_or_else(|| self.missing(name, |_| true))
    }

    /// The object of each name that has precedence.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectName, &Held)> {
        self.held.iter().filter_map(|(name, held)| Some((&**name, held.first()?)))
    }

    /// All objects, those of one name in order of precedence.
    pub fn all(&self) -> impl Iterator<Item = (&ObjectName, &Held)> {
        self.held.iter().flat_map(|(name, held)| held.iter().map(move |held| (&**name, held)))
    }

    /// Returns true if there are sources and all of them have delivered: a missing object does not exist.
    pub fn is_complete(&self) -> bool {
        !self.has_delivered.is_empty() && self.has_delivered.iter().all(|delivered| *delivered)
    }

    /// Objects that differ between both views: changed, come or gone, or shared otherwise.
    pub fn changes(&self, before: &Objects) -> Vec<ObjectName> {
        let is_shared_otherwise = self.sharing != before.sharing;
        let same = |(now, then): (&Held, &Held)| {
            now.object == then.object && (now.source == then.source || !self.sharing.are_apart(&now.source, &then.source))
        };
        let differs = |name: &&Arc<ObjectName>| match (self.held.get(*name), before.held.get(*name)) {
            (Some(now), Some(then)) => is_shared_otherwise || now.len() != then.len() || !now.iter().zip(then).all(same),
            (None, None) => false,
            (Some(_), None) | (None, Some(_)) => true,
        };
        let gone = before.held.keys().filter(|name| !self.held.contains_key(*name));
        let mut changes: Vec<ObjectName> =
            self.held.keys().chain(gone).filter(differs).map(|name| ObjectName::clone(name)).collect();
        // Pods that wait for an object are told of another fault of it.
        let told_otherwise = |name: &&ObjectName| self.refused.get(*name) != before.refused.get(*name);
        let refused: BTreeSet<&ObjectName> = self.refused.keys().chain(before.refused.keys()).filter(told_otherwise).collect();
        changes.extend(refused.into_iter().filter(|name| !self.held.contains_key(*name)).cloned());
        changes
    }

    /// Returns true if a pod may be missing an object of this name.
    pub fn may_be_missing(&self, name: &ObjectName) -> bool {
        !self.held.contains_key(name) || self.sharing.restricts_any()
    }

    /// The error of an object that none of the sources that count has.
    fn missing(&self, name: &ObjectName, counts: impl Fn(&SourceId) -> bool) -> ObjectError {
        let refused = self.refused.get(name).map(Vec::as_slice).unwrap_or_default();
        match refused.iter().find(|(source, _)| counts(source)) {
            Some((source, fault)) => {
                ObjectError::Refused { name: name.clone(), refused: format!("source {source} refuses it: {fault}") }
            }
            None => ObjectError::NotFound { name: name.clone(), looked: self.looked(counts) },
        }
    }

    /// The sources that were looked at, and those that have not delivered, of those that count.
    fn looked(&self, counts: impl Fn(&SourceId) -> bool) -> String {
        let names = |has_delivered: bool| {
            let sources = self.sharing.order().zip(&self.has_delivered);
            let of_kind = sources.filter(|(source, delivered)| **delivered == has_delivered && counts(source));
            of_kind.map(|(source, _)| source.as_str()).collect::<Vec<_>>().join(", ")
        };
        match (names(true), names(false)) {
            (looked, waiting) if waiting.is_empty() && looked.is_empty() => "no source is configured".to_owned(),
            (looked, waiting) if waiting.is_empty() => format!("looked in source {looked}"),
            (looked, waiting) if looked.is_empty() => format!("waiting for the first sync of source {waiting}"),
            (looked, waiting) => format!("looked in source {looked}; waiting for the first sync of source {waiting}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{config_map, seen, view};

    fn name(name: &str) -> ObjectName {
        ObjectName { kind: ObjectKind::ConfigMap, namespace: "default".into(), name: name.into() }
    }

    #[test]
    fn the_source_that_is_configured_first_wins() {
        let view = view(&[("a", Some(&config_map("m", "{k: a}"))), ("b", Some(&config_map("m", "{k: b}")))]);
        assert_eq!(seen(&view).find(&name("m")).unwrap().source.as_str(), "a");
    }

    #[test]
    fn what_is_missing_names_the_sources_that_were_looked_at() {
        let told = |sources: &[(&str, Option<&str>)]| seen(&view(sources)).find(&name("m")).unwrap_err().to_string();
        assert_eq!(told(&[]), "configmap \"m\" not found in namespace \"default\" (no source is configured)");
        assert!(told(&[("a", Some("")), ("b", Some(""))]).ends_with("(looked in source a, b)"));
        assert!(told(&[("a", None)]).ends_with("(waiting for the first sync of source a)"));
        assert!(told(&[("a", None), ("b", Some(""))]).ends_with("(looked in source b; waiting for the first sync of source a)"));
    }

    #[test]
    fn an_object_is_settled_when_no_source_before_it_can_still_bring_another() {
        let m = config_map("m", "{k: a}");
        for (sources, expected) in [
            (&[("a", Some(m.as_str())), ("b", None)][..], true),
            (&[("a", None), ("b", Some(m.as_str()))], false),
            (&[("a", Some("")), ("b", Some(m.as_str()))], true),
            (&[("a", Some("")), ("b", None)], false),
            (&[("a", Some(""))], true),
        ] {
            assert_eq!(seen(&view(sources)).is_settled(&name("m")), expected, "{sources:?}");
        }
    }

    #[test]
    fn changes_are_what_came_went_or_differs() {
        let before = view(&[(
            "a",
            Some(&[config_map("same", "{k: a}"), config_map("edited", "{k: a}"), config_map("gone", "{}")].join("\n---\n")),
        )]);
        let after = view(&[(
            "a",
            Some(&[config_map("same", "{k: a}"), config_map("edited", "{k: b}"), config_map("new", "{}")].join("\n---\n")),
        )]);
        let mut changes = after.changes(&before);
        changes.sort();
        assert_eq!(changes, [name("edited"), name("gone"), name("new")]);
        assert_eq!(after.changes(&after), []);
    }
}
