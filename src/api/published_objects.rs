//! Objects as JSON text, each with a version: for kinds that podstead does not keep as typed values.

use super::collection::{Collection, Lag};
use super::failure::ApiFailure;
use super::key::PodKey;
use super::table::Column;
use bytes::Bytes;
use jiff::Timestamp;
use podstead_pod::PackedText;
use podstead_telemetry::journal::Journal;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A kind of object that is kept as JSON text; the methods are those of [`Collection`].
pub(super) trait ObjectCollection: Send + Sync + 'static {
    /// The API version, e.g. `v1`.
    fn api_version(&self) -> &'static str;
    /// The kind, e.g. `Service`.
    fn kind(&self) -> &'static str;
    /// Fields that may be selected by.
    fn fields(&self) -> &'static [&'static str];
    /// Columns of a table.
    fn columns(&self) -> &'static [Column];
    /// Journal with the objects.
    fn journal(&self) -> &Journal<PodKey, PublishedObject>;
    /// One cell for each of [`ObjectCollection::columns`].
    fn cells(&self, object: Value, now: Timestamp) -> Vec<Value>;
    /// Rows of a table, of such cells: one, but for objects with several names.
    fn rows(&self, object: Value, now: Timestamp) -> Vec<Vec<Value>> {
        vec![self.cells(object, now)]
    }

    /// Brings the journal up to date, for a kind that is looked up; nothing for one that is published.
    fn refresh(&self) -> impl Future<Output = Result<(), ApiFailure>> + Send {
        std::future::ready(Ok(()))
    }

    /// Signs that the journal may be out of date; never for a kind that is published.
    fn lag(&self) -> Lag {
        Lag::default()
    }
}

impl<C: ObjectCollection> Collection for C {
    type Key = PodKey;
    type Item = PublishedObject;

    fn api_version(&self) -> &'static str {
        ObjectCollection::api_version(self)
    }

    fn kind(&self) -> &'static str {
        ObjectCollection::kind(self)
    }

    fn fields(&self) -> &'static [&'static str] {
        ObjectCollection::fields(self)
    }

    fn columns(&self) -> &'static [Column] {
        ObjectCollection::columns(self)
    }

    fn journal(&self) -> &Journal<PodKey, PublishedObject> {
        ObjectCollection::journal(self)
    }

    fn namespace<'a>(&self, item: &'a PublishedObject) -> &'a str {
        &item.key.namespace
    }

    fn labels<'a>(&self, item: &'a PublishedObject) -> Option<Cow<'a, BTreeMap<String, String>>> {
        Some(Cow::Owned(item.labels()))
    }

    fn field(&self, item: &PublishedObject, name: &str) -> String {
        item.field(name)
    }

    fn metadata(&self, item: &PublishedObject) -> Value {
        item.metadata()
    }

    fn json(&self, item: &PublishedObject) -> Bytes {
        item.json()
    }

    fn cells(&self, item: &PublishedObject, now: Timestamp) -> Vec<Value> {
        ObjectCollection::cells(self, item.object(), now)
    }

    fn rows(&self, item: &PublishedObject, now: Timestamp) -> Vec<Vec<Value>> {
        ObjectCollection::rows(self, item.object(), now)
    }

    fn refresh(&self) -> impl Future<Output = Result<(), ApiFailure>> + Send {
        ObjectCollection::refresh(self)
    }

    fn lag(&self) -> Lag {
        ObjectCollection::lag(self)
    }
}

/// One version of an object.
#[derive(Debug)]
pub(super) struct PublishedObject {
    /// Namespace and name; the namespace of an object that has none is empty.
    pub(super) key: PodKey,
    version: u64,
    // As text: a tree of values would need many times the memory, and there are many versions.
    json: PackedText,
}

impl PublishedObject {
    pub(super) fn new(key: PodKey, content: &Value, version: u64) -> Self {
        Self { key, version, json: encode(content, version) }
    }

    fn with_version(&self, version: u64) -> Self {
        Self::new(self.key.clone(), &self.object(), version)
    }

    /// The object as JSON text.
    pub(super) fn json(&self) -> Bytes {
        self.json.read().into()
    }

    /// Its labels.
    fn labels(&self) -> BTreeMap<String, String> {
        let metadata = self.metadata();
        let labels = metadata["labels"].as_object().into_iter().flatten();
        labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    }

    /// The object.
    pub(super) fn object(&self) -> Value {
        serde_json::from_slice(&self.json.read()).unwrap_or_default()
    }

    /// The metadata of the object.
    pub(super) fn metadata(&self) -> Value {
        self.object()["metadata"].take()
    }

    /// Value of a field that holds a text, for selectors; empty where it is missing.
    pub(super) fn field(&self, path: &str) -> String {
        match path {
            "metadata.name" => self.key.name.to_string(),
            "metadata.namespace" => self.key.namespace.to_string(),
            path => self
                .object()
                .pointer(&format!("/{}", path.replace('.', "/")))
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        }
    }

    /// Bytes that it needs.
    pub(super) fn weight(&self) -> usize {
        self.json.size()
    }
}

fn encode(content: &Value, version: u64) -> PackedText {
    let mut object = content.clone();
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    PackedText::new(object.to_string().as_bytes())
}

/// Replaces everything in a journal; what is the same keeps its version.
pub(super) fn replace(journal: &Journal<PodKey, PublishedObject>, objects: &[Value]) {
    let mut replacement = Replacement::new(journal);
    for content in objects {
        replacement.put(content);
    }
    replacement.finish();
}

/// The replacement of everything in a journal, object by object: of many, one at a time need be there as a tree of values.
#[derive(Debug)]
pub(super) struct Replacement<'a> {
    journal: &'a Journal<PodKey, PublishedObject>,
    present: BTreeSet<PodKey>,
}

impl<'a> Replacement<'a> {
    /// Of this journal.
    pub(super) const fn new(journal: &'a Journal<PodKey, PublishedObject>) -> Self {
        Self { journal, present: BTreeSet::new() }
    }

    /// Puts an object in; one that is the same keeps its version.
    pub(super) fn put(&mut self, content: &Value) {
        self.present.insert(put(self.journal, content));
    }

    /// Removes what was not put in.
    pub(super) fn finish(self) {
        for gone in self.journal.list().1.iter().filter(|object| !self.present.contains(&object.key)) {
            remove(self.journal, &gone.key);
        }
        self.journal.shrink();
    }
}

/// Puts an object into a journal; one that is the same keeps its version. Returns its key.
pub(super) fn put(journal: &Journal<PodKey, PublishedObject>, content: &Value) -> PodKey {
    let text = |field: &str| content["metadata"][field].as_str().unwrap_or_default().into();
    let key = PodKey { namespace: text("namespace"), name: text("name") };
    journal.update(key.clone(), |before, version| {
        let same = before.is_some_and(|before| before.json == encode(content, before.version));
        (!same).then(|| PublishedObject::new(key.clone(), content, version))
    });
    key
}

/// Removes an object from a journal. Returns true if it was there.
pub(super) fn remove(journal: &Journal<PodKey, PublishedObject>, key: &PodKey) -> bool {
    let is_there = journal.get(key).is_some();
    journal.remove(key, PublishedObject::with_version);
    is_there
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_telemetry::journal::ChangeKind;

    #[test]
    fn only_what_differs_is_a_change() {
        let journal = Journal::new(5, 8);
        let object = |name: &str, value: u32| json!({"metadata": {"name": name, "labels": {"a": "b"}}, "value": value});
        replace(&journal, &[object("one", 1), object("two", 1)]);
        replace(&journal, &[object("one", 1), object("two", 2)]);
        replace(&journal, &[object("two", 2)]);
        let changes = journal.since(7).unwrap();
        let seen: Vec<_> =
            changes.iter().map(|change| (change.kind, change.value.key.name.as_str(), change.value.version)).collect();
        assert_eq!(seen, [(ChangeKind::Modified, "two", 8), (ChangeKind::Deleted, "one", 9)]);
        assert_eq!(changes[1].value.metadata()["resourceVersion"], "9");
        assert_eq!(changes[0].value.field("metadata.labels.a"), "b");
    }
}
