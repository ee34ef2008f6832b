//! Differences of upstream from the standards that it follows.

use super::*;

#[test]
fn folded_texts_get_empty_lines() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
patches:
- patch: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: c}
    data:
      patched: >-
        x
          y
        z
      new: >
        x
          y
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data:
  patched: >-
    a
      b
    c
  a: >-
    object.exists(c,
      c.image
    )
  b: >
    one
    two

    three
      four
      five

      six
    seven
  c: >+
    one
      two

  d: >+
    one

  e: >2

      indented
    one
    two
  f: |
    a
      b
  g: >-
    trailing 
      b
  h: &x >-
    a
      b
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
data:
  a: |-
    object.exists(c,

      c.image
    )
  b: |
    one two
    three

      four
      five

      six
    seven
  c: |+
    one

      two

  d: |+
    one


  e: |2

      indented
    one two
  f: |
    a
      b
  g: "trailing \n  b"
  h: |-
    a

      b
  new: |-
    x

      y
  patched: |-
    x

      y
    z
kind: ConfigMap
metadata:
  name: c
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn a_missing_key_is_replaced() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
patches:
- target: {kind: ConfigMap}
  patch: |
    - {op: replace, path: /data/new, value: x}
    - {op: replace, path: /metadata/labels, value: {a: b}}
- target: {kind: ConfigMap}
  patch: |
    - {op: replace, path: /data/new, value: y}
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: b}
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
data:
  a: b
  new: true
kind: ConfigMap
metadata:
  labels:
    a: b
  name: c
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn negative_indices_count_from_the_end() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
patches:
- target: {kind: Pod}
  patch: |
    - {op: add, path: /spec/containers/-1, value: {name: z}}
    - {op: replace, path: /spec/containers/-1/name, value: x}
    - {op: remove, path: /spec/containers/-2}
    - {op: test, path: /spec/containers/-1/name, value: x}
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: v1
kind: Pod
metadata: {name: c}
spec: {containers: [{name: a}, {name: b}]}
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
kind: Pod
metadata:
  name: c
spec:
  containers:
  - name: a
  - name: x
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn a_missing_key_is_copied_as_null() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
patches:
- target: {kind: Pod}
  patch: |
    - {op: copy, from: /spec/x, path: /spec/y}
    - {op: test, path: /spec/q, value: null}
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: v1
kind: Pod
metadata: {name: c}
spec: {containers: [{name: a}, {name: b}]}
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
kind: Pod
metadata:
  name: c
spec:
  containers:
  - name: a
  - name: b
  "y": null
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn the_end_of_an_inline_patch_is_cut() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
patches:
- patch: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: c}
    data:
      a: |
        text
      b: |
        last
- target: {kind: Pod}
  patch: |
    - op: add
      path: /metadata/annotations
      value:
        a: |
          x
- path: p.yaml
patchesStrategicMerge:
- |
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: c}
  data:
    d: |
      last
patchesJson6902:
- target: {version: v1, kind: Pod, name: p}
  patch: |
    - op: add
      path: /metadata/labels
      value:
        a: |
          x
"#,
        ),
        (
            "p.yaml",
            r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data:
  e: |
    last
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
data:
  a: |
    text
  b: last
  d: |
    last
  e: |
    last
kind: ConfigMap
metadata:
  name: c
---
apiVersion: v1
kind: Pod
metadata:
  annotations:
    a: x
  labels:
    a: |
      x
  name: p
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn replaced_items_and_parents_must_be_there() {
    let patch = |operation: &str| format!("patches:\n- target: {{kind: ConfigMap}}\n  patch: '[{operation}]'\n");
    let replace = |path: &str| patch(&format!("{{\"op\": \"replace\", \"path\": \"{path}\", \"value\": 1}}"));
    assert!(error_of(&replace("/nothing/new"), CONFIG_MAP).contains("/nothing/new does not exist"));
    let list = format!("{CONFIG_MAP}list: [a]\n");
    assert!(error_of(&replace("/list/1"), &list).contains("/list/1 does not exist"));
    assert!(error_of(&replace("/list/-2"), &list).contains("/list/-1 does not exist"));
    assert!(error_of(&patch("{\"op\": \"move\", \"from\": \"/x\", \"path\": \"/y\"}"), CONFIG_MAP).contains("/x does not exist"));
}

#[test]
fn unknown_words_are_warnings() {
    let kustomization = "configMapGenerator: [{name: a, behavior: add}]\nbuildMetadata: [nothing]\n";
    let built = built("", &[("kustomization.yaml", kustomization)]);
    let warnings: Vec<String> = built.problems.iter().map(ToString::to_string).collect();
    assert!(
        warnings.iter().any(|text| text.contains("warning[kustomization]: behavior: unknown behavior \"add\"")),
        "{warnings:?}"
    );
    assert!(warnings.iter().any(|text| text.contains("buildMetadata: unknown option \"nothing\"")), "{warnings:?}");
    assert_eq!((built.objects.len(), warnings.len()), (1, 2));
}

#[test]
fn a_component_is_built_by_itself() {
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [r.yaml]\nnamePrefix: a-\n";
    assert!(output("", &[("kustomization.yaml", component), ("r.yaml", CONFIG_MAP)]).contains("name: a-c\n"));
}

#[test]
fn replacing_a_whole_object_changes_nothing() {
    let kustomization = r#"patches:
- patch: |
    apiVersion: v1
    kind: Pod
    metadata: {name: p}
    $patch: replace
    spec: {hostname: h}
"#;
    let resources = r#"apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: i}]}
"#;
    let expected = r#"apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  containers:
  - image: i
    name: c
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn blanks_in_braces_are_null_at_first() {
    let kustomization = r#"namespace: ns
commonLabels: {a: b}
patches:
- patch: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: c}
    data: {a: , b: x}
    new: {deep: {a: , b: x}}
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: , labels: }
data: {a: x, c: }
"#;
    let expected = r#"apiVersion: v1
data:
  b: x
kind: ConfigMap
metadata:
  labels:
    a: b
  name: c
  namespace: ns
new:
  deep:
    b: x
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn braces_without_digits_are_characters() {
    let kustomization = r#"patches:
- target: {name: "${NAME}"}
  patch: '[{"op": "add", "path": "/data", "value": {"a": "b"}}]'
- target: {name: "${NAME}{1}"}
  patch: '[{"op": "add", "path": "/data/c", "value": "d"}]'
images: [{name: "${IMAGE}", newTag: "2"}]
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: "${NAME}"}
spec: {containers: [{image: "${IMAGE}:1"}]}
"#;
    let expected = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: ${NAME}
spec:
  containers:
  - image: ${IMAGE}:1
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn what_stands_before_a_slash_is_ignored() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [r.yaml, sub]
patches:
- target: {kind: ConfigMap}
  patch: |
    - {op: replace, path: ignored/data/a, value: "2"}
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: "1"}
"#,
        ),
        // Nothing is built of it, and it is not empty.
        ("sub/kustomization.yaml", "resources: []\n"),
    ];
    let expected = r#"apiVersion: v1
data:
  a: "2"
kind: ConfigMap
metadata:
  name: c
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn stars_and_repeated_anchors_are_read() {
    let kustomization = r#"patches:
- patch: |
    apiVersion: v1
    kind: Example
    metadata: {name: e}
    schedule: "*/10 * * * *"
"#;
    let resources = r#"apiVersion: v1
kind: Example
metadata:
  name: e
  annotations:
    note: >
      one
        two
schedule: "*/12 * * * *"
path: a[*].b [*] (*)
kept: null
hosts:
- &host one
- *host
- &host two
- *host
- &host three
- *host
rule: >-
  all(x,
    x > 1
  )
"#;
    let expected = r#"apiVersion: v1
hosts:
- one
- one
- two
- two
- three
- three
kept: null
kind: Example
metadata:
  annotations:
    note: |
      one
        two
  name: e
path: a[*].b [*] (*)
rule: |-
  all(x,

    x > 1
  )
schedule: '*/10 * * * *'
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}
