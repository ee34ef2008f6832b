//! From a directory to operations on pods: source, intake and mux together, as the daemon connects them.

use crate::follower::{DEADLINE, options, put};
use crate::mounts::{in_own_mounts, mount_tmpfs, unmount};
use podstead::pod::{AdmitContext, NodeName, SourceId};
use podstead::source::dir::DirectorySource;
use podstead::store::CheckContext;
use podstead::store::intake::{self, Intake, IntakeHandle, IntakeSource};
use podstead::store::{SourceStatus, SourceStatusSink};
use podstead::sys::layout::Paths;
use podstead::telemetry::events::{EventRecorder, EventType, Subject};
use podstead::{artifact::Wishes, source::PodSource, store::SourceControl};
use podstead::{
    mux::{self, Merge, MuxTask, PodOp, PodUpdate},
    pod::DesiredPod,
};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

#[derive(Debug)]
struct Status(watch::Sender<Option<SourceStatus>>);

impl SourceStatusSink for Status {
    fn publish_source(&self, status: SourceStatus) {
        self.0.send_replace(Some(status));
    }
}

impl EventRecorder for Status {
    fn record(&self, _: &Subject, _: EventType, _: &str, _: &str) {}
}

/// A pipeline that runs until the value is dropped.
struct Pipeline {
    updates: mpsc::Receiver<PodUpdate>,
    status: watch::Receiver<Option<SourceStatus>>,
    intake: IntakeHandle,
    _stages: JoinSet<()>,
}

fn id() -> SourceId {
    SourceId::new("manifests")
}

fn start(state: &Path, manifests: &Path, known: Vec<DesiredPod>) -> Pipeline {
    let paths = Paths { state: state.to_owned(), run: state.join("run"), logs: state.join("logs") };
    let check = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
    let (sender, status) = watch::channel(None);
    let seen = Arc::new(Status(sender));
    let described = IntakeSource {
        id: id(),
        kind: "directory".into(),
        location: manifests.display().to_string(),
        history_limit: 3,
        allow: None,
        requirements: Arc::default(),
        substitute: None,
        layers: Arc::default(),
        keeps_names: false,
    };
    let (intake, handle) = Intake::new(vec![described], &paths, check, seen.clone(), seen.clone());
    let (task, _) = MuxTask::new(Merge::new([id()], known), Arc::default(), seen);
    let (report, reports) = mpsc::channel(1);
    let (set, sets) = mpsc::channel(4);
    let (update, updates) = mpsc::channel(8);
    let mut stages = JoinSet::new();
    stages.spawn(intake::run(intake, reports, set));
    stages.spawn(mux::run(task, sets, update));
    stages.spawn(Box::new(DirectorySource::new(id(), manifests, options())).run(report, Wishes::none()));
    Pipeline { updates, status, intake: handle, _stages: stages }
}

impl Pipeline {
    async fn update(&mut self) -> PodUpdate {
        tokio::time::timeout(DEADLINE, self.updates.recv()).await.expect("no operation in time").unwrap()
    }

    /// The next operation as `op name/image ...`.
    async fn next(&mut self) -> String {
        short(&self.update().await)
    }

    async fn until(&mut self, condition: impl FnMut(&Option<SourceStatus>) -> bool) -> SourceStatus {
        let found = tokio::time::timeout(DEADLINE, self.status.wait_for(condition)).await.expect("never so").unwrap();
        found.clone().unwrap()
    }

    async fn failing(&mut self) -> String {
        self.until(|status| status.as_ref().is_some_and(|status| status.last_error.is_some())).await.last_error.unwrap()
    }
}

fn short(update: &PodUpdate) -> String {
    let image = |pod: &DesiredPod| pod.pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
    let pods: Vec<String> = update.pods.iter().map(|pod| format!("{}/{}", pod.full_name.name, image(pod))).collect();
    format!("{:?} {}", update.op, pods.join(" ")).trim_end().to_owned()
}

fn pod(name: &str, image: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  containers:\n  - name: c\n    image: {image}\n")
}

#[tokio::test]
async fn a_manifest_lives_through_edits_breakage_and_a_move_as_one_pod() {
    let (state, manifests) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |name: &str| manifests.path().join(name);
    let mut pipeline = start(state.path(), manifests.path(), Vec::new());
    assert_eq!(pipeline.next().await, "Add");
    put(&at("web.yaml"), &pod("web", "one"));
    let added = pipeline.update().await;
    assert_eq!(short(&added), "Add web-edge/one");
    put(&at("web.yaml"), &pod("web", "two"));
    let updated = pipeline.update().await;
    assert_eq!(short(&updated), "Update web-edge/two");
    put(&at("web.yaml"), "apiVersion: v1\nkind: [");
    let broken = pipeline.until(|status| status.as_ref().is_some_and(|status| !status.problems.is_empty())).await;
    assert_eq!(broken.pods, 1);
    put(&at("web.yaml"), &pod("web", "three"));
    let mended = pipeline.update().await;
    assert_eq!(short(&mended), "Update web-edge/three");
    fs::rename(at("web.yaml"), at("moved.yaml")).unwrap();
    let moved = pipeline.update().await;
    assert_eq!(short(&moved), "Update web-edge/three");
    for update in [&updated, &mended, &moved] {
        assert_eq!(update.pods[0].uid, added.pods[0].uid);
    }
    fs::remove_file(at("moved.yaml")).unwrap();
    assert_eq!(pipeline.next().await, "Remove web-edge/three");
}

#[tokio::test]
async fn a_restart_adopts_the_pods_and_sees_what_was_edited_meanwhile() {
    let (state, manifests) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |name: &str| manifests.path().join(name);
    for name in ["edited", "gone", "kept"] {
        put(&at(&format!("{name}.yaml")), &pod(name, "one"));
    }
    let mut pipeline = start(state.path(), manifests.path(), Vec::new());
    let added = pipeline.update().await;
    assert_eq!(added.pods.len(), 3);
    drop(pipeline);
    fs::remove_file(at("gone.yaml")).unwrap();
    put(&at("edited.yaml"), &pod("edited", "two"));
    let known = added.pods.iter().map(|pod| DesiredPod::clone(pod)).collect();
    let mut pipeline = start(state.path(), manifests.path(), known);
    let adopted = pipeline.update().await;
    assert_eq!(short(&adopted), "Add edited-edge/one gone-edge/one kept-edge/one", "the last good set comes first");
    assert_eq!(uids(&adopted), uids(&added));
    assert_eq!(pipeline.next().await, "Remove gone-edge/one");
    let updated = pipeline.update().await;
    assert_eq!(short(&updated), "Update edited-edge/two");
    assert_eq!(uids(&updated), uids(&added)[..1]);
}

fn uids(update: &PodUpdate) -> Vec<podstead::pod::PodUid> {
    update.pods.iter().map(|pod| pod.uid.clone()).collect()
}

#[test]
fn an_unmounted_directory_removes_nothing_until_that_is_meant() {
    in_own_mounts(|| async {
        let (state, base) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let manifests = base.path().join("manifests");
        fs::create_dir(&manifests).unwrap();
        mount_tmpfs(&manifests);
        put(&manifests.join("web.yaml"), &pod("web", "one"));
        let mut pipeline = start(state.path(), &manifests, Vec::new());
        let added = pipeline.update().await;
        unmount(&manifests);
        let text = pipeline.failing().await;
        assert!(
            text.contains("a mount may be missing")
                && text.contains("Nothing changed; 1 pod keeps running")
                && !text.contains("prune"),
            "{text}"
        );
        drop(pipeline);
        // Not mounted at the next start either.
        let known = added.pods.iter().map(|pod| DesiredPod::clone(pod)).collect();
        let mut pipeline = start(state.path(), &manifests, known);
        assert_eq!(uids(&pipeline.update().await), uids(&added));
        pipeline.failing().await;
        assert_eq!(pipeline.intake.prune(&id()).await, Ok(1));
        assert_eq!(pipeline.next().await, "Remove web-edge/one");
        put(&manifests.join("web.yaml"), &pod("web", "two"));
        assert_eq!(pipeline.next().await, "Add web-edge/two");
    });
}

#[tokio::test]
async fn a_directory_that_is_removed_or_unreadable_removes_nothing() {
    let (state, base) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let manifests = base.path().join("manifests");
    fs::create_dir(&manifests).unwrap();
    put(&manifests.join("web.yaml"), &pod("web", "one"));
    let mut pipeline = start(state.path(), &manifests, Vec::new());
    assert_eq!(pipeline.next().await, "Add web-edge/one");
    fs::rename(&manifests, base.path().join("aside")).unwrap();
    assert!(pipeline.failing().await.contains("does not exist. Nothing changed; "));
    fs::write(&manifests, [0xff; 64]).unwrap();
    pipeline
        .until(|status| status.as_ref().is_some_and(|status| status.last_error.as_ref().is_none_or(|text| !text.contains("exist"))))
        .await;
    fs::remove_file(&manifests).unwrap();
    fs::rename(base.path().join("aside"), &manifests).unwrap();
    put(&manifests.join("web.yaml"), &pod("web", "two"));
    assert_eq!(pipeline.next().await, "Update web-edge/two");
}

#[tokio::test]
async fn a_hundred_pods_of_one_rename_are_one_operation() {
    let (state, base) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (manifests, staged) = (base.path().join("manifests"), base.path().join("staged"));
    fs::create_dir(&manifests).unwrap();
    fs::create_dir(&staged).unwrap();
    for number in 0..100 {
        fs::write(staged.join(format!("{number}.yaml")), pod(&format!("pod-{number}"), "one")).unwrap();
    }
    let mut pipeline = start(state.path(), &manifests, Vec::new());
    assert_eq!(pipeline.next().await, "Add");
    let started = Instant::now();
    fs::rename(&manifests, base.path().join("aside")).unwrap();
    fs::rename(&staged, &manifests).unwrap();
    let added = pipeline.update().await;
    println!("100 pods: {:?}", started.elapsed());
    assert_eq!((added.op, added.pods.len()), (PodOp::Add, 100));
}

#[tokio::test]
async fn a_rename_becomes_an_operation_within_milliseconds_and_is_durable_by_then() {
    let (state, manifests) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut pipeline = start(state.path(), manifests.path(), Vec::new());
    assert_eq!(pipeline.next().await, "Add");
    // A few milliseconds on an idle machine, of which the disk takes what it takes; on a busy one it is measured again.
    for attempt in 0.. {
        let mut times = Vec::new();
        for round in 0..20 {
            let image = format!("image-{attempt}-{round}");
            let started = Instant::now();
            put(&manifests.path().join("web.yaml"), &pod("web", &image));
            pipeline.update().await;
            times.push(started.elapsed());
            let record = fs::read_to_string(state.path().join("sources/manifests/last-good.json")).unwrap();
            assert!(record.contains(&image));
        }
        times.sort();
        println!("rename to operation: median {:?}, worst {:?}", times[10], times[19]);
        if times[10] < Duration::from_millis(500) {
            return;
        }
        assert!(attempt < 10, "{times:?}");
    }
}
