//! The rules of the merge, one by one.

use super::*;
use podstead_manifest::ObjectKey;
use podstead_pod::{Origin, Pod, Position, Revision};
use podstead_store::SetPod;

pub(crate) fn source(name: &str) -> SourceId {
    SourceId::new(name)
}

/// A SET with pods by name; `text` stands for the content.
pub(crate) fn set(source_name: &str, pods: &[(&str, &str)]) -> Set {
    let pods = pods.iter().map(|(name, text)| {
        let key = ObjectKey { kind: "Pod".into(), namespace: "default".into(), name: (*name).into() };
        let origin = Origin { file: format!("{name}.yaml").into(), position: Position { line: 1, column: 1 } };
        (key, SetPod { pod: Arc::new(pod(name, text)), origin })
    });
    Set {
        source: source(source_name),
        revision: Revision(format!("{source_name}-1")),
        pods: pods.collect(),
        config_maps: BTreeMap::new(),
        claims: BTreeMap::new(),
        network: BTreeMap::new(),
        workloads: BTreeMap::new(),
        secrets: BTreeMap::new(),
        problems: Vec::new(),
    }
}

/// A pod whose content is `text`; `text` of the form `uid=X` fixes the UID X.
fn pod(name: &str, text: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = Some(format!("{name}-node"));
    pod.metadata.namespace = Some("default".into());
    pod.metadata.labels = Some(BTreeMap::from([("text".into(), text.to_owned())]));
    pod.metadata.uid = text.strip_prefix("uid=").map(str::to_owned);
    pod
}

/// Operations in short form: `op source name text uid`.
pub(super) fn short(applied: &Applied) -> Vec<String> {
    let lines = applied.updates.iter().flat_map(|update| {
        let empty = update.pods.is_empty().then(|| format!("{:?} {} -", update.op, update.source));
        empty.into_iter().chain(update.pods.iter().map(|desired| {
            let name = desired.full_name.name.trim_end_matches("-node");
            let text = &desired.pod.metadata.labels.as_ref().unwrap()["text"];
            assert_eq!(desired.pod.metadata.uid.as_deref(), Some(desired.uid.as_str()));
            assert_eq!(desired.source, update.source);
            format!("{:?} {} {name} {text} {}", update.op, update.source, desired.uid)
        }))
    });
    lines.collect()
}

/// A merge with UIDs `u1`, `u2`, ... and a clock that ticks once per call.
pub(super) struct Bench {
    pub(super) merge: Merge,
    pub(super) uids: u32,
    pub(super) clock: i64,
}

impl Bench {
    pub(super) fn new(sources: &[&str], known: Vec<DesiredPod>) -> Self {
        Self { merge: Merge::new(sources.iter().copied().map(SourceId::new), known), uids: 0, clock: 1_700_000_000 }
    }

    pub(super) fn turn(&mut self, act: impl FnOnce(&mut Merge, Timestamp, NewUid<'_>) -> Applied) -> Applied {
        self.clock += 1;
        let uids = &mut self.uids;
        act(&mut self.merge, Timestamp::from_second(self.clock).unwrap(), &mut || {
            *uids += 1;
            PodUid::new(format!("u{uids}"))
        })
    }

    pub(super) fn apply(&mut self, set: Set) -> Applied {
        self.turn(|merge, now, new_uid| merge.apply(set, now, new_uid))
    }

    fn set(&mut self, source: &str, pods: &[(&str, &str)]) -> Vec<String> {
        short(&self.apply(set(source, pods)))
    }

    fn configure(&mut self, sources: &[&str]) -> Vec<String> {
        let sources: Vec<SourceId> = sources.iter().map(|name| source(name)).collect();
        short(&self.turn(|merge, now, new_uid| merge.configure(sources, now, new_uid)))
    }

    fn recreate(&mut self, uid: &str) -> Vec<String> {
        short(&self.turn(|merge, now, new_uid| merge.recreate(&PodUid::new(uid), now, new_uid)))
    }

    /// Pod records that a restarted daemon would read.
    pub(super) fn records(&self) -> Vec<DesiredPod> {
        self.merge.desired().map(|desired| DesiredPod::clone(desired)).collect()
    }
}

fn annotations(bench: &Bench, name: &str) -> BTreeMap<String, String> {
    let found = bench.merge.desired().find(|desired| desired.full_name.name == format!("{name}-node")).unwrap();
    found.pod.metadata.annotations.clone().unwrap()
}

#[test]
fn pods_are_added_updated_in_place_and_removed() {
    let mut bench = Bench::new(&["a"], Vec::new());
    assert_eq!(bench.set("a", &[("db", "1"), ("web", "1")]), ["Add a db 1 u1", "Add a web 1 u2"]);
    assert_eq!(bench.set("a", &[("db", "1"), ("web", "2")]), ["Update a web 2 u2"]);
    assert_eq!(bench.set("a", &[("db", "1"), ("web", "2")]), [""; 0]);
    assert_eq!(bench.set("a", &[("web", "2")]), ["Remove a db 1 u1"]);
    assert_eq!(bench.set("a", &[("db", "1"), ("web", "2")]), ["Add a db 1 u3"], "what comes back is another incarnation");
}

#[test]
fn within_one_set_removals_come_first_and_updates_last() {
    let mut bench = Bench::new(&["a"], Vec::new());
    bench.set("a", &[("b", "1"), ("x", "1")]);
    assert_eq!(bench.set("a", &[("a", "1"), ("b", "2")]), ["Remove a x 1 u2", "Add a a 1 u3", "Update a b 2 u1"]);
}

#[test]
fn the_first_set_of_a_source_is_heard_even_when_it_is_empty() {
    let mut bench = Bench::new(&["a"], Vec::new());
    assert_eq!(bench.set("a", &[]), ["Add a -"]);
    assert_eq!(bench.set("a", &[]), [""; 0]);
}

#[test]
fn a_pod_that_is_known_from_its_record_keeps_its_uid() {
    let mut before = Bench::new(&["a"], Vec::new());
    before.set("a", &[("db", "1"), ("web", "1")]);
    let seen = annotations(&before, "web")["kubernetes.io/config.seen"].clone();
    let mut after = Bench::new(&["a"], before.records());
    after.uids = 100;
    assert_eq!(after.set("a", &[("db", "1"), ("new", "1"), ("web", "2")]), ["Add a db 1 u1", "Add a new 1 u101", "Add a web 2 u2"]);
    assert_eq!(annotations(&after, "web")["kubernetes.io/config.seen"], seen);
}

#[test]
fn a_known_pod_that_no_source_wants_is_removed_when_all_have_delivered() {
    let mut before = Bench::new(&["a"], Vec::new());
    before.set("a", &[("gone", "1")]);
    let mut after = Bench::new(&["a", "b"], before.records());
    assert_eq!(after.set("a", &[]), ["Add a -"]);
    assert_eq!(after.set("b", &[]), ["Remove a gone 1 u1", "Add b -"]);
    assert_eq!(after.set("b", &[]), [""; 0]);
}

#[test]
fn an_older_incarnation_under_the_same_name_is_removed() {
    let mut before = Bench::new(&["a"], Vec::new());
    before.set("a", &[("web", "1")]);
    let mut records = before.records();
    before.set("a", &[]);
    before.set("a", &[("web", "2")]);
    records.splice(0..0, before.records());
    let mut after = Bench::new(&["a"], records);
    assert_eq!(after.set("a", &[("web", "2")]), ["Remove a web 1 u1", "Add a web 2 u2"]);
}

#[test]
fn nothing_is_removed_before_every_source_has_delivered() {
    let mut bench = Bench::new(&["a", "b"], Vec::new());
    bench.set("a", &[("web", "1")]);
    assert_eq!(bench.set("a", &[]), [""; 0]);
    assert_eq!(bench.set("a", &[("web", "uid=x")]), [""; 0], "a changed UID is a removal too");
    assert_eq!(bench.recreate("u1"), [""; 0]);
    assert!(!bench.merge.sources_ready());
    assert_eq!(bench.set("b", &[]), ["Remove a web 1 u1", "Add a web uid=x x", "Add b -"]);
    assert!(bench.merge.sources_ready());
}

#[test]
fn the_source_that_is_configured_first_wins_a_name() {
    let mut bench = Bench::new(&["a", "b"], Vec::new());
    assert_eq!(bench.set("b", &[("web", "b")]), ["Add b web b u1"]);
    let applied = bench.apply(set("a", &[("web", "a")]));
    assert_eq!(short(&applied), ["Add a -", "Update a web a u1"]);
    assert_eq!(applied.conflicts.len(), 1);
    assert_eq!((applied.conflicts[0].winner.source.as_str(), applied.conflicts[0].loser.source.as_str()), ("a", "b"));
    assert_eq!(bench.set("b", &[("web", "b2")]), [""; 0], "what the loser does is not seen");
    let applied = bench.apply(set("a", &[]));
    assert_eq!(short(&applied), ["Update b web b2 u1"], "the loser takes over in place");
    assert_eq!(applied.conflicts, []);
    assert_eq!(annotations(&bench, "web")["kubernetes.io/config.source"], "b");
}

#[test]
fn a_known_pod_waits_for_its_own_source_when_that_one_goes_first() {
    let mut before = Bench::new(&["a", "b"], Vec::new());
    before.set("a", &[("web", "a")]);
    before.set("b", &[("web", "b")]);
    let mut after = Bench::new(&["a", "b"], before.records());
    assert_eq!(after.set("b", &[("web", "b")]), ["Add b -"]);
    assert_eq!(after.set("a", &[("web", "a")]), ["Add a web a u1"]);
    let mut after = Bench::new(&["a", "b"], before.records());
    after.set("b", &[("web", "b")]);
    assert_eq!(after.set("a", &[]), ["Add b web b u1", "Add a -"], "what makes all sources ready comes last");
    let mut without_a = Bench::new(&["b"], before.records());
    assert_eq!(without_a.set("b", &[("web", "b")]), ["Add b web b u1"]);
}

#[test]
fn a_uid_that_the_manifest_fixes_is_used_and_its_change_is_another_pod() {
    let mut bench = Bench::new(&["a"], Vec::new());
    assert_eq!(bench.set("a", &[("web", "uid=x")]), ["Add a web uid=x x"]);
    assert_eq!(bench.set("a", &[("web", "uid=y")]), ["Remove a web uid=x x", "Add a web uid=y y"]);
    assert_eq!(bench.set("a", &[("web", "1")]), ["Update a web 1 y"], "a UID that is no longer fixed is kept");
    assert_eq!(bench.recreate("y"), ["Remove a web 1 y", "Add a web 1 u1"]);
}

#[test]
fn two_pods_never_share_a_uid() {
    let mut bench = Bench::new(&["a"], Vec::new());
    let applied = bench.apply(set("a", &[("one", "uid=x"), ("two", "uid=x")]));
    assert_eq!(short(&applied), ["Add a one uid=x x"]);
    assert_eq!(applied.conflicts[0].kind, ConflictKind::SameUid(PodUid::new("x")));
    assert_eq!(bench.set("a", &[("two", "uid=x")]), ["Remove a one uid=x x", "Add a two uid=x x"]);
    assert_eq!(bench.set("a", &[("three", "1"), ("two", "uid=x")]), ["Add a three 1 u1"]);
    let applied = bench.apply(set("a", &[("three", "1"), ("two", "uid=u1")]));
    assert_eq!(short(&applied), [""; 0], "the pod stays as it was: its manifest took the UID of another");
    assert_eq!(applied.conflicts.len(), 1);
    assert_eq!(bench.set("a", &[("three", "uid=x"), ("two", "uid=u1")]).len(), 4, "two pods may swap their UIDs");
}

#[test]
fn a_known_pod_whose_manifest_takes_the_uid_of_another_goes_on_as_it_was() {
    let mut before = Bench::new(&["a"], Vec::new());
    before.set("a", &[("one", "uid=x"), ("two", "1")]);
    let mut after = Bench::new(&["a"], before.records());
    assert_eq!(after.set("a", &[("one", "uid=x"), ("two", "uid=x")]), ["Add a one uid=x x", "Add a two 1 u1"]);
    assert_eq!(after.set("a", &[("one", "uid=x"), ("two", "2")]), ["Update a two 2 u1"]);
}

#[test]
fn a_finished_pod_is_made_anew_once_when_asked() {
    let mut bench = Bench::new(&["a"], Vec::new());
    bench.set("a", &[("db", "1"), ("job", "1")]);
    assert_eq!(bench.recreate("u2"), ["Remove a job 1 u2", "Add a job 1 u3"]);
    assert_eq!(bench.recreate("u2"), [""; 0], "that incarnation is gone");
    assert_eq!(bench.set("a", &[("db", "1"), ("job", "1")]), [""; 0]);
}

#[test]
fn asked_restart_waits_for_no_unheard_source() {
    let mut bench = Bench::new(&["a", "b"], Vec::new());
    bench.set("a", &[("web", "1"), ("db", "uid=x")]);
    assert_eq!(bench.recreate("u1"), ["Remove a web 1 u1", "Add a web 1 u2"]);
    assert_eq!(bench.recreate("x"), ["Remove a db uid=x x", "Add a db uid=x x"]);
    assert_eq!(bench.recreate("u1"), [""; 0], "that incarnation is gone");
    assert_eq!(bench.set("a", &[("web", "1"), ("db", "uid=x")]), [""; 0], "once");
    assert_eq!(bench.set("a", &[]), [""; 0]);
    assert_eq!(bench.recreate("u2"), [""; 0], "it is not wanted any more, and its removal waits for source b");
    assert_eq!(bench.set("b", &[]), ["Remove a db uid=x x", "Remove a web 1 u2", "Add b -"]);
}

#[test]
fn adopted_pod_is_recreated_when_sources_are_ready() {
    let mut before = Bench::new(&["a", "b"], Vec::new());
    before.set("a", &[("web", "1")]);
    before.set("b", &[]);
    let mut after = Bench::new(&["a", "b"], before.records());
    after.uids = 100;
    assert_eq!(after.recreate("u1"), [""; 0], "no source was heard");
    assert_eq!(after.set("b", &[]), ["Add b -"]);
    assert_eq!(after.set("a", &[("web", "1")]), ["Remove a web 1 u1", "Add a web 1 u101"]);
}

#[test]
fn a_pod_that_moves_to_another_file_is_updated_and_one_that_moves_down_is_not() {
    let mut bench = Bench::new(&["a"], Vec::new());
    bench.set("a", &[("web", "1")]);
    let mut moved = set("a", &[("web", "1")]);
    moved.pods.values_mut().for_each(|pod| pod.origin.position.line = 40);
    assert_eq!(short(&bench.apply(moved.clone())), [""; 0]);
    moved.pods.values_mut().for_each(|pod| pod.origin.file = "other.yaml".into());
    assert_eq!(short(&bench.apply(moved)), ["Update a web 1 u1"]);
}

#[test]
fn a_pod_carries_the_annotations_of_the_kubelet() {
    let mut bench = Bench::new(&["a"], Vec::new());
    bench.set("a", &[("web", "1")]);
    let first = annotations(&bench, "web");
    bench.set("a", &[("web", "2")]);
    let second = annotations(&bench, "web");
    assert_eq!(first["kubernetes.io/config.source"], "a");
    assert_eq!(first["kubernetes.io/config.seen"], "2023-11-14T22:13:21.000000000Z");
    assert_eq!(first["kubernetes.io/config.seen"], second["kubernetes.io/config.seen"]);
    assert_ne!(first["kubernetes.io/config.hash"], second["kubernetes.io/config.hash"]);
}

#[test]
fn a_source_that_is_not_configured_is_not_heard() {
    let mut bench = Bench::new(&["a"], Vec::new());
    assert_eq!(bench.set("z", &[("web", "1")]), [""; 0]);
}

#[test]
fn the_pods_of_a_source_that_is_not_configured_any_more_go_and_no_others() {
    let mut bench = Bench::new(&["a", "b"], Vec::new());
    bench.set("a", &[("x", "1")]);
    bench.set("b", &[("y", "1")]);
    assert_eq!(bench.configure(&["b"]), ["Remove a x 1 u1"]);
    assert_eq!(bench.set("a", &[("x", "1")]), [""; 0], "a late SET of a removed source counts no more");
    assert_eq!(bench.configure(&["b"]), [""; 0]);
}

#[test]
fn while_a_new_source_was_not_heard_nothing_is_removed() {
    let mut bench = Bench::new(&["a"], Vec::new());
    bench.set("a", &[("x", "1"), ("y", "1")]);
    assert_eq!(bench.configure(&["b"]), [""; 0]);
    assert_eq!(
        bench.set("b", &[("x", "1")]),
        ["Remove a y 1 u2", "Add b -", "Update b x 1 u1"],
        "a pod that moved is not made anew"
    );
}

#[test]
fn a_removed_source_that_was_never_heard_holds_nothing_up() {
    let mut bench = Bench::new(&["a", "b"], Vec::new());
    bench.set("a", &[("x", "1")]);
    assert_eq!(bench.set("a", &[]), [""; 0]);
    assert_eq!(bench.configure(&["a"]), ["Remove a x 1 u1", "Add b -"]);
}

#[test]
fn another_order_of_precedence_lets_the_other_one_win_in_place() {
    let mut bench = Bench::new(&["a", "b"], Vec::new());
    bench.set("a", &[("x", "1")]);
    bench.set("b", &[("x", "2")]);
    assert_eq!(bench.configure(&["b", "a"]), ["Update b x 2 u1"]);
}
