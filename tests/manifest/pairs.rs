//! Each pair of fields of a kustomization, in one layer and in two, against a real kubectl.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Fields, each with a value that changes much of [`RESOURCES`].
const FIELDS: &[&str] = &[
    "namespace: ns
",
    r#"namespace: "on"
"#,
    "namePrefix: p-
",
    "nameSuffix: -s
",
    "namePrefix: a-
nameSuffix: -z
",
    "commonLabels: {team: x, app: changed}
",
    "labels: [{pairs: {team: yy}}, {pairs: {app: l2}, includeSelectors: true}]
",
    "labels: [{pairs: {team: t}, includeTemplates: true}, {pairs: {f: g}, fields: [{path: spec/selector/extra, kind: Widget, create: true}]}]
",
    r#"commonAnnotations: {note: "2", other: "true"}
"#,
    r#"images: [{name: nginx, newName: reg/nginx, newTag: "9"}, {name: "registry:5000/busybox", tagSuffix: -x}]
"#,
    r#"images: [{name: nginx, digest: "sha256:dd"}, {name: reg/nginx, newTag: "1.0"}]
"#,
    "replicas: [{name: web, count: 4}]
",
    "configMapGenerator: [{name: gen, literals: [k=v, a=b], files: [f.txt]}]
secretGenerator: [{name: gsec, literals: [k=v], type: my/t}]
",
    "configMapGenerator: [{name: gen, namespace: old, literals: [k=v2]}]
",
    r#"configMapGenerator: [{name: gen, behavior: merge, literals: [k=m, c=d], options: {labels: {ol: "1"}, annotations: {oa: "2"}}}]
secretGenerator: [{name: gsec, behavior: replace, literals: [q=r]}]
"#,
    "configMapGenerator: [{name: cm, namespace: old, behavior: merge, literals: [x=m]}]
",
    "configMapGenerator: [{name: genv, envs: [e.env]}, {name: nohash, literals: [a=1], options: {disableNameSuffixHash: true}}]
",
    r#"generatorOptions: {labels: {go: "1"}, annotations: {ga: x}, immutable: true}
"#,
    "generatorOptions: {disableNameSuffixHash: true}
",
    "patches: [{path: sm.yaml}]
",
    r#"patches:
- target: {kind: Deployment|StatefulSet}
  patch: |-
    apiVersion: v1
    kind: X
    metadata: {name: n, annotations: {pt: "1"}}
    spec: {template: {spec: {containers: [{name: main, resources: {limits: {cpu: 1}}}, {name: extra, image: nginx}]}}}
"#,
    r#"patches:
- target: {kind: Deployment}
  patch: |-
    - {op: replace, path: /spec/replicas, value: 8}
    - {op: add, path: /metadata/labels/j, value: "1"}
    - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: J, value: "2"}}
"#,
    "patches:
- target: {kind: ConfigMap, name: cm}
  options: {allowNameChange: true}
  patch: |-
    - {op: replace, path: /metadata/name, value: cmx}
",
    "patches:
- patch: |-
    apiVersion: v1
    kind: Service
    metadata: {name: web, namespace: old}
    $patch: delete
",
    "patches:
- target: {kind: Deployment}
  patch: |-
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec: {template: {spec: {$patch: replace, containers: [{name: main, image: nginx:3}]}}}
",
    r#"patchesStrategicMerge:
- sm.yaml
- |-
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: cm, namespace: old}
  data: {x: null, n: "1"}
"#,
    "patchesJson6902: [{target: {version: v1, kind: ConfigMap, name: cm, namespace: old}, path: j.json}]
",
    r#"patches:
- target: {kind: ConfigMap, name: cm}
  patch: '[{"op":"replace","path":"/metadata/namespace","value":"moved"}]'
"#,
    r#"replacements:
- source: {kind: ConfigMap, name: cm, fieldPath: data.x}
  targets: [{select: {kind: Deployment}, fieldPaths: ["spec.template.spec.containers.[name=main].image"], options: {delimiter: ":", index: 1}}]
- source: {kind: Service, fieldPath: metadata.name}
  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.host], options: {delimiter: ".", index: 0}}, {select: {kind: Widget}, fieldPaths: [spec.svc], options: {create: true}}]
"#,
    r#"replacements:
- source: {kind: Deployment, fieldPath: metadata.namespace}
  targets: [{select: {kind: ConfigMap, name: cm}, fieldPaths: [data.host], options: {delimiter: ".", index: 1}}, {select: {kind: StatefulSet}, fieldPaths: [spec.template.spec.containers.*.workingDir, metadata.labels.ns], options: {create: true}}]
- path: repl.yaml
"#,
    r#"replacements:
- source: {kind: ConfigMap, fieldPath: metadata.name, name: gen}
  targets: [{select: {kind: Deployment}, fieldPaths: [metadata.annotations.gen, "spec.template.metadata.annotations.[cm]"], options: {create: true}}]
"#,
    "vars: [{name: V, objref: {kind: Service, name: web, apiVersion: v1}, fieldref: {fieldpath: metadata.name}}, {name: W, objref: {kind: ConfigMap, name: cm, apiVersion: v1}, fieldref: {fieldpath: data.x}}]
",
    "configurations: [conf.yaml]
",
    "sortOptions: {order: fifo}
",
    "sortOptions: {order: legacy, legacySortOptions: {orderFirst: [Widget, Secret], orderLast: [Namespace]}}
",
    "buildMetadata: [originAnnotations, transformerAnnotations, managedByLabel]
",
    "openapi: {path: schema.json}
",
    "transformers: [t.yaml]
",
    "transformers:
- |-
  apiVersion: builtin
  kind: PrefixSuffixTransformer
  metadata: {name: x}
  prefix: tp-
  fieldSpecs: [{path: metadata/name, kind: ConfigMap}]
- |-
  apiVersion: builtin
  kind: NamespaceTransformer
  metadata: {name: x, namespace: tns}
  unsetOnly: true
",
    "generators:
- |-
  apiVersion: builtin
  kind: ConfigMapGenerator
  metadata: {name: pg}
  literals: [a=b]
",
    "components: [comp]
",
    "components: [comp2]
",
];

/// Files beside each kustomization.
const FILES: &[(&str, &str)] = &[
    ("f.txt", "file
"),
    ("e.env", r#"A=1
B="x y"
"#),
    ("sm.yaml", r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: old, labels: {tier: null, sm: "1"}}
spec: {replicas: 6, template: {spec: {containers: [{name: side, $patch: delete}, {name: main, env: [{name: A, value: sm}, {name: NEW, value: "y"}], ports: [{containerPort: 80, name: w}]}], volumes: [{name: v, emptyDir: {}, configMap: null}]}}}
"#),
    ("j.json", r#"[{"op":"add","path":"/data/j","value":"1"},{"op":"remove","path":"/data/y"}]"#),
    ("repl.yaml", "- source: {kind: Deployment, fieldPath: spec.template.spec.containers.0.image}
  targets: [{select: {kind: Widget}, fieldPaths: [spec.image]}]
"),
    ("conf.yaml", "nameReference: [{kind: ConfigMap, version: v1, fieldSpecs: [{path: spec/cm, kind: Widget}, {path: spec/template/metadata/annotations/cm, kind: Deployment}]}]
images: [{path: spec/image, kind: Widget}]
replicas: [{path: spec/replicas, kind: Widget}]
commonLabels: [{path: spec/selector, kind: Widget, create: true}]
varReference: [{path: spec/cm, kind: Widget}]
namespace: [{path: spec/ns, kind: Widget, create: true}]
"),
    ("schema.json", r#"{"definitions":{"io.x.v1.Widget":{"properties":{"spec":{"properties":{"list":{"type":"array","x-kubernetes-patch-merge-key":"id","x-kubernetes-patch-strategy":"merge","items":{"type":"object"}}}}},"x-kubernetes-group-version-kind":[{"group":"x.io","version":"v1","kind":"Widget"}]}}}"#),
    ("t.yaml", r#"apiVersion: builtin
kind: LabelTransformer
metadata: {name: t}
labels: {tr: "1"}
fieldSpecs: [{path: metadata/labels, create: true}, {path: spec/template/metadata/labels, kind: Deployment, create: true}]
---
apiVersion: builtin
kind: AnnotationsTransformer
metadata: {name: t2}
annotations: {ta: "on"}
fieldSpecs: [{path: metadata/annotations, create: true}]
---
apiVersion: builtin
kind: HashTransformer
metadata: {name: h}
"#),
    ("comp/kustomization.yaml", r#"apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
nameSuffix: -comp
configMapGenerator: [{name: cgen, literals: [a=b]}]
labels: [{pairs: {c: "1"}, includeSelectors: true}]
patches: [{target: {kind: StatefulSet}, patch: "- {op: add, path: /spec/c, value: 1}"}]
"#),
    ("comp2/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
namespace: cns
images: [{name: nginx, newTag: comp}]
replacements: [{source: {kind: Deployment, fieldPath: metadata.name}, targets: [{select: {kind: Widget}, fieldPaths: [spec.comp], options: {create: true}}]}]
resources: [x.yaml]
"),
    ("comp2/x.yaml", "apiVersion: v1
kind: Secret
metadata: {name: csec}
data: {a: YQ==}
"),
];

/// Objects that refer to each other.
const RESOURCES: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: old
  labels: {app: web, tier: front}
  annotations: {note: "1"}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {cm: cm}}
    spec:
      serviceAccountName: sa
      containers:
      - name: main
        image: nginx:1
        args: ["$(V)", "--x"]
        ports:
        - {containerPort: 80, name: http}
        env:
        - {name: A, value: "1"}
        - {name: B, valueFrom: {configMapKeyRef: {name: cm, key: x}}}
        - {name: S, valueFrom: {secretKeyRef: {name: sec, key: x}}}
        envFrom: [{configMapRef: {name: gen}}]
      - {name: side, image: "registry:5000/busybox@sha256:aa"}
      volumes:
      - name: v
        configMap: {name: cm}
      - {name: g, configMap: {name: gen}}
      - {name: s, secret: {secretName: gsec}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: old}
spec:
  selector: {app: web}
  ports:
  - {port: 80, targetPort: http}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: sa, namespace: old}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: rb, namespace: old}
roleRef: {kind: Role, name: role, apiGroup: rbac.authorization.k8s.io}
subjects: [{kind: ServiceAccount, name: sa, namespace: old}, {kind: ServiceAccount, name: default, namespace: old}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: role, namespace: old}
rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [cm, gen], verbs: [get]}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: old}
spec:
  serviceName: web
  replicas: 2
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: nginx}]}}
  volumeClaimTemplates: [{metadata: {name: data}}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: cj, namespace: old}
spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {containers: [{name: j, image: nginx:2, env: [{name: Q, valueFrom: {secretKeyRef: {name: gsec, key: k}}}]}]}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cm, namespace: old}
data: {x: "1", y: on-time, z.yaml: "a: {b: c}\n", host: web.old.svc}
---
apiVersion: v1
kind: Secret
metadata: {name: sec, namespace: old}
type: Opaque
stringData: {x: "1"}
---
apiVersion: v1
kind: Namespace
metadata: {name: old}
---
apiVersion: x.io/v1
kind: Widget
metadata: {name: w}
spec: {image: nginx:7, replicas: 3, cm: cm, list: [{id: a, v: 1}], selector: {}}
"#;

/// Writes a layer, and returns its directory.
fn write_layer(root: &Path, number: usize, resources: &str, fields: &[&str]) -> PathBuf {
    let layer = root.join(number.to_string());
    for (name, text) in FILES {
        let path = layer.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(layer.join("r.yaml"), RESOURCES).unwrap();
    fs::write(layer.join("kustomization.yaml"), format!("resources: [{resources}]\n{}", fields.concat())).unwrap();
    layer
}

fn build(program: &Path, directory: &Path) -> Output {
    let mut command = Command::new(program);
    command.arg("kustomize").arg(directory).env_remove("PODSTEAD_CONFIG").stdin(Stdio::null());
    command.output().unwrap()
}

/// Names of the fields of a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with([' ', '-'])).filter_map(|line| line.split(':').next())
}

#[test]
#[ignore = "needs the path of a kubectl with kustomize 5.8.1 in KUBECTL, and takes minutes"]
fn each_pair_of_fields_is_built_as_kubectl_does() {
    let kubectl = std::env::var_os("KUBECTL").map(PathBuf::from).unwrap();
    let version = Command::new(&kubectl).args(["version", "--client"]).output().unwrap();
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    assert!(version.contains("Kustomize Version: v5.8.1"), "another version: {version}");
    let podstead = Path::new(env!("CARGO_BIN_EXE_podstead"));
    let (mut equal, mut refused, mut differences) = (0, 0, Vec::new());
    let mut compare = |directory: &Path, what: String| {
        let (expected, found) = (build(&kubectl, directory), build(podstead, directory));
        match (expected.status.success(), found.status.success()) {
            (true, true) if expected.stdout == found.stdout => equal += 1,
            (false, false) => refused += 1,
            _ => {
                let said = [expected.stderr, found.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
                differences.push(format!("{what}\n{said:?}"));
            }
        }
    };
    for (index, below) in FIELDS.iter().enumerate() {
        for (other, above) in FIELDS.iter().enumerate() {
            let root = tempfile::tempdir().unwrap();
            write_layer(root.path(), 0, "r.yaml", &[below]);
            compare(&write_layer(root.path(), 1, "../0", &[above]), format!("{below}-- below --\n{above}"));
            if index < other && names(below).all(|name| names(above).all(|above| above != name)) {
                compare(&write_layer(root.path(), 2, "r.yaml", &[below, above]), format!("{below}-- beside --\n{above}"));
            }
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n\n"));
    assert!(equal > 4 * refused, "{equal} are equal, and {refused} are built by none");
}
