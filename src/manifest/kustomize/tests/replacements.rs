//! Replacements of fields by fields of other objects.

use super::*;

#[test]
fn values_are_copied_to_selected_elements() {
    let kustomization = r#"replacements:
- source: {kind: ConfigMap, name: src, fieldPath: data.host}
  targets:
  - select: {kind: Pod}
    fieldPaths: ["spec.containers.[name=a].env.[name=HOST].value", spec.hostname]
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: src}
data: {host: example.com, image: "web:v9", port: "8080"}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  hostname: h
  containers:
  - {name: a, image: "a:1", env: [{name: HOST, value: x}], ports: [{containerPort: 1}]}
  - {name: b, image: "b:1"}
"#;
    let expected = r#"apiVersion: v1
data:
  host: example.com
  image: web:v9
  port: "8080"
kind: ConfigMap
metadata:
  name: src
---
apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  containers:
  - env:
    - name: HOST
      value: example.com
    image: a:1
    name: a
    ports:
    - containerPort: 1
  - image: b:1
    name: b
  hostname: example.com
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn delimiters_take_and_set_parts() {
    let kustomization = r#"replacements:
- source: {kind: ConfigMap, name: src, fieldPath: data.image, options: {delimiter: ":", index: 1}}
  targets:
  - select: {kind: Pod}
    fieldPaths: ["spec.containers.*.image"]
    options: {delimiter: ":", index: 1}
- source: {kind: ConfigMap, name: src, fieldPath: data.host}
  targets:
  - select: {name: p}
    fieldPaths: [spec.hostname]
    options: {delimiter: ".", index: -1}
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: src}
data: {host: example.com, image: "web:v9", port: "8080"}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  hostname: h
  containers:
  - {name: a, image: "a:1", env: [{name: HOST, value: x}], ports: [{containerPort: 1}]}
  - {name: b, image: "b:1"}
"#;
    let expected = r#"apiVersion: v1
data:
  host: example.com
  image: web:v9
  port: "8080"
kind: ConfigMap
metadata:
  name: src
---
apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  containers:
  - env:
    - name: HOST
      value: x
    image: a:v9
    name: a
    ports:
    - containerPort: 1
  - image: b:v9
    name: b
  hostname: example.com.h
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn missing_fields_are_made_with_create() {
    let kustomization = r#"replacements:
- source: {kind: Pod, name: p}
  targets:
  - select: {kind: ConfigMap}
    fieldPaths: ["metadata.annotations.[example.com/pod]", data.new]
    options: {create: true}
- source: {kind: ConfigMap, name: src, fieldPath: data.port}
  targets:
  - select: {kind: Pod}
    fieldPaths: ["spec.containers.[name=c].args.0", spec.made]
    options: {create: true}
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: src}
data: {host: example.com, image: "web:v9", port: "8080"}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  hostname: h
  containers:
  - {name: a, image: "a:1", env: [{name: HOST, value: x}], ports: [{containerPort: 1}]}
  - {name: b, image: "b:1"}
"#;
    let expected = r#"apiVersion: v1
data:
  host: example.com
  image: web:v9
  new: p
  port: "8080"
kind: ConfigMap
metadata:
  annotations:
    example.com/pod: p
  name: src
---
apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  containers:
  - env:
    - name: HOST
      value: x
    image: a:1
    name: a
    ports:
    - containerPort: 1
  - image: b:1
    name: b
  - args:
    - 8080
    name: c
  hostname: h
  made: 8080
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn types_of_targets_stay() {
    let kustomization = r#"replacements:
- source: {kind: ConfigMap, name: src, fieldPath: data.port}
  targets:
  - select: {kind: Pod}
    fieldPaths: [spec.containers.0.ports.0.containerPort, spec.hostname]
- source: {kind: Pod, name: p, fieldPath: "spec.containers.[name=a].ports"}
  targets:
  - select: {kind: ConfigMap}
    fieldPaths: [metadata.ports]
    options: {create: true}
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: src}
data: {host: example.com, image: "web:v9", port: "8080"}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  hostname: h
  containers:
  - {name: a, image: "a:1", env: [{name: HOST, value: x}], ports: [{containerPort: 1}]}
  - {name: b, image: "b:1"}
"#;
    let expected = r#"apiVersion: v1
data:
  host: example.com
  image: web:v9
  port: "8080"
kind: ConfigMap
metadata:
  name: src
  ports:
  - containerPort: 8080
---
apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  containers:
  - env:
    - name: HOST
      value: x
    image: a:1
    name: a
    ports:
    - containerPort: 8080
  - image: b:1
    name: b
  hostname: "8080"
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn rejected_objects_stay() {
    let kustomization = r#"namePrefix: x-
replacements:
- source: {kind: ConfigMap, name: src, fieldPath: data.host}
  targets:
  - select: {version: v1}
    reject: [{kind: ConfigMap}, {name: q}]
    fieldPaths: [metadata.annotations.host]
    options: {create: true}
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: src}
data: {host: example.com, image: "web:v9", port: "8080"}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  hostname: h
  containers:
  - {name: a, image: "a:1", env: [{name: HOST, value: x}], ports: [{containerPort: 1}]}
  - {name: b, image: "b:1"}
---
apiVersion: v1
kind: Pod
metadata: {name: q}
"#;
    let expected = r#"apiVersion: v1
data:
  host: example.com
  image: web:v9
  port: "8080"
kind: ConfigMap
metadata:
  name: x-src
---
apiVersion: v1
kind: Pod
metadata:
  annotations:
    host: example.com
  name: x-p
spec:
  containers:
  - env:
    - name: HOST
      value: x
    image: a:1
    name: a
    ports:
    - containerPort: 1
  - image: b:1
    name: b
  hostname: h
---
apiVersion: v1
kind: Pod
metadata:
  name: x-q
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn yaml_in_texts_keeps_comments_and_quotes() {
    let kustomization = r#"replacements:
- source: {kind: ConfigMap, name: c, fieldPath: data.host}
  targets:
  - select: {name: c}
    fieldPaths:
    - data.app\.yaml.server.host
    - data.app\.yaml.peers.[name=a].host
    - data.app\.yaml.peers.1.host
    - data.app\.yaml.flow.host
    - data.app\.yaml.port
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data:
  host: web.example
  app.yaml: |
    # Read by the server.

    # Where it listens.
    server:   # by name
        host: "localhost"   # quoted
        # Not changed.
        text: |
            one
              two

            three

    peers:
      - name: a
        host: 'x'
      - {name: b, host: x}
    flow: {host:  x, list: [1,  2]}
    port: 8080
    when: 2020-01-01
"#;
    let expected = r#"apiVersion: v1
data:
  app.yaml: |-
    # Read by the server.

    # Where it listens.
    server: # by name
      host: "web.example" # quoted
      # Not changed.
      text: |
        one
          two

        three
    peers:
    - name: a
      host: 'web.example'
    - {name: b, host: web.example}
    flow: {host: web.example, list: [1, 2]}
    port: !!int web.example
    when: 2020-01-01
  host: web.example
kind: ConfigMap
metadata:
  name: c
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn comments_beside_blank_lines_stay_where_kubectl_has_them() {
    for (text, expected) in [
        ("a: x\n# f\n\n# c\nb: 2\n", "a: new\n# f\n\n# c\nb: 2"),
        ("a: x\nb: 2\n\n# end\n", "a: new\nb: 2\n\n# end"),
        ("a: x\nb: 2\n# end\n", "a: new\nb: 2\n# end"),
        ("a: x\n\n# c2\n\nb: 2\n", "a: new\n# c2\nb: 2"),
        ("m:\n  b: 1\n  # in\n\n# out\na: x\n", "m:\n  b: 1\n  # in\n# out\na: new"),
        ("m:\n  # first\n\n  # b\n  b: 1\na: x\n", "m:\n  # first\n\n  # b\n  b: 1\na: new"),
        ("---\n# c\n\na: x\n", "# c\na: new"),
        ("# c\n\n# d\n\n# e\na: x # t  \nb: 1\n", "# c\n\n# d\n\n# e\na: new # t  \nb: 1"),
        ("a: x\n\n# 1\n\n# 2\n\n# 3\nb: 1\n", "a: new\n# 1\n\n# 2\n\n# 3\nb: 1"),
    ] {
        let kustomization = "replacements: [{source: {kind: ConfigMap, fieldPath: data.v}, targets: [{select: {kind: ConfigMap}, \
                             fieldPaths: [data.t.a]}]}]\n";
        let built = output_of(kustomization, &format!("{CONFIG_MAP}data: {{v: new, t: {text:?}}}\n"));
        let object: serde_json::Value = serde_yaml::from_str(&built).unwrap();
        assert_eq!(object["data"]["t"], expected, "{text}");
    }
}

#[test]
fn yaml_that_would_change_is_refused() {
    let said = |text: &str| {
        let kustomization = "replacements: [{source: {kind: ConfigMap, fieldPath: data.v}, targets: [{select: {kind: ConfigMap}, \
                             fieldPaths: [data.t.a]}]}]\n";
        let resources = format!("{CONFIG_MAP}data: {{v: new, t: {text:?}}}\n");
        error_of(kustomization, &resources).split_once("as YAML: ").map(|(_, reason)| reason.to_owned()).unwrap_or_default()
    };
    for (text, reason) in [
        ("a: 1 # beside\n# below\n\nb: 2\n", "a comment is not supported where it stands"),
        ("a: &x 1\nb: *x\n", "anchors, aliases and tags are not supported"),
        ("a: >\n  x\n", "folded texts are not supported"),
        ("a: x\n  y\n", "a text over several lines is not supported"),
        ("a: 1\n---\nb: 2\n", "documents with --- are not supported"),
        ("a: {b: 1}\n", "only a single value can be replaced in it"),
        ("a: 1\nb: \"\\u00e9\"\n", "only \\\\, \\\", \\n and \\t are supported in quotes"),
    ] {
        let expected = format!("{reason}, in ConfigMap.v1.[noGrp]/c.[noNs]");
        assert_eq!(said(text), expected, "{text}");
    }
}
