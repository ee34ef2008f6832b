//! Large sets on a real disk, which are written as changes.

use super::*;
use crate::undelta::KeptFile;
use crate::{CheckContext, check};
use podstead_pod::{AdmitContext, NodeName};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Files of a large set.
const FILES: usize = 100;

fn last_good(root: &Path) -> LastGood {
    let paths = Paths { state: root.into(), run: root.into(), logs: root.into() };
    LastGood::new(&paths, SourceId::new("manifests"))
}

fn stamp(number: u64) -> Stamp {
    Stamp {
        number,
        revision: Revision(format!("sha256:{number}")),
        place: None,
        accepted_at: "2025-01-01T00:00:00Z".parse().unwrap(),
        restored_from: None,
        newest: None,
        policy: None,
        state: RevisionState::Accepted,
        refused: Vec::new(),
        commit: None,
    }
}

/// A file name of half a kilobyte, in place of content.
fn name(index: usize) -> String {
    format!("{index:0>500}.yaml")
}

fn file(layer: usize) -> KeptFile {
    KeptFile { unclear: true, layer, ..KeptFile::default() }
}

fn large() -> KeptFiles {
    (0..FILES).map(|index| (name(index), file(0))).collect()
}

fn state(number: u64, files: &KeptFiles) -> State {
    State { hold: None, in_force: Some(Record { stamp: stamp(number), files: files.clone() }) }
}

fn length(last_good: &LastGood) -> u64 {
    fs::metadata(last_good.path()).unwrap().len()
}

fn archived(last_good: &LastGood) -> Vec<u64> {
    let names = fs::read_dir(last_good.directory.join(REVISIONS)).unwrap();
    let number = |name: &str| name.strip_suffix(".json").unwrap().parse().unwrap();
    let mut numbers: Vec<u64> = names.map(|entry| number(entry.unwrap().file_name().to_str().unwrap())).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn edit_of_one_file_writes_that_file() {
    let root = tempfile::tempdir().unwrap();
    let mut files = large();
    last_good(root.path()).advance(None, &state(1, &files), 5).unwrap();
    let whole = length(&last_good(root.path()));
    for number in 2..20 {
        // Also after a restart.
        let last_good = last_good(root.path());
        assert_eq!(last_good.load().unwrap(), state(number - 1, &files));
        files.insert(name(7), file(usize::try_from(number).unwrap()));
        last_good.advance(Some(number - 1), &state(number, &files), 5).unwrap();
        assert!(length(&last_good) < 2048 && whole > 32 << 10, "{} of {whole} bytes", length(&last_good));
        assert_eq!(last_good.load().unwrap(), state(number, &files));
    }
    assert_eq!(archived(&last_good(root.path())), [1, 14, 15, 16, 17, 18], "five earlier ones, and their base");
    assert_eq!(last_good(root.path()).earlier(Some(19), 5).unwrap().len(), 5, "a base is no revision to go back to");
}

#[test]
fn many_changes_are_written_as_a_whole_again() {
    let root = tempfile::tempdir().unwrap();
    let last_good = last_good(root.path());
    let mut files = large();
    last_good.advance(None, &state(1, &files), 2).unwrap();
    let whole = length(&last_good);
    let mut changes = 0;
    for number in 2..200 {
        files.insert(name(usize::try_from(number).unwrap() % FILES), file(usize::try_from(number).unwrap()));
        last_good.advance(Some(number - 1), &state(number, &files), 2).unwrap();
        changes = if length(&last_good) > whole / 2 { 0 } else { changes + length(&last_good) };
        assert!(changes <= whole, "{changes} bytes of changes to {whole}");
        assert!(archived(&last_good).len() <= 4, "two revisions and their bases: {:?}", archived(&last_good));
    }
    assert_eq!(last_good.load().unwrap(), state(199, &files));
}

#[test]
fn base_that_is_missing_or_another_one_is_told() {
    let root = tempfile::tempdir().unwrap();
    let last_good = last_good(root.path());
    let mut files = large();
    last_good.advance(None, &state(1, &files), 5).unwrap();
    files.remove(&name(3));
    last_good.advance(Some(1), &state(2, &files), 5).unwrap();
    let base = last_good.revision_path(1);
    let whole = fs::read(&base).unwrap();
    let failure = |bytes: Option<&[u8]>| {
        bytes.map_or_else(|| fs::remove_file(&base), |bytes| fs::write(&base, bytes)).unwrap();
        let fresh = self::last_good(root.path());
        fresh.load().unwrap_err().to_string()
    };
    assert!(failure(None).contains("revisions/1.json, which is missing or was replaced"));
    assert!(failure(Some(&whole[..whole.len() - 1])).contains("is damaged"));
    assert!(failure(Some(&fs::read(last_good.path()).unwrap())).contains("was replaced"), "changes are no base");
    let (other, _) = last_good.encode(&state(1, &files), None).unwrap();
    assert!(failure(Some(&other)).contains("was replaced"));
    // What is in memory is written as a whole then.
    last_good.advance(Some(2), &state(3, &files), 5).unwrap();
    assert_eq!(self::last_good(root.path()).load().unwrap(), state(3, &files));
}

#[test]
fn secrets_are_sealed_in_changes_and_base() {
    const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: hunter2}\n";
    let context = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
    let secret = |text: &str| {
        let checked = check("s.yaml", text.as_bytes(), &context, &podstead_manifest::PatchesByObject::new());
        KeptFile { objects: checked.accepted, ..KeptFile::default() }
    };
    let root = tempfile::tempdir().unwrap();
    let last_good = last_good(root.path());
    let mut files = large();
    files.insert("s.yaml".to_owned(), secret(SECRET));
    last_good.advance(None, &state(1, &files), 5).unwrap();
    files.insert(name(1), file(1));
    last_good.advance(Some(1), &state(2, &files), 5).unwrap();
    assert!(!fs::read_to_string(last_good.path()).unwrap().contains("s.yaml"), "what did not change is in the base alone");
    files.insert("s.yaml".to_owned(), secret(&SECRET.replace("hunter2", "hunter3")));
    last_good.advance(Some(2), &state(3, &files), 5).unwrap();
    for path in [last_good.path(), last_good.revision_path(1)] {
        let text = fs::read_to_string(path).unwrap();
        let readable = ["hunter", "aHVudGVy"].iter().any(|word| text.contains(word));
        assert!(text.contains("s.yaml") && !readable, "{text}");
    }
    assert_eq!(self::last_good(root.path()).load().unwrap(), state(3, &files));
}

#[test]
fn crash_before_or_after_the_new_file_leaves_a_set_that_can_be_read() {
    for limit in [0, 1, 3] {
        let root = tempfile::tempdir().unwrap();
        let mut files = large();
        last_good(root.path()).advance(None, &state(1, &files), limit).unwrap();
        let mut number = 1;
        for turn in 0..12 {
            let last_good = last_good(root.path());
            last_good.load().unwrap();
            files.insert(name(turn), file(turn + 1));
            let next = state(number + 1, &files);
            let base = last_good.base().clone();
            let in_force = fs::read(last_good.path()).unwrap();
            last_good.archive(number).unwrap();
            let (bytes, _) = last_good.encode(&next, base).unwrap();
            assert_eq!(fs::read(last_good.path()).unwrap(), in_force, "nothing is in force yet");
            last_good.take_step(revisions::Step::Replace, &bytes, Some(number)).unwrap();
            // The power goes before what is too much is removed, and the next daemon goes on.
            assert_eq!(self::last_good(root.path()).load().unwrap(), next, "turn {turn}, limit {limit}");
            number += 1;
            files.remove(&name(turn + 50));
            let fresh = self::last_good(root.path());
            fresh.load().unwrap();
            fresh.advance(Some(number), &state(number + 1, &files), limit).unwrap();
            number += 1;
            assert_eq!(self::last_good(root.path()).load().unwrap(), state(number, &files));
            assert!(archived(&fresh).len() <= limit + 2, "{:?}", archived(&fresh));
        }
    }
}

#[test]
fn base_stays_for_one_that_a_crash_left_archived() {
    let root = tempfile::tempdir().unwrap();
    let mut files = large();
    last_good(root.path()).advance(None, &state(1, &files), 1).unwrap();
    let crashed = last_good(root.path());
    crashed.load().unwrap();
    files.insert(name(7), file(1));
    let second = state(2, &files);
    crashed.advance(Some(1), &second, 1).unwrap();
    crashed.archive(2).unwrap();
    let next = last_good(root.path());
    next.load().unwrap();
    // Saved so often that all of it is written in the end, while the archived one stays on its base.
    while head_of(&next.path()).unwrap().base.is_some() {
        next.save(&second).unwrap();
    }
    assert_eq!(next.head(2).unwrap().base, Some(1));
    files.insert(name(8), file(1));
    next.advance(Some(2), &state(3, &files), 1).unwrap();
    let earlier: Vec<Record> = next.earlier(Some(3), 1).unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(earlier, [second.in_force.unwrap()]);
}

/// One thing that happens to a source.
#[derive(Clone, Debug)]
enum Event {
    /// Files get this content, or go.
    Edit(BTreeMap<usize, Option<usize>>),
    /// The set is replaced by an earlier one, by its place in the history.
    RollBack(usize),
    /// The set is saved again, with another place.
    Save,
    Restart,
    /// The daemon dies after it has kept the set in force as an earlier one.
    Crash,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let edit = prop::collection::btree_map(0..FILES, prop::option::of(1..5_usize), 1..4).prop_map(Event::Edit);
    let sweep = (1..5_usize).prop_map(|layer| Event::Edit((0..FILES).step_by(2).map(|index| (index, Some(layer))).collect()));
    let clear = Just(Event::Edit((0..FILES).skip(3).map(|index| (index, None)).collect()));
    let event = prop_oneof![
        12 => edit,
        2 => sweep,
        1 => clear,
        2 => (0..4_usize).prop_map(Event::RollBack),
        2 => Just(Event::Save),
        3 => Just(Event::Restart),
        1 => Just(Event::Crash)
    ];
    prop::collection::vec(event, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever happens, the set in force and the earlier ones are read as they were written.
    #[test]
    fn every_history_is_read_as_it_was_written(events in events(), limit in 0..4_usize) {
        let root = tempfile::tempdir().unwrap();
        let mut files = last_good(root.path());
        let mut history = vec![state(1, &large())];
        files.advance(None, &history[0], limit).unwrap();
        for event in events {
            let mut next = history.last().unwrap().clone();
            let record = next.in_force.as_mut().unwrap();
            let superseded = record.stamp.number;
            match event {
                Event::Restart => files = last_good(root.path()),
                Event::Crash => {
                    files.archive(superseded).unwrap();
                    files = last_good(root.path());
                }
                Event::Save => {
                    record.stamp.place = Some(Place(format!("place {}", history.len())));
                    files.save(&next).unwrap();
                    *history.last_mut().unwrap() = next.clone();
                }
                Event::Edit(edits) => {
                    record.stamp = stamp(superseded + 1);
                    for (index, layer) in edits {
                        match layer {
                            Some(layer) => record.files.insert(name(index), file(layer)),
                            None => record.files.remove(&name(index)),
                        };
                    }
                    files.advance(Some(superseded), &next, limit).unwrap();
                    history.push(next.clone());
                }
                Event::RollBack(back) => {
                    let target = history[history.len() - 1 - back.min(history.len() - 1)].in_force.clone().unwrap();
                    *record = Record { stamp: stamp(superseded + 1), files: target.files };
                    files.advance(Some(superseded), &next, limit).unwrap();
                    history.push(next.clone());
                }
            }
            prop_assert_eq!(&last_good(root.path()).load().unwrap(), history.last().unwrap());
            // A daemon reads what is in force before it writes.
            files.load().unwrap();
            let number = history.last().unwrap().in_force.as_ref().unwrap().stamp.number;
            let earlier: Vec<Record> = files.earlier(Some(number), limit).unwrap().into_iter().map(Result::unwrap).collect();
            let sets: Vec<(u64, &KeptFiles)> = earlier.iter().map(|record| (record.stamp.number, &record.files)).collect();
            let written = history.iter().rev().skip(1).take(limit).map(|state| state.in_force.as_ref().unwrap());
            let written: Vec<(u64, &KeptFiles)> = written.map(|record| (record.stamp.number, &record.files)).collect();
            prop_assert_eq!(sets, written);
            prop_assert!(archived_at_most(&files, 2 * limit + 2));
        }
    }
}

fn archived_at_most(last_good: &LastGood, most: usize) -> bool {
    fs::metadata(last_good.directory.join(REVISIONS)).is_err() || archived(last_good).len() <= most
}
