//! `openapi`: keys of lists of custom resources.

use super::*;

#[test]
fn lists_of_custom_resources_merge_by_keys() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
openapi: {path: s.yaml}
patches:
- patch: |
    apiVersion: example.com/v1
    kind: Foo
    metadata: {name: f, finalizers: [b], ownerReferences: [{uid: "1", name: x}]}
    spec:
      items: [{id: b, v: 2}, {id: c, v: 3}]
      tags: [z]
      pairs: [{a: "1", b: "2", v: 9}]
      plain: [{name: q}]
      extra: {any: [{id: x, v: 5}]}
      nested: {deeper: {items: [{id: n, $patch: delete}]}}
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: d}
    spec: {template: {spec: {containers: [{name: b, image: b}]}}}
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: example.com/v1
kind: Foo
metadata: {name: f, finalizers: [a], ownerReferences: [{uid: "2", name: y}]}
spec:
  items: [{id: a, v: 1}, {id: b, v: 1, sub: [{id: x}]}]
  tags: [x, y]
  pairs: [{a: "1", b: "2", v: 1}, {a: "1", b: "3", v: 2}]
  plain: [{name: a}, {name: b}]
  extra: {any: [{id: x, w: 1}, {id: y}]}
  nested: {deeper: {items: [{id: m}, {id: n}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {template: {spec: {containers: [{name: a, image: a}]}}}
"#,
        ),
        (
            "s.yaml",
            r##"definitions:
  example.Foo:
    x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Foo}]
    properties:
      spec: {$ref: "#/definitions/example.Spec"}
      metadata: {$ref: "#/definitions/nowhere"}
  example.Spec:
    type: object
    properties:
      items: {$ref: "#/definitions/example.Items"}
      tags: {type: array, items: {type: string}, x-kubernetes-patch-strategy: merge}
      pairs: {type: array, items: {type: object}, x-kubernetes-patch-strategy: "merge,retainKeys", x-kubernetes-list-map-keys: [a, b], x-kubernetes-patch-merge-key: a}
      plain: {type: array, items: {type: object}, x-kubernetes-patch-strategy: replace, x-kubernetes-patch-merge-key: name}
      extra: {type: object, additionalProperties: {$ref: "#/definitions/example.Items"}}
      nested: {type: object, properties: {deeper: {$ref: "#/definitions/example.Spec"}}}
  example.Items:
    type: array
    items: {$ref: "#/definitions/example.Item"}
    x-kubernetes-patch-strategy: merge
    x-kubernetes-patch-merge-key: id
  example.Item: {type: object, properties: {sub: {$ref: "#/definitions/example.Items"}}}
"##,
        ),
    ];
    let expected = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
spec:
  template:
    spec:
      containers:
      - image: b
        name: b
---
apiVersion: example.com/v1
kind: Foo
metadata:
  finalizers:
  - b
  name: f
  ownerReferences:
  - name: x
    uid: "1"
spec:
  extra:
    any:
    - id: x
      v: 5
      w: 1
    - id: "y"
  items:
  - id: b
    sub:
    - id: x
    v: 2
  - id: c
    v: 3
  - id: a
    v: 1
  nested:
    deeper:
      items:
      - id: m
  pairs:
  - a: "1"
    b: "2"
    v: 9
  - a: "1"
    b: "3"
    v: 2
  plain:
  - name: q
  tags:
  - z
  - x
  - "y"
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn a_schema_replaces_the_built_in_one() {
    let files = [
        (
            "d.yaml",
            r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {template: {spec: {containers: [{name: a, image: a}]}}}
"#,
        ),
        (
            "kustomization.yaml",
            r#"resources: [d.yaml, base]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: d}
    spec: {template: {spec: {containers: [{name: b, image: b}]}}}
- patch: |
    apiVersion: example.com/v1
    kind: Foo
    metadata: {name: f}
    items: [{id: b}]
"#,
        ),
        (
            "base/f.yaml",
            r#"apiVersion: example.com/v1
kind: Foo
metadata: {name: f}
items: [{id: a}]
"#,
        ),
        (
            "base/kustomization.yaml",
            r#"openapi: {path: s.json}
resources: [f.yaml]
"#,
        ),
        (
            "base/s.json",
            r#"{"definitions": {"Foo": {"properties": {"items": {"type": ["array"], "items": {"type": "object"}, "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "id"}},
 "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Foo"}]}}}
"#,
        ),
    ];
    let expected = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
spec:
  template:
    spec:
      containers:
      - image: b
        name: b
---
apiVersion: example.com/v1
items:
- id: b
- id: a
kind: Foo
metadata:
  name: f
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn the_built_in_schema_stays_when_it_was_asked() {
    let files = [
        (
            "c.yaml",
            r#"apiVersion: example.com/v1
kind: Other
metadata: {name: o}
"#,
        ),
        (
            "d.yaml",
            r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {template: {spec: {containers: [{name: a, image: a}]}}}
"#,
        ),
        (
            "kustomization.yaml",
            r#"resources: [d.yaml, c.yaml, base]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: d}
    spec: {template: {spec: {containers: [{name: b, image: b}]}}}
- patch: |
    apiVersion: example.com/v1
    kind: Foo
    metadata: {name: f}
    items: [{id: b}]
"#,
        ),
        (
            "base/f.yaml",
            r#"apiVersion: example.com/v1
kind: Foo
metadata: {name: f}
items: [{id: a}]
"#,
        ),
        (
            "base/kustomization.yaml",
            r#"openapi: {path: s.json}
resources: [f.yaml]
"#,
        ),
        (
            "base/s.json",
            r#"{"definitions": {"Foo": {"properties": {"items": {"type": ["array"], "items": {"type": "object"}, "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "id"}},
 "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Foo"}]}}}
"#,
        ),
    ];
    let expected = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
spec:
  template:
    spec:
      containers:
      - image: b
        name: b
      - image: a
        name: a
---
apiVersion: example.com/v1
items:
- id: b
- id: a
kind: Foo
metadata:
  name: f
---
apiVersion: example.com/v1
kind: Other
metadata:
  name: o
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn the_built_in_schema_stays_when_it_was_read() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [a, base]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: d}
    spec: {template: {spec: {containers: [{name: c, image: b}]}}}
"#,
        ),
        (
            "a/d.yaml",
            r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {template: {spec: {containers: [{name: a, image: a}]}}}
"#,
        ),
        (
            "a/kustomization.yaml",
            r#"resources: [d.yaml]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: d}
    spec: {template: {spec: {containers: [{name: b, image: b}]}}}
"#,
        ),
        (
            "base/f.yaml",
            r#"apiVersion: example.com/v1
kind: Foo
metadata: {name: f}
"#,
        ),
        (
            "base/kustomization.yaml",
            r#"openapi: {path: s.json}
resources: [f.yaml]
"#,
        ),
        (
            "base/s.json",
            r#"{"definitions": {}}
"#,
        ),
    ];
    let expected = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
spec:
  template:
    spec:
      containers:
      - image: b
        name: c
      - image: b
        name: b
      - image: a
        name: a
---
apiVersion: example.com/v1
kind: Foo
metadata:
  name: f
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn schemas_that_are_none_are_refused() {
    output_of("openapi: {version: v1.21.2}\n", CONFIG_MAP);
    output_of("openapi: {}\n", CONFIG_MAP);
    let other = error_of("openapi: {version: v1.30.0}\n", CONFIG_MAP);
    assert!(other.contains("openapi.version: the schema of Kubernetes \"v1.30.0\" is not known, only that of v1.21.2"), "{other}");
    assert!(error_of("openapi: {version: v1.21.2, path: r.yaml}\n", CONFIG_MAP).contains("a path or a version, not both"));
    assert!(error_of("openapi: {path: none.json}\n", CONFIG_MAP).contains("there is no file \"none.json\""));
    assert!(error_of("openapi: {file: r.yaml}\n", CONFIG_MAP).contains("openapi.file: unknown field (it must be path or version)"));
    let schema = |text: &str| {
        let files =
            [("kustomization.yaml", "resources: [r.yaml]\nopenapi: {path: s.yaml}\n"), ("r.yaml", CONFIG_MAP), ("s.yaml", text)];
        error("", &files)
    };
    assert!(schema("definitions: {a: b}\n").starts_with("s.yaml:1:18: error[kustomization]: openapi: expected a document"));
    assert!(schema("definitions: [a]\n").contains("expected a document of OpenAPI with definitions"));
    assert!(schema("[a]\n").contains("expected a document of OpenAPI with definitions"));
}

#[test]
fn references_of_a_schema_end() {
    let schema = "definitions:\n  A:\n    x-kubernetes-group-version-kind: [{group: a, version: v1, kind: A}]\n    properties: {spec: {$ref: '#/definitions/B'}}\n  B: {$ref: '#/definitions/C'}\n  C: {$ref: '#/definitions/B'}\n";
    let object = "apiVersion: a/v1\nkind: A\nmetadata: {name: a}\nspec: {x: [1]}\n";
    let kustomization = "resources: [r.yaml]\nopenapi: {path: s.yaml}\npatches: [{path: p.yaml}]\n";
    let patch = object.replace("[1]", "[2]");
    let files = [("kustomization.yaml", kustomization), ("r.yaml", object), ("s.yaml", schema), ("p.yaml", &patch)];
    assert!(output("", &files).ends_with("spec:\n  x:\n  - 2\n"));
}
