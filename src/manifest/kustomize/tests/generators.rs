//! Generators of ConfigMaps and Secrets: names, hashes and content.

use super::*;

#[test]
fn literals_become_hashed_config_maps() {
    let kustomization = r#"configMapGenerator: [{name: g, literals: [a=b, 'q="x y"', e=, "x=a=b"]}]
"#;
    let resources = r#"apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {volumes: [{name: v, configMap: {name: g}}]}
"#;
    let expected = r#"apiVersion: v1
data:
  a: b
  e: ""
  q: x y
  x: a=b
kind: ConfigMap
metadata:
  name: g-t82bkk454f
---
apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  volumes:
  - configMap:
      name: g-t82bkk454f
    name: v
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn secrets_are_encoded_and_hashed() {
    let kustomization = r#"secretGenerator: [{name: g, type: example.com/t, literals: [a=b, long=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]}]
"#;
    let resources = r#"apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {imagePullSecrets: [{name: g}]}
"#;
    let expected = r#"apiVersion: v1
data:
  a: Yg==
  long: |
    YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYW
    FhYWFhYWFh
kind: Secret
metadata:
  name: g-mdfftm5594
type: example.com/t
---
apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  imagePullSecrets:
  - name: g-mdfftm5594
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn options_of_generators_are_merged() {
    let kustomization = r#"generatorOptions: {labels: {a: g, b: g}, annotations: {note: g}, immutable: true}
configMapGenerator:
- {name: g, literals: [a=b], options: {labels: {a: own}, disableNameSuffixHash: true}}
- {name: h, namespace: ns}
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
"#;
    let expected = r#"apiVersion: v1
immutable: true
kind: ConfigMap
metadata:
  annotations:
    note: g
  labels:
    a: g
    b: g
  name: h-6ct58987ht
  namespace: ns
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
---
apiVersion: v1
data:
  a: b
immutable: true
kind: ConfigMap
metadata:
  annotations:
    note: g
  labels:
    a: own
    b: g
  name: g
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn hashes_follow_names_and_namespaces() {
    let kustomization = r#"namePrefix: a-
namespace: ns
configMapGenerator: [{name: g, literals: [a=<b>&"c"]}]
"#;
    let resources = r#"apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, envFrom: [{configMapRef: {name: g}}]}]}
"#;
    let expected = r#"apiVersion: v1
data:
  a: <b>&"c"
kind: ConfigMap
metadata:
  name: a-g-6b2kbc7fcm
  namespace: ns
---
apiVersion: v1
kind: Pod
metadata:
  name: a-p
  namespace: ns
spec:
  containers:
  - envFrom:
    - configMapRef:
        name: a-g-6b2kbc7fcm
    name: c
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn generators_merge_into_resources() {
    let kustomization = r#"configMapGenerator: [{name: c, behavior: merge, literals: [a=2, b=3], options: {disableNameSuffixHash: true, labels: {l: m}}}]
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c, labels: {l: k, o: o}, annotations: {x: y}}
data: {a: "1", z: "0"}
"#;
    let expected = r#"apiVersion: v1
data:
  a: "2"
  b: "3"
  z: "0"
kind: ConfigMap
metadata:
  annotations:
    x: "y"
  labels:
    l: m
    o: o
  name: c
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn generators_replace_resources() {
    let kustomization = r#"configMapGenerator: [{name: c, behavior: replace, literals: [b=3]}]
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: "1"}
"#;
    let expected = r#"apiVersion: v1
data:
  b: "3"
kind: ConfigMap
metadata:
  name: c
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}
