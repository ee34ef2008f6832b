//! Patches among the files of a source, applied as the daemon applies them.

use super::tests::artifact;
use super::*;
use crate::{CheckContext, check};
use podstead_pod::{AdmitContext, NodeName};
use proptest::prelude::*;

fn base(tag: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web, labels: {{app: web}}}}\nspec:\n  containers:\n  - {{name: a, image: 'a:{tag}'}}\n"
    )
}

fn patch(name: &str, target: &str, spec: &str) -> String {
    format!(
        "apiVersion: podstead.dev/v1alpha1\nkind: Patch\nmetadata: {{name: {name}}}\ntarget: {target}\nstrategicMerge: {{spec: {spec}}}\n"
    )
}

const WEB: &str = "{kind: Pod, name: web}";

fn host(hostname: &str) -> String {
    patch("host", WEB, &format!("{{hostname: {hostname}}}"))
}

fn in_layers() -> UndeltaStore {
    let layers = ["base", "roles", "hosts"].map(str::to_owned);
    UndeltaStore::default().in_layers(&Arc::new(Layers::parse(&layers).unwrap()))
}

fn apply(store: &UndeltaStore, files: &[(&str, &str)]) -> UndeltaStore {
    let context = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
    store.apply(&artifact(files.iter().copied()), &|file, bytes, patches| check(file, bytes, &context, patches))
}

/// Pods as `name image hostname`.
fn pods(store: &UndeltaStore) -> Vec<String> {
    let set = store.set(&SourceId::new("s"), &Revision("r".into()));
    let short = |(key, pod): (ObjectKey, SetPod)| {
        let spec = pod.pod.spec.as_ref().unwrap();
        format!("{} {} {}", key.name, spec.containers[0].image.as_deref().unwrap(), spec.hostname.as_deref().unwrap_or("-"))
    };
    set.pods.into_iter().map(short).collect()
}

fn problems(store: &UndeltaStore) -> Vec<String> {
    store.set(&SourceId::new("s"), &Revision("r".into())).problems.iter().map(ToString::to_string).collect()
}

fn restarted(store: &UndeltaStore) -> UndeltaStore {
    let text = serde_json::to_string(&store.kept()).unwrap();
    UndeltaStore::restore(serde_json::from_str(&text).unwrap()).in_layers(&store.layers)
}

#[test]
fn a_later_layer_changes_an_object_of_an_earlier_one() {
    let files = [("base/web", base("1")), ("hosts/h", host("h1"))];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let store = apply(&in_layers(), &files);
    assert_eq!((pods(&store), problems(&store)), (vec!["web a:1 h1".to_owned()], vec![]));
    let objects = store.objects();
    assert_eq!(
        (objects[0].origin.to_string(), objects[0].patched_by[0].to_string()),
        ("base/web:1:1".into(), "hosts/h:1:1".into())
    );
    let changed = apply(&store, &[files[0], ("hosts/h", &host("h2"))]);
    assert_eq!(pods(&changed), ["web a:1 h2"], "a changed patch decides its targets anew");
    let changed = apply(&changed, &[("base/web", &base("2")), ("hosts/h", &host("h2"))]);
    assert_eq!(pods(&changed), ["web a:2 h2"], "a changed object keeps its patches");
    assert_eq!(pods(&apply(&changed, &[("base/web", &base("2"))])), ["web a:2 -"], "a patch that is gone changes nothing");
}

#[test]
fn patches_are_applied_in_order_of_layers_files_and_documents() {
    let two = format!("{}---\n{}", patch("k", WEB, "{hostname: k}"), patch("x", WEB, "{hostname: x, subdomain: s}"));
    let (last, first) = (patch("z", WEB, "{hostname: z}"), patch("a", WEB, "{hostname: a}"));
    let web = base("1");
    let in_one = [("roles/b", &*two), ("roles/a", &*last), ("base/web", &*web)];
    assert_eq!(pods(&apply(&in_layers(), &in_one)), ["web a:1 x"], "the last document of the last file");
    let in_two = [("roles/b", &*two), ("hosts/a", &*first), ("base/web", &*web)];
    assert_eq!(pods(&apply(&in_layers(), &in_two)), ["web a:1 a"], "the last layer");
}

#[test]
fn an_object_of_a_later_layer_is_not_changed_by_patches_of_earlier_ones() {
    let (web, role, own) = (base("1"), host("role"), base("9"));
    let files = [("base/web", &*web), ("roles/p", &*role), ("hosts/web", &*own)];
    let store = apply(&in_layers(), &files);
    assert_eq!((pods(&store), problems(&store)), (vec!["web a:9 -".to_owned()], vec![]));
    // What fits the object of the last layer alone is no problem of the others.
    let own_patch = "apiVersion: podstead.dev/v1alpha1\nkind: Patch\nmetadata: {name: t}\ntarget: {kind: Pod}\n\
                     json: [{op: test, path: /spec/containers/0/image, value: 'a:9'}, {op: add, path: /spec/hostname, value: h}]\n";
    let store = apply(&store, &[files[0], files[2], ("hosts/p", own_patch)]);
    assert_eq!((pods(&store), problems(&store)), (vec!["web a:9 h".to_owned()], vec![]));
}

#[test]
fn a_patch_of_the_same_name_takes_the_place_of_that_of_an_earlier_layer() {
    let (web, role, own) = (base("1"), patch("p", WEB, "{hostname: role, subdomain: s}"), patch("p", WEB, "{subdomain: t}"));
    let store = apply(&in_layers(), &[("base/web", &web), ("roles/p", &role), ("hosts/p", &own)]);
    assert_eq!((pods(&store), problems(&store)), (vec!["web a:1 -".to_owned()], vec![]));
    let store = apply(&in_layers(), &[("base/web", &web), ("roles/p", &role), ("roles/q", &own)]);
    assert_eq!(pods(&store), ["web a:1 role"]);
    assert!(
        problems(&store)[0]
            .starts_with("roles/q:1:1: error[duplicate-object]: metadata.name: Patch p is already defined at roles/p:1:1")
    );
}

#[test]
fn what_a_target_selects_is_changed_and_nothing_else() {
    let other = base("1").replace("name: web,", "name: db,").replace("app: web", "app: db");
    let web = base("1");
    for (target, expected) in [
        ("{kind: Pod}", ["db a:1 h", "web a:1 h"]),
        ("{kind: Pod, labelSelector: app=db}", ["db a:1 h", "web a:1 -"]),
        ("{kind: Pod, name: 'w*', namespace: default}", ["db a:1 -", "web a:1 h"]),
        ("{kind: Pod, namespace: other}", ["db a:1 -", "web a:1 -"]),
    ] {
        let text = patch("p", target, "{hostname: h}");
        assert_eq!(pods(&apply(&in_layers(), &[("base/a", &web), ("base/b", &other), ("hosts/p", &text)])), expected, "{target}");
    }
}

#[test]
fn a_patch_without_a_target_is_an_error_if_it_names_one_object() {
    let web = base("1");
    let problem = |target: &str| {
        let text = patch("p", target, "{hostname: h}");
        problems(&apply(&in_layers(), &[("base/web", &web), ("hosts/p", &text)]))
    };
    let missing = problem("{kind: Pod, name: web-edge}");
    let expected = "hosts/p:1:1: error[patch-without-target]: target: no Pod */web-edge in the patch's layer or an earlier one";
    assert!(missing[0].starts_with(expected), "{missing:?}");
    assert!(problem("{kind: Pod, name: 'x*'}")[0].contains("warning[patch-without-target]"));
    assert!(problem("{kind: Pod, labelSelector: gpu}")[0].contains("warning[patch-without-target]"));
}

#[test]
fn whatever_is_wrong_with_a_patch_its_objects_keep_their_last_good_version() {
    let (web, good, db) = (base("1"), host("h1"), base("1").replace("name: web,", "name: db,"));
    let store = apply(&in_layers(), &[("base/web", &web), ("base/db", &db), ("hosts/h", &good)]);
    let (new_web, new_db) = (base("2"), db.replace("a:1", "a:2"));
    let held = ["db a:2 -", "web a:1 h1"];
    let test = "apiVersion: podstead.dev/v1alpha1\nkind: Patch\nmetadata: {name: host}\ntarget: {kind: Pod, name: web}\n\
                json: [{op: test, path: /spec/hostname, value: x}]\n";
    let invalid = patch("host", WEB, "{hostname: 'not a name'}");
    let unknown = patch("host", WEB, "{hostnam: h}");
    for (why, text) in
        [("refused", &*unknown), ("unreadable", "kind: ["), ("empty", ""), ("io", "Eio"), ("unfit", test), ("invalid", &invalid)]
    {
        let files = [("base/web", &*new_web), ("base/db", &*new_db), ("hosts/h", text)];
        for (when, before) in [("at once", store.clone()), ("after a restart", restarted(&store))] {
            let broken = apply(&before, &files);
            assert_eq!(pods(&broken), held, "{why} {when}");
            assert!(problems(&broken).iter().all(|problem| problem.starts_with("hosts/h")), "{why}: {:?}", problems(&broken));
            assert!(!problems(&broken).is_empty());
            let again = apply(&restarted(&apply(&broken, &files)), &files);
            assert_eq!(pods(&again), held, "{why} {when}, and again");
            assert!(again.keeps_the_same_as(&broken), "{why} {when}");
            let mended = apply(&again, &[("base/web", &new_web), ("base/db", &new_db), ("hosts/h", &good)]);
            assert_eq!(pods(&mended), ["db a:2 -", "web a:2 h1"], "{why} {when}, mended");
            let gone = apply(&again, &[("base/web", &new_web), ("base/db", &new_db)]);
            assert_eq!(pods(&gone), ["db a:2 -", "web a:2 -"], "{why} {when}, removed");
        }
    }
}

#[test]
fn a_bad_object_holds_with_its_patches() {
    let (web, good) = (base("1"), host("h1"));
    let store = apply(&in_layers(), &[("base/web", &web), ("hosts/h", &good)]);
    let broken = apply(&store, &[("base/web", &web.replace("containers", "containerz")), ("hosts/h", &host("h2"))]);
    assert_eq!(pods(&broken), ["web a:1 h1"]);
    let gone = apply(&broken, &[("hosts/h", &host("h2"))]);
    assert_eq!(pods(&gone), [""; 0], "an object that is removed needs no patch");
}

#[test]
fn an_object_that_never_had_a_good_version_waits_for_its_patch() {
    let (web, unknown) = (base("1"), patch("host", WEB, "{hostnam: h}"));
    let store = apply(&in_layers(), &[("base/web", &web), ("hosts/h", &unknown)]);
    assert_eq!(pods(&store), [""; 0]);
    assert_eq!(pods(&apply(&store, &[("base/web", &web), ("hosts/h", &host("h1"))])), ["web a:1 h1"]);
    assert_eq!(pods(&apply(&store, &[("base/web", &web)])), ["web a:1 -"]);
}

#[test]
fn an_object_of_a_new_layer_that_its_patch_does_not_fit_changes_nothing() {
    let test = "apiVersion: podstead.dev/v1alpha1\nkind: Patch\nmetadata: {name: t}\ntarget: {kind: Pod, name: web}\n\
                json: [{op: test, path: /spec/containers/0/image, value: 'a:1'}, {op: add, path: /spec/hostname, value: h}]\n";
    let (web, role) = (base("1"), base("2"));
    let store = apply(&in_layers(), &[("base/web", &web), ("hosts/h", test)]);
    assert_eq!(pods(&store), ["web a:1 h"]);
    let broken = apply(&store, &[("base/web", &web), ("roles/web", &role), ("hosts/h", test)]);
    assert_eq!(pods(&broken), ["web a:1 h"]);
    assert_eq!(pods(&apply(&restarted(&broken), &[("base/web", &web), ("roles/web", &role), ("hosts/h", test)])), ["web a:1 h"]);
}

#[test]
fn a_patch_that_moved_into_a_file_that_cannot_be_read_is_not_taken_for_removed() {
    let (web, good) = (base("1"), host("h1"));
    let store = apply(&in_layers(), &[("base/web", &web), ("hosts/a", &good)]);
    let moved = apply(&store, &[("base/web", &web), ("hosts/b", "Eio")]);
    assert_eq!(pods(&moved), ["web a:1 h1"]);
    assert_eq!(pods(&apply(&restarted(&moved), &[("base/web", &web), ("hosts/b", "Eio")])), ["web a:1 h1"]);
    assert_eq!(pods(&apply(&moved, &[("base/web", &web), ("hosts/b", &host("h3"))])), ["web a:1 h3"]);
}

#[test]
fn a_patch_removes_an_object_and_without_it_the_object_is_back() {
    let (web, removal) = (base("1"), patch("host", WEB, "{}").replace("{spec: {}}", "{$patch: delete}"));
    let store = apply(&in_layers(), &[("base/web", &web)]);
    let removed = apply(&store, &[("base/web", &web), ("hosts/h", &removal)]);
    assert_eq!((pods(&removed), problems(&removed)), (vec![], vec![]));
    let again = apply(&removed, &[("base/web", &web), ("hosts/h", &removal)]);
    assert_eq!((pods(&again), problems(&again)), (vec![], vec![]));
    assert_eq!(pods(&apply(&restarted(&removed), &[("base/web", &web), ("hosts/h", &removal)])), [""; 0]);
    assert_eq!(pods(&apply(&again, &[("base/web", &web)])), ["web a:1 -"]);
}

#[test]
fn what_makes_a_result_invalid_is_told_where_it_is_to_blame() {
    let web = base("1");
    let problem = |base: &str, patches: &[&str]| {
        let names = ["roles/a", "roles/b", "roles/c"];
        let files: Vec<_> = [("base/web", base)].into_iter().chain(names.into_iter().zip(patches.iter().copied())).collect();
        problems(&apply(&in_layers(), &files)).swap_remove(0)
    };
    let (fine, removes) = (patch("fine", WEB, "{hostname: h}"), patch("removes", WEB, "{containers: [{name: a, image: null}]}"));
    let later = patch("later", WEB, "{subdomain: s}");
    let found = problem(&web, &[&fine, &removes, &later]);
    assert!(found.starts_with("roles/b:1:1: error[required]: spec.containers[0].image"), "{found}");
    assert!(found.contains("in Pod default/web of base/web:1:1"), "{found}");
    let bad = patch("bad", WEB, "").replace("{spec: }", "\n  spec:\n    hostname: 'a b'");
    let found = problem(&web, &[&bad]);
    assert!(found.starts_with("roles/a:7:15: error["), "{found}");
    let found = problem(&web.replace(", image: 'a:1'", ""), &[&fine]);
    assert!(found.starts_with("base/web:6:6: error[required]: spec.containers[0].image"), "{found}");
    let completes = patch("completes", WEB, "{containers: [{name: a, image: x}]}");
    let store = apply(&in_layers(), &[("base/web", &web.replace(", image: 'a:1'", "")), ("roles/a", &completes)]);
    assert_eq!((pods(&store), problems(&store)), (vec!["web x -".to_owned()], vec![]), "a base may leave something to its patches");
}

const CONTENTS: [&str; 8] = ["h1", "h2", "unknown", "invalid", "[", "", "Eio", "# nothing"];

fn text_of(word: &str) -> String {
    match word {
        "h1" | "h2" => host(word),
        "unknown" => patch("host", WEB, "{hostnam: h}"),
        "invalid" => patch("host", WEB, "{hostname: 'a b'}"),
        other => other.to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn with_a_bad_patch_nothing_changes_and_a_restart_makes_no_difference(
        words in prop::collection::vec((prop::sample::select(&CONTENTS[..]), 1..3u8), 1..7),
        restart_at in any::<prop::sample::Index>(),
    ) {
        let restart_at = restart_at.index(words.len());
        let (mut steady, mut other) = (in_layers(), in_layers());
        for (index, (word, tag)) in words.iter().enumerate() {
            let (web, text) = (base(&tag.to_string()), text_of(word));
            let files = [("base/web", web.as_str()), ("hosts/h", text.as_str())];
            let before = pods(&steady);
            (steady, other) = (apply(&steady, &files), apply(&other, &files));
            prop_assert_eq!(pods(&steady), pods(&other));
            match *word {
                "h1" | "h2" => prop_assert_eq!(pods(&steady), [format!("web a:{tag} {word}")]),
                "# nothing" => prop_assert_eq!(pods(&steady), [format!("web a:{tag} -")]),
                "unknown" | "invalid" => prop_assert_eq!(pods(&steady), before),
                // A file of which nothing was ever known may be about anything.
                _ => prop_assert!(pods(&steady) == before || !before.iter().any(|pod| pod.contains(" h")), "{before:?}"),
            }
            if index == restart_at {
                other = restarted(&other);
            }
        }
    }
}
