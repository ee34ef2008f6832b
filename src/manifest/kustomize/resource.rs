//! One object under way. As upstream does, it carries what was done to it in annotations of its own, which are removed at the end: so
//! patches and selectors meet the same annotations as there.

use super::id::{Gvk, Id};
use super::tree::{Field, Tree, Value};
use std::collections::BTreeMap;

pub(super) const PREVIOUS_KINDS: &str = "internal.config.kubernetes.io/previousKinds";
pub(super) const PREVIOUS_NAMES: &str = "internal.config.kubernetes.io/previousNames";
pub(super) const PREVIOUS_NAMESPACES: &str = "internal.config.kubernetes.io/previousNamespaces";
pub(super) const PREFIXES: &str = "internal.config.kubernetes.io/prefixes";
pub(super) const SUFFIXES: &str = "internal.config.kubernetes.io/suffixes";
pub(super) const REFERRED_BY: &str = "internal.config.kubernetes.io/refBy";
pub(super) const BEHAVIOR: &str = "internal.config.kubernetes.io/generatorBehavior";
pub(super) const NEEDS_HASH: &str = "internal.config.kubernetes.io/needsHashSuffix";
pub(super) const ALLOW_NAME_CHANGE: &str = "internal.config.kubernetes.io/allowNameChange";
pub(super) const ALLOW_KIND_CHANGE: &str = "internal.config.kubernetes.io/allowKindChange";
pub(super) const ORIGIN: &str = "config.kubernetes.io/origin";
pub(super) const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";
pub(super) const ENABLED: &str = "enabled";

/// Annotations that are removed from every built object.
const BUILD_ANNOTATIONS: &[&str] = &[
    PREVIOUS_KINDS,
    PREVIOUS_NAMES,
    PREFIXES,
    SUFFIXES,
    PREVIOUS_NAMESPACES,
    ALLOW_NAME_CHANGE,
    ALLOW_KIND_CHANGE,
    REFERRED_BY,
    BEHAVIOR,
    NEEDS_HASH,
    "internal.config.kubernetes.io/path",
    "internal.config.kubernetes.io/index",
    "internal.config.kubernetes.io/seqindent",
    "internal.config.kubernetes.io/id",
    "internal.config.kubernetes.io/annotations-migration-resource-id",
    "config.kubernetes.io/path",
    "config.kubernetes.io/index",
    "config.k8s.io/id",
    "internal.config.kubernetes.io/helm-generated",
];

/// Annotations or labels: each text with the place of its value.
pub(super) type Pairs = BTreeMap<String, (String, u32)>;

/// An object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Resource {
    pub(super) tree: Tree,
    /// Names of the vars whose value it has.
    pub(super) vars: Vec<String>,
    /// The highest number of a tie between its fields.
    pub(super) shares: u32,
}

impl Resource {
    pub(super) fn new(tree: Tree) -> Self {
        Self { tree, vars: Vec::new(), shares: 0 }
    }

    fn metadata(&self) -> Option<&Tree> {
        self.tree.get("metadata").filter(|metadata| !metadata.is_empty())
    }

    fn text_of_metadata(&self, key: &str) -> &str {
        self.metadata().and_then(|metadata| metadata.get(key)).filter(|value| !value.is_empty()).map_or("", Tree::text)
    }

    pub(super) fn kind(&self) -> &str {
        self.tree.get("kind").map_or("", Tree::text)
    }

    pub(super) fn name(&self) -> &str {
        self.text_of_metadata("name")
    }

    pub(super) fn namespace(&self) -> &str {
        self.text_of_metadata("namespace")
    }

    pub(super) fn gvk(&self) -> Gvk {
        Gvk::of(&self.tree)
    }

    /// Its identity as it is now.
    pub(super) fn id(&self) -> Id {
        let gvk = self.gvk();
        let cluster_scoped = gvk.is_cluster_scoped();
        Id { gvk, name: self.name().to_owned(), namespace: self.namespace().to_owned(), cluster_scoped }
    }

    /// Its former identities, the first one first.
    pub(super) fn previous_ids(&self) -> Vec<Id> {
        let Some(names) = self.annotation(PREVIOUS_NAMES) else { return Vec::new() };
        let namespaces = self.annotation(PREVIOUS_NAMESPACES).unwrap_or_default().split(',');
        let kinds = self.annotation(PREVIOUS_KINDS).unwrap_or_default().split(',');
        let now = self.gvk();
        let id = |((name, namespace), kind): ((&str, &str), &str)| Id {
            gvk: Gvk { kind: kind.to_owned(), ..now.clone() },
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            cluster_scoped: false,
        };
        names.split(',').zip(namespaces).zip(kinds).map(id).collect()
    }

    /// Its identity before anything changed it.
    pub(super) fn original_id(&self) -> Id {
        self.previous_ids().into_iter().next().unwrap_or_else(|| self.id())
    }

    /// Notes the identity before a change.
    pub(super) fn store_id(&mut self) {
        let id = self.id();
        self.append_to_annotation(PREVIOUS_NAMES, &id.name);
        self.append_to_annotation(PREVIOUS_NAMESPACES, id.effective_namespace());
        self.append_to_annotation(PREVIOUS_KINDS, &id.gvk.kind);
    }

    /// The text of an annotation.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata()?.get("annotations")?.get(key).map(Tree::text)
    }

    pub(super) fn annotations(&self) -> Pairs {
        self.pairs("annotations")
    }

    pub(super) fn labels(&self) -> Pairs {
        self.pairs("labels")
    }

    fn pairs(&self, field: &str) -> Pairs {
        let fields = self.metadata().and_then(|metadata| metadata.get(field)).map_or(&[][..], Tree::fields);
        fields.iter().map(|field| (field.key.clone(), (field.value.text().to_owned(), field.value.at))).collect()
    }

    /// Replaces labels or annotations, as strings; an empty set removes the field.
    pub(super) fn set_pairs(&mut self, field: &str, pairs: Pairs) {
        let at = self.tree.at;
        let Some(metadata) = self.tree.get_or_make("metadata", at) else { return };
        let known = metadata.remove(field);
        if pairs.is_empty() {
            return;
        }
        let at = known.map_or(at, |known| known.at);
        let fields = pairs.into_iter().map(|(key, (text, at))| Field { key, at, value: Tree::string(at, text) });
        metadata.set(field, Tree { at, value: Value::Map(fields.collect()) });
    }

    /// Sets one annotation, leaving the others as they are written.
    pub(super) fn annotate(&mut self, key: &str, text: &str) {
        let at = self.tree.at;
        let annotations = self.tree.get_or_make("metadata", at).and_then(|metadata| metadata.get_or_make("annotations", at));
        if let Some(annotations) = annotations {
            annotations.set(key, Tree::string(at, text));
        }
    }

    /// Adds to the list of words that an annotation is.
    pub(super) fn append_to_annotation(&mut self, key: &str, word: &str) {
        if word.is_empty() {
            return;
        }
        let text = match self.annotation(key) {
            Some(known) => format!("{known},{word}"),
            None => word.to_owned(),
        };
        self.annotate(key, &text);
    }

    pub(super) fn words_of_annotation(&self, key: &str) -> Vec<&str> {
        self.annotation(key).map_or_else(Vec::new, |text| text.split(',').collect())
    }

    pub(super) fn is_enabled(&self, key: &str) -> bool {
        self.annotation(key) == Some(ENABLED)
    }

    /// Sets an annotation, and makes strings of all others.
    pub(super) fn set_annotation(&mut self, key: &str, text: &str) {
        let mut annotations = self.annotations();
        annotations.insert(key.to_owned(), (text.to_owned(), self.tree.at));
        self.set_pairs("annotations", annotations);
    }

    /// Removes annotations, and makes strings of all others.
    pub(super) fn remove_annotation(&mut self, key: &str) {
        let mut annotations = self.annotations();
        annotations.remove(key);
        self.set_pairs("annotations", annotations);
    }

    /// Removes what a build noted.
    pub(super) fn remove_build_annotations(&mut self) {
        let mut annotations = self.annotations();
        if annotations.is_empty() {
            return;
        }
        annotations.retain(|key, _| !BUILD_ANNOTATIONS.contains(&key.as_str()));
        self.set_pairs("annotations", annotations);
    }

    /// The annotations of `self` that carry over to an object which replaces it.
    pub(super) fn take_over_metadata(&mut self, other: &Resource) {
        self.vars.clone_from(&other.vars);
        let mut labels = other.labels();
        labels.extend(self.labels());
        self.set_pairs("labels", labels);
        let own = self.annotations();
        let needs_hash = own.contains_key(NEEDS_HASH);
        let theirs = other.annotations();
        let mut merged = theirs.clone();
        merged.extend(own);
        for key in BUILD_ANNOTATIONS {
            match theirs.get(*key) {
                Some(value) => merged.insert((*key).to_owned(), value.clone()),
                None => merged.remove(*key),
            };
        }
        if !needs_hash {
            merged.remove(NEEDS_HASH);
        }
        self.set_pairs("annotations", merged);
        let (name, namespace) = (other.name().to_owned(), other.namespace().to_owned());
        self.set_name(&name);
        self.set_namespace(&namespace);
    }

    pub(super) fn set_name(&mut self, name: &str) {
        self.set_metadata("name", name);
    }

    /// Sets the namespace, or removes it when it is empty.
    pub(super) fn set_namespace(&mut self, namespace: &str) {
        if namespace.is_empty() {
            if let Some(metadata) = self.tree.get_mut("metadata") {
                metadata.remove("namespace");
            }
        } else {
            self.set_metadata("namespace", namespace);
        }
    }

    fn set_metadata(&mut self, key: &str, text: &str) {
        let at = self.tree.at;
        let Some(metadata) = self.tree.get_or_make("metadata", at) else { return };
        match metadata.get_mut(key) {
            Some(value) if value.text() == text => {}
            Some(value) => {
                let at = value.at;
                value.set_text(at, text);
            }
            None => metadata.set(key, Tree::scalar(at, super::tree::Scalar::plain(text))),
        }
    }

    pub(super) fn set_kind(&mut self, kind: &str) {
        let at = self.tree.at;
        match self.tree.get_mut("kind") {
            Some(value) if value.text() == kind => {}
            Some(_) | None => self.tree.set("kind", Tree::scalar(at, super::tree::Scalar::plain(kind))),
        }
    }
}
