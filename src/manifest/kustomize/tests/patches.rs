//! Strategic merge patches and JSON patches.

use super::*;

#[test]
fn elements_of_patches_come_first() {
    let kustomization = r#"patches:
- patch: |-
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      template:
        spec:
          containers:
          - name: b
            env: [{name: y, value: "2"}]
          - {name: new, image: n}
"#;
    let resources = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - {name: a, image: a}
      - {name: b, image: b, env: [{name: x, value: "1"}, {name: y, value: "1"}], args: [a]}
"#;
    let expected = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
      - args:
        - a
        env:
        - name: "y"
          value: "2"
        - name: x
          value: "1"
        image: b
        name: b
      - image: "n"
        name: new
      - image: a
        name: a
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn null_and_directives_remove_values() {
    let kustomization = r#"patches:
- patch: |-
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: null
      strategy: {$patch: replace, type: Recreate}
      template:
        spec:
          containers:
          - {name: a, $patch: delete}
          - {name: b, args: null}
          volumes:
          - $patch: replace
          - {name: only, emptyDir: {}}
"#;
    let resources = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  strategy: {rollingUpdate: {maxSurge: 1}}
  template:
    spec:
      containers: [{name: a}, {name: b, args: [x]}]
      volumes: [{name: old}]
"#;
    let expected = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  strategy:
    type: Recreate
  template:
    spec:
      containers:
      - name: b
      volumes:
      - emptyDir: {}
        name: only
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn lists_of_unknown_kinds_are_replaced() {
    let kustomization = r#"patches:
- patch: |-
    apiVersion: example.com/v1
    kind: Foo
    metadata: {name: f}
    spec: {list: [{name: b}], keep: {n: 1}}
"#;
    let resources = r#"apiVersion: example.com/v1
kind: Foo
metadata: {name: f}
spec: {list: [{name: a}, {name: b, x: y}], keep: {o: 1}}
"#;
    let expected = r#"apiVersion: example.com/v1
kind: Foo
metadata:
  name: f
spec:
  keep:
    "n": 1
    o: 1
  list:
  - name: b
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn ports_are_merged_by_two_keys() {
    let kustomization = r#"patches:
- patch: |-
    apiVersion: v1
    kind: Service
    metadata: {name: s}
    spec:
      ports:
      - {port: 80, protocol: UDP, targetPort: 9}
      - {port: 82}
"#;
    let resources = r#"apiVersion: v1
kind: Service
metadata: {name: s}
spec:
  ports:
  - {name: a, port: 80, protocol: TCP}
  - {name: b, port: 80, protocol: UDP}
"#;
    let expected = r#"apiVersion: v1
kind: Service
metadata:
  name: s
spec:
  ports:
  - port: 82
  - name: a
    port: 80
    protocol: TCP
  - name: b
    port: 80
    protocol: UDP
    targetPort: 9
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn scalars_keep_the_quotes_they_replace() {
    let kustomization = r#"patches:
- patch: |-
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: c}
    data: {a: 2, b: "2", c: 2}
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: "1", b: 1, c: 1}
"#;
    let expected = r#"apiVersion: v1
data:
  a: "2"
  b: "2"
  c: 2
kind: ConfigMap
metadata:
  name: c
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn finalizers_are_merged_as_a_set() {
    let kustomization = r#"patches:
- patch: |-
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: c, finalizers: [b, n]}
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c, finalizers: [a, b]}
"#;
    let expected = r#"apiVersion: v1
kind: ConfigMap
metadata:
  finalizers:
  - b
  - "n"
  - a
  name: c
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn targets_select_by_expressions_and_labels() {
    let kustomization = r#"patches:
- target: {kind: Con.*, name: "c|d", labelSelector: "x=y"}
  patch: '[{"op": "add", "path": "/data", "value": {"k": "v"}}]'
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c, labels: {x: y}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cd, labels: {x: y}}
"#;
    let expected = r#"apiVersion: v1
data:
  k: v
kind: ConfigMap
metadata:
  labels:
    x: "y"
  name: c
---
apiVersion: v1
kind: ConfigMap
metadata:
  labels:
    x: "y"
  name: cd
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: d
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn json_operations_are_applied_in_order() {
    let kustomization = r#"patches:
- target: {kind: Deployment}
  patch: |-
    - {op: add, path: /metadata/annotations/a~1b, value: yes}
    - {op: add, path: /spec/list/-, value: {n: 1.50}}
    - {op: add, path: /spec/list/0, value: first}
    - {op: copy, from: /spec/list, path: /spec/copied}
    - {op: move, from: /spec/old, path: /spec/new}
    - {op: replace, path: /spec/list/1, value: null}
    - {op: test, path: /spec/new, value: 1}
    - {op: remove, path: /spec/copied/0}
"#;
    let resources = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {list: [x], old: 1}
"#;
    let expected = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  annotations:
    a/b: "true"
  name: web
spec:
  copied:
  - x
  - "false": 1.5
  list:
  - first
  - null
  - "false": 1.5
  new: 1
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn patches_rename_where_they_may() {
    let kustomization = r#"patches:
- target: {kind: Deployment}
  options: {allowNameChange: true, allowKindChange: true}
  patch: |-
    apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: db}
- target: {kind: ConfigMap}
  patch: |-
    apiVersion: v1
    kind: Secret
    metadata: {name: ignored, namespace: ignored}
    data: {a: b}
"#;
    let resources = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
"#;
    let expected = r#"apiVersion: v1
data:
  a: b
kind: ConfigMap
metadata:
  name: c
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn one_patch_of_several_documents() {
    let kustomization = r#"patches:
- patch: |-
    apiVersion: v1
    kind: Pod
    metadata: {name: p}
    spec: {hostname: h}
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: c}
    $patch: delete
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
"#;
    let expected = r#"apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  hostname: h
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn legacy_fields_of_patches_are_applied() {
    let kustomization = r#"patchesStrategicMerge:
- |-
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: c}
  data: {a: x}
patchesJson6902:
- target: {version: v1, kind: ConfigMap, name: c}
  patch: '[{"op": "replace", "path": "/data/a", "value": "y"}]'
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
"#;
    let expected = r#"apiVersion: v1
data:
  a: "y"
kind: ConfigMap
metadata:
  name: c
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn text_that_begins_with_a_bracket_is_json() {
    let patch = |text: &str| format!("patches:\n- target: {{kind: ConfigMap}}\n  patch: |-\n    {text}\n");
    let map = format!("{CONFIG_MAP}data: {{a: b}}\n");
    for text in [
        r#"[{"op": "replace", "path": "/data/a", "value": "c"}]"#,
        r#"- {op: replace, path: /data/a, value: c}"#,
        "# YAML\n    [{op: replace, path: /data/a, value: c}]",
    ] {
        assert!(output_of(&patch(text), &map).contains("a: c"), "{text}");
    }
    for text in [
        "[{op: replace, path: /data/a, value: c}]",
        r#"[{"op": "replace", "path": "/data/a", "value": "c"},]"#,
        "[{\"op\": \"replace\", \"path\": \"/data/a\", \"value\": \"c\"}] # comment",
    ] {
        let error = error_of(&patch(text), &map);
        assert!(error.contains("a JSON patch that begins with [ must be JSON") && error.contains("block style"), "{error}");
    }
    let legacy = "patchesJson6902:\n- target: {version: v1, kind: ConfigMap, name: c}\n  patch: '[{op: remove, path: /data}]'\n";
    assert!(error_of(legacy, &map).contains("must be JSON"));
}

/// All numbers of an object pass through the JSON library, those that no operation names as well.
#[test]
fn json_patches_round_integers_of_more_than_53_bits() {
    let kustomization = "patches:\n- target: {kind: X}\n  patch: |-\n    - {op: add, path: /spec/l, value: [1234567890123456789, 9007199254740992]}\n";
    let resources = "apiVersion: x/v1\nkind: X\nmetadata: {name: c}\n\
                     spec: {a: 9007199254740993, b: 18446744073709551615, c: -9223372036854775808, d: -9007199254740992}\n";
    let expected = "apiVersion: x/v1\nkind: X\nmetadata:\n  name: c\nspec:\n  a: 9007199254740992\n  b: 1.8446744073709552e+19\n  \
                    c: -9.223372036854776e+18\n  d: -9007199254740992\n  l:\n  - 1234567890123456800\n  - 9007199254740992\n";
    assert_eq!(output_of(kustomization, resources), expected);
}
