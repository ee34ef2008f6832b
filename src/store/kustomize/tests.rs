//! Roots, layers, and what a build that fails keeps.

use super::*;
use podstead_artifact::{Layers, Surroundings};
use podstead_manifest::ObjectKey;
use podstead_pod::{AdmitContext, NodeName, Revision, SourceId};

const BASE: &str = "resources: [web.yaml]\n";
const WEB: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - {name: c, image: localhost/web:1}\n";

fn overlay(more: &str) -> String {
    format!("resources: [../../base]\n{more}\n")
}

fn artifact(files: &[(&str, &str)]) -> Artifact {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), Ok(text.as_bytes().into()))).collect();
    Artifact {
        revision: Revision("r".into()),
        place: None,
        commit: None,
        files,
        beside: BTreeMap::new(),
        around: Surroundings::default(),
    }
}

fn context(layers: &[&str]) -> CheckContext {
    let layers: Vec<String> = layers.iter().map(|layer| (*layer).to_owned()).collect();
    let all = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
    CheckContext { layers: Layers::parse(&layers).unwrap().into(), ..all }
}

fn applied(before: &UndeltaStore, artifact: &Artifact, context: &CheckContext) -> UndeltaStore {
    let prepared = prepare(artifact, before, context).unwrap();
    let check = |file: &str, bytes: &[u8], patches: &PatchesByObject| prepared.check(file, bytes, context, patches);
    before.clone().in_layers(&context.layers).apply(&prepared.artifact, &check)
}

/// The pods as `name=image@file:line`.
fn pods(store: &UndeltaStore) -> Vec<String> {
    let set = store.set(&SourceId::new("s"), &Revision("r".into()));
    let shown = |(ObjectKey { name, .. }, pod): (&ObjectKey, &crate::SetPod)| {
        let image = pod.pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
        format!("{name}={image}@{}", pod.origin)
    };
    set.pods.iter().map(shown).collect()
}

fn problems(store: &UndeltaStore) -> Vec<String> {
    store.set(&SourceId::new("s"), &Revision("r".into())).problems.iter().map(ToString::to_string).collect()
}

fn names(artifact: &Artifact, context: &CheckContext) -> Vec<String> {
    prepare(artifact, &UndeltaStore::default(), context).unwrap().artifact.files.into_keys().collect()
}

#[test]
fn names_of_kustomizations_are_those_of_builds() {
    for name in ["kustomization.yaml", "kustomization.yml", "Kustomization", "kustomization.json", "KUSTOMIZATION", "web.yaml"] {
        assert_eq!(is_kustomization(name), kustomize::is_kustomization(name), "{name}");
    }
}

#[test]
fn roots_take_the_place_of_their_files() {
    let (a, b) = (overlay("namePrefix: a-"), overlay("namePrefix: b-"));
    let files = [
        ("base/kustomization.yaml", BASE),
        ("base/web.yaml", WEB),
        ("overlays/a/kustomization.yaml", &*a),
        ("overlays/b/Kustomization", &*b),
        ("plain.yaml", &WEB.replace("name: web", "name: plain")),
    ];
    let (artifact, context) = (artifact(&files), context(&[]));
    assert_eq!(names(&artifact, &context), ["overlays/a/kustomization.yaml", "overlays/b/Kustomization", "plain.yaml"]);
    let store = applied(&UndeltaStore::default(), &artifact, &context);
    assert_eq!(problems(&store), [""; 0]);
    let image = "localhost/web:1";
    let expected = [
        format!("a-web={image}@base/web.yaml:1:1"),
        format!("b-web={image}@base/web.yaml:1:1"),
        format!("plain={image}@plain.yaml:1:1"),
    ];
    assert_eq!(pods(&store), expected);
}

#[test]
fn a_single_file_is_not_built() {
    let name = "/etc/podstead/kustomization.yaml";
    assert_eq!(names(&artifact(&[(name, BASE)]), &context(&[])), [name]);
    let text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\nnamePrefix: a-\n";
    let store = applied(&UndeltaStore::default(), &artifact(&[(name, text)]), &context(&[]));
    assert!(problems(&store)[0].contains("error[unsupported-kind]"), "{:?}", problems(&store));
}

#[test]
fn layers_name_what_is_built() {
    let (a, b) = (overlay("namePrefix: a-"), overlay("namePrefix: b-"));
    let files = [
        ("base/kustomization.yaml", BASE),
        ("base/web.yaml", WEB),
        ("overlays/a/kustomization.yaml", &*a),
        ("overlays/b/kustomization.yaml", &*b),
        ("plain/web.yaml", WEB),
    ];
    let artifact = artifact(&files);
    for (layers, expected) in [
        (&["overlays/a"][..], &["overlays/a/kustomization.yaml"][..]),
        (&["plain", "overlays/b/kustomization.yaml"], &["overlays/b/kustomization.yaml", "plain/web.yaml"]),
        (&["base", "overlays/a"], &["base/kustomization.yaml", "overlays/a/kustomization.yaml"]),
        (&["overlays/**"], &["overlays/a/kustomization.yaml", "overlays/b/kustomization.yaml"]),
        (&["**"], &["overlays/a/kustomization.yaml", "overlays/b/kustomization.yaml", "plain/web.yaml"]),
    ] {
        assert_eq!(names(&artifact, &context(layers)), expected, "{layers:?}");
    }
    assert!(prepare(&artifact, &UndeltaStore::default(), &context(&["overlays/c"])).is_err());
}

#[test]
fn files_beside_manifests_are_read_by_builds_only() {
    let mut artifact = artifact(&[("kustomization.yaml", "resources: [base]\nconfigMapGenerator: [{name: c, files: [a.conf]}]\n")]);
    let beside = [("a.conf", "x=${X}"), ("base/kustomization.yaml", BASE), ("base/web.yaml", WEB), ("other/web.yaml", "?")];
    artifact.beside = beside.map(|(name, text)| (name.to_owned(), Ok(text.as_bytes().into()))).into();
    let substitution = Substitution::new([("X".to_owned(), None)]);
    let context = CheckContext { substitute: Some(std::sync::Arc::new(substitution)), ..context(&[]) };
    let store = applied(&UndeltaStore::default(), &artifact, &context);
    assert_eq!((problems(&store), pods(&store).len()), (vec![], 1));
    let config_maps = store.set(&SourceId::new("s"), &Revision("r".into())).config_maps;
    let data = config_maps.values().next().unwrap().data.clone().unwrap();
    assert_eq!(data["a.conf"], "x=${X}", "variables are for manifests");
}

#[test]
fn variables_are_replaced_before_the_build() {
    let base = WEB.replace("web:1", "web:${TAG}");
    let files = [("kustomization.yaml", "resources: [web.yaml]\nnamePrefix: ${SITE}-\n"), ("web.yaml", &*base)];
    let with = |tag: Option<&str>| {
        let values = [("TAG".to_owned(), tag.map(str::to_owned)), ("SITE".to_owned(), Some("n".to_owned()))];
        CheckContext { substitute: Some(std::sync::Arc::new(Substitution::new(values))), ..context(&[]) }
    };
    let good = applied(&UndeltaStore::default(), &artifact(&files), &with(Some("2")));
    assert_eq!(pods(&good), ["n-web=localhost/web:2@web.yaml:1:1"]);
    let missing = applied(&good, &artifact(&files), &with(None));
    assert_eq!(pods(&missing), pods(&good));
    assert_eq!(problems(&missing).len(), 1, "{:?}", problems(&missing));
    assert!(problems(&missing)[0].starts_with("web.yaml:6:36: error[variable]: the variable TAG"), "{:?}", problems(&missing));
}

#[test]
fn a_failed_build_keeps_everything() {
    let a = overlay("namePrefix: a-");
    let files = |overlay: &str, web: &str| {
        artifact(&[("base/kustomization.yaml", BASE), ("base/web.yaml", web), ("overlays/a/kustomization.yaml", overlay)])
    };
    let good = applied(&UndeltaStore::default(), &files(&a, WEB), &context(&[]));
    assert_eq!(pods(&good), ["a-web=localhost/web:1@base/web.yaml:1:1"]);
    let unknown = overlay("namePrefixx: a-");
    let broken_base = WEB.replace("spec:", "spec: [");
    for (overlay, web, place) in [
        (&*unknown, WEB, "overlays/a/kustomization.yaml:2:1: error[unknown-field]"),
        ("resources: [\n", WEB, "overlays/a/kustomization.yaml:"),
        (&*a, &*broken_base, "base/web.yaml:"),
    ] {
        let failed = applied(&good, &files(overlay, web), &context(&[]));
        assert_eq!(pods(&failed), pods(&good), "{overlay}");
        assert!(problems(&failed).iter().any(|problem| problem.starts_with(place)), "{:?}", problems(&failed));
        let restarted = applied(&UndeltaStore::restore(failed.kept()), &files(overlay, web), &context(&[]));
        assert_eq!(pods(&restarted), pods(&good), "{overlay}");
        let first = applied(&UndeltaStore::default(), &files(overlay, web), &context(&[]));
        assert_eq!(pods(&first), [""; 0], "the base is not one of its own: {overlay}");
        assert_eq!(pods(&applied(&failed, &files(&a, WEB), &context(&[]))), pods(&good));
    }
}

#[test]
fn another_root_goes_on_while_one_fails() {
    let other = WEB.replace("name: web", "name: other");
    let files = |web: &str, other: &str| {
        artifact(&[("a/kustomization.yaml", BASE), ("a/web.yaml", web), ("b/kustomization.yaml", BASE), ("b/web.yaml", other)])
    };
    let good = applied(&UndeltaStore::default(), &files(WEB, &other), &context(&[]));
    let failed = applied(&good, &files("- [", &other.replace("web:1", "web:2")), &context(&[]));
    assert_eq!(pods(&failed), ["other=localhost/web:2@b/web.yaml:1:1", "web=localhost/web:1@a/web.yaml:1:1"]);
}

#[test]
fn problems_of_built_objects_name_their_places() {
    let patch = "patches: [{patch: '{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {restartPolicy: Sometimes}}'}]";
    let a = overlay(patch);
    let files = [("base/kustomization.yaml", BASE), ("base/web.yaml", WEB), ("overlays/a/kustomization.yaml", &*a)];
    let store = applied(&UndeltaStore::default(), &artifact(&files), &context(&[]));
    assert_eq!(pods(&store), [""; 0]);
    assert!(problems(&store)[0].starts_with("overlays/a/kustomization.yaml:2:"), "{:?}", problems(&store));
    assert!(problems(&store)[0].contains("spec.restartPolicy"), "{:?}", problems(&store));
}

#[test]
fn patches_do_not_change_built_objects() {
    let patch = "apiVersion: podstead.dev/v1alpha1\nkind: Patch\nmetadata: {name: p}\ntarget: {kind: Pod, name: web}\n\
                 strategicMerge: {metadata: {labels: {a: b}}}\n";
    let without = [("a/kustomization.yaml", BASE), ("a/web.yaml", WEB)];
    let with = [&without[..], &[("patch.yaml", patch)]].concat();
    let good = applied(&UndeltaStore::default(), &artifact(&without), &context(&[]));
    let refused = applied(&good, &artifact(&with), &context(&[]));
    assert_eq!(pods(&refused), pods(&good));
    let [problem] = &problems(&refused)[..] else { panic!("{:?}", problems(&refused)) };
    assert!(problem.starts_with("patch.yaml:1:1: error[kustomization]"), "{problem}");
    assert!(problem.contains("write it as an entry of patches in a/kustomization.yaml"), "{problem}");
    assert_eq!(problems(&applied(&refused, &artifact(&without), &context(&[]))), [""; 0]);
}

#[test]
fn unused_components_have_no_objects() {
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [web.yaml]\n";
    let files = [("part/kustomization.yaml", component), ("part/web.yaml", WEB)];
    let store = applied(&UndeltaStore::default(), &artifact(&files), &context(&[]));
    assert_eq!(pods(&store), [""; 0]);
    assert!(problems(&store)[0].contains("warning[kustomization]: no kustomization uses this component"), "{:?}", problems(&store));
}

#[test]
fn circles_are_reported_once() {
    let files = [("a/kustomization.yaml", "resources: [../b]\n"), ("b/kustomization.yaml", "resources: [../a]\n")];
    assert_eq!(names(&artifact(&files), &context(&[])), ["a/kustomization.yaml"]);
    let store = applied(&UndeltaStore::default(), &artifact(&files), &context(&[]));
    assert_eq!(problems(&store).len(), 1, "{:?}", problems(&store));
}

#[test]
fn equal_builds_are_not_checked_again() {
    let files = [("a/kustomization.yaml", BASE), ("a/web.yaml", WEB)];
    let (one, two) = (artifact(&files), artifact(&files));
    let content = |artifact: &Artifact| {
        prepare(artifact, &UndeltaStore::default(), &context(&[])).unwrap().artifact.files["a/kustomization.yaml"].clone().unwrap()
    };
    assert_eq!(content(&one), content(&two));
    let moved = artifact(&[files[0], ("a/web.yaml", &format!("# moved\n{WEB}"))]);
    assert_ne!(content(&one), content(&moved), "the places are others");
}

/// An artifact of the directory `path` of a tree.
fn part(path: &str, tree: &[(&str, &str)]) -> Artifact {
    let mut around = Surroundings { path: path.to_owned(), files: BTreeMap::new() };
    let mut part = artifact(&[]);
    for (file, text) in tree {
        let content: FileContent = Ok(text.as_bytes().into());
        match around.name_below(file).map(str::to_owned) {
            Some(name) => part.files.insert(name, content),
            None => around.files.insert((*file).to_owned(), content),
        };
    }
    part.around = around;
    part
}

#[test]
fn overlay_is_built_with_a_base_around_it() {
    let dev = overlay("namePrefix: dev-");
    let tree = [
        ("apps/base/kustomization.yaml", "resources: [web.yaml, ../more]\n"),
        ("apps/base/web.yaml", WEB),
        ("apps/more/kustomization.yaml", "resources: [db.yaml]\n"),
        ("apps/more/db.yaml", &WEB.replace("name: web", "name: db")),
        ("apps/overlays/dev/kustomization.yaml", &*dev),
        ("apps/overlays/dev/plain.yaml", &WEB.replace("name: web", "name: plain")),
    ];
    let (part, context) = (part("apps/overlays/dev", &tree), context(&[]));
    let store = applied(&UndeltaStore::default(), &part, &context);
    assert_eq!(problems(&store), [""; 0]);
    let expected = [
        "dev-db=localhost/web:1@../../more/db.yaml:1:1",
        "dev-web=localhost/web:1@../../base/web.yaml:1:1",
        "plain=localhost/web:1@plain.yaml:1:1",
    ];
    assert_eq!(pods(&store), expected);
    assert_eq!(names(&part, &context), ["kustomization.yaml", "plain.yaml"]);
}

#[test]
fn layers_are_names_of_the_source() {
    let (a, b) = ("resources: [../../base]\nnamePrefix: a-\n", "resources: [../../base]\nnamePrefix: b-\n");
    let tree = [
        ("base/kustomization.yaml", BASE),
        ("base/web.yaml", WEB),
        ("sites/a/kustomization.yaml", a),
        ("sites/b/kustomization.yaml", b),
    ];
    let store = applied(&UndeltaStore::default(), &part("sites", &tree), &context(&["b"]));
    assert_eq!(
        (problems(&store), pods(&store)),
        (Vec::<String>::new(), vec!["b-web=localhost/web:1@../base/web.yaml:1:1".to_owned()])
    );
}

#[test]
fn faults_around_the_source_name_their_file() {
    let tree = [
        ("base/kustomization.yaml", "resources: [web.yaml, gone]\n"),
        ("base/web.yaml", WEB),
        ("dev/kustomization.yaml", "resources: [../base]\n"),
    ];
    let around = applied(&UndeltaStore::default(), &part("dev", &tree), &context(&[]));
    let found = problems(&around).join("\n");
    assert!(
        found.starts_with("../base/kustomization.yaml:1:23: error[kustomization]: ") && found.contains("../base/gone"),
        "{found}"
    );
    let beyond = [("dev/kustomization.yaml", "resources: [../../other]\n")];
    let found = problems(&applied(&UndeltaStore::default(), &part("dev", &beyond), &context(&[]))).join("\n");
    assert!(found.contains("\"../../other\" is outside of the source"), "{found}");
}

#[test]
fn variables_around_the_source_are_replaced() {
    let tree = [
        ("base/kustomization.yaml", BASE),
        ("base/web.yaml", &*WEB.replace("name: web", "name: web-${SITE}")),
        ("dev/kustomization.yaml", "resources: [../base]\n"),
    ];
    let values = [("SITE".to_owned(), Some("shop".to_owned()))];
    let context = CheckContext { substitute: Some(std::sync::Arc::new(Substitution::new(values))), ..context(&[]) };
    let store = applied(&UndeltaStore::default(), &part("dev", &tree), &context);
    assert_eq!(
        (problems(&store), pods(&store)),
        (Vec::<String>::new(), vec!["web-shop=localhost/web:1@../base/web.yaml:1:1".to_owned()])
    );
}
