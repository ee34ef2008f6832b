//! ConfigMaps and Secrets that stand beside the pods, as pods see them: one immutable view over all sources. **Pure**.
//!
//! The mux makes an [`Objects`] of what the sources deliver; [`references`] says which of them a pod names; [`mod@crate::pod::env`] and
//! volumes read what it says. No text of this module, nor any `Debug`, shows what a Secret holds.

mod admit;
mod fingerprint;
mod object;
mod reference;

pub use admit::{admit_claim, admit_config_map, admit_secret};
pub(crate) use fingerprint::Fingerprinting;
pub use fingerprint::{Fingerprint, FingerprintKey};
pub use object::{NotText, Object};
pub(in crate::pod) use reference::namespace_of;
pub use reference::references;

use super::SourceId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What kind of object a pod may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// `ConfigMap`.
    ConfigMap,
    /// `Secret`.
    Secret,
    /// `PersistentVolumeClaim`.
    PersistentVolumeClaim,
}

impl ObjectKind {
    /// As `kind` has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ObjectKind::ConfigMap => "ConfigMap",
            ObjectKind::Secret => "Secret",
            ObjectKind::PersistentVolumeClaim => "PersistentVolumeClaim",
        }
    }

    /// As messages of the kubelet have it.
    const fn in_a_sentence(self) -> &'static str {
        match self {
            ObjectKind::ConfigMap => "configmap",
            ObjectKind::Secret => "secret",
            ObjectKind::PersistentVolumeClaim => "persistentvolumeclaim",
        }
    }
}

/// What a pod calls an object by. Displayed as `ConfigMap shop/web`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Its kind.
    pub kind: ObjectKind,
    /// The pod's namespace, which is the object's.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

/// Why a reference to an object has no value. Says nothing of what the object holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// No source has the object.
    #[error("{kind} {object:?} not found in namespace {namespace:?} ({looked})", kind = name.kind.in_a_sentence(), object = name.name, namespace = name.namespace)]
    NotFound {
        /// What was looked for.
        name: ObjectName,
        /// Which sources were looked at.
        looked: String,
    },
    /// The object has no such key.
    #[error("couldn't find key {key} in {name} of source {from}")]
    NoKey {
        /// The object.
        name: ObjectName,
        /// What was looked for.
        key: String,
        /// Where the object is from.
        from: SourceId,
    },
    /// What stands under the key cannot be the value of a variable.
    #[error("key {key} of {name} of source {from} is not text")]
    NotText {
        /// The object.
        name: ObjectName,
        /// The key.
        key: String,
        /// Where the object is from.
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
    /// That source's place among all sources, from 0.
    rank: usize,
}

/// A source whose objects are in the view, or will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectSource {
    /// Its name.
    pub id: SourceId,
    /// It has delivered: what the view does not have of it, it does not have.
    pub has_delivered: bool,
}

/// All ConfigMaps and Secrets of this host. Of two of the same name, that of the source that is configured first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objects {
    sources: Vec<ObjectSource>,
    held: BTreeMap<ObjectName, Held>,
}

impl Objects {
    /// A view over sources in order of precedence, without objects so far.
    pub fn of_sources(sources: Vec<ObjectSource>) -> Self {
        Self { sources, held: BTreeMap::new() }
    }

    /// Adds an object of the source of that rank. When an earlier source has one of this name, that one stays and its source is returned.
    pub fn add(&mut self, rank: usize, name: ObjectName, object: Object) -> Option<&SourceId> {
        let source = self.sources.get(rank)?.id.clone();
        match self.held.entry(name) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Held { object, source, rank });
                None
            }
            std::collections::btree_map::Entry::Occupied(place) => Some(&place.into_mut().source),
        }
    }

    /// The object, or that it is not there.
    pub fn find(&self, name: &ObjectName) -> Result<&Held, ObjectError> {
        self.held.get(name).ok_or_else(|| ObjectError::NotFound { name: name.clone(), looked: self.looked() })
    }

    /// All objects by name.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectName, &Held)> {
        self.held.iter()
    }

    /// Whether no source that has yet to deliver could change what the view says of `name`.
    pub fn is_settled(&self, name: &ObjectName) -> bool {
        let rank = self.held.get(name).map_or(self.sources.len(), |held| held.rank);
        self.sources.iter().take(rank).all(|source| source.has_delivered)
    }

    /// Whether every source has delivered, and there is one: what is absent is absent.
    pub fn is_complete(&self) -> bool {
        !self.sources.is_empty() && self.sources.iter().all(|source| source.has_delivered)
    }

    /// Objects that differ between both views: changed, come or gone.
    pub fn changes(&self, before: &Objects) -> Vec<ObjectName> {
        let differs = |name: &&ObjectName| match (self.held.get(name), before.held.get(name)) {
            (Some(now), Some(then)) => now.object != then.object,
            (None, None) => false,
            (Some(_), None) | (None, Some(_)) => true,
        };
        let gone = before.held.keys().filter(|name| !self.held.contains_key(name));
        self.held.keys().chain(gone).filter(differs).cloned().collect()
    }

    /// Whether both views say the same of all of `names`.
    pub fn agrees(&self, other: &Objects, names: &BTreeSet<ObjectName>) -> bool {
        let same =
            |name: &ObjectName| self.held.get(name) == other.held.get(name) && self.is_settled(name) == other.is_settled(name);
        // Of what is missing, it matters which sources were looked at.
        let is_whole = || names.iter().all(|name| self.held.contains_key(name));
        names.iter().all(same) && (is_whole() || self.sources == other.sources)
    }

    fn looked(&self) -> String {
        let names = |has_delivered: bool| {
            let of_kind = self.sources.iter().filter(|source| source.has_delivered == has_delivered);
            of_kind.map(|source| source.id.as_str()).collect::<Vec<_>>().join(", ")
        };
        match (names(true), names(false)) {
            (looked, waiting) if waiting.is_empty() && looked.is_empty() => "there is no source".to_owned(),
            (looked, waiting) if waiting.is_empty() => format!("looked in source {looked}"),
            (looked, waiting) if looked.is_empty() => format!("source {waiting} has not delivered yet"),
            (looked, waiting) => format!("looked in source {looked}; {waiting} has not delivered yet"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A view from YAML documents, one list of documents per source; a source without a list has not delivered.
    pub(crate) fn view(sources: &[(&str, Option<&str>)]) -> Objects {
        let of =
            |(id, documents): &(&str, Option<&str>)| ObjectSource { id: SourceId::new(*id), has_delivered: documents.is_some() };
        let mut view = Objects::of_sources(sources.iter().map(of).collect());
        for (rank, (_, documents)) in sources.iter().enumerate() {
            for document in documents.unwrap_or_default().split("---").filter(|document| !document.trim().is_empty()) {
                let value: serde_json::Value = serde_yaml::from_str(document).unwrap();
                let (kind, object) = match value["kind"].as_str().unwrap() {
                    "ConfigMap" => (
                        ObjectKind::ConfigMap,
                        Object::ConfigMap(std::sync::Arc::new(serde_json::from_value(value.clone()).unwrap())),
                    ),
                    "PersistentVolumeClaim" => (
                        ObjectKind::PersistentVolumeClaim,
                        Object::PersistentVolumeClaim(std::sync::Arc::new(serde_json::from_value(value.clone()).unwrap())),
                    ),
                    _ => (ObjectKind::Secret, Object::Secret(std::sync::Arc::new(serde_json::from_value(value.clone()).unwrap()))),
                };
                let text = |field: &str| value["metadata"][field].as_str().unwrap_or("default").to_owned();
                view.add(rank, ObjectName { kind, namespace: text("namespace"), name: text("name") }, object);
            }
        }
        view
    }

    pub(crate) fn config_map(name: &str, data: &str) -> String {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {data}}}")
    }

    fn name(name: &str) -> ObjectName {
        ObjectName { kind: ObjectKind::ConfigMap, namespace: "default".into(), name: name.into() }
    }

    #[test]
    fn the_source_that_is_configured_first_wins() {
        let view = view(&[("a", Some(&config_map("m", "{k: a}"))), ("b", Some(&config_map("m", "{k: b}")))]);
        assert_eq!(view.find(&name("m")).unwrap().source.as_str(), "a");
    }

    #[test]
    fn what_is_missing_names_the_sources_that_were_looked_at() {
        let told = |sources: &[(&str, Option<&str>)]| view(sources).find(&name("m")).unwrap_err().to_string();
        assert_eq!(told(&[]), "configmap \"m\" not found in namespace \"default\" (there is no source)");
        assert!(told(&[("a", Some("")), ("b", Some(""))]).ends_with("(looked in source a, b)"));
        assert!(told(&[("a", None)]).ends_with("(source a has not delivered yet)"));
        assert!(told(&[("a", None), ("b", Some(""))]).ends_with("(looked in source b; a has not delivered yet)"));
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
            assert_eq!(view(sources).is_settled(&name("m")), expected, "{sources:?}");
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
