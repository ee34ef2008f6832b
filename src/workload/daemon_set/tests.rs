//! DaemonSets, evaluated whole.

use super::*;
use crate::testing::{TestHost, merge, names, template};
use serde_json::{Value, json};

struct Case {
    host: TestHost,
    spec: Value,
    memory: Option<DaemonSetMemory>,
}

impl Case {
    fn new(spec: &Value) -> Self {
        let mut all = json!({"selector": {"matchLabels": {"app": "agent"}}, "template": template("agent:1")});
        merge(&mut all, spec);
        Self { host: TestHost::new(), spec: all, memory: None }
    }

    fn image(&mut self, image: &str) {
        merge(&mut self.spec, &json!({"template": template(image)}));
    }

    fn step(&mut self) -> Step {
        let object: DaemonSet = serde_json::from_value(json!({"metadata": {"name": "agent"}, "spec": self.spec})).unwrap();
        let step = self.host.evaluate(|pods, context| {
            let step = super::step(&object, self.memory.as_ref(), pods, context);
            let again = super::step(&object, Some(&step.memory), pods, context);
            assert_eq!(names(&again.pods), names(&step.pods));
            assert!(again.events.is_empty(), "{:?}", again.events);
            step
        });
        self.host.apply(&step.pods);
        self.memory = Some(serde_json::from_str(&serde_json::to_string(&step.memory).unwrap()).unwrap());
        step
    }

    fn images(&mut self) -> Vec<String> {
        let step = self.step();
        let mut all: Vec<String> =
            step.pods.into_iter().map(|pod| pod.spec.unwrap().containers[0].image.clone().unwrap()).collect();
        all.sort();
        all
    }
}

fn surge() -> Value {
    json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, "minReadySeconds": 15})
}

/// TN1.
#[test]
fn selector_decides_whether_pod_runs() {
    for (site, expected) in [("berlin", 1), ("bonn", 0)] {
        let mut case = Case::new(&json!({}));
        case.spec["template"]["spec"]["nodeSelector"] = json!({"site": site});
        let step = case.step();
        assert_eq!((step.pods.len(), step.status.desired_number_scheduled), (expected, i32::try_from(expected).unwrap()));
    }
}

/// TN3.
#[test]
fn pod_goes_when_label_leaves_host() {
    let mut case = Case::new(&json!({}));
    case.spec["template"]["spec"]["nodeSelector"] = json!({"site": "berlin"});
    case.step();
    case.host.host.labels.clear();
    let step = case.step();
    assert_eq!((step.pods.len(), step.status.number_misscheduled), (0, 1));
    case.host.finish_stops();
    assert_eq!(case.step().status.number_misscheduled, 0);
}

/// TN4.
#[test]
fn new_pod_waits_for_end_of_old_one() {
    let mut case = Case::new(&json!({}));
    case.step();
    case.host.make_ready();
    case.image("agent:2");
    assert!(case.images().is_empty());
    assert!(case.images().is_empty(), "the old pod still exists");
    case.host.finish_stops();
    assert_eq!(case.images(), ["agent:2"]);
}

/// TN5.
#[test]
fn surging_pod_starts_beside_old_one() {
    let mut case = Case::new(&surge());
    case.step();
    case.host.make_ready();
    case.image("agent:2");
    assert_eq!(case.images(), ["agent:1", "agent:2"]);
    case.host.make_ready();
    case.host.seconds += 10;
    assert_eq!(case.images(), ["agent:1", "agent:2"]);
    case.host.seconds += 10;
    assert_eq!(case.images(), ["agent:2"]);
}

/// TN5.
#[test]
fn unready_old_pod_goes_at_once() {
    let mut case = Case::new(&surge());
    case.step();
    case.image("agent:2");
    assert_eq!(case.images(), ["agent:2"]);
}

/// W14.
#[test]
fn update_waits_for_images() {
    let mut case = Case::new(&json!({}));
    case.step();
    case.host.has_images = false;
    case.image("agent:2");
    let step = case.step();
    assert!(step.pods.len() == 1 && step.warm.is_some());
}

/// W40.
#[test]
fn on_delete_replaces_nothing() {
    let mut case = Case::new(&json!({"updateStrategy": {"type": "OnDelete"}}));
    case.step();
    case.image("agent:2");
    assert_eq!(case.images(), ["agent:1"]);
}
