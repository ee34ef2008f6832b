//! Generators and transformers that are built into kustomize, named by `generators` and `transformers`.

use super::*;

const OBJECTS: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  template:
    spec:
      containers:
      - name: web
        image: nginx:1.0
        envFrom:
        - configMapRef: {name: conf}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: conf
data:
  level: "3"
  path: /x/y
---
apiVersion: example.com/v1
kind: Foo
metadata:
  name: foo
spec:
  image: nginx:1.0
  size: 1
  ref: conf
"#;

#[test]
fn each_transformer_changes_its_fields() {
    let files = [
        (
            "kustomization.yaml",
            "resources: [r.yaml]
namePrefix: k-
transformers:
- t.yaml
- |-
  apiVersion: builtin
  kind: PatchTransformer
  metadata: {name: inline-comes-first}
  target: {kind: Deployment}
  patch: |-
    - op: replace
      path: /spec/replicas
      value: 2
",
        ),
        ("r.yaml", OBJECTS),
        (
            "p.yaml",
            "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
      - name: web
        command: [run]
",
        ),
        (
            "t.yaml",
            r#"apiVersion: builtin
kind: PrefixTransformer
metadata: {name: prefix}
prefix: p-
fieldSpecs:
- {path: metadata/name, kind: ConfigMap}
- {path: spec/made/name, kind: Foo, create: true}
---
apiVersion: builtin
kind: SuffixTransformer
metadata: {name: suffix}
suffix: -s
fieldSpecs: [{path: metadata/name, group: apps}]
---
apiVersion: builtin
kind: PrefixSuffixTransformer
metadata: {name: both}
prefix: a-
suffix: -z
fieldSpecs: [{path: metadata/name, kind: Foo}, {path: spec/ref}]
---
apiVersion: builtin
kind: LabelTransformer
metadata: {name: labels}
labels: {site: nuernberg, rack: 7}
fieldSpecs:
- {path: metadata/labels, kind: Deployment, create: true}
- {path: spec/template/metadata/labels, create: true, kind: Deployment, version: v1}
---
apiVersion: builtin
kind: AnnotationsTransformer
metadata: {name: annotations}
annotations:
  note: |
    two
    lines
fieldSpecs: [{path: metadata/annotations, kind: Foo, create: true}]
---
apiVersion: builtin
kind: ImageTagTransformer
metadata: {name: image}
imageTag: {name: nginx, newName: registry.example.org/nginx, newTag: 1.27}
fieldSpecs: [{path: spec/image, kind: Foo}]
---
apiVersion: builtin
kind: ReplicaCountTransformer
metadata: {name: replicas}
replica: {name: foo, count: 5}
fieldSpecs: [{path: spec/size, kind: Foo}]
---
apiVersion: builtin
kind: PatchStrategicMergeTransformer
metadata: {name: strategic}
paths: [p.yaml]
patches: |
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: conf}
  data: {more: "1", path: null}
---
apiVersion: builtin
kind: PatchJson6902Transformer
metadata: {name: json}
target: {group: example.com, version: v1, kind: Foo, name: foo}
jsonOp: '[{"op": "add", "path": "/spec/list", "value": [1]}]'
---
apiVersion: builtin
kind: ReplacementTransformer
metadata: {name: replacement}
replacements:
- source: {kind: ConfigMap, name: conf, fieldPath: data.level}
  targets:
  - select: {kind: Foo}
    fieldPaths: [spec.size]
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
data:
  level: "3"
  more: "1"
kind: ConfigMap
metadata:
  name: p-k-conf
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    rack: "7"
    site: nuernberg
  name: k-web-s
spec:
  replicas: 2
  template:
    metadata:
      labels:
        rack: "7"
        site: nuernberg
    spec:
      containers:
      - command:
        - run
        envFrom:
        - configMapRef:
            name: p-k-conf
        image: registry.example.org/nginx:1.27
        name: web
---
apiVersion: example.com/v1
kind: Foo
metadata:
  annotations:
    note: |
      two
      lines
  name: a-k-foo-z
spec:
  image: registry.example.org/nginx:1.27
  list:
  - 1
  made:
    name: p-
  ref: a-conf-z
  size: 3
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn names_of_hashes_are_added_once_more() {
    let files = [(
        "kustomization.yaml",
        r#"configMapGenerator: [{name: c, literals: [a=b]}]
transformers: ["{apiVersion: builtin, kind: HashTransformer, metadata: {name: h}}"]
"#,
    )];
    let expected = "apiVersion: v1
data:
  a: b
kind: ConfigMap
metadata:
  name: c-4h2mbtbbt6-4h2mbtbbt6
";
    assert_eq!(output("", &files), expected);
}

#[test]
fn values_are_added_to_fields_and_paths() {
    let files = [
        (
            "site-7/kustomization.yaml",
            "resources: [r.yaml]
transformers: [t.yaml]
",
        ),
        (
            "site-7/more.yaml",
            "targets:
- selector: {kind: ConfigMap}
  fieldPath: data/path
  filePathPosition: 2
",
        ),
        ("site-7/r.yaml", OBJECTS),
        (
            "site-7/t.yaml",
            r"apiVersion: builtin
kind: ValueAddTransformer
metadata: {name: v}
targetFilePath: more.yaml
targets:
- {fieldPath: metadata/labels/site}
- {selector: {kind: Foo}, fieldPath: metadata/namespace}
- {selector: {kind: Foo}, fieldPath: spec/ref, filePathPosition: 9}
- {selector: {kind: Foo}, fieldPath: 'spec/list/[name=a]/value'}
- {selector: {kind: Foo}, fieldPath: 'spec/a\/b'}
- {selector: {kind: Deployment}, fieldPath: spec/template/spec/containers/0/command}
- {selector: {kind: Deployment}, fieldPath: spec/template/spec/containers/5/command}
",
        ),
    ];
    let expected = r#"apiVersion: v1
data:
  level: "3"
  path: /x/site-7/y
kind: ConfigMap
metadata:
  labels:
    site: site-7
  name: conf
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    site: site-7
  name: web
spec:
  replicas: 1
  template:
    spec:
      containers:
      - command: site-7
        envFrom:
        - configMapRef:
            name: conf
        image: nginx:1.0
        name: web
---
apiVersion: example.com/v1
kind: Foo
metadata:
  labels:
    site: site-7
  name: foo
  namespace: site-7
spec:
  a/b: site-7
  image: nginx:1.0
  list:
  - name: a
    value: site-7
  ref: conf/site-7
  size: 1
"#;
    assert_eq!(output("site-7", &files), expected);
}

#[test]
fn directories_and_overlays_note_their_configurations() {
    let files = [
        (
            "over/kustomization.yaml",
            "resources: [../base]
buildMetadata: [originAnnotations, transformerAnnotations]
transformers:
- |
  apiVersion: builtin
  kind: AnnotationsTransformer
  metadata: {name: last, namespace: any}
  annotations: {a: b}
  fieldSpecs: [{path: metadata/annotations, create: true}]
",
        ),
        (
            "base/kustomization.yaml",
            "resources: [c.yaml]
nameSuffix: -base
transformers: [../conf]
generators: [../gen]
",
        ),
        (
            "base/c.yaml",
            "apiVersion: v1
kind: ConfigMap
metadata:
  name: c
",
        ),
        (
            "conf/kustomization.yaml",
            "resources: [prefix.yaml]
namePrefix: my-
",
        ),
        (
            "conf/prefix.yaml",
            "apiVersion: builtin
kind: PrefixTransformer
metadata:
  name: prefix
prefix: p-
fieldSpecs: [{path: metadata/name}]
",
        ),
        ("gen/kustomization.yaml", "resources: [gen.yaml]\n"),
        (
            "gen/gen.yaml",
            "apiVersion: builtin
kind: ConfigMapGenerator
metadata:
  name: g
literals: [a=b]
",
        ),
    ];
    let expected = "apiVersion: v1
kind: ConfigMap
metadata:
  annotations:
    a: b
    alpha.config.kubernetes.io/transformations: |
      - configuredIn: ../base/kustomization.yaml
        configuredBy:
          apiVersion: builtin
          kind: SuffixTransformer
      - configuredIn: ../conf/prefix.yaml
        configuredBy:
          apiVersion: builtin
          kind: PrefixTransformer
          name: my-prefix
      - configuredIn: kustomization.yaml
        configuredBy:
          apiVersion: builtin
          kind: AnnotationsTransformer
          name: last
          namespace: any
    config.kubernetes.io/origin: |
      path: ../base/c.yaml
  name: p-c-base
---
apiVersion: v1
data:
  a: b
kind: ConfigMap
metadata:
  annotations:
    a: b
    alpha.config.kubernetes.io/transformations: |
      - configuredIn: ../base/kustomization.yaml
        configuredBy:
          apiVersion: builtin
          kind: SuffixTransformer
      - configuredIn: ../conf/prefix.yaml
        configuredBy:
          apiVersion: builtin
          kind: PrefixTransformer
          name: my-prefix
      - configuredIn: kustomization.yaml
        configuredBy:
          apiVersion: builtin
          kind: AnnotationsTransformer
          name: last
          namespace: any
    config.kubernetes.io/origin: |
      configuredIn: ../gen/gen.yaml
      configuredBy:
        apiVersion: builtin
        kind: ConfigMapGenerator
        name: g
  name: p-g-base-4h2mbtbbt6
";
    assert_eq!(output("over", &files), expected);
}

#[test]
fn generators_take_their_files_and_options() {
    let files = [
        (
            "kustomization.yaml",
            "resources: [r.yaml]
generatorOptions: {labels: {not: theirs}}
configMapGenerator: [{name: first, literals: [a=b]}]
generators:
- g.yaml
- |-
  apiVersion: builtin
  kind: ConfigMapGenerator
  metadata: {name: any}
  name: first
  behavior: merge
  literals: [c=d]
",
        ),
        ("r.yaml", OBJECTS),
        ("e.env", "LEVEL=1\n"),
        ("f.txt", "text\n"),
        (
            "g.yaml",
            "apiVersion: builtin
kind: ConfigMapGenerator
metadata: {name: conf, namespace: unused}
namespace: default
behavior: replace
files: [f.txt, key=e.env]
envs: [e.env]
options: {annotations: {a: b}}
---
apiVersion: builtin
kind: SecretGenerator
metadata: {name: secret, namespace: own}
type: example.com/token
literals: [token=abc]
options: {disableNameSuffixHash: true, immutable: true}
",
        ),
    ];
    let expected = r#"apiVersion: v1
data:
  LEVEL: "1"
  f.txt: |
    text
  key: |
    LEVEL=1
kind: ConfigMap
metadata:
  annotations:
    a: b
  name: conf
---
apiVersion: v1
data:
  a: b
  c: d
kind: ConfigMap
metadata:
  labels:
    not: theirs
  name: first-fh478f99mk
---
apiVersion: v1
data:
  token: YWJj
immutable: true
kind: Secret
metadata:
  name: secret
  namespace: own
type: example.com/token
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  template:
    spec:
      containers:
      - envFrom:
        - configMapRef:
            name: conf
        image: nginx:1.0
        name: web
---
apiVersion: example.com/v1
kind: Foo
metadata:
  name: foo
spec:
  image: nginx:1.0
  ref: conf
  size: 1
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn objects_that_patches_remove_are_gone() {
    let files = [
        (
            "kustomization.yaml",
            "resources: [r.yaml]
transformers: [t.yaml]
",
        ),
        ("r.yaml", OBJECTS),
        (
            "t.yaml",
            "apiVersion: builtin
kind: PatchTransformer
metadata: {name: p}
target: {kind: Foo|Deployment}
patch: |
  apiVersion: x
  kind: Foo
  metadata: {name: any}
  $patch: delete
---
apiVersion: builtin
kind: LabelTransformer
metadata: {name: l}
labels: {a: b}
fieldSpecs: [{path: metadata/labels, create: true}]
",
        ),
    ];
    let expected = r#"apiVersion: v1
data:
  level: "3"
  path: /x/y
kind: ConfigMap
metadata:
  labels:
    a: b
  name: conf
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn account_of_a_cloud_is_generated() {
    let generator = |fields: &str| {
        format!(
            "namePrefix: p-\ngenerators:\n- |-\n  apiVersion: builtin\n  kind: IAMPolicyGenerator\n  metadata: {{name: x}}\n{fields}"
        )
    };
    let fields = "  cloud: gke\n  kubernetesService: {name: ksa, namespace: ns}\n  serviceAccount: {name: gsa, projectId: '12'}\n";
    let expected = "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  annotations:\n    \
                    iam.gke.io/gcp-service-account: gsa@12.iam.gserviceaccount.com\n  name: p-ksa\n  namespace: ns\n";
    assert!(output_of(&generator(fields), CONFIG_MAP).contains(expected));
    let without = fields.replace(", namespace: ns", "");
    assert!(output_of(&generator(&without), CONFIG_MAP).contains(&expected.replace("  namespace: ns\n", "")));
    for (before, after, told) in [
        ("gke", "aws", "cloud: the cloud \"aws\" is not known (it must be gke)"),
        ("name: gsa, ", "", "serviceAccount.name: is required"),
        ("'12'", "12", "serviceAccount.projectId: expected a string, found the number 12"),
        ("  cloud: gke\n", "", "cloud: is required"),
        ("name: ksa", "name: \"a: b\"", "error[yaml-syntax]"),
    ] {
        let error = error_of(&generator(&fields.replace(before, after)), CONFIG_MAP);
        assert!(error.starts_with("kustomization.yaml:") && error.contains(told), "{error}");
    }
}
