//! Properties of every sequence of SETs.

use super::tests::{Bench, set, short, source};
use super::*;
use proptest::prelude::*;

const SOURCES: [&str; 3] = ["a", "b", "c"];
const NAMES: [&str; 4] = ["p", "q", "r", "s"];
/// Contents; some fix a UID, and not always to one of their own.
const TEXTS: [&str; 5] = ["1", "2", "3", "uid=x", "uid=y"];

/// One SET: the source, and content by name.
type Step = (usize, BTreeMap<usize, usize>);

fn step(texts: usize) -> impl Strategy<Value = Step> {
    (0..SOURCES.len(), prop::collection::btree_map(0..NAMES.len(), 0..texts, 0..=NAMES.len()))
}

fn set_of((source, pods): &Step) -> Set {
    let pods: Vec<_> = pods.iter().map(|(name, text)| (NAMES[*name], TEXTS[*text])).collect();
    set(SOURCES[*source], &pods)
}

/// The sync loop as a model: acts on the operations and watches their rules.
#[derive(Default)]
struct Model {
    pods: BTreeMap<PodUid, Arc<DesiredPod>>,
    ever: BTreeSet<PodUid>,
    heard: BTreeSet<SourceId>,
}

impl Model {
    fn act(&mut self, applied: &Applied) {
        let order: Vec<PodOp> = applied.updates.iter().map(|update| update.op).collect();
        assert!(order.is_sorted(), "REMOVE, ADD, UPDATE: {order:?}");
        for desired in applied.updates.iter().flat_map(|update| update.pods.iter().map(move |pod| (update.op, pod))) {
            match desired {
                (PodOp::Remove, pod) => {
                    assert_eq!(self.heard.len(), SOURCES.len(), "removed before every source was heard");
                    assert!(self.pods.remove(&pod.uid).is_some(), "removed what was not there");
                }
                (PodOp::Add, pod) => {
                    assert!(self.pods.insert(pod.uid.clone(), pod.clone()).is_none(), "two pods with one UID");
                    let fixed = TEXTS.contains(&format!("uid={}", pod.uid).as_str());
                    assert!(self.ever.insert(pod.uid.clone()) || fixed, "a UID was used again");
                }
                (PodOp::Update, pod) => {
                    let old = self.pods.insert(pod.uid.clone(), pod.clone()).expect("updated what was not there");
                    assert_eq!(old.full_name, pod.full_name, "a UID went to another name");
                }
                (PodOp::Reconcile, _) => panic!("manifests have no status"),
            }
        }
        let names: BTreeSet<_> = self.pods.values().map(|pod| &pod.full_name).collect();
        assert_eq!(names.len(), self.pods.len(), "one name, two pods");
    }

    /// Content and source by name.
    fn state(&self) -> BTreeMap<String, (String, SourceId)> {
        let entry = |pod: &Arc<DesiredPod>| {
            let text = pod.pod.metadata.labels.as_ref().unwrap()["text"].clone();
            (pod.full_name.name.trim_end_matches("-node").to_owned(), (text, pod.source.clone()))
        };
        self.pods.values().map(entry).collect()
    }
}

fn act(bench: &mut Bench, model: &mut Model, step: &Step) -> Applied {
    model.heard.insert(source(SOURCES[step.0]));
    let applied = bench.apply(set_of(step));
    model.act(&applied);
    applied
}

/// The union of the last SET of each source, the first source winning.
fn union(steps: &[Step]) -> BTreeMap<String, (String, SourceId)> {
    let mut wanted = BTreeMap::new();
    for (index, name) in SOURCES.iter().enumerate() {
        let last = steps.iter().rev().find(|(source, _)| *source == index);
        for (pod, text) in last.into_iter().flat_map(|(_, pods)| pods) {
            wanted.entry(NAMES[*pod].to_owned()).or_insert((TEXTS[*text].to_owned(), source(name)));
        }
    }
    wanted
}

/// Ends a sequence with a SET of each source, so that all are ready.
fn heard_all(mut steps: Vec<Step>, last: [BTreeMap<usize, usize>; 3]) -> Vec<Step> {
    steps.extend(last.into_iter().enumerate());
    steps
}

/// Content of one SET of each source.
fn last(texts: usize) -> impl Strategy<Value = [BTreeMap<usize, usize>; 3]> {
    prop::array::uniform3(prop::collection::btree_map(0..NAMES.len(), 0..texts, 0..=NAMES.len()))
}

proptest! {
    #[test]
    fn operations_reproduce_the_union_of_the_sets(steps in prop::collection::vec(step(3), 0..12), last in last(3)) {
        let steps = heard_all(steps, last);
        let (mut bench, mut model) = (Bench::new(&SOURCES, Vec::new()), Model::default());
        for step in &steps {
            act(&mut bench, &mut model, step);
        }
        prop_assert_eq!(model.state(), union(&steps));
    }

    #[test]
    fn the_rules_hold_also_when_manifests_fix_uids(steps in prop::collection::vec(step(5), 0..20)) {
        let (mut bench, mut model) = (Bench::new(&SOURCES, Vec::new()), Model::default());
        for step in &steps {
            act(&mut bench, &mut model, step);
            let desired: BTreeSet<_> = bench.merge.desired().map(|desired| desired.uid.clone()).collect();
            prop_assert_eq!(desired, model.pods.keys().cloned().collect::<BTreeSet<_>>());
        }
    }

    #[test]
    fn the_same_set_twice_changes_nothing(steps in prop::collection::vec(step(5), 1..12)) {
        let (mut bench, mut model) = (Bench::new(&SOURCES, Vec::new()), Model::default());
        for step in &steps {
            let once = act(&mut bench, &mut model, step);
            let twice = bench.apply(set_of(step));
            // Two applications are allowed to differ only where the first one freed a UID that the second can take.
            if once.conflicts.is_empty() {
                prop_assert_eq!(short(&twice), Vec::<String>::new());
            } else {
                model.act(&twice);
            }
        }
    }

    #[test]
    fn every_interleaving_of_the_sources_converges(
        sequences in prop::array::uniform3(prop::collection::vec(prop::collection::btree_map(0..NAMES.len(), 0..3_usize, 0..=NAMES.len()), 1..5)),
        order in prop::collection::vec(0..3_usize, 0..30),
    ) {
        let mut queues: Vec<std::collections::VecDeque<_>> = sequences.iter().cloned().map(Into::into).collect();
        let mut interleaved: Vec<Step> = order.iter().filter_map(|index| Some((*index, queues[*index].pop_front()?))).collect();
        interleaved.extend(queues.into_iter().enumerate().flat_map(|(index, queue)| queue.into_iter().map(move |pods| (index, pods))));
        let one_by_one: Vec<Step> =
            sequences.iter().enumerate().flat_map(|(index, sets)| sets.iter().map(move |pods| (index, pods.clone()))).collect();
        let mut states = Vec::new();
        for steps in [interleaved, one_by_one] {
            let (mut bench, mut model) = (Bench::new(&SOURCES, Vec::new()), Model::default());
            for step in &steps {
                act(&mut bench, &mut model, step);
            }
            states.push(model.state());
        }
        prop_assert_eq!(&states[0], &states[1]);
    }

    #[test]
    fn a_restart_with_unchanged_manifests_keeps_every_uid(
        before in prop::collection::vec(step(3), 0..12),
        last in last(3),
        order in Just(vec![0_usize, 1, 2]).prop_shuffle(),
    ) {
        let steps = heard_all(before, last.clone());
        let (mut bench, mut model) = (Bench::new(&SOURCES, Vec::new()), Model::default());
        for step in &steps {
            act(&mut bench, &mut model, step);
        }
        let records: Vec<DesiredPod> = model.pods.values().map(|desired| DesiredPod::clone(desired)).collect();
        let mut after = Bench::new(&SOURCES, records);
        for index in order {
            let applied = after.apply(set_of(&(index, last[index].clone())));
            prop_assert!(applied.updates.iter().all(|update| update.op == PodOp::Add), "{:?}", short(&applied));
        }
        let uids = |merge: &Merge| merge.desired().map(|desired| (desired.uid.clone(), desired.full_name.clone())).collect::<BTreeSet<_>>();
        prop_assert_eq!(uids(&after.merge), uids(&bench.merge));
    }

    #[test]
    fn wishes_for_another_incarnation_keep_the_union(
        steps in prop::collection::vec(step(3), 0..8), last in last(3), wishes in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let steps = heard_all(steps, last);
        let (mut bench, mut model) = (Bench::new(&SOURCES, Vec::new()), Model::default());
        for step in &steps {
            act(&mut bench, &mut model, step);
        }
        for wish in wishes {
            let uids: Vec<PodUid> = model.pods.keys().cloned().collect();
            if uids.is_empty() {
                continue;
            }
            let uid = wish.get(&uids);
            model.act(&bench.turn(|merge, now, new_uid| merge.recreate(uid, now, new_uid)));
            prop_assert!(!model.pods.contains_key(uid));
        }
        prop_assert_eq!(model.state(), union(&steps));
    }
}
