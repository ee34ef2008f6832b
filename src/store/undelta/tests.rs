//! The rules of the undelta store, one by one.

use super::*;
use k8s_openapi::api::core::v1::ConfigMap;
use podstead_artifact::{FileContent, Surroundings};
use podstead_pod::{Origin, Pod, Position};
use std::cell::RefCell;

/// A small language for files: a line `name=text` is a good pod, `name=!` a refused one, `?` something that cannot be told.
pub(super) fn judge(file: &str, bytes: &[u8], _: &PatchesByObject) -> Checked {
    let mut checked = Checked::default();
    for (index, line) in std::str::from_utf8(bytes).unwrap().lines().enumerate() {
        let origin = Origin { file: file.into(), position: Position { line: index as u32 + 1, column: 1 } };
        match line.split_once('=') {
            Some((name, "!")) => checked.broken.push(Some(key(name))),
            Some((name, text)) => checked.accepted.push(Accepted {
                key: key(name).into(),
                origin,
                object: object(name, text),
                patched_by: Vec::new(),
            }),
            None if line == "?" => checked.broken.push(None),
            None => {}
        }
    }
    checked
}

fn key(name: &str) -> ObjectKey {
    ObjectKey { kind: "Pod".into(), namespace: "default".into(), name: name.into() }
}

fn object(name: &str, text: &str) -> AcceptedObject {
    let mut pod = Pod::default();
    pod.metadata.name = Some(format!("{name}-node"));
    pod.metadata.labels = Some(BTreeMap::from([("text".to_owned(), text.to_owned())]));
    AcceptedObject::Pod(Arc::new(pod))
}

/// An artifact of files; a text that begins with `E` is the reason why the file cannot be read.
pub(super) fn artifact<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Artifact {
    let content =
        |text: &str| -> FileContent { if text.starts_with('E') { Err(text.to_owned()) } else { Ok(text.as_bytes().into()) } };
    let files = files.into_iter().map(|(name, text)| (name.to_owned(), content(text))).collect();
    Artifact {
        revision: Revision("r".into()),
        place: None,
        commit: None,
        files,
        beside: BTreeMap::new(),
        around: Surroundings::default(),
    }
}

pub(super) fn set(store: &UndeltaStore) -> Set {
    store.set(&SourceId::new("s"), &Revision("r".into()))
}

/// Pods as `name=text@file`, in order of their names.
pub(super) fn pods(store: &UndeltaStore) -> Vec<String> {
    let short = |(key, pod): (ObjectKey, SetPod)| {
        format!("{}={}@{}", key.name, pod.pod.metadata.labels.as_ref().unwrap()["text"], pod.origin.file)
    };
    set(store).pods.into_iter().map(short).collect()
}

/// The pods after each of the given contents of the directory.
fn after(steps: &[&[(&str, &str)]]) -> Vec<String> {
    let apply = |store: UndeltaStore, files: &&[(&str, &str)]| store.apply(&artifact(files.iter().copied()), &judge);
    pods(&steps.iter().fold(UndeltaStore::default(), apply))
}

fn codes(store: &UndeltaStore) -> Vec<String> {
    set(store).problems.into_iter().map(|problem| problem.code).collect()
}

#[test]
fn objects_come_and_go_with_their_files() {
    assert_eq!(after(&[&[("a", "p=1\nq=1"), ("b", "r=1")]]), ["p=1@a", "q=1@a", "r=1@b"]);
    assert_eq!(after(&[&[("a", "p=1\nq=1"), ("b", "r=1")], &[("a", "q=2")]]), ["q=2@a"]);
}

#[test]
fn a_refused_object_keeps_its_last_good_version_and_its_neighbours_go_on() {
    assert_eq!(after(&[&[("a", "p=1\nq=1")], &[("a", "p=!\nq=2")]]), ["p=1@a", "q=2@a"]);
    assert_eq!(after(&[&[("a", "p=1\nq=1")], &[("a", "p=!")]]), ["p=1@a"], "the file does not hold q any more");
    assert_eq!(after(&[&[("a", "p=1")], &[("a", "p=!")], &[("a", "p=!\nq=1")], &[("a", "p=3")]]), ["p=3@a"]);
    assert_eq!(after(&[&[("a", "p=!")]]), [""; 0]);
}

#[test]
fn a_file_that_cannot_be_told_or_read_keeps_all_that_it_gave() {
    for broken in ["?", "Eio", "", " \n"] {
        assert_eq!(after(&[&[("a", "p=1\nq=1")], &[("a", broken)], &[("a", broken)]]), ["p=1@a", "q=1@a"], "{broken:?}");
        assert_eq!(after(&[&[("a", "p=1\nq=1")], &[("a", broken)], &[("a", "p=2")]]), ["p=2@a"], "{broken:?}");
        assert_eq!(after(&[&[("a", "p=1\nq=1")], &[("a", broken)], &[]]), [""; 0], "{broken:?}");
    }
    assert_eq!(after(&[&[("a", "p=1\nq=1")], &[("a", "p=2\n?")]]), ["p=2@a", "q=1@a"]);
}

#[test]
fn a_file_without_manifests_is_a_statement_and_an_empty_one_is_not() {
    assert_eq!(after(&[&[("a", "p=1")], &[("a", "# nothing")]]), [""; 0]);
    let store = UndeltaStore::default().apply(&artifact([("a", "p=1")]), &judge);
    assert_eq!(codes(&store.apply(&artifact([("a", "")]), &judge)), ["empty-file"]);
    assert_eq!(codes(&store.apply(&artifact([("a", "Eio")]), &judge)), ["unreadable-file"]);
    assert_eq!(codes(&UndeltaStore::default().apply(&artifact([("a", "")]), &judge)), [""; 0]);
}

#[test]
fn an_object_may_move_to_another_file() {
    let store = UndeltaStore::default().apply(&artifact([("a", "p=1")]), &judge);
    let moved = store.apply(&artifact([("b", "p=1")]), &judge);
    assert_eq!(pods(&moved), ["p=1@b"]);
    assert_eq!(codes(&moved), [""; 0]);
}

#[test]
fn an_object_that_moved_into_a_broken_file_stays() {
    for broken in ["?", "p=!", "Eio"] {
        assert_eq!(after(&[&[("a", "p=1")], &[("b", broken)]]), ["p=1@a"], "renamed {broken:?}");
        assert_eq!(after(&[&[("a", "p=1"), ("b", "q=1")], &[("b", broken)], &[("b", "q=2")]]), ["q=2@b"], "{broken:?} mended");
    }
    assert_eq!(after(&[&[("a", "p=1"), ("b", "q=1")], &[("a", "p=1"), ("b", "?")], &[("b", "?")]]), ["q=1@b"]);
    assert_eq!(after(&[&[("a", "p=1"), ("b", "q=1")], &[("a", "p=1"), ("b", "?")], &[("b", "?\n?")]]), ["q=1@b"]);
}

#[test]
fn an_object_that_stays_because_it_may_have_moved_is_told() {
    let store = UndeltaStore::default().apply(&artifact([("a", "p=1")]), &judge).apply(&artifact([("b", "?")]), &judge);
    let problem = set(&store).problems.remove(0).to_string();
    assert_eq!(
        problem,
        "b: warning[kept-object]: Pod default/p is gone from a and may have moved into this file, which has errors: keeping it (fix or remove this file)"
    );
}

#[test]
fn of_two_files_with_one_object_the_first_gives_it() {
    let store = UndeltaStore::default().apply(&artifact([("a", "p=1"), ("b", "x=1\np=2")]), &judge);
    assert_eq!(pods(&store), ["p=1@a", "x=1@b"]);
    let problem = set(&store).problems.remove(0).to_string();
    assert!(
        problem.starts_with("b:2:1: error[duplicate-object]: metadata.name: Pod default/p is already defined at a:1:1"),
        "{problem}"
    );
    assert_eq!(pods(&store.apply(&artifact([("a", "p=!"), ("b", "x=1\np=2")]), &judge)), ["p=1@a", "x=1@b"]);
    assert_eq!(pods(&store.apply(&artifact([("b", "x=1\np=2")]), &judge)), ["p=2@b", "x=1@b"]);
}

#[test]
fn only_files_whose_bytes_changed_are_judged() {
    let judged = RefCell::new(Vec::new());
    let counting = |file: &str, bytes: &[u8], patches: &PatchesByObject| {
        judged.borrow_mut().push(file.to_owned());
        judge(file, bytes, patches)
    };
    let mut store = UndeltaStore::default();
    for files in [[("a", "p=1"), ("b", "q=?"), ("c", "Eio")], [("a", "p=1"), ("b", "q=2"), ("c", "Eio")]] {
        store = store.apply(&artifact(files), &counting);
    }
    assert_eq!(*judged.borrow(), ["a", "b", "b"]);
    assert_eq!(pods(&store), ["p=1@a", "q=2@b"]);
}

#[test]
fn what_is_kept_on_disk_is_what_comes_back() {
    let store = UndeltaStore::default().apply(&artifact([("a", "p=1\nq=!"), ("b", "Eio"), ("c", "# nothing")]), &judge);
    let restored = UndeltaStore::restore(store.kept());
    assert_eq!(pods(&restored), pods(&store));
    assert!(restored.keeps_the_same_as(&store));
    // A file that could not be read before the restart is no new suspect after it.
    assert_eq!(pods(&restored.apply(&artifact([("b", "Eio")]), &judge)), [""; 0]);
    assert_eq!(pods(&restored.apply(&artifact([("a", "?"), ("b", "Eio")]), &judge)), ["p=1@a"]);
    assert!(!restored.keeps_the_same_as(&store.apply(&artifact([("b", "Eio")]), &judge)));
}

/// Judges every line `text` as an immutable ConfigMap with this text.
fn judge_immutable(file: &str, bytes: &[u8], _: &PatchesByObject) -> Checked {
    let mut checked = Checked::default();
    for text in std::str::from_utf8(bytes).unwrap().lines() {
        let key = ObjectKey { kind: "ConfigMap".into(), namespace: "default".into(), name: "c".into() };
        let origin = Origin { file: file.into(), position: Position { line: 1, column: 1 } };
        let (data, immutable) = (Some(BTreeMap::from([("text".to_owned(), text.to_owned())])), Some(true));
        let config_map = k8s_openapi::api::core::v1::ConfigMap { data, immutable, ..Default::default() };
        checked.accepted.push(Accepted {
            key: key.into(),
            origin,
            object: AcceptedObject::ConfigMap(Arc::new(config_map)),
            patched_by: Vec::new(),
        });
    }
    checked
}

#[test]
fn an_immutable_object_keeps_its_data_until_it_goes() {
    let text = |store: &UndeltaStore| {
        let set = set(store);
        set.config_maps.values().map(|config_map| config_map.data.as_ref().unwrap()["text"].clone()).collect::<Vec<_>>()
    };
    let apply = |store: &UndeltaStore, content: &str| store.apply(&artifact([("a", content)]), &judge_immutable);
    let first = apply(&UndeltaStore::default(), "one");
    let changed = apply(&first, "two");
    assert_eq!((text(&changed), codes(&changed)), (vec!["one".to_owned()], vec!["immutable-object".to_owned()]));
    let restored = apply(&UndeltaStore::restore(changed.kept()), "two");
    assert_eq!(text(&restored), ["one"], "also after a restart");
    let back = apply(&changed, "one");
    assert_eq!((text(&back), codes(&back)), (vec!["one".to_owned()], Vec::new()));
    let gone = apply(&changed, "");
    assert_eq!(text(&gone), ["one"], "an emptied file says nothing");
    let elsewhere = changed.apply(&artifact([("b", "two")]), &judge_immutable);
    assert_eq!(text(&elsewhere), ["one"], "the file may change its name");
    let removed = changed.apply(&artifact([]), &judge_immutable);
    assert_eq!(text(&apply(&removed, "two")), ["two"]);
}

fn layered(layers: &[&str]) -> Arc<Layers> {
    let layers: Vec<String> = layers.iter().map(|layer| (*layer).to_owned()).collect();
    Arc::new(Layers::parse(&layers).unwrap())
}

#[test]
fn the_later_layer_gives_an_object_and_within_a_layer_the_first_file() {
    let files = [("a/1", "web=base"), ("b/1", "web=host"), ("b/2", "web=second"), ("a/2", "db=base")];
    let store = UndeltaStore::default().in_layers(&layered(&["a", "b"])).apply(&artifact(files), &judge);
    assert_eq!(pods(&store), ["db=base@a/2", "web=host@b/1"]);
    let problems: Vec<_> = set(&store).problems.into_iter().map(|problem| (problem.file, problem.code)).collect();
    assert_eq!(problems, [("b/2".to_owned(), "duplicate-object".to_owned())], "a replaced object is no duplicate");
    assert_eq!(pods(&UndeltaStore::restore(store.kept())), pods(&store), "also after a restart");
    let names: Vec<_> = in_use(&store.kept()).into_values().map(|object| object.origin.file.clone()).collect();
    assert_eq!(names, ["a/2", "b/1"]);
    let turned = store.in_layers(&layered(&["b", "a"]));
    assert_eq!(pods(&turned), ["db=base@a/2", "web=host@b/1"], "what is in force stays until the source is read");
    assert_eq!(pods(&turned.apply(&artifact(files), &judge)), ["db=base@a/2", "web=base@a/1"]);
}

#[test]
fn a_layer_that_never_had_a_good_version_leaves_that_of_the_layer_before() {
    let store = UndeltaStore::default().in_layers(&layered(&["a", "b"]));
    let store = store.apply(&artifact([("a/1", "web=base"), ("b/1", "web=!")]), &judge);
    assert_eq!(pods(&store), ["web=base@a/1"]);
    let store = store.apply(&artifact([("a/1", "web=base"), ("b/1", "web=host")]), &judge);
    let store = store.apply(&artifact([("a/1", "web=newer"), ("b/1", "web=!")]), &judge);
    assert_eq!(pods(&store), ["web=host@b/1"]);
}

/// As [`judge`], with config maps that claim a time of creation.
fn judge_config_maps(file: &str, bytes: &[u8], patches: &PatchesByObject) -> Checked {
    let mut checked = judge(file, bytes, patches);
    for accepted in &mut checked.accepted {
        let mut config_map = ConfigMap::default();
        config_map.metadata.creation_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        config_map.data = Some(BTreeMap::from([("line".to_owned(), accepted.origin.position.line.to_string())]));
        accepted.object = AcceptedObject::ConfigMap(Arc::new(config_map));
    }
    checked
}

#[test]
fn time_of_creation_is_that_of_the_first_version() {
    let next = |store: &UndeltaStore, files: &[(&str, &str)], now: i64| {
        let mut next = store.apply(&artifact(files.iter().copied()), &judge_config_maps);
        next.note_creation(store, Timestamp::from_millisecond(now * 1000 + 999).unwrap());
        next
    };
    let created = |store: &UndeltaStore| -> Vec<(String, i64)> {
        let time = |object: &Accepted| object.object.created_at().unwrap().0.as_second();
        store.objects().into_iter().map(|object| (object.key.name.to_string(), time(object))).collect()
    };
    let pairs = |times: &[(&str, i64)]| times.iter().map(|(name, time)| ((*name).to_owned(), *time)).collect::<Vec<_>>();
    let first = next(&UndeltaStore::default(), &[("a", "p=1")], 10);
    assert_eq!(created(&first), pairs(&[("p", 10)]), "not what the manifest claims");
    let moved = next(&first, &[("b", "q=1\np=1")], 20);
    assert_eq!(created(&moved), pairs(&[("p", 10), ("q", 20)]));
    let gone = next(&moved, &[("b", "q=1")], 30);
    let again = next(&gone, &[("b", "q=1\np=1")], 40);
    assert_eq!(created(&again), pairs(&[("p", 40), ("q", 20)]));
    assert!(again.keeps_the_same_as(&next(&again, &[("b", "q=1\np=1")], 50)));
    let times = again.objects().into_iter().map(|object| object.object.created_at().unwrap().0.subsec_nanosecond());
    assert_eq!(times.collect::<Vec<_>>(), [0, 0], "as they are written");
    let restored = UndeltaStore::restore(again.kept());
    assert_eq!(created(&next(&restored, &[("b", "p=1\nq=1")], 60)), created(&again), "also after a restart");
}
