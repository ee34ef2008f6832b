//! `crds`: fields of custom resources.

use super::*;

#[test]
fn definitions_name_fields_of_custom_resources() {
    let files = [
        (
            "crd.json",
            r#"{
	"github.com/example/pkg/apis/v1beta1.MyKind": {"Schema": {"properties": {
		"apiVersion": {"type": "string"}, "kind": {"type": "string"},
		"metadata": {"$ref": "k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta"},
		"spec": {"$ref": "github.com/example/pkg/apis/v1beta1.MyKindSpec"}}},
		"Dependencies": ["github.com/example/pkg/apis/v1beta1.MyKindSpec"]},
	"github.com/example/pkg/apis/v1beta1.MyKindSpec": {"schema": {"properties": {
		"beeRef": {"x-kubernetes-object-ref-api-version": "v1beta1", "x-kubernetes-object-ref-kind": "Bee", "$ref": "github.com/example/pkg/apis/v1beta1.Ref"},
		"secretRef": {"x-kubernetes-object-ref-api-version": "v1", "x-kubernetes-object-ref-kind": "Secret"},
		"mapRef": {"x-kubernetes-object-ref-api-version": "v1", "x-kubernetes-object-ref-kind": "ConfigMap", "x-kubernetes-object-ref-name-key": "map"},
		"notes": {"x-kubernetes-annotation": ""},
		"selector": {"x-kubernetes-label-selector": ""},
		"id": {"x-kubernetes-identity": "yes"},
		"deep": {"properties": {"id": {"x-kubernetes-identity": ""}}}
	}}},
	"github.com/example/pkg/apis/v1beta1.Ref": {"Schema": {"properties": {"name": {"type": "string"}, "labels": {"x-kubernetes-label-selector": ""}}}}
}
"#,
        ),
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
namePrefix: x-
commonLabels: {app: myapp}
commonAnnotations: {note: hello}
crds: [crd.json, more.yaml]
"#,
        ),
        (
            "more.yaml",
            r#"example.com/v1.Other:
  Schema:
    properties:
      kind: {type: string}
      apiVersion: {type: string}
      metadata: {type: object}
      target: {X-Kubernetes-Object-Ref-Api-Version: v1, x-kubernetes-object-ref-kind: Secret, x-kubernetes-object-ref-name-key: secretName}
example.com/v1.Nothing:
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: v1
kind: Secret
metadata: {name: s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: m}
---
apiVersion: v1beta1
kind: Bee
metadata: {name: bee}
---
apiVersion: example.com/v1
kind: Other
metadata: {name: o}
target: {secretName: s}
---
apiVersion: jingfang.example.com/v1beta1
kind: MyKind
metadata: {name: k}
spec:
  beeRef: {name: bee, labels: {a: b}}
  secretRef: {name: s}
  mapRef: {map: m}
  notes: {a: b}
  selector: {a: b}
  id: thing
  deep: {id: thing}
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
kind: ConfigMap
metadata:
  annotations:
    note: hello
  labels:
    app: myapp
  name: x-m
---
apiVersion: v1
kind: Secret
metadata:
  annotations:
    note: hello
  labels:
    app: myapp
  name: x-s
---
apiVersion: example.com/v1
kind: Other
metadata:
  annotations:
    note: hello
  labels:
    app: myapp
  name: x-o
target:
  secretName: s
---
apiVersion: jingfang.example.com/v1beta1
kind: MyKind
metadata:
  annotations:
    note: hello
  labels:
    app: myapp
  name: x-k
spec:
  beeRef:
    labels:
      a: b
      app: myapp
    name: x-bee
  deep:
    id: thing
  id: x-thing
  mapRef:
    map: x-m
  notes:
    a: b
    note: hello
  secretRef:
    name: x-s
  selector:
    a: b
    app: myapp
---
apiVersion: v1beta1
kind: Bee
metadata:
  annotations:
    note: hello
  labels:
    app: myapp
  name: x-bee
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn files_without_definitions_are_refused() {
    let text = error_of("crds: [r.yaml]\n", CONFIG_MAP);
    assert!(text.starts_with("r.yaml:1:13: error[kustomization]: crds: expected definitions in OpenAPI by their names"), "{text}");
    assert!(error_of("crds: [none.yaml]\n", CONFIG_MAP).contains("there is no file \"none.yaml\""));
}

#[test]
fn definitions_without_end_are_refused() {
    let schema = |more: &str| format!("  Schema: {{properties: {{kind: {{}}, apiVersion: {{}}, metadata: {{}}, {more}}}}}\n");
    let cycle = format!("a.Foo:\n{}", schema("again: {$ref: a.Foo}"));
    let files = [("kustomization.yaml", "resources: [r.yaml]\ncrds: [d.yaml]\n"), ("r.yaml", CONFIG_MAP), ("d.yaml", &cycle)];
    let text = error("", &files);
    assert!(text.starts_with("d.yaml:2:65: error[too-complex]: crds: \"again\": the definitions refer to each other"), "{text}");
    // Each level doubles what is read.
    let levels: String = (0..20)
        .map(|level| {
            let next = level + 1;
            format!("a.L{level}:\n{}", schema(&format!("a: {{$ref: a.L{next}}}, b: {{$ref: a.L{next}}}")))
        })
        .collect();
    let files = [("kustomization.yaml", "resources: [r.yaml]\ncrds: [d.yaml]\n"), ("r.yaml", CONFIG_MAP), ("d.yaml", &levels)];
    assert!(error("", &files).contains("there are too many properties"));
}
