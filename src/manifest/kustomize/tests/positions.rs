//! Positions of built objects in the files that they came from.

use super::*;
use crate::Object;

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n  - name: c\n    image: nginx\n";

fn place(built: &Build, index: usize, path: &[&str]) -> String {
    built.objects[index].origin_of(path).to_string()
}

#[test]
fn values_know_what_wrote_them() {
    let kustomization = "resources: [r.yaml]\nnamespace: ns\nimages:\n- name: nginx\n  newTag: \"2\"\npatches:\n- path: p.yaml\n- patch: |-\n    apiVersion: v1\n    kind: Pod\n    metadata: {name: p}\n    spec:\n      hostname: h\nconfigMapGenerator:\n- name: g\n  files: [data.txt]\n  literals:\n  - a=b\n";
    let patch = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    args: [x]\n";
    let built = built("", &[("kustomization.yaml", kustomization), ("r.yaml", POD), ("p.yaml", patch), ("data.txt", "x\n")]);
    let pod = 1;
    assert_eq!(built.objects[pod].origin().to_string(), "r.yaml:1:1");
    assert_eq!(place(&built, pod, &["metadata", "namespace"]), "kustomization.yaml:2:12");
    assert_eq!(place(&built, pod, &["metadata", "name"]), "r.yaml:4:9");
    assert_eq!(place(&built, pod, &["spec", "containers", "0", "image"]), "kustomization.yaml:4:3");
    assert_eq!(place(&built, pod, &["spec", "containers", "0", "args", "0"]), "p.yaml:7:12");
    assert_eq!(place(&built, pod, &["spec", "hostname"]), "kustomization.yaml:13:17");
    assert_eq!(built.objects[0].origin().to_string(), "kustomization.yaml:15:3");
    assert_eq!(place(&built, 0, &["data", "a"]), "kustomization.yaml:18:5");
    assert_eq!(place(&built, 0, &["data", "data.txt"]), "data.txt:1:1");
}

#[test]
fn builds_know_what_they_have_read() {
    let files = [
        ("o/kustomization.yaml", "resources: [../b]\n"),
        ("b/kustomization.yml", "resources: [r.yaml]\n"),
        ("b/r.yaml", POD),
        ("x.yaml", POD),
    ];
    let built = built("o", &files);
    assert_eq!(
        built.read.iter().map(String::as_str).collect::<Vec<_>>(),
        ["b/kustomization.yml", "b/r.yaml", "o/kustomization.yaml"]
    );
    assert!(built.missing.contains("o/Kustomization") && built.missing.contains("b/kustomization.yaml"), "{:?}", built.missing);
}

#[test]
fn built_objects_become_typed_ones() {
    let built = built("", &[("kustomization.yaml", "resources: [r.yaml]\nnamePrefix: a-\n"), ("r.yaml", POD)]);
    let decoded = built.objects[0].decode("ns", &crate::Limits::default());
    assert_eq!((decoded.problems, decoded.broken), (vec![], vec![]));
    let object = &decoded.objects[0];
    assert_eq!((object.key.name.as_str(), object.key.namespace.as_str()), ("a-p", "ns"));
    assert!(matches!(&object.object, Object::Pod(pod) if pod.metadata.namespace.as_deref() == Some("ns")));
    assert_eq!(object.positions.position("spec.containers[0].image").unwrap().line, 8);
    assert_eq!(object.patched_by[object.positions.patch("metadata.name").unwrap()].file, "kustomization.yaml");
}

#[test]
fn faults_of_built_objects_name_their_place() {
    let patch = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  hostNetwrok: true\n";
    let built = built(
        "",
        &[("kustomization.yaml", "resources: [r.yaml]\npatches: [{path: p.yaml}]\n"), ("r.yaml", POD), ("p.yaml", patch)],
    );
    let decoded = built.objects[0].decode("default", &crate::Limits::default());
    let text = decoded.problems[0].to_string();
    assert!(text.starts_with("p.yaml:5:3: error[unknown-field]: spec.hostNetwrok"), "{text}");
    assert_eq!(decoded.broken[0].as_ref().unwrap().name, "p");
}

#[test]
fn deprecated_and_repeated_fields_are_warned_of() {
    let built = built(
        "",
        &[
            ("kustomization.yaml", "bases: [b]\ncommonLabels: {a: b}\ncommonLabels: {c: d}\n"),
            ("b/kustomization.yaml", "resources: [r.yaml]\n"),
            ("b/r.yaml", CONFIG_MAP),
        ],
    );
    let warnings: Vec<String> = built.problems.iter().map(ToString::to_string).collect();
    assert!(warnings.iter().all(|warning| warning.contains(": warning[")), "{warnings:?}");
    assert!(warnings[0].contains("commonLabels: the field is repeated"), "{warnings:?}");
    assert!(warnings[1].contains("bases: is deprecated (use resources)"), "{warnings:?}");
    assert_eq!(built.to_yaml(), "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels:\n    c: d\n  name: c\n");
}

#[test]
fn debug_output_has_no_content() {
    let built = built("", &[("kustomization.yaml", "secretGenerator: [{name: s, literals: [password=hunter2]}]\n")]);
    let text = format!("{built:?}");
    assert!(text.contains("Secret") && !text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
}

#[test]
fn encrypted_resources_are_refused_with_a_remedy() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: 'ENC[AES256_GCM,data:x]'}\nsops:\n  mac: x\n";
    let built = built("", &[("kustomization.yaml", "resources: [s.yaml]\n"), ("s.yaml", secret)]);
    let decoded = built.objects[0].decode("default", &crate::Limits::default());
    assert!(decoded.objects.is_empty());
    let problems: Vec<String> = decoded.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].starts_with("s.yaml:5:1: error[sops]:"), "{problems:?}");
    assert!(problems[0].contains("keep the file beside the kustomization"), "{problems:?}");
}
