//! Restricted sources beside others: whose a name, a UID or a port of the host is. A name that ends in `!` is that of a restricted source.

use super::tests::{Bench, set, short, source};
use super::*;
use podstead_pod::testing::sharing;
use podstead_store::Set;

fn bench(sources: &[&str], known: Vec<DesiredPod>) -> Bench {
    Bench { merge: Merge::new(sharing(sources, &[]), known), ..Bench::new(&[], Vec::new()) }
}

impl Bench {
    fn said(&mut self, source: &str, pods: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let applied = self.apply(set(source, pods));
        (short(&applied), applied.conflicts.iter().map(ToString::to_string).collect())
    }

    fn wants(&mut self, source: &str, pods: &[(&str, &str)]) -> Vec<String> {
        self.said(source, pods).0
    }
}

#[test]
fn restricted_source_gives_way_in_either_order() {
    for sources in [["a", "r!"], ["r!", "a"]] {
        let mut bench = bench(&sources, Vec::new());
        assert_eq!(bench.wants("r", &[("web", "evil")]), ["Add r web evil u1"]);
        let (did, conflicts) = bench.said("a", &[("web", "good")]);
        // Another incarnation: what the volumes of the other one hold is not this one's.
        assert_eq!(did, ["Remove r web evil u1", "Add a web good u2"], "{sources:?}");
        assert!(conflicts[0].contains("pod web-node_default of source r") && conflicts[0].contains("source a"), "{conflicts:?}");
        assert_eq!(bench.wants("r", &[("web", "worse")]), [""; 0]);
        assert_eq!(bench.wants("a", &[]), ["Remove a web good u2", "Add r web worse u3"], "nothing is taken over");
    }
}

#[test]
fn restricted_source_keeps_its_pod_from_another_one() {
    for sources in [["r!", "s!"], ["s!", "r!"]] {
        let mut first = bench(&sources, Vec::new());
        first.wants("s", &[("web", "1")]);
        assert_eq!(first.wants("r", &[("web", "evil")]), ["Add r -"], "{sources:?}");
        // After a restart, whoever delivers first.
        for order in [["r", "s"], ["s", "r"]] {
            let mut after = bench(&sources, first.records());
            let mut did: Vec<String> = Vec::new();
            for name in order {
                did.extend(after.wants(name, &[("web", if name == "s" { "1" } else { "evil" })]));
            }
            assert_eq!(
                did.iter().filter(|line| !line.ends_with('-')).collect::<Vec<_>>(),
                ["Add s web 1 u1"],
                "{sources:?} {order:?}"
            );
        }
    }
}

#[test]
fn pod_of_a_record_is_not_adopted_by_a_source_that_is_apart() {
    let mut before = bench(&["a", "r!"], Vec::new());
    before.wants("r", &[("web", "1")]);
    before.wants("a", &[]);
    let mut after = bench(&["a", "r!"], before.records());
    after.wants("a", &[("web", "2")]);
    assert_eq!(after.wants("r", &[]), ["Remove r web 1 u1", "Add a web 2 u1", "Add r -"]);
}

#[test]
fn renamed_source_keeps_its_pods_unless_it_is_restricted() {
    let mut open = bench(&["a"], Vec::new());
    open.wants("a", &[("web", "1")]);
    open.turn(|merge, now, new_uid| merge.configure(sharing(&["b"], &[]), now, new_uid));
    assert_eq!(open.wants("b", &[("web", "1")]), ["Add b -", "Update b web 1 u1"]);
    for to in ["b", "b!"] {
        let mut restricted = bench(&["r!"], Vec::new());
        restricted.wants("r", &[("web", "1")]);
        restricted.turn(|merge, now, new_uid| merge.configure(sharing(&[to], &[]), now, new_uid));
        assert_eq!(restricted.wants("b", &[("web", "1")]), ["Remove r web 1 u1", "Add b web 1 u2"], "{to}");
    }
}

#[test]
fn restricted_source_holds_no_uid_against_others() {
    for sources in [["a", "r!"], ["r!", "a"]] {
        let mut bench = bench(&sources, Vec::new());
        bench.wants("a", &[]);
        bench.wants("r", &[("evil", "uid=X")]);
        assert_eq!(bench.wants("a", &[("web", "uid=X")]), ["Remove r evil uid=X X", "Add a web uid=X X"], "{sources:?}");
        // Nor by leaving it out later.
        let mut bench = self::bench(&sources, Vec::new());
        bench.wants("a", &[]);
        bench.wants("r", &[("evil", "uid=X")]);
        bench.wants("r", &[("evil", "1")]);
        assert_eq!(bench.wants("a", &[("web", "uid=X")]), ["Remove r evil 1 X", "Add a web uid=X X"], "{sources:?}");
    }
}

/// A SET of one pod with a port of the host.
fn with_port(source_name: &str, name: &str, port: i32) -> Set {
    let mut set = set(source_name, &[(name, "1")]);
    for pod in set.pods.values_mut() {
        let spec = format!("{{containers: [{{name: c, ports: [{{containerPort: 80, hostPort: {port}}}]}}]}}");
        Arc::make_mut(&mut pod.pod).spec = Some(serde_yaml::from_str(&spec).unwrap());
    }
    set
}

#[test]
fn restricted_source_leaves_host_ports_to_others() {
    for sources in [["a", "r!"], ["r!", "a"]] {
        let mut bench = bench(&sources, Vec::new());
        bench.wants("a", &[]);
        assert_eq!(short(&bench.apply(with_port("r", "evil", 8080))), ["Add r evil 1 u1"]);
        let applied = bench.apply(with_port("a", "web", 8080));
        assert_eq!(short(&applied), ["Remove r evil 1 u1", "Add a web 1 u2"], "{sources:?}");
        assert!(applied.conflicts[0].to_string().contains("host port 8080/TCP is used by the pod of source a"));
        assert_eq!(short(&bench.apply(with_port("a", "web", 8081))), ["Add r evil 1 u3", "Update a web 1 u2"]);
    }
    let mut open = bench(&["a", "b"], Vec::new());
    open.apply(with_port("a", "one", 8080));
    assert_eq!(short(&open.apply(with_port("b", "two", 8080))), ["Add b two 1 u2"], "as ever, the network says who has it");
}

#[test]
fn sources_are_apart_from_the_moment_they_are_configured_so() {
    let mut bench = bench(&["a", "b"], Vec::new());
    bench.wants("a", &[("web", "1")]);
    bench.wants("b", &[("web", "2")]);
    let restricted = bench.turn(|merge, now, new_uid| merge.configure(sharing(&["a!", "b"], &[]), now, new_uid));
    assert_eq!(short(&restricted), ["Remove a web 1 u1", "Add b web 2 u2"]);
    assert_eq!(bench.merge.objects().sharing().order().next(), Some(&source("b")));
}
