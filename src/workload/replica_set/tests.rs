//! ReplicaSets, evaluated whole.

use super::*;
use crate::testing::{TestHost, merge, names, template};
use serde_json::{Value, json};

struct Case {
    host: TestHost,
    spec: Value,
    memory: Option<ReplicaSetMemory>,
}

impl Case {
    fn new(replicas: u32) -> Self {
        let spec = json!({"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template("web:1")});
        Self { host: TestHost::new(), spec, memory: None }
    }

    fn edit(&mut self, spec: &Value) {
        merge(&mut self.spec, spec);
    }

    fn step(&mut self) -> Step {
        let object: ReplicaSet = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": self.spec})).unwrap();
        let step = self.host.evaluate(|pods, context| {
            let step = super::step(&object, Flavour::ReplicaSet, self.memory.as_ref(), pods, context);
            let again = super::step(&object, Flavour::ReplicaSet, Some(&step.memory), pods, context);
            assert_eq!(names(&again.pods), names(&step.pods));
            assert!(again.events.is_empty(), "{:?}", again.events);
            step
        });
        self.host.apply(&step.pods);
        self.memory = Some(serde_json::from_str(&serde_json::to_string(&step.memory).unwrap()).unwrap());
        step
    }

    fn look(&mut self) -> Vec<String> {
        names(&self.step().pods)
    }
}

#[test]
fn pods_are_numbered() {
    let mut case = Case::new(2);
    assert_eq!(case.look(), ["web-0", "web-1"]);
    case.host.make_ready();
    let status = case.step().status;
    assert_eq!((status.replicas, status.ready_replicas, status.available_replicas), (2, Some(2), Some(2)));
}

/// TR1.
#[test]
fn useless_pods_go_first() {
    let mut case = Case::new(3);
    case.look();
    case.host.make_ready_one("web-1");
    case.edit(&json!({"replicas": 1}));
    assert_eq!(case.look(), ["web-1"]);
}

/// TR2.
#[test]
fn number_of_terminating_pod_is_not_reused() {
    let mut case = Case::new(3);
    case.look();
    case.host.make_ready();
    case.host.make_unready("web-1");
    case.edit(&json!({"replicas": 2}));
    assert_eq!(case.look(), ["web-0", "web-2"]);
    case.edit(&json!({"replicas": 3}));
    assert_eq!(case.look(), ["web-0", "web-2", "web-3"]);
    case.host.finish_stops();
    case.edit(&json!({"replicas": 4}));
    assert_eq!(case.look(), ["web-0", "web-1", "web-2", "web-3"]);
}

/// TR3.
#[test]
fn other_template_is_for_new_pods() {
    let mut case = Case::new(1);
    case.look();
    case.edit(&json!({"replicas": 2, "template": template("web:2")}));
    let images: Vec<String> =
        case.step().pods.into_iter().map(|pod| pod.spec.unwrap().containers[0].image.clone().unwrap()).collect();
    assert_eq!(images, ["web:1", "web:2"]);
}

/// W9.
#[test]
fn names_of_others_are_skipped() {
    let mut case = Case::new(2);
    case.host.taken = ["web-0".to_owned()].into();
    assert_eq!(case.look(), ["web-1", "web-2"]);
}
