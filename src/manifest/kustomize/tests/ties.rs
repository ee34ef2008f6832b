//! Labels that one entry of a base wrote to several fields of an object: what changes one of them later changes all, as upstream has it.

use super::*;

#[test]
fn fields_of_one_label_change_together() {
    let files = [
        (
            "base/kustomization.yaml",
            r#"resources: [r.yaml]
commonLabels: {app: base}
labels: [{pairs: {tier: base}, includeTemplates: true}]
"#,
        ),
        (
            "base/r.yaml",
            r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: one}
spec: {template: {spec: {containers: [{name: c, image: i}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: two}
spec: {template: {spec: {containers: [{name: c, image: i}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: three}
spec: {template: {spec: {containers: [{name: c, image: i}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: four, labels: {app: own}}
spec: {template: {spec: {containers: [{name: c, image: i}]}}}
"#,
        ),
        (
            "overlay/kustomization.yaml",
            r#"resources: [../base]
labels: [{pairs: {tier: overlay}}]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: one, labels: {app: patched}}
- target: {name: two}
  patch: '[{"op": "replace", "path": "/metadata/labels/app", "value": "json"}]'
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: four, labels: {app: patched}}
replacements:
- source: {kind: Deployment, name: three}
  targets: [{select: {name: three}, fieldPaths: [spec.selector.matchLabels.app]}]
"#,
        ),
    ];
    let expected = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    app: patched
    tier: overlay
  name: four
spec:
  selector:
    matchLabels:
      app: base
  template:
    metadata:
      labels:
        app: base
        tier: overlay
    spec:
      containers:
      - image: i
        name: c
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    app: patched
    tier: overlay
  name: one
spec:
  selector:
    matchLabels:
      app: patched
  template:
    metadata:
      labels:
        app: patched
        tier: overlay
    spec:
      containers:
      - image: i
        name: c
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    app: three
    tier: overlay
  name: three
spec:
  selector:
    matchLabels:
      app: three
  template:
    metadata:
      labels:
        app: three
        tier: overlay
    spec:
      containers:
      - image: i
        name: c
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    app: json
    tier: overlay
  name: two
spec:
  selector:
    matchLabels:
      app: base
  template:
    metadata:
      labels:
        app: base
        tier: base
    spec:
      containers:
      - image: i
        name: c
"#;
    assert_eq!(output("overlay", &files), expected);
}
