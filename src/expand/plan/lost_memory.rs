//! Workloads whose memory was lost, and of which pods exist (W97).

use super::tests::{Bench, deployment, job, key, set, stateful_set};
use super::*;
use serde_json::json;

fn uids(bench: &Bench) -> BTreeSet<PodUid> {
    bench.pods.keys().cloned().collect()
}

fn replica_set(replicas: u32) -> Workload {
    let Workload::Deployment(object) = deployment("worker", replicas, "worker:1") else { panic!() };
    let spec = object.spec.as_ref().unwrap();
    let object = json!({"metadata": {"name": "worker"}, "spec": {"replicas": replicas, "selector": spec.selector, "template": spec.template}});
    Workload::ReplicaSet(serde_json::from_value(object).unwrap())
}

fn daemon_set() -> Workload {
    let Workload::Deployment(object) = deployment("agent", 1, "agent:1") else { panic!() };
    let spec = object.spec.as_ref().unwrap();
    let object = json!({"metadata": {"name": "agent"}, "spec": {"selector": spec.selector, "template": spec.template}});
    Workload::DaemonSet(serde_json::from_value(object).unwrap())
}

#[test]
fn pods_of_lost_workloads_stay() {
    let all =
        |replicas: u32| [deployment("web", replicas, "web:1"), replica_set(replicas), stateful_set("db", replicas), daemon_set()];
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &all(3)));
    bench.settle();
    let (before, names) = (uids(&bench), bench.names());
    assert_eq!(names.len(), 10);
    bench.disk.clear();
    bench.restart(&["a"]);
    bench.expander.apply(set("a", &all(3)));
    bench.plan();
    assert_eq!(bench.names(), names);
    bench.change(|_| {});
    bench.settle();
    assert_eq!((uids(&bench), bench.names()), (before.clone(), names));
    // They are remembered again.
    bench.expander.apply(set("a", &all(2)));
    bench.settle();
    assert!(bench.names().len() == 7 && uids(&bench).is_subset(&before));
    bench.expander.apply(set("a", &[]));
    bench.settle();
    assert_eq!((bench.pods.len(), bench.disk.len()), (0, 0));
}

#[test]
fn pods_of_another_template_are_replaced() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[deployment("web", 2, "web:1")]));
    bench.settle();
    let before = bench.names();
    bench.disk.clear();
    bench.restart(&["a"]);
    bench.expander.apply(set("a", &[deployment("web", 2, "web:2")]));
    bench.change(|_| {});
    bench.settle();
    assert!(bench.names().len() == 2 && bench.names().iter().all(|name| !before.contains(name)), "{:?}", bench.names());
    assert!(bench.disk.contains_key(&key("Deployment", "web")) && bench.pods.len() == 2);
}

#[test]
fn job_with_lost_memory_is_not_run_again() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[job("dump")]));
    bench.plan();
    bench.disk.clear();
    bench.restart(&["a"]);
    bench.expander.apply(set("a", &[job("dump")]));
    bench.change(|_| {});
    bench.settle();
    assert_eq!(bench.names(), Vec::<String>::new());
    assert!(bench.events.contains(&"MemoryLost".to_owned()), "{:?}", bench.events);
}

/// A Job that comes after the pods of a forgotten one of its name are gone has lost nothing.
#[test]
fn new_job_of_forgotten_name_runs() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[job("dump")]));
    bench.plan();
    bench.disk.clear();
    bench.restart(&["a"]);
    bench.expander.apply(set("a", &[]));
    bench.settle();
    assert_eq!(bench.pods.len(), 0);
    bench.expander.apply(set("a", &[job("dump")]));
    bench.plan();
    assert_eq!(bench.names(), ["dump-0"]);
    assert!(!bench.events.contains(&"MemoryLost".to_owned()), "{:?}", bench.events);
}
