//! Bases, overlays and components.

use super::*;

#[test]
fn overlays_change_what_bases_build() {
    let files = [
        (
            "base/kustomization.yaml",
            r#"resources: [r.yaml]
namePrefix: base-
configMapGenerator: [{name: g, literals: [a=1, b=2]}]
"#,
        ),
        (
            "base/r.yaml",
            r#"apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: i, envFrom: [{configMapRef: {name: g}}]}]}
"#,
        ),
        (
            "overlays/prod/kustomization.yaml",
            r#"resources: [../../base]
namePrefix: prod-
namespace: prod
configMapGenerator: [{name: g, behavior: merge, literals: [b=3]}]
patches:
- patch: |-
    apiVersion: v1
    kind: Pod
    metadata: {name: p}
    spec: {hostname: h}
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
data:
  a: "1"
  b: "3"
kind: ConfigMap
metadata:
  name: prod-base-g-dtd4b88ttf
  namespace: prod
---
apiVersion: v1
kind: Pod
metadata:
  name: prod-base-p
  namespace: prod
spec:
  containers:
  - envFrom:
    - configMapRef:
        name: prod-base-g-dtd4b88ttf
    image: i
    name: c
  hostname: h
"#;
    assert_eq!(output("overlays/prod", &files), expected);
}

#[test]
fn two_bases_keep_their_own_names() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [a, b]
"#,
        ),
        (
            "a/kustomization.yaml",
            r#"resources: [r.yaml]
namePrefix: a-
"#,
        ),
        (
            "b/kustomization.yaml",
            r#"resources: [r.yaml]
namePrefix: b-
"#,
        ),
        (
            "a/r.yaml",
            r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {volumes: [{name: v, configMap: {name: c}}]}
"#,
        ),
        (
            "b/r.yaml",
            r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {volumes: [{name: v, configMap: {name: c}}]}
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: a-c
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: b-c
---
apiVersion: v1
kind: Pod
metadata:
  name: a-p
spec:
  volumes:
  - configMap:
      name: a-c
    name: v
---
apiVersion: v1
kind: Pod
metadata:
  name: b-p
spec:
  volumes:
  - configMap:
      name: b-c
    name: v
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn components_change_what_they_join() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
components: [comp]
nameSuffix: -z
configMapGenerator: [{name: g, literals: [a=1]}]
"#,
        ),
        (
            "comp/kustomization.yaml",
            r#"apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources: [more.yaml]
configMapGenerator: [{name: g, behavior: merge, literals: [b=2]}]
labels: [{pairs: {from: component}}]
"#,
        ),
        (
            "comp/more.yaml",
            r#"apiVersion: v1
kind: ConfigMap
metadata: {name: more}
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
kind: ConfigMap
metadata:
  labels:
    from: component
  name: c-z
---
apiVersion: v1
data:
  a: "1"
  b: "2"
kind: ConfigMap
metadata:
  labels:
    from: component
  name: g-z-7gdc49gk6d
---
apiVersion: v1
kind: ConfigMap
metadata:
  labels:
    from: component
  name: more-z
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn files_and_environments_become_data() {
    let files = [
        (
            "kustomization.yaml",
            r#"configMapGenerator:
- name: g
  files: [f.txt, key=dir/f.txt]
  envs: [e.env]
secretGenerator:
- name: s
  envs: [e.env]
"#,
        ),
        (
            "f.txt", r#"one
"#,
        ),
        ("dir/f.txt", r#"two"#),
        (
            "e.env",
            r#"# note
A=1
  B=2 
C

"#,
        ),
    ];
    let expected = r#"apiVersion: v1
data:
  A: "1"
  B: '2 '
  C: ""
  f.txt: |
    one
  key: two
kind: ConfigMap
metadata:
  name: g-kbc757m46t
---
apiVersion: v1
data:
  A: MQ==
  B: MiA=
  C: ""
kind: Secret
metadata:
  name: s-84t5bc22b2
type: Opaque
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn origins_and_transformations_are_noted() {
    let files = [
        (
            "o/kustomization.yaml",
            r#"resources: [../b]
buildMetadata: [originAnnotations, transformerAnnotations]
namePrefix: a-
labels: [{pairs: {x: z}}]
"#,
        ),
        (
            "b/kustomization.yaml",
            r#"resources: [dir/r.yaml]
configMapGenerator: [{name: g, literals: [a=1]}]
"#,
        ),
        (
            "b/dir/r.yaml",
            r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
kind: ConfigMap
metadata:
  annotations:
    alpha.config.kubernetes.io/transformations: |
      - configuredIn: kustomization.yaml
        configuredBy:
          apiVersion: builtin
          kind: PrefixTransformer
      - configuredIn: kustomization.yaml
        configuredBy:
          apiVersion: builtin
          kind: LabelTransformer
      - configuredIn: kustomization.yaml
        configuredBy:
          apiVersion: builtin
          kind: LabelTransformer
    config.kubernetes.io/origin: |
      path: ../b/dir/r.yaml
  labels:
    x: z
  name: a-c
---
apiVersion: v1
data:
  a: "1"
kind: ConfigMap
metadata:
  annotations:
    alpha.config.kubernetes.io/transformations: |
      - configuredIn: kustomization.yaml
        configuredBy:
          apiVersion: builtin
          kind: PrefixTransformer
      - configuredIn: kustomization.yaml
        configuredBy:
          apiVersion: builtin
          kind: LabelTransformer
      - configuredIn: kustomization.yaml
        configuredBy:
          apiVersion: builtin
          kind: LabelTransformer
    config.kubernetes.io/origin: |
      configuredIn: ../b/kustomization.yaml
      configuredBy:
        apiVersion: builtin
        kind: ConfigMapGenerator
  labels:
    x: z
  name: a-g-h29d89cmmt
"#;
    assert_eq!(output("o", &files), expected);
}

#[test]
fn configurations_name_more_fields() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
configurations: [c.yaml]
namePrefix: a-
labels: [{pairs: {x: z}, includeSelectors: true}]
images: [{name: i, newTag: v2}]
"#,
        ),
        (
            "c.yaml",
            r#"nameReference: [{kind: ConfigMap, version: v1, fieldSpecs: [{kind: Foo, path: spec/configRef/name}]}]
images: [{kind: Foo, path: spec/img}]
commonLabels: [{kind: Foo, path: spec/selector, create: true}]
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: example.com/v1
kind: Foo
metadata: {name: f}
spec: {configRef: {name: c}, img: "i:v1"}
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
kind: ConfigMap
metadata:
  labels:
    x: z
  name: a-c
---
apiVersion: example.com/v1
kind: Foo
metadata:
  labels:
    x: z
  name: a-f
spec:
  configRef:
    name: a-c
  img: i:v2
  selector:
    x: z
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn prefixes_for_one_kind_replace_the_default() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
configurations: [c.yaml]
namePrefix: a-
nameSuffix: -z
"#,
        ),
        (
            "c.yaml",
            r#"namePrefix: [{kind: Foo, path: metadata/name}]
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: example.com/v1
kind: Foo
metadata: {name: f}
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: c-z
---
apiVersion: example.com/v1
kind: Foo
metadata:
  name: a-f-z
"#;
    assert_eq!(output("", &files), expected);
}

/// As in kubectl, fields are merged once more behind a component, and those of one kind come first then.
#[test]
fn fields_of_a_component_take_the_place_of_general_ones() {
    let output_of = |create: bool| {
        let fields = format!("commonAnnotations:\n- {{kind: Widget, path: metadata/annotations, create: {create}}}\n");
        let files = [
            ("kustomization.yaml", "resources: [r.yaml]\ncomponents: [c]\ncommonAnnotations: {a: b}\n"),
            (
                "r.yaml",
                "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n---\napiVersion: e.org/v1\nkind: Widget\nmetadata: {name: w}\n",
            ),
            ("c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nconfigurations: [f.yaml]\n"),
            ("c/f.yaml", fields.as_str()),
        ];
        if create { output("", &files) } else { error("", &files) }
    };
    let expected = "apiVersion: e.org/v1
kind: Widget
metadata:
  annotations:
    a: b
  name: w
---
apiVersion: v1
kind: Pod
metadata:
  name: p
";
    assert_eq!(output_of(true), expected);
    let message = output_of(false);
    assert!(message.contains("metadata/annotations is known with another value of create"), "{message}");
}
