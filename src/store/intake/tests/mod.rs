//! The intake from report to SET, on a real disk.

mod layers;
mod revisions;
mod upgrades;

use super::*;
use crate::{PruneError, SourceControl, SourceStatus};
use podstead_artifact::{Artifact, Layers, Place, Surroundings};
use podstead_pod::{AdmitContext, NodeName, Revision};
use podstead_settings::{Allow, Requirements};
use podstead_telemetry::events::{EventType, Subject};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

#[derive(Debug, Default)]
struct Seen {
    events: Mutex<Vec<String>>,
    statuses: Mutex<Vec<SourceStatus>>,
}

impl EventRecorder for Seen {
    fn record(&self, _: &Subject, _: EventType, reason: &str, message: &str) {
        self.events.lock().unwrap().push(format!("{reason}: {message}"));
    }
}

impl SourceStatusSink for Seen {
    fn publish_source(&self, status: SourceStatus) {
        self.statuses.lock().unwrap().push(status);
    }
}

/// A running intake with one source.
struct Running {
    reports: mpsc::Sender<(SourceId, SourceReport)>,
    sets: mpsc::Receiver<Set>,
    handle: IntakeHandle,
    configurator: IntakeConfigurator,
    seen: Arc<Seen>,
    task: tokio::task::JoinHandle<()>,
}

fn id() -> SourceId {
    SourceId::new("manifests")
}

fn allowed(allow: &str) -> Option<Arc<Allow>> {
    let facts = podstead_config::HostFacts { host_name: "edge".into(), executable: None };
    let head = "apiVersion: podstead.dev/v1alpha1\nkind: Config\nsources:\n- name: a\n  directory: {path: /a}\n";
    let field = if allow.is_empty() { String::new() } else { format!("  allow: {allow}\n") };
    let text = format!("{head}{field}");
    podstead_config::Config::parse(text.as_bytes(), &facts, Path::new("/c")).unwrap().sources.remove(0).allow
}

fn paths(root: &Path) -> Paths {
    Paths { state: root.into(), run: root.join("run"), logs: root.join("logs") }
}

fn start(root: &Path) -> Running {
    start_with(root, "")
}

/// `allow` as it is written in the configuration; empty for everything.
fn start_with(root: &Path, allow: &str) -> Running {
    start_in_layers(root, allow, &[])
}

fn start_in_layers(root: &Path, allow: &str, layers: &[&str]) -> Running {
    let layers: Vec<String> = layers.iter().map(|layer| (*layer).to_owned()).collect();
    let layers = Arc::new(Layers::parse(&layers).unwrap());
    let paths = paths(root);
    let check = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
    let source = IntakeSource {
        id: id(),
        kind: "directory".into(),
        location: "/etc/m".into(),
        history_limit: 3,
        allow: allowed(allow),
        requirements: Arc::default(),
        substitute: None,
        layers,
        keeps_names: false,
    };
    let seen = Arc::new(Seen::default());
    let (intake, handle) = Intake::new(vec![source], &paths, check, seen.clone(), seen.clone());
    let (reports, report_receiver) = mpsc::channel(1);
    let (set_sender, sets) = mpsc::channel(1);
    let configurator = intake.configurator();
    let task = tokio::spawn(run(intake, report_receiver, set_sender));
    Running { reports, sets, handle, configurator, seen, task }
}

impl Running {
    async fn report(&self, report: SourceReport) {
        self.reports.send((id(), report)).await.unwrap();
    }

    async fn artifact(&self, place: &str, files: &[(&str, &str)]) {
        self.report(SourceReport::Artifact(artifact(place, files))).await;
    }

    /// Pods of the next SET as `name=image`.
    async fn pods(&mut self) -> Vec<String> {
        pods(&self.sets.recv().await.unwrap())
    }

    /// Waits until everything that was sent is taken in, and returns the last state; no SET may come of it.
    async fn status(&mut self) -> SourceStatus {
        // The channel has one place: when the second is in, the first was taken out, and everything before it is done.
        for _ in 0..2 {
            self.report(SourceReport::Degraded(None)).await;
        }
        assert!(self.sets.try_recv().is_err(), "a SET that nobody expected");
        self.seen.statuses.lock().unwrap().last().unwrap().clone()
    }

    fn events(&self, reason: &str) -> Vec<String> {
        let events = self.seen.events.lock().unwrap();
        events.iter().filter(|event| event.starts_with(reason)).cloned().collect()
    }

    /// Ends as on a crash: nothing is said any more.
    async fn end(self) {
        self.task.abort();
        self.task.await.unwrap_err();
    }
}

fn pods(set: &Set) -> Vec<String> {
    let image = |pod: &super::super::SetPod| pod.pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
    set.pods.iter().map(|(key, pod)| format!("{}={}", key.name, image(pod))).collect()
}

fn pod(name: &str, image: &str) -> String {
    format!("{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: c, image: {image}}}]}}}}")
}

fn artifact(place: &str, files: &[(&str, &str)]) -> Artifact {
    let text: String = files.iter().map(|(name, text)| format!("{name}:{text};")).collect();
    let files: BTreeMap<_, _> = files.iter().map(|(name, text)| ((*name).to_owned(), Ok(text.as_bytes().into()))).collect();
    Artifact {
        revision: Revision(text),
        place: Some(Place(place.into())),
        commit: None,
        files,
        beside: BTreeMap::new(),
        around: Surroundings::default(),
    }
}

fn record(root: &Path) -> PathBuf {
    root.join("sources/manifests/last-good.json")
}

#[tokio::test]
async fn what_is_handed_on_is_on_disk() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path());
    running.artifact("here", &[("p.yaml", &pod("p", "one"))]).await;
    assert_eq!(running.pods().await, ["p=one"]);
    assert!(fs::read_to_string(record(root.path())).unwrap().contains("\"image\":\"one\""));
}

#[tokio::test]
async fn a_start_goes_on_with_the_last_good_set_and_writes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let files = [("p.yaml", &*pod("p", "one"))];
    let mut running = start(root.path());
    running.artifact("here", &files).await;
    running.pods().await;
    running.end().await;
    let written = fs::metadata(record(root.path())).unwrap().ino();
    let mut running = start(root.path());
    assert_eq!(running.pods().await, ["p=one"], "before the source said anything");
    running.report(SourceReport::Failed("no network".into())).await;
    let status = running.status().await;
    assert!(status.last_error.unwrap().contains("no network. Nothing changed; "));
    running.artifact("here", &files).await;
    assert_eq!(running.pods().await, ["p=one"]);
    assert_eq!(fs::metadata(record(root.path())).unwrap().ino(), written, "unchanged content is not written again");
    assert_eq!(running.status().await.last_error, None);
}

#[tokio::test]
async fn a_broken_object_keeps_its_last_good_version_also_through_a_restart() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path());
    running.artifact("here", &[("p.yaml", &pod("p", "one"))]).await;
    running.pods().await;
    let broken = pod("p", "two").replace("containers", "contaners");
    running.artifact("here", &[("p.yaml", &broken)]).await;
    assert_eq!(running.pods().await, ["p=one"]);
    running.end().await;
    let mut running = start(root.path());
    assert_eq!(running.pods().await, ["p=one"]);
    running.artifact("here", &[("p.yaml", &broken)]).await;
    assert_eq!(running.pods().await, ["p=one"]);
    assert!(!running.status().await.problems.is_empty());
    running.artifact("here", &[("p.yaml", &pod("p", "two"))]).await;
    assert_eq!(running.pods().await, ["p=two"]);
}

#[tokio::test]
async fn each_problem_is_told_once() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path());
    let broken = pod("p", "one").replace("containers", "contaners");
    for image in ["one", "two", "three"] {
        running.artifact("here", &[("p.yaml", &broken), ("q.yaml", &pod("q", image))]).await;
        assert_eq!(running.pods().await, [format!("q={image}")]);
    }
    let told = running.events("FailedValidation");
    assert!(told.iter().any(|event| event.contains("p.yaml:1:") && event.contains("contaners")), "{told:?}");
    let distinct: std::collections::BTreeSet<_> = told.iter().collect();
    assert_eq!(distinct.len(), told.len(), "{told:?}");
    running.artifact("here", &[("q.yaml", &pod("q", "four"))]).await;
    running.pods().await;
    assert_eq!(running.events("Validated").len(), 1);
}

#[tokio::test]
async fn the_same_place_emptied_removes_and_another_place_that_is_empty_does_not() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path());
    running.artifact("here", &[("p.yaml", &pod("p", "one"))]).await;
    running.pods().await;
    for nothing in [&[][..], &[("README.yaml", "# nothing")], &[("x.yaml", "[")]] {
        running.artifact("elsewhere", nothing).await;
        let status = running.status().await;
        assert!(status.last_error.unwrap().contains("/etc/m is not the directory that revision"), "{nothing:?}");
        assert_eq!(status.pods, 1);
    }
    running.artifact("here", &[]).await;
    assert_eq!(running.pods().await, [""; 0]);
    running.artifact("elsewhere", &[]).await;
    assert_eq!(running.pods().await, [""; 0], "nothing is lost where nothing was");
}

#[tokio::test]
async fn a_directory_emptied_while_the_daemon_was_down_is_told_from_a_missing_mount() {
    for (place, emptied) in [("here", true), ("mount point", false)] {
        let root = tempfile::tempdir().unwrap();
        let mut running = start(root.path());
        running.artifact("here", &[("p.yaml", &pod("p", "one"))]).await;
        running.pods().await;
        running.end().await;
        let mut running = start(root.path());
        assert_eq!(running.pods().await, ["p=one"]);
        running.artifact(place, &[]).await;
        if emptied {
            assert_eq!(running.pods().await, [""; 0]);
        } else {
            assert_eq!(running.status().await.pods, 1);
            running.artifact("here", &[("p.yaml", &pod("p", "two"))]).await;
            assert_eq!(running.pods().await, ["p=two"], "mounted at last");
        }
    }
}

#[tokio::test]
async fn an_emptiness_in_doubt_can_be_meant() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path());
    running.artifact("here", &[("p.yaml", &pod("p", "one"))]).await;
    running.pods().await;
    assert_eq!(running.handle.prune(&id()).await, Err(PruneError::NothingHeld(id())));
    running.artifact("elsewhere", &[]).await;
    assert_eq!(running.status().await.pods, 1);
    assert_eq!(running.handle.prune(&id()).await, Ok(1));
    assert_eq!(running.pods().await, [""; 0]);
    assert_eq!(running.status().await.last_error, None);
    assert_eq!(running.handle.prune(&id()).await, Err(PruneError::NothingHeld(id())));
    let nobody = SourceId::new("nobody");
    assert_eq!(running.handle.prune(&nobody).await, Err(PruneError::UnknownSource(nobody)));
}

#[tokio::test]
async fn a_source_that_was_pruned_while_it_failed_comes_back_when_it_recovers() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path());
    running.artifact("here", &[("p.yaml", &pod("p", "one"))]).await;
    running.pods().await;
    running.report(SourceReport::Failed("/etc/m does not exist".into())).await;
    running.status().await;
    assert_eq!(running.handle.prune(&id()).await, Ok(1));
    assert_eq!(running.pods().await, [""; 0]);
    assert_eq!(running.status().await.last_error.unwrap(), "/etc/m does not exist");
    running.report(SourceReport::Recovered).await;
    assert_eq!(running.pods().await, ["p=one"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_is_not_handed_on_and_tried_again() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path());
    fs::write(root.path().join("sources"), "in the way").unwrap();
    running.artifact("here", &[("p.yaml", &pod("p", "one"))]).await;
    let status = running.status().await;
    assert!(status.last_error.unwrap().contains("could not be written to disk"));
    assert_eq!((status.accepted, status.pods), (None, 0));
    fs::remove_file(root.path().join("sources")).unwrap();
    assert_eq!(running.pods().await, ["p=one"]);
    assert_eq!(running.events("LastGoodNotWritten").len(), 1);
    assert_eq!(running.status().await.last_error, None);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_set_aside_and_the_source_decides() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path());
    running.artifact("here", &[("p.yaml", &pod("p", "one"))]).await;
    running.pods().await;
    running.end().await;
    let mut bytes = fs::read(record(root.path())).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(record(root.path()), bytes).unwrap();
    let mut running = start(root.path());
    assert_eq!(running.status().await.pods, 0);
    let told = running.events("LastGoodUnreadable");
    assert!(told.len() == 1 && told[0].contains("last-good.json.corrupt-1"), "{told:?}");
    running.artifact("elsewhere", &[]).await;
    assert_eq!(running.pods().await, [""; 0]);
}

#[tokio::test]
async fn what_a_source_may_not_use_keeps_its_last_good_version_if_that_conforms() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start_with(root.path(), "{images: [one]}");
    running.artifact("here", &[("p.yaml", &pod("p", "one"))]).await;
    assert_eq!(running.pods().await, ["p=one"]);
    running.artifact("here", &[("p.yaml", &pod("p", "two")), ("q.yaml", &pod("q", "two"))]).await;
    assert_eq!(running.pods().await, ["p=one"]);
    let told = running.events("FailedValidation");
    assert!(
        told.len() == 2 && told[0].contains("may not use image") && told[0].contains("keeping its last good version"),
        "{told:?}"
    );
    running.end().await;

    // The configuration changes: what was good is not any more, and that is meant.
    let mut running = start_with(root.path(), "{images: [two]}");
    assert_eq!(running.pods().await, [""; 0]);
    assert_eq!(running.status().await.problems.len(), 1);
    running.artifact("here", &[("p.yaml", &pod("p", "two"))]).await;
    assert_eq!(running.pods().await, ["p=two"]);
    // Going back to what is not allowed any more puts nothing of it in force.
    running.handle.roll_back(&id(), Some("1"), "x").await.unwrap();
    assert_eq!(running.pods().await, [""; 0]);
    assert_eq!(running.status().await.problems.len(), 1);
}

#[tokio::test]
async fn a_source_that_is_not_configured_any_more_is_forgotten_and_the_others_go_on() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path());
    running.artifact("p", &[("a", &pod("web", "v1"))]).await;
    assert_eq!(running.pods().await, ["web=v1"]);
    let described = |name: &str| IntakeSource {
        id: SourceId::new(name),
        kind: "http".into(),
        location: "there".into(),
        history_limit: 3,
        allow: None,
        requirements: Arc::default(),
        substitute: None,
        layers: Arc::default(),
        keeps_names: false,
    };
    running.configurator.configure(vec![described("new"), described("manifests")]).await;
    running.artifact("p", &[("a", &pod("web", "v2"))]).await;
    assert_eq!(running.pods().await, ["web=v2"], "what stays is followed on");
    assert!(record(root.path()).is_file());
    running.configurator.configure(vec![described("new")]).await;
    assert!(!record(root.path()).is_file());
    running.artifact("p", &[("a", &pod("web", "v3"))]).await;
    running.reports.send((SourceId::new("new"), SourceReport::Artifact(artifact("q", &[("b", &pod("db", "v1"))])))).await.unwrap();
    assert_eq!(running.pods().await, ["db=v1"], "a late report of a removed source counts no more");
    assert_eq!(running.events("SourceRemoved").len(), 1);
}

#[tokio::test]
async fn what_a_source_may_use_counts_for_what_is_in_force_when_the_configuration_is_read_again() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start_with(root.path(), "{images: [one]}");
    running.artifact("here", &[("p.yaml", &pod("p", "one"))]).await;
    assert_eq!(running.pods().await, ["p=one"]);
    let described = |allow: &str| IntakeSource {
        id: id(),
        kind: "directory".into(),
        location: "/etc/m".into(),
        history_limit: 3,
        allow: allowed(allow),
        requirements: Arc::default(),
        substitute: None,
        layers: Arc::default(),
        keeps_names: false,
    };
    let configured = running.configurator.clone();
    let configure = tokio::spawn(async move { configured.configure(vec![described("{images: [two]}")]).await });
    assert_eq!(running.pods().await, [""; 0]);
    configure.await.unwrap();
    running.artifact("here", &[("p.yaml", &pod("p", "two"))]).await;
    assert_eq!(running.pods().await, ["p=two"]);
}
