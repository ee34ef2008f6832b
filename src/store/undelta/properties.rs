//! Properties of every sequence of artifacts.

use super::tests::{artifact, judge, pods};
use super::*;
use proptest::prelude::*;

const FILES: [&str; 4] = ["a", "b", "c", "d"];
const LINES: [&str; 7] = ["p=1", "p=2", "q=1", "q=2", "r=1", "s=1", "# nothing"];
const BROKEN: [&str; 5] = ["?", "p=!\n?", "Eio", "", "r=!\n?"];

type Files = BTreeMap<&'static str, String>;

fn content() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&LINES[..]), 1..4).prop_map(|lines| {
        let mut names = BTreeSet::new();
        // The decoder refuses a second object of the same name in one file.
        lines.into_iter().filter(|line| names.insert(line.split('=').next())).collect::<Vec<_>>().join("\n")
    })
}

fn good() -> impl Strategy<Value = Files> {
    prop::collection::btree_map(prop::sample::select(&FILES[..]), content(), 0..=FILES.len())
}

fn any_content() -> impl Strategy<Value = String> {
    prop_oneof![3 => content(), 1 => prop::sample::select(&BROKEN[..]).prop_map(str::to_owned)]
}

fn any_files() -> impl Strategy<Value = Files> {
    prop::collection::btree_map(prop::sample::select(&FILES[..]), any_content(), 0..=FILES.len())
}

fn apply(store: &UndeltaStore, files: &Files) -> UndeltaStore {
    store.apply(&artifact(files.iter().map(|(name, text)| (*name, text.as_str()))), &judge)
}

/// Names of the pods, without content and place.
fn names(store: &UndeltaStore) -> BTreeSet<String> {
    pods(store).into_iter().filter_map(|pod| pod.split_once('=').map(|(name, _)| name.to_owned())).collect()
}

proptest! {
    #[test]
    fn breaking_files_changes_no_pod(
        history in prop::collection::vec(any_files(), 0..4),
        files in good(),
        breakage in prop::collection::vec((prop::sample::select(&FILES[..]), prop::sample::select(&BROKEN[..])), 0..8),
    ) {
        let store = history.iter().fold(UndeltaStore::default(), |store, files| apply(&store, files));
        let whole = apply(&store, &files);
        let (mut store, mut broken) = (whole.clone(), files);
        for (name, text) in breakage {
            if let Some(content) = broken.get_mut(name) {
                text.clone_into(content);
                store = apply(&store, &broken);
                prop_assert_eq!(pods(&store), pods(&whole));
            }
        }
    }

    #[test]
    fn mending_all_files_converges_to_a_fresh_reading(history in prop::collection::vec(any_files(), 0..6), last in good()) {
        let store = history.iter().fold(UndeltaStore::default(), |store, files| apply(&store, files));
        prop_assert_eq!(pods(&apply(&store, &last)), pods(&apply(&UndeltaStore::default(), &last)));
    }

    #[test]
    fn the_same_artifact_twice_changes_nothing(history in prop::collection::vec(any_files(), 1..6)) {
        let store = history.iter().fold(UndeltaStore::default(), |store, files| apply(&store, files));
        let again = apply(&store, history.last().unwrap());
        prop_assert!(again.keeps_the_same_as(&store));
    }

    #[test]
    fn only_a_readable_set_removes(before in any_files(), after in any_files()) {
        let old = apply(&UndeltaStore::default(), &before);
        let new = apply(&old, &after);
        // What went away is neither in a file of the new revision, nor did any file become unreadable in it.
        let lost: Vec<String> = names(&old).difference(&names(&new)).cloned().collect();
        let became_unreadable = after.iter().any(|(name, text)| {
            let broken = |text: &str| text.contains('?') || text.starts_with('E');
            broken(text) && !before.get(name).is_some_and(|text| broken(text))
        });
        prop_assert!(lost.is_empty() || !became_unreadable, "lost {lost:?}");
        for name in lost {
            prop_assert!(!after.values().any(|text| text.lines().any(|line| line.starts_with(&format!("{name}=")))), "{name} is written");
        }
    }

    #[test]
    fn a_restart_in_between_makes_no_difference(history in prop::collection::vec(any_files(), 1..6), at in any::<prop::sample::Index>()) {
        let at = at.index(history.len());
        let (mut steady, mut restarted) = (UndeltaStore::default(), UndeltaStore::default());
        for (index, files) in history.iter().enumerate() {
            steady = apply(&steady, files);
            restarted = apply(&restarted, files);
            if index == at {
                restarted = UndeltaStore::restore(restarted.kept());
            }
        }
        prop_assert_eq!(pods(&restarted), pods(&steady));
    }
}
