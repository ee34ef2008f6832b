//! The kustomization file itself: its names, fields and versions.

use super::*;

#[test]
fn labels_reach_metadata_only() {
    let kustomization = r#"labels: [{pairs: {a: b}}]
"#;
    let resources = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {selector: {matchLabels: {x: y}}, template: {metadata: {labels: {x: y}}}}
"#;
    let expected = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    a: b
  name: web
spec:
  selector:
    matchLabels:
      x: "y"
  template:
    metadata:
      labels:
        x: "y"
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn labels_with_templates_leave_selectors() {
    let kustomization = r#"labels: [{pairs: {a: b}, includeTemplates: true}]
"#;
    let resources = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {selector: {matchLabels: {x: y}}, template: {metadata: {labels: {x: y}}}}
---
apiVersion: v1
kind: Service
metadata: {name: s}
spec: {selector: {x: y}}
"#;
    let expected = r#"apiVersion: v1
kind: Service
metadata:
  labels:
    a: b
  name: s
spec:
  selector:
    x: "y"
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    a: b
  name: web
spec:
  selector:
    matchLabels:
      x: "y"
  template:
    metadata:
      labels:
        a: b
        x: "y"
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn labels_with_selectors_reach_all() {
    let kustomization = r#"labels: [{pairs: {a: b}, includeSelectors: true}]
"#;
    let resources = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {x: y}}}]}}}}}
---
apiVersion: v1
kind: Service
metadata: {name: s}
---
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {template: {}}
"#;
    let expected = r#"apiVersion: v1
kind: Service
metadata:
  labels:
    a: b
  name: s
spec:
  selector:
    a: b
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    a: b
  name: web
spec:
  selector:
    matchLabels:
      a: b
  template:
    metadata:
      labels:
        a: b
    spec:
      affinity:
        podAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - labelSelector:
              matchLabels:
                a: b
                x: "y"
---
apiVersion: batch/v1
kind: Job
metadata:
  labels:
    a: b
  name: j
spec:
  template:
    metadata:
      labels:
        a: b
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn labels_reach_fields_of_their_own() {
    let kustomization = r#"labels: [{pairs: {a: b}, fields: [{path: spec/x, kind: Foo, create: true}]}]
"#;
    let resources = r#"apiVersion: example.com/v1
kind: Foo
metadata: {name: f}
---
apiVersion: example.com/v1
kind: Bar
metadata: {name: f}
"#;
    let expected = r#"apiVersion: example.com/v1
kind: Bar
metadata:
  labels:
    a: b
  name: f
---
apiVersion: example.com/v1
kind: Foo
metadata:
  labels:
    a: b
  name: f
spec:
  x:
    a: b
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn common_annotations_reach_templates() {
    let kustomization = r#"commonAnnotations: {a: "true"}
"#;
    let resources = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: j, annotations: {n: 1.10, b: yes}}
"#;
    let expected = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  annotations:
    a: "true"
  name: web
spec:
  template:
    metadata:
      annotations:
        a: "true"
---
apiVersion: batch/v1
kind: CronJob
metadata:
  annotations:
    a: "true"
    b: "yes"
    "n": "1.10"
  name: j
spec:
  jobTemplate:
    metadata:
      annotations:
        a: "true"
    spec:
      template:
        metadata:
          annotations:
            a: "true"
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn images_change_name_tag_and_digest() {
    let kustomization = r#"images:
- {name: nginx, newName: reg:5000/nginx, newTag: "2"}
- {name: redis, digest: sha256:abc}
- {name: busybox, tagSuffix: -glibc}
- {name: unused, newTag: x}
"#;
    let resources = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      initContainers: [{name: i, image: "redis:5"}]
      containers:
      - {name: a, image: nginx}
      - {name: b, image: "nginx:1@sha256:00"}
      - {name: c, image: "busybox:1"}
      - {name: d, image: nginxx}
---
apiVersion: example.com/v1
kind: Foo
metadata: {name: f}
spec: {deep: {containers: [{image: nginx}], image: nginx}}
"#;
    let expected = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
      - image: reg:5000/nginx:2
        name: a
      - image: reg:5000/nginx:2
        name: b
      - image: busybox:1-glibc-glibc
        name: c
      - image: nginxx
        name: d
      initContainers:
      - image: redis@sha256:abc
        name: i
---
apiVersion: example.com/v1
kind: Foo
metadata:
  name: f
spec:
  deep:
    containers:
    - image: reg:5000/nginx:2
    image: nginx
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn replicas_are_set_by_name() {
    let kustomization = r#"replicas: [{name: web, count: 3}]
"#;
    let resources = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: other}
spec: {replicas: 1}
"#;
    let expected = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 3
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: other
spec:
  replicas: 1
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn objects_come_in_legacy_order() {
    let kustomization = r#""#;
    let resources = r#"apiVersion: v1
kind: Pod
metadata: {name: p}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: v1
kind: Namespace
metadata: {name: z}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: s}}
- {apiVersion: v1, kind: Namespace, metadata: {name: a}}
"#;
    let expected = r#"apiVersion: v1
kind: Namespace
metadata:
  name: a
---
apiVersion: v1
kind: Namespace
metadata:
  name: z
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
---
apiVersion: v1
kind: Secret
metadata:
  name: s
---
apiVersion: v1
kind: Pod
metadata:
  name: p
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn fifo_keeps_the_order_of_writing() {
    let kustomization = r#"sortOptions: {order: fifo}
"#;
    let resources = r#"apiVersion: v1
kind: Pod
metadata: {name: p}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: v1
kind: Namespace
metadata: {name: z}
"#;
    let expected = r#"apiVersion: v1
kind: Pod
metadata:
  name: p
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
---
apiVersion: v1
kind: Namespace
metadata:
  name: z
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn objects_of_local_configuration_are_dropped() {
    let kustomization = r#""#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: l, annotations: {config.kubernetes.io/local-config: "true"}}
"#;
    let expected = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: c
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn scalars_are_read_as_kyaml_does() {
    let kustomization = r#"sortOptions: {order: fifo}
"#;
    let resources = r#"apiVersion: example.com/v1
kind: Foo
metadata: {name: f}
spec: {a: yes, b: on, c: 0644, d: 1.10, e: 1e3, f: 2001-01-01, g: 0x1F, h: 1_000, i: ~, j: , k: 1:30, l: True, on: n, m: 12345678.5}
"#;
    let expected = r#"apiVersion: example.com/v1
kind: Foo
metadata:
  name: f
spec:
  a: "yes"
  b: "on"
  c: 420
  d: 1.1
  e: 1000
  f: "2001-01-01T00:00:00Z"
  g: 31
  h: 1000
  i: null
  j: ""
  k: "1:30"
  l: true
  m: 1.23456785e+07
  "on": "n"
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn strings_are_printed_as_kubectl_does() {
    let kustomization = r#""#;
    let resources = r#"apiVersion: example.com/v1
kind: Foo
metadata: {name: f}
spec:
  a10: "- a"
  a9: 'it''s'
  B: "true"
  _c: "1e3"
  d: "x: y"
  e: "tab\there"
  f: " lead"
  g: |
    two
      lines
  h: "\n\nx"
  i: "a \nb"
  j: ""
  k: one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
  l: "one two three four five six seven eight nine ten: eleven twelve thirteen fourteen fifteen sixteen"
"#;
    let expected = r#"apiVersion: example.com/v1
kind: Foo
metadata:
  name: f
spec:
  _c: "1e3"
  B: "true"
  a9: it's
  a10: '- a'
  d: 'x: y'
  e: "tab\there"
  f: ' lead'
  g: |
    two
      lines
  h: |2-


    x
  i: "a \nb"
  j: ""
  k: one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen
  l: 'one two three four five six seven eight nine ten: eleven twelve thirteen fourteen
    fifteen sixteen'
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn items_of_other_kinds_stay() {
    let resources = "apiVersion: example.com/v1\nitems:\n- a\nkind: Foo\nmetadata:\n  name: f\n";
    assert_eq!(output_of("", resources), resources);
}
