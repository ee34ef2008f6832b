//! State that the API serves: pods with their status, workloads, and sources. The stages publish here and requests read from here, so that no
//! request ever waits for the sync loop, nor the sync loop for a request.

use super::controller_revisions::PublishedRevision;
pub use super::key::{ORIGIN_ANNOTATION, PodKey, REVISION_ANNOTATION, SOURCE_ANNOTATION};
use super::looked_up_journals::LookedUpJournals;
use super::published_workloads::{PublishedWorkload, PublishedWorkloads};
use bytes::Bytes;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use podstead_expand::{CONTROLLER_REVISION, ShownWorkload, WorkloadSink};
use podstead_manifest::ObjectKey;
use podstead_pod::{DesiredPod, PodUid, SourceId};
use podstead_status::PodStatusSink;
use podstead_store::{SourceStatus, SourceStatusSink};
use podstead_telemetry::journal::Journal;
use podstead_workload::object::WorkloadKind;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::watch;

/// Changes remembered for watchers. Versions of one pod share their spec, so that one costs about as much as a status.
const HISTORY: usize = 512;

/// One version of one pod.
#[derive(Debug)]
pub struct PublishedPod {
    /// The desired pod.
    pub desired: Arc<DesiredPod>,
    /// The observed status.
    pub status: PodStatus,
    /// Creation time of this incarnation.
    pub created_at: Timestamp,
    /// The `resourceVersion`.
    pub version: u64,
    json: OnceLock<Bytes>,
}

/// A pod object that borrows what it can.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PodObject<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: ObjectMeta,
    spec: Option<&'a PodSpec>,
    status: &'a PodStatus,
}

impl PublishedPod {
    fn new(desired: Arc<DesiredPod>, status: PodStatus, created_at: Timestamp, version: u64) -> Self {
        Self { desired, status, created_at, version, json: OnceLock::new() }
    }

    fn with_version(&self, version: u64) -> Self {
        Self::new(Arc::clone(&self.desired), self.status.clone(), self.created_at, version)
    }

    /// True if publishing these values would change nothing visible.
    fn shows(&self, desired: &DesiredPod, status: &PodStatus) -> bool {
        *self.desired == *desired && self.status == *status
    }

    /// The metadata of the object: the manifest's, with version, time of creation and where it is managed.
    pub fn metadata(&self) -> ObjectMeta {
        let mut metadata = self.desired.pod.metadata.clone();
        metadata.name = Some(self.desired.full_name.name.clone());
        metadata.namespace = Some(self.desired.full_name.namespace.clone());
        metadata.uid = Some(self.desired.uid.to_string());
        metadata.resource_version = Some(self.version.to_string());
        metadata.creation_timestamp = Some(Time(self.created_at));
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(SOURCE_ANNOTATION.into(), self.desired.source.to_string());
        annotations.insert(REVISION_ANNOTATION.into(), self.desired.revision.to_string());
        annotations.insert(ORIGIN_ANNOTATION.into(), self.desired.origin.to_string());
        metadata
    }

    /// The object as a typed value.
    pub fn object(&self) -> Pod {
        Pod { metadata: self.metadata(), spec: self.desired.pod.spec.clone(), status: Some(self.status.clone()) }
    }

    /// The object as JSON; made once for all who ask.
    pub fn json(&self) -> Bytes {
        let make = || {
            let object = PodObject {
                api_version: "v1",
                kind: "Pod",
                metadata: self.metadata(),
                spec: self.desired.pod.spec.as_ref(),
                status: &self.status,
            };
            // Writing to memory cannot fail, and these types have string keys only.
            Bytes::from(serde_json::to_vec(&object).unwrap_or_default())
        };
        self.json.get_or_init(make).clone()
    }
}

/// One incarnation of a name. The first of a queue is shown.
#[derive(Debug)]
struct Incarnation {
    uid: PodUid,
    created_at: Timestamp,
    /// Published while an earlier incarnation still goes; shown when that one is withdrawn.
    waiting: Option<(Arc<DesiredPod>, PodStatus)>,
}

/// Pods, workloads and sources as served by the API.
///
/// The API knows a pod by namespace and name, the host by UID. While a pod that was removed still terminates and one of the same name
/// was added, the old one is shown; the new one follows when the old one is withdrawn, as in a cluster.
#[derive(Debug)]
pub struct Published {
    pods: Journal<PodKey, PublishedPod>,
    incarnations: Mutex<BTreeMap<PodKey, VecDeque<Incarnation>>>,
    sources: Mutex<BTreeMap<SourceId, SourceStatus>>,
    workloads: PublishedWorkloads,
    looked_up: LookedUpJournals,
    /// Revisions of StatefulSets and DaemonSets.
    controller_revisions: Mutex<BTreeMap<ObjectKey, PublishedRevision>>,
    /// Pods of an earlier daemon of which nothing was published yet.
    expected: watch::Sender<BTreeSet<PodUid>>,
    now: fn() -> Timestamp,
}

impl Published {
    /// Nothing is published yet. Versions start after `start`, which must grow from one start of the daemon to the next, so that
    /// a watcher that comes back with an older version lists again; see [`first_version`]. `now` is the clock that dates pods
    /// whose metadata has no time of creation.
    pub fn new(start: u64, now: fn() -> Timestamp) -> Self {
        let workloads = PublishedWorkloads::new(start);
        let pods = Journal::new(start, HISTORY);
        let looked_up = LookedUpJournals::new(start);
        let expected = watch::Sender::default();
        Self {
            pods,
            incarnations: Mutex::default(),
            sources: Mutex::default(),
            workloads,
            looked_up,
            controller_revisions: Mutex::default(),
            expected,
            now,
        }
    }

    /// Revisions of StatefulSets and DaemonSets, in the order of their names.
    pub(super) fn controller_revisions(&self) -> Vec<PublishedRevision> {
        lock(&self.controller_revisions).values().cloned().collect()
    }

    /// Names the pods that an earlier daemon left. Called once, before any of them is published.
    pub fn expect(&self, uids: BTreeSet<PodUid>) {
        self.expected.send_replace(uids);
    }

    /// Waits until something was published of each expected pod, so that no list lacks a pod that runs.
    pub async fn all_expected(&self) {
        // The sender is a field of this value: it is not dropped meanwhile.
        self.expected.subscribe().wait_for(BTreeSet::is_empty).await.ok();
    }

    fn no_longer_expected(&self, uid: &PodUid) {
        self.expected.send_if_modified(|uids| uids.remove(uid));
    }

    /// Workloads of one kind, for listing and watching.
    pub fn workloads(&self, kind: WorkloadKind) -> &Journal<PodKey, PublishedWorkload> {
        self.workloads.of_kind(kind)
    }

    /// Keeps a workload that is about to be deleted until its pods are gone. The returned wait ends then, and lets it go; it is to be run once the
    /// workload is deleted. Dropped without being run, it lets the workload go at once.
    pub(super) fn keep_until_pods_are_gone(self: &Arc<Self>, key: ObjectKey) -> Kept {
        let owners = self.workloads.keep(&key);
        Kept { published: Arc::clone(self), key, owners }
    }

    /// Pods, for listing and watching.
    pub fn pods(&self) -> &Journal<PodKey, PublishedPod> {
        &self.pods
    }

    /// Journals of the kinds that are looked up when somebody asks.
    pub(super) fn looked_up(&self) -> &LookedUpJournals {
        &self.looked_up
    }

    /// Sources by name.
    pub fn sources(&self) -> Vec<SourceStatus> {
        lock(&self.sources).values().cloned().collect()
    }

    fn created_at(&self, desired: &DesiredPod, status: &PodStatus) -> Timestamp {
        let of_metadata = desired.pod.metadata.creation_timestamp.as_ref();
        of_metadata.or(status.start_time.as_ref()).map_or_else(self.now, |time| time.0)
    }

    fn show(&self, key: PodKey, desired: &Arc<DesiredPod>, status: PodStatus, created_at: Timestamp) {
        self.pods.update(key, |before, version| {
            let same = before.is_some_and(|pod| pod.shows(desired, &status));
            (!same).then(|| PublishedPod::new(Arc::clone(desired), status, created_at, version))
        });
    }
}

/// A workload that stays until its pods are gone. It goes when this is dropped.
#[derive(Debug)]
pub(super) struct Kept {
    published: Arc<Published>,
    key: ObjectKey,
    /// UIDs of the owners of its pods.
    owners: BTreeSet<String>,
}

impl Kept {
    /// Waits until no pod of the workload is left.
    pub(super) async fn pods_are_gone(self) {
        let mut versions = self.published.pods.subscribe();
        loop {
            versions.mark_unchanged();
            let is_of_it = |pod: &Arc<PublishedPod>| {
                let mut owners = pod.desired.pod.metadata.owner_references.iter().flatten();
                owners.any(|owner| self.owners.contains(&owner.uid))
            };
            // The sender lives as long as the journal.
            if !self.published.pods.list().1.iter().any(is_of_it) || versions.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.published.workloads.let_go(&self.key);
    }
}

/// A start for versions that grows from one start of the daemon to the next: the milliseconds of `now`. Changes are far fewer than one
/// in a millisecond. When the clock went back, versions of the earlier life are refused as unknown, which has the same effect.
pub fn first_version(now: Timestamp) -> u64 {
    u64::try_from(now.as_millisecond()).unwrap_or(0)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole between statements: a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PodStatusSink for Published {
    fn publish(&self, desired: &Arc<DesiredPod>, status: PodStatus) {
        let key = PodKey::from(&desired.full_name);
        let mut incarnations = lock(&self.incarnations);
        let queue = incarnations.entry(key.clone()).or_default();
        let position = queue.iter().position(|incarnation| incarnation.uid == desired.uid).unwrap_or_else(|| {
            let created_at = self.created_at(desired, &status);
            queue.push_back(Incarnation { uid: desired.uid.clone(), created_at, waiting: None });
            queue.len() - 1
        });
        if position == 0 {
            let created_at = queue[0].created_at;
            self.show(key, desired, status, created_at);
        } else {
            queue[position].waiting = Some((Arc::clone(desired), status));
        }
        self.no_longer_expected(&desired.uid);
    }

    fn withdraw(&self, uid: &PodUid) {
        self.no_longer_expected(uid);
        let mut incarnations = lock(&self.incarnations);
        let found = incarnations.iter().find_map(|(key, queue)| {
            queue.iter().position(|incarnation| incarnation.uid == *uid).map(|position| (key.clone(), position))
        });
        let Some((key, position)) = found else { return };
        let Some(queue) = incarnations.get_mut(&key) else { return };
        queue.remove(position);
        if position == 0 {
            self.pods.remove(&key, PublishedPod::with_version);
            if let Some(next) = queue.front_mut()
                && let Some((desired, status)) = next.waiting.take()
            {
                self.show(key.clone(), &desired, status, next.created_at);
            }
        }
        if queue.is_empty() {
            incarnations.remove(&key);
        }
    }
}

impl WorkloadSink for Published {
    fn publish_workload(&self, shown: Arc<ShownWorkload>) {
        if shown.key.kind == CONTROLLER_REVISION {
            lock(&self.controller_revisions).insert(shown.key.clone(), PublishedRevision::new(&shown));
        } else {
            self.workloads.publish(&shown);
        }
    }

    fn withdraw_workload(&self, key: &ObjectKey) {
        lock(&self.controller_revisions).remove(key);
        self.workloads.withdraw(key, (self.now)());
    }
}

impl SourceStatusSink for Published {
    fn publish_source(&self, status: SourceStatus) {
        lock(&self.sources).insert(status.id.clone(), status);
    }

    fn withdraw_source(&self, id: &SourceId) {
        lock(&self.sources).remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::{Origin, PodFullName, Position, Revision};
    use podstead_telemetry::journal::ChangeKind;

    fn desired(uid: &str, name: &str) -> Arc<DesiredPod> {
        Arc::new(DesiredPod {
            uid: PodUid::new(uid),
            full_name: PodFullName { name: name.into(), namespace: "default".into() },
            source: SourceId::new("manifests"),
            revision: Revision("abc".into()),
            origin: Origin { file: "web.yaml".into(), position: Position { line: 1, column: 1 } },
            pod: Arc::new(Pod { spec: Some(PodSpec::default()), ..Pod::default() }),
        })
    }

    fn status(phase: &str) -> PodStatus {
        PodStatus { phase: Some(phase.into()), ..PodStatus::default() }
    }

    fn published() -> Published {
        Published::new(100, || Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn publishing_the_same_again_changes_no_version() {
        let published = published();
        let web = desired("1", "web");
        published.publish(&web, status("Pending"));
        published.publish(&web, status("Pending"));
        published.publish(&desired("1", "web"), status("Pending"));
        assert_eq!(published.pods().version(), 101);
        published.publish(&web, status("Running"));
        assert_eq!(published.pods().version(), 102);
    }

    #[test]
    fn a_new_incarnation_is_shown_only_after_the_old_one_is_withdrawn() {
        let published = published();
        published.publish(&desired("old", "web"), status("Running"));
        published.publish(&desired("new", "web"), status("Pending"));
        let (_, pods) = published.pods().list();
        assert_eq!(pods.len(), 1);
        assert_eq!(pods[0].desired.uid.as_str(), "old");
        published.withdraw(&PodUid::new("old"));
        let seen: Vec<_> = published.pods().since(100).unwrap().iter().map(|c| (c.kind, c.value.desired.uid.to_string())).collect();
        let expected = [(ChangeKind::Added, "old"), (ChangeKind::Deleted, "old"), (ChangeKind::Added, "new")];
        assert_eq!(seen, expected.map(|(kind, uid)| (kind, uid.to_owned())));
        published.withdraw(&PodUid::new("new"));
        assert!(published.pods().is_empty());
    }

    #[test]
    fn a_waiting_incarnation_can_be_withdrawn_without_having_been_shown() {
        let published = published();
        published.publish(&desired("old", "web"), status("Running"));
        published.publish(&desired("new", "web"), status("Pending"));
        published.withdraw(&PodUid::new("new"));
        published.withdraw(&PodUid::new("old"));
        published.withdraw(&PodUid::new("old"));
        assert_eq!(published.pods().since(100).unwrap().len(), 2);
        assert!(lock(&published.incarnations).is_empty());
    }

    #[tokio::test]
    async fn expected_pods_are_awaited() {
        let published = published();
        published.all_expected().await;
        published.expect(["1", "2"].map(PodUid::new).into());
        let mut all = Box::pin(published.all_expected());
        assert!(futures_util::poll!(&mut all).is_pending());
        published.publish(&desired("1", "web"), status("Running"));
        assert!(futures_util::poll!(&mut all).is_pending());
        // One that had been removed, and is gone.
        published.withdraw(&PodUid::new("2"));
        all.await;
    }

    #[test]
    fn the_object_says_where_it_is_managed() {
        let published = published();
        published.publish(&desired("1", "web"), status("Running"));
        let pod = published.pods().list().1.remove(0);
        let json: serde_json::Value = serde_json::from_slice(&pod.json()).unwrap();
        assert_eq!(json["kind"], "Pod");
        assert_eq!(json["metadata"]["resourceVersion"], "101");
        assert_eq!(json["metadata"]["annotations"][ORIGIN_ANNOTATION], "web.yaml:1:1");
        assert_eq!(json["metadata"]["creationTimestamp"], "1970-01-01T00:00:00Z");
        assert_eq!(json, serde_json::to_value(pod.object()).unwrap());
    }
}
