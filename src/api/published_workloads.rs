//! Workloads as they were published: a journal for each kind.

use super::key::{ORIGIN_ANNOTATION, PodKey, REVISION_ANNOTATION, SOURCE_ANNOTATION};
use super::templates;
use bytes::Bytes;
use jiff::Timestamp;
use podstead_expand::{ShownSchedule, ShownWorkload};
use podstead_manifest::ObjectKey;
pub use podstead_pod::annotations::{MISSED_RUN as MISSED_RUN_ANNOTATION, NEXT_RUN as NEXT_RUN_ANNOTATION};
use podstead_pod::{Origin, Revision, SourceId};
use podstead_telemetry::journal::Journal;
use podstead_workload::object::WorkloadKind;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Changes of one kind that are remembered for watchers.
const HISTORY: usize = 256;

/// One version of one workload.
#[derive(Debug)]
pub struct PublishedWorkload {
    /// Namespace and name.
    pub key: PodKey,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The source that it comes from.
    pub source: SourceId,
    /// The revision that its content was read from.
    pub revision: Revision,
    /// Position of its manifest, or of its owner's if it has an owner.
    pub origin: Origin,
    /// The `resourceVersion`.
    pub version: u64,
    // As text: a tree of values would need several times the memory, and there are many versions.
    json: Bytes,
}

impl PublishedWorkload {
    fn new(shown: &ShownWorkload, version: u64) -> Self {
        let json = encode(shown, version);
        let labels = shown.object["metadata"]["labels"].as_object().into_iter().flatten();
        let labels = labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        Self {
            key: key_of(&shown.key),
            labels: labels.collect(),
            source: shown.source.clone(),
            revision: shown.revision.clone(),
            origin: shown.origin.clone(),
            version,
            json,
        }
    }

    /// Its last state, as it is deleted.
    fn with_version(&self, version: u64) -> Self {
        self.with_metadata(version, [])
    }

    /// The same while its pods end, as Kubernetes shows it.
    fn in_deletion(&self, version: u64, now: Timestamp) -> Self {
        let since = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let fields = [
            ("deletionTimestamp", json!(since)),
            ("deletionGracePeriodSeconds", json!(0)),
            ("finalizers", json!(["foregroundDeletion"])),
        ];
        self.with_metadata(version, fields)
    }

    fn with_metadata(&self, version: u64, fields: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let mut object = self.object();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".into(), json!(version.to_string()));
            metadata.extend(fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        Self {
            key: self.key.clone(),
            labels: self.labels.clone(),
            source: self.source.clone(),
            revision: self.revision.clone(),
            origin: self.origin.clone(),
            version,
            json: Bytes::from(object.to_string()),
        }
    }

    /// The object as JSON text.
    pub fn json(&self) -> Bytes {
        self.json.clone()
    }

    /// The object.
    pub fn object(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }
}

fn key_of(key: &ObjectKey) -> PodKey {
    PodKey { namespace: key.namespace.clone(), name: key.name.clone() }
}

/// The object with its version and where it is managed, and with the defaults of its template.
fn encode(shown: &ShownWorkload, version: u64) -> Bytes {
    let ShownWorkload { key: _, source, revision, origin, object, schedule } = shown;
    let mut object = object.clone();
    templates::fill_in(&mut object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".into(), json!(version.to_string()));
        let mut annotations = match metadata.remove("annotations") {
            Some(Value::Object(annotations)) => annotations,
            Some(_) | None => Map::new(),
        };
        annotations.insert(SOURCE_ANNOTATION.into(), json!(source.as_str()));
        annotations.insert(REVISION_ANNOTATION.into(), json!(revision.to_string()));
        annotations.insert(ORIGIN_ANNOTATION.into(), json!(origin.to_string()));
        if let Some(ShownSchedule { next, missed }) = schedule {
            annotations.extend(next.map(|next| (NEXT_RUN_ANNOTATION.into(), json!(next.to_string()))));
            annotations.extend(missed.as_ref().map(|missed| (MISSED_RUN_ANNOTATION.into(), json!(missed))));
        }
        metadata.insert("annotations".into(), Value::Object(annotations));
    }
    Bytes::from(object.to_string())
}

/// A workload that stays until its pods are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    /// Its source still has it.
    Wanted,
    /// Its source has it no more, and reads show that it is being deleted.
    Withdrawn,
}

/// The workloads of all kinds.
#[derive(Debug)]
pub(super) struct PublishedWorkloads {
    /// One for each kind, so that Jobs that come and go do not push the changes of Deployments out of the history.
    journals: [Journal<PodKey, PublishedWorkload>; WorkloadKind::ALL.len()],
    leaving: Mutex<BTreeMap<ObjectKey, Leaving>>,
}

impl PublishedWorkloads {
    /// Nothing is published yet. Versions start after `start`.
    pub(super) fn new(start: u64) -> Self {
        Self { journals: WorkloadKind::ALL.map(|_| Journal::new(start, HISTORY)), leaving: Mutex::default() }
    }

    /// Those of one kind.
    pub(super) fn of_kind(&self, kind: WorkloadKind) -> &Journal<PodKey, PublishedWorkload> {
        &self.journals[kind as usize]
    }

    /// Replaces what is shown of a workload. Another kind of object is left out.
    pub(super) fn publish(&self, shown: &ShownWorkload) {
        let Some(kind) = WorkloadKind::named(&shown.key.kind) else { return };
        if self.leaving().get(&shown.key) == Some(&Leaving::Withdrawn) {
            // Another one of this name.
            self.let_go(&shown.key);
        }
        self.of_kind(kind).update(key_of(&shown.key), |before, version| {
            let same = before.is_some_and(|before| before.json == encode(shown, before.version));
            (!same).then(|| PublishedWorkload::new(shown, version))
        });
    }

    /// The workload is gone; one that stays until its pods are gone is shown as being deleted.
    pub(super) fn withdraw(&self, key: &ObjectKey, now: Timestamp) {
        let Some(kind) = WorkloadKind::named(&key.kind) else { return };
        let mut leaving = self.leaving();
        match leaving.get_mut(key) {
            Some(state) => {
                *state = Leaving::Withdrawn;
                let deleted = |before: Option<&PublishedWorkload>, version| before.map(|before| before.in_deletion(version, now));
                self.of_kind(kind).update(key_of(key), deleted);
            }
            None => self.of_kind(kind).remove(&key_of(key), PublishedWorkload::with_version),
        }
    }

    fn leaving(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Leaving>> {
        // Each statement leaves it whole.
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a workload that is about to be withdrawn, until [`Self::let_go`]. Returns the UIDs of the owners of its pods: its own, and those of what it
    /// made.
    pub(super) fn keep(&self, key: &ObjectKey) -> BTreeSet<String> {
        let Some(kind) = WorkloadKind::named(&key.kind) else { return BTreeSet::new() };
        let Some(workload) = self.of_kind(kind).get(&key_of(key)) else { return BTreeSet::new() };
        let object = workload.object();
        let Some(uid) = object["metadata"]["uid"].as_str() else { return BTreeSet::new() };
        self.leaving().insert(key.clone(), Leaving::Wanted);
        let made = [WorkloadKind::ReplicaSet, WorkloadKind::Job].into_iter().flat_map(|kind| self.of_kind(kind).list().1);
        let made = made.filter_map(|made| {
            let object = made.object();
            let owners = object["metadata"]["ownerReferences"].as_array()?;
            let is_owned = owners.iter().any(|owner| owner["uid"] == uid);
            is_owned.then(|| object["metadata"]["uid"].as_str().map(str::to_owned))?
        });
        made.chain([uid.to_owned()]).collect()
    }

    /// Ends the stay of a workload: it is gone if its source has it no more.
    pub(super) fn let_go(&self, key: &ObjectKey) {
        // Held until the journal has it: another one of this name may be published.
        let mut leaving = self.leaving();
        if let (Some(Leaving::Withdrawn), Some(kind)) = (leaving.remove(key), WorkloadKind::named(&key.kind)) {
            self.of_kind(kind).remove(&key_of(key), PublishedWorkload::with_version);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::Position;
    use podstead_telemetry::journal::ChangeKind;

    fn shown(replicas: u32) -> ShownWorkload {
        let key = ObjectKey { kind: "Deployment".into(), namespace: "default".into(), name: "web".into() };
        let metadata = json!({"name": "web", "namespace": "default", "labels": {"app": "web"}, "annotations": {"a": "b"}});
        ShownWorkload {
            key,
            source: SourceId::new("fleet"),
            revision: Revision("abc".into()),
            origin: Origin { file: "web.yaml".into(), position: Position { line: 3, column: 1 } },
            object: json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas}}),
            schedule: None,
        }
    }

    #[test]
    fn publishing_the_same_changes_no_version() {
        let published = PublishedWorkloads::new(100);
        for replicas in [1, 1, 2] {
            published.publish(&shown(replicas));
        }
        let journal = published.of_kind(WorkloadKind::Deployment);
        assert_eq!(journal.version(), 102);
        let object = journal.list().1[0].object();
        assert_eq!(object["metadata"]["resourceVersion"], "102");
        let expected = json!({
            "a": "b", "podstead.dev/source": "fleet", "podstead.dev/revision": "abc", "podstead.dev/origin": "web.yaml:3:1",
        });
        assert_eq!(object["metadata"]["annotations"], expected);
        assert_eq!(published.of_kind(WorkloadKind::Job).version(), 100, "each kind has versions of its own");
    }

    #[test]
    fn withdrawn_workload_has_version_of_deletion() {
        let published = PublishedWorkloads::new(100);
        published.publish(&shown(1));
        published.withdraw(&shown(1).key, Timestamp::UNIX_EPOCH);
        let changes = published.of_kind(WorkloadKind::Deployment).since(101).unwrap();
        assert_eq!((changes[0].kind, changes[0].value.version), (ChangeKind::Deleted, 102));
        assert_eq!(changes[0].value.object()["metadata"]["resourceVersion"], "102");
    }

    #[test]
    fn kept_workload_is_shown_until_it_is_let_go() {
        let published = PublishedWorkloads::new(100);
        let with_uid = |uid: &str| {
            let mut shown = shown(1);
            shown.object["metadata"]["uid"] = json!(uid);
            shown
        };
        let key = shown(1).key;
        published.publish(&with_uid("u"));
        let mut set = with_uid("of-u");
        set.key.kind = "ReplicaSet".into();
        set.object["metadata"]["ownerReferences"] = json!([{"uid": "u"}]);
        published.publish(&set);
        assert_eq!(published.keep(&key), BTreeSet::from(["of-u".to_owned(), "u".to_owned()]));
        let journal = published.of_kind(WorkloadKind::Deployment);
        published.withdraw(&key, Timestamp::UNIX_EPOCH);
        let metadata = journal.list().1[0].object()["metadata"].clone();
        assert_eq!(metadata["deletionTimestamp"], "1970-01-01T00:00:00Z");
        assert_eq!(metadata["finalizers"], json!(["foregroundDeletion"]));
        published.let_go(&key);
        assert!(journal.is_empty());
        let kinds: Vec<_> = journal.since(100).unwrap().iter().map(|change| change.kind).collect();
        assert_eq!(kinds, [ChangeKind::Added, ChangeKind::Modified, ChangeKind::Deleted]);

        // Another one of the name comes before the pods are gone, and one that stays is let go before it is withdrawn.
        published.publish(&with_uid("u"));
        published.keep(&key);
        published.withdraw(&key, Timestamp::UNIX_EPOCH);
        published.publish(&with_uid("v"));
        published.let_go(&key);
        let metadata = journal.list().1[0].object()["metadata"].clone();
        assert!(metadata["uid"] == "v" && metadata["deletionTimestamp"].is_null(), "{metadata}");
        published.keep(&key);
        published.let_go(&key);
        published.withdraw(&key, Timestamp::UNIX_EPOCH);
        assert!(journal.is_empty());
    }

    #[test]
    fn object_without_metadata_is_published_unchanged() {
        let published = PublishedWorkloads::new(0);
        published.publish(&ShownWorkload { object: json!("odd"), ..shown(1) });
        assert_eq!(published.of_kind(WorkloadKind::Deployment).list().1[0].object(), "odd");
        published.withdraw(&shown(1).key, Timestamp::UNIX_EPOCH);
        assert!(published.of_kind(WorkloadKind::Deployment).is_empty());
    }
}
