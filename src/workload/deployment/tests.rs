//! Deployments, evaluated whole.

use super::*;
use crate::testing::{TestHost, merge, names, template};
use serde_json::{Value, json};

struct Case {
    host: TestHost,
    spec: Value,
    memory: Option<DeploymentMemory>,
    last: Option<Step>,
}

impl Case {
    fn new(spec: &Value) -> Self {
        let mut all = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template("web:1")});
        merge(&mut all, spec);
        Self { host: TestHost::new(), spec: all, memory: None, last: None }
    }

    fn edit(&mut self, spec: &Value) {
        merge(&mut self.spec, spec);
    }

    fn image(&mut self, image: &str) {
        self.edit(&json!({"template": template(image)}));
    }

    /// Evaluates, and hands the pods to the host. The memory goes through its text each time, as through a restart.
    fn look(&mut self) -> Vec<String> {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": self.spec});
        let deployment: Deployment = serde_json::from_value(object).unwrap();
        let step = self.host.evaluate(|pods, context| {
            let step = super::step(&deployment, self.memory.as_ref(), pods, context);
            let again = super::step(&deployment, Some(&step.memory), pods, context);
            assert_eq!(names(&again.pods), names(&step.pods), "an evaluation of what came out changes nothing (W99 (1))");
            assert!(again.events.is_empty(), "{:?}", again.events);
            step
        });
        self.host.apply(&step.pods);
        let found = names(&step.pods);
        self.memory = Some(step.memory.clone());
        self.last = Some(step);
        found
    }

    fn settle(&mut self) -> Vec<String> {
        for _ in 0..40 {
            self.look();
            self.host.finish_stops();
            self.host.make_ready();
        }
        self.look()
    }

    fn counts(&mut self) -> (usize, usize) {
        let found = self.look();
        let newest = self.memory.as_ref().unwrap().revisions.newest().unwrap().hash.clone();
        let new = found.iter().filter(|name| name.contains(newest.as_str())).count();
        (found.len() - new, new)
    }

    fn condition(&self, kind: &str) -> Option<String> {
        self.memory.as_ref().unwrap().conditions.find(kind).map(|condition| format!("{} {}", condition.status, condition.reason))
    }

    fn last(&self) -> &Step {
        self.last.as_ref().unwrap()
    }
}

fn rolling(surge: u32, unavailable: u32) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
}

/// TD1.
#[test]
fn first_evaluation_names_pods_by_number() {
    let mut case = Case::new(&json!({"replicas": 3}));
    let pods = case.look();
    let memory = case.memory.as_ref().unwrap();
    let revision = memory.revisions.newest().unwrap();
    assert_eq!(pods, [0, 1, 2].map(|slot| format!("web-{}-{slot}", revision.hash)));
    assert_eq!(revision.number, 1);
    assert_eq!(memory.progress.as_ref().unwrap().stage, Stage::NewReplicaSetCreated);
    assert_eq!(case.last().events.len(), 1);
    let pod = &case.last().pods[0];
    let labels = pod.metadata.labels.as_ref().unwrap();
    assert_eq!(labels["pod-template-hash"], revision.hash.as_str());
    let owner = &pod.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.uid.as_str()), ("ReplicaSet", revision.uid.as_str()));
    assert_eq!(case.last().replica_sets[0].metadata.name.as_deref(), Some(owner.name.as_str()));
}

#[test]
fn rollout_replaces_all_pods() {
    let mut case = Case::new(&json!({"replicas": 3}));
    let first = case.settle();
    assert_eq!(case.condition("Progressing").unwrap(), "true NewReplicaSetAvailable");
    case.image("web:2");
    let second = case.settle();
    assert_eq!(second.len(), 3);
    assert!(first.iter().all(|name| !second.contains(name)));
    let status = &case.last().status;
    assert_eq!((status.replicas, status.updated_replicas, status.available_replicas), (Some(3), Some(3), Some(3)));
    assert_eq!(status.observed_generation, Some(2));
}

/// TD12, W25.
#[test]
fn recreate_waits_for_end_of_old_pods() {
    let mut case = Case::new(&json!({"replicas": 2, "strategy": {"type": "Recreate"}}));
    case.settle();
    case.image("web:2");
    assert_eq!(case.counts(), (0, 0));
    assert_eq!(case.counts(), (0, 0), "the old ones are still being stopped");
    let one = case.host.pods.keys().next().unwrap().clone();
    case.host.pods.get_mut(&one).unwrap().phase = crate::observed::Phase::Succeeded;
    assert_eq!(case.counts(), (0, 0));
    case.host.finish_stops();
    assert_eq!(case.counts(), (0, 2));
}

/// TD14.
#[test]
fn earlier_template_keeps_its_hash() {
    let mut case = Case::new(&json!({"replicas": 1}));
    let first = case.settle();
    case.image("web:2");
    case.settle();
    case.image("web:1");
    assert_eq!(case.settle(), first);
    let newest = case.memory.as_ref().unwrap().revisions.newest().unwrap();
    assert_eq!(newest.number, 3);
}

/// TD15.
#[test]
fn old_revisions_are_forgotten_after_rollout() {
    let mut case = Case::new(&json!({"replicas": 1, "revisionHistoryLimit": 1}));
    for image in ["web:1", "web:2", "web:3"] {
        case.image(image);
        case.settle();
    }
    let numbers = |case: &Case| case.memory.as_ref().unwrap().revisions.iter().map(|revision| revision.number).collect::<Vec<_>>();
    assert_eq!(numbers(&case), [2, 3]);
}

/// A limit of history that an author writes does not fill the disk.
#[test]
fn history_has_an_upper_bound() {
    let mut case = Case::new(&json!({"replicas": 0, "revisionHistoryLimit": i32::MAX}));
    for version in 0..120 {
        case.image(&format!("web:{version}"));
        case.look();
    }
    assert_eq!(case.memory.as_ref().unwrap().revisions.iter().count(), crate::revision::MOST_REVISIONS + 1);
}

/// TD16.
#[test]
fn paused_deployment_scales_without_rollout() {
    let mut case = Case::new(&json!({"replicas": 3}));
    let first = case.settle();
    case.image("web:2");
    case.edit(&json!({"paused": true, "replicas": 4}));
    let paused = case.settle();
    assert_eq!(paused.len(), 4);
    assert!(first.iter().all(|name| paused.contains(name)));
    assert_eq!(case.condition("Progressing").unwrap(), "true DeploymentPaused");
    case.edit(&json!({"paused": false}));
    let resumed = case.settle();
    assert!(resumed.len() == 4 && resumed.iter().all(|name| !paused.contains(name)));
}

/// TD17.
#[test]
fn other_order_of_files_changes_nothing() {
    let mut case = Case::new(&json!({"replicas": 2}));
    let first = case.settle();
    let text = serde_json::to_string(&case.spec).unwrap();
    case.spec = serde_json::from_str(&text).unwrap();
    assert_eq!(case.look(), first);
    assert_eq!(case.memory.as_ref().unwrap().identity.generation, 1);
}

/// TD18, W82.
#[test]
fn host_port_is_handed_over() {
    let mut case = Case::new(&json!({"replicas": 3}));
    let with_port = |image: &str| {
        let ports = json!([{"containerPort": 80, "hostPort": 80}]);
        json!({"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "m", "image": image, "ports": ports}]}}})
    };
    case.edit(&with_port("web:1"));
    assert_eq!(case.settle().len(), 1);
    assert_eq!(case.condition("ReplicaFailure").unwrap(), "true HostPortTaken");
    case.edit(&with_port("web:2"));
    assert_eq!(case.counts(), (0, 0));
    assert_eq!(case.counts(), (0, 0), "the port is not free yet");
    case.host.finish_stops();
    assert_eq!(case.counts(), (0, 1));
}

/// TD19, W14.
#[test]
fn missing_image_takes_nothing_away() {
    for (strategy, expected) in [(rolling(0, 1), (3, 0)), (rolling(1, 0), (3, 1)), (json!({"type": "Recreate"}), (3, 0))] {
        let mut case = Case::new(&json!({"replicas": 3, "strategy": strategy}));
        case.settle();
        case.host.has_images = false;
        case.image("web:2");
        assert_eq!(case.counts(), expected, "{strategy}");
        assert!(case.last().warm.is_some());
        assert_eq!(case.condition("Progressing").unwrap(), "true NewReplicaSetCreated");
        case.host.seconds += 10_000;
        case.look();
        assert_eq!(case.condition("Progressing").unwrap(), "true NewReplicaSetCreated", "the deadline stands still");
        case.host.has_images = true;
        let done = case.settle();
        assert!(done.len() == 3 && case.last().warm.is_none());
    }
}

/// W94.
#[test]
fn unobserved_pods_hold_rollout() {
    let mut case = Case::new(&json!({"replicas": 3, "strategy": rolling(0, 1)}));
    case.settle();
    case.host.may_remove = false;
    case.image("web:2");
    assert_eq!(case.counts(), (3, 0));
    case.host.may_remove = true;
    assert_eq!(case.counts(), (2, 1));
}

#[test]
fn broken_rollout_exceeds_its_deadline() {
    let mut case = Case::new(&json!({"replicas": 2, "progressDeadlineSeconds": 60, "strategy": rolling(1, 0)}));
    case.settle();
    case.image("web:2");
    case.look();
    let wake = case.last().wake.unwrap();
    assert_eq!(wake, case.host.now() + std::time::Duration::from_secs(60));
    case.host.seconds += 60;
    case.look();
    assert_eq!(case.condition("Progressing").unwrap(), "false ProgressDeadlineExceeded");
    assert_eq!(case.last().events[0].reason, "ProgressDeadlineExceeded");
    assert_eq!(case.condition("Available").unwrap(), "true MinimumReplicasAvailable");
    assert_eq!(case.counts(), (2, 1), "the old pods stay");
}

#[test]
fn pod_is_available_after_minimum_time() {
    let mut case = Case::new(&json!({"replicas": 1, "minReadySeconds": 10}));
    case.look();
    case.host.make_ready();
    case.look();
    assert_eq!(case.last().wake, Some(case.host.now() + std::time::Duration::from_secs(10)));
    assert_eq!(case.last().status.available_replicas, Some(0));
    case.host.seconds += 10;
    case.look();
    assert_eq!(case.last().status.available_replicas, Some(1));
}

#[test]
fn scaling_down_spares_ready_pods() {
    let mut case = Case::new(&json!({"replicas": 3}));
    let first = case.settle();
    case.host.make_unready(&first[0]);
    case.edit(&json!({"replicas": 2}));
    assert_eq!(case.look(), first[1..]);
}

#[test]
fn other_host_runs_nothing() {
    let mut case = Case::new(&json!({"replicas": 3}));
    let spec = json!({"containers": [{"name": "main", "image": "web:1"}], "nodeSelector": {"site": "bonn"}});
    case.edit(&json!({"template": {"metadata": {"labels": {"app": "web"}}, "spec": spec}}));
    assert!(case.look().is_empty());
    assert_eq!(case.condition("ReplicaFailure").unwrap(), "true FailedScheduling");
}

#[test]
fn third_template_replaces_both_older_ones() {
    let mut case = Case::new(&json!({"replicas": 4, "strategy": rolling(1, 1)}));
    case.settle();
    case.image("web:2");
    case.look();
    case.image("web:3");
    case.look();
    let found = case.settle();
    let newest = case.memory.as_ref().unwrap().revisions.newest().unwrap();
    assert_eq!((found.len(), newest.number), (4, 3));
    assert!(found.iter().all(|name| name.contains(newest.hash.as_str())));
}
