//! Edits that an API server refuses, and workloads that look like the owners of each other's pods.

use super::tests::{Bench, deployment, set, stateful_set};
use podstead_pod::PodUid;
use podstead_workload::object::Workload;

/// TX5, W4: pods belong to the workload that made them, also if the selector of another one matches.
#[test]
fn workloads_with_one_selector_keep_their_own_pods() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[deployment("one", 2, "web:1"), deployment("two", 3, "web:1")]));
    bench.settle();
    let of = |bench: &Bench, owner: &str| bench.names().into_iter().filter(|name| name.starts_with(owner)).collect::<Vec<_>>();
    let (one, two) = (of(&bench, "one-"), of(&bench, "two-"));
    assert_eq!((one.len(), two.len()), (2, 3));
    bench.expander.apply(set("a", &[deployment("two", 3, "web:1")]));
    bench.settle();
    assert_eq!(bench.names(), two, "what another one made is neither adopted nor removed");
    // Another selector and its label: an edit as any other.
    let text = serde_json::to_string(&deployment("two", 3, "web:1")).unwrap().replace(r#""app":"web""#, r#""app":"shop""#);
    bench.expander.apply(set("a", &[serde_json::from_str(&text).unwrap()]));
    bench.settle();
    let after = bench.names();
    assert!(after.len() == 3 && after.iter().all(|name| !two.contains(name)), "{two:?} {after:?}");
}

/// TX6, W19: fields that an API server does not let change.
#[test]
fn immutable_fields_of_a_stateful_set_roll_out() {
    let edited = |from: &str, to: &str| -> Workload {
        let text = serde_json::to_string(&stateful_set("db", 2)).unwrap();
        assert!(text.contains(from), "{text}");
        serde_json::from_str(&text.replace(from, to)).unwrap()
    };
    for (from, to) in [(r#""serviceName":"db""#, r#""serviceName":"other""#), (r#""storage":"1Gi""#, r#""storage":"2Gi""#)] {
        let mut bench = Bench::new(&["a"]);
        bench.expander.apply(set("a", &[stateful_set("db", 2)]));
        bench.settle();
        let before: Vec<PodUid> = bench.pods.keys().cloned().collect();
        bench.expander.apply(set("a", &[edited(from, to)]));
        bench.plan();
        let stopping: Vec<&str> =
            bench.pods.values().filter(|(_, pod)| pod.is_terminating).map(|(_, pod)| pod.name.as_str()).collect();
        assert_eq!(stopping, ["db-1"], "{to}: one at a time, from the top");
        bench.settle();
        assert_eq!(bench.names(), ["db-0", "db-1"]);
        assert!(bench.pods.keys().all(|uid| !before.contains(uid)), "{to}: other pods");
    }
}
