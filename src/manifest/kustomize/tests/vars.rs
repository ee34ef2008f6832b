//! `vars`: values of fields in texts of other objects.

use super::*;

#[test]
fn values_are_replaced_with_their_types() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
namePrefix: a-
vars:
- name: HOST
  objref: {apiVersion: v1, kind: Service, name: db}
- name: PORT
  objref: {apiVersion: v1, kind: Service, name: db}
  fieldref: {fieldPath: "spec.ports[0].port"}
- name: RATIO
  objref: {apiVersion: v1, kind: ConfigMap, name: c}
  fieldref: {fieldPath: data.ratio}
- name: FLAG
  objref: {apiVersion: example.com/v1, kind: Foo, name: f}
  fieldref: {fieldPath: spec.flag}
- name: NUM
  objref: {apiVersion: example.com/v1, kind: Foo, name: f}
  fieldref: {fieldPath: spec.num}
- name: BIG
  objref: {apiVersion: example.com/v1, kind: Foo, name: f}
  fieldref: {fieldPath: spec.big}
- name: MAP
  objref: {apiVersion: example.com/v1, kind: Foo, name: f}
  fieldref: {fieldPath: spec.map}
- name: TIME
  objref: {apiVersion: example.com/v1, kind: Foo, name: f}
  fieldref: {fieldPath: spec.time}
- name: SPECIAL
  objref: {apiVersion: example.com/v1, kind: Foo, name: f}
  fieldref: {fieldPath: "metadata.annotations.[a.b/c]"}
- name: ITEM
  objref: {apiVersion: example.com/v1, kind: Foo, name: f}
  fieldref: {fieldPath: "spec.list.[name=y].v"}
- name: LINES
  objref: {apiVersion: v1, kind: ConfigMap, name: c}
  fieldref: {fieldPath: data.lines}
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: v1
kind: Service
metadata: {name: db}
spec: {ports: [{port: 5432, targetPort: $(PORT)}, {port: 1, targetPort: "x-$(PORT)"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {ratio: "0.5", lines: "a\nb\n"}
---
apiVersion: example.com/v1
kind: Foo
metadata: {name: f, annotations: {a.b/c: hello}}
spec: {flag: TRUE, num: 0.00001, big: 1e21, map: {a: b}, time: 2020-01-02, list: [{name: x, v: 1}, {name: y, v: 2}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: p
  labels: {host: $(HOST), flag: $(FLAG), num: $(NUM), n: "$(BIG)", m: $(MAP), t: $(TIME)}
  annotations: {a: "$(HOST):$(PORT)", b: "$$(HOST)", c: "$(", d: "$(NONE) $(HOST", e: "$", f: "$x$(FLAG)$(NUM)$(BIG)", g: "$(MAP)-", h: "$(LINES)", i: "$(SPECIAL)$(ITEM)$$$(ITEM)"}
spec:
  volumes: [{name: v, nfs: {server: $(HOST)}}]
  containers:
  - name: a
    image: $(HOST)
    command: [run, "--host=$(HOST)", $(PORT), "$(RATIO)"]
    env: [{name: A, value: $(PORT)}, {name: B, value: "$(HOST)-$(FLAG)"}, {name: C, value: '$(LINES)'}]
    volumeMounts: [{name: v, mountPath: /$(HOST)}]
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
data:
  lines: |
    a
    b
  ratio: "0.5"
kind: ConfigMap
metadata:
  name: a-c
---
apiVersion: v1
kind: Service
metadata:
  name: a-db
spec:
  ports:
  - port: 5432
    targetPort: 5432
  - port: 1
    targetPort: x-5432
---
apiVersion: example.com/v1
kind: Foo
metadata:
  annotations:
    a.b/c: hello
  name: a-f
spec:
  big: 1e+21
  flag: true
  list:
  - name: x
    v: 1
  - name: "y"
    v: 2
  map:
    a: b
  num: 1e-05
  time: "2020-01-02T00:00:00Z"
---
apiVersion: v1
kind: Pod
metadata:
  annotations:
    a: a-db:5432
    b: $(HOST)
    c: $(
    d: $(NONE) $(HOST
    e: $
    f: $xtrue1e-051e+21
    g: $(MAP)-
    h: |
      a
      b
    i: hello2$2
  labels:
    flag: true
    host: a-db
    m: $(MAP)
    "n": 1e+21
    num: 1e-05
    t: "2020-01-02"
  name: a-p
spec:
  containers:
  - command:
    - run
    - --host=a-db
    - 5432
    - "0.5"
    env:
    - name: A
      value: 5432
    - name: B
      value: a-db-true
    - name: C
      value: |
        a
        b
    image: $(HOST)
    name: a
    volumeMounts:
    - mountPath: /a-db
      name: v
  volumes:
  - name: v
    nfs:
      server: a-db
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn more_fields_are_named_by_configurations() {
    let files = [
        (
            "config.yaml",
            r#"varReference:
- {kind: Foo, path: spec/config}
- {kind: Foo, path: spec/map}
- {kind: Foo, path: spec/list}
"#,
        ),
        (
            "kustomization.yaml",
            r#"resources: [base]
configurations: [config.yaml]
vars:
- name: CM
  objref: {kind: ConfigMap, apiVersion: v1, name: g}
- name: LEVEL
  objref: {kind: ConfigMap, apiVersion: v1, name: g}
  fieldref: {fieldpath: data.level}
"#,
        ),
        (
            "base/foo.yaml",
            r#"apiVersion: example.com/v1
kind: Foo
metadata: {name: f}
spec:
  config: $(CM)
  map: {a: $(CM), b: 1, c: {d: $(CM)}, e: "$(LEVEL)"}
  list: [x, $(CM), "$(CM)/$(LEVEL)"]
"#,
        ),
        (
            "base/kustomization.yaml",
            r#"resources: [foo.yaml]
components: [../comp]
configMapGenerator: [{name: g, literals: [level=3]}]
"#,
        ),
        (
            "comp/kustomization.yaml",
            r#"kind: Component
apiVersion: kustomize.config.k8s.io/v1alpha1
configMapGenerator: [{name: g, behavior: merge, literals: [level=4]}]
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
data:
  level: "4"
kind: ConfigMap
metadata:
  name: g-m2ktkf958d
---
apiVersion: example.com/v1
kind: Foo
metadata:
  name: f
spec:
  config: g-m2ktkf958d
  list:
  - x
  - g-m2ktkf958d
  - g-m2ktkf958d/4
  map:
    a: g-m2ktkf958d
    b: 1
    c:
      d: $(CM)
    e: "4"
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn values_are_those_of_the_end_of_the_build() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
vars:
- {name: A, objref: {kind: Deployment, apiVersion: apps/v1, name: d}, fieldref: {fieldPath: "spec.template.spec.containers[0].image"}}
- {name: B, objref: {kind: Deployment, apiVersion: apps/v1, name: d}, fieldref: {fieldPath: spec.replicas}}
images: [{name: nginx, newTag: "9"}]
replicas: [{name: d, count: 4}]
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 1
  template:
    metadata: {annotations: {image: $(A), n: $(B), m: "$(B)x"}}
    spec: {containers: [{name: a, image: nginx, args: [$(A), $(B)]}]}
"#,
        ),
    ];
    let expected = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
spec:
  replicas: 4
  template:
    metadata:
      annotations:
        image: nginx:9
        m: 4x
        "n": 4
    spec:
      containers:
      - args:
        - nginx:9
        - 4
        image: nginx:9
        name: a
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn vars_that_mean_nothing_are_refused() {
    let service = |namespace: &str| {
        format!("apiVersion: v1\nkind: Service\nmetadata: {{name: s, namespace: {namespace}, annotations: {{x: $(A)}}}}\n---\n")
    };
    let two = format!("{}{}", service("one"), service("two"));
    let of = |more: &str| format!("vars:\n- {{name: A, objref: {{kind: Service, apiVersion: v1, name: s{more}}}}}\n");
    let several = error_of(&of(""), &two);
    assert!(several.starts_with("kustomization.yaml:3:4: error[kustomization]: vars: several objects Service.v1"), "{several}");
    let built = output_of(&of(", namespace: two"), &two);
    assert_eq!(built.matches("x: s\n").count(), 2, "{built}");
    let nothing = error_of(&of(", namespace: three"), &two);
    assert!(nothing.contains("no object Service.v1.[noGrp]/s.three has the value of \"A\""), "{nothing}");
    let field = "vars: [{name: A, objref: {kind: ConfigMap, apiVersion: v1, name: c}, fieldref: {fieldPath: data.x}}]\n";
    assert!(error_of(field, CONFIG_MAP).contains("ConfigMap.v1.[noGrp]/c.[noNs] has no field \"data.x\""));
    let unknown = error_of("vars: [{name: A, objRef: {kind: ConfigMap, names: c}}]\n", CONFIG_MAP);
    assert!(unknown.contains("vars[0].objref.names: unknown field (did you mean \"name\"?)"), "{unknown}");
    let numbers = "vars: [{name: C, objref: {kind: ConfigMap, version: v1, name: c}}]\nconfigurations: [config.yaml]\n";
    let resource = "apiVersion: example.com/v1\nkind: Foo\nmetadata: {name: f}\nspec: {list: [$(C), 1]}\n";
    let files = [
        ("kustomization.yaml", &*format!("resources: [c.yaml, f.yaml]\n{numbers}")),
        ("config.yaml", "varReference: [{kind: Foo, path: spec/list}]\n"),
        ("c.yaml", CONFIG_MAP),
        ("f.yaml", resource),
    ];
    let text = error("", &files);
    assert!(text.contains("f.yaml:4:21: error[kustomization]: spec.list: expected a list of strings for vars, found 1"), "{text}");
}

#[test]
fn names_of_vars_are_those_of_the_whole_build() {
    let files = [
        ("kustomization.yaml", "resources: [a, b]\n"),
        ("a/kustomization.yaml", "resources: [../base]\nnamePrefix: a-\n"),
        ("b/kustomization.yaml", "resources: [../base]\nnamePrefix: b-\n"),
        ("base/kustomization.yaml", "resources: [r.yaml]\nvars: [{name: X, objref: {kind: ConfigMap, version: v1, name: c}}]\n"),
        ("base/r.yaml", CONFIG_MAP),
    ];
    let text = error("", &files);
    assert_eq!(
        text,
        "base/kustomization.yaml:2:9: error[kustomization]: vars: the name \"X\" is taken by another entry (rename one of them)"
    );
}

#[test]
fn a_var_without_use_is_a_warning() {
    let kustomization = "resources: [r.yaml]\nvars:\n- name: C\n  objref: {kind: ConfigMap, apiVersion: v1, name: c}\n";
    let built = built("", &[("kustomization.yaml", kustomization), ("r.yaml", CONFIG_MAP)]);
    let warnings: Vec<String> = built.problems.iter().map(ToString::to_string).collect();
    assert!(warnings.iter().any(|text| text.contains("3:3: warning[kustomization]: vars: no field has $(C)")), "{warnings:?}");
    assert!(
        warnings.iter().any(|text| text.contains("warning[deprecated]: vars: is deprecated (use replacements)")),
        "{warnings:?}"
    );
    assert_eq!(built.objects.len(), 1);
}

#[test]
fn texts_with_vars_stay_within_limits() {
    let annotations: String = (0..200).map(|index| format!("    a{index}: \"{}\"\n", "$(L)".repeat(1000))).collect();
    let resources = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  annotations:\n{annotations}data: {{l: \"{}\"}}\n",
        "x".repeat(1000)
    );
    let vars = "vars: [{name: L, objref: {kind: ConfigMap, version: v1, name: c}, fieldref: {fieldPath: data.l}}]\n";
    let text = error_of(vars, &resources);
    assert!(text.contains("the texts with vars become too long"), "{text}");
}

#[test]
fn places_are_those_of_the_value() {
    let resources =
        format!("{CONFIG_MAP}data: {{x: y}}\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: s, labels: {{a: $(X)}}}}\n");
    let vars = "vars: [{name: X, objref: {kind: ConfigMap, version: v1, name: c}, fieldref: {fieldPath: data.x}}]\n";
    let kustomization = format!("resources: [r.yaml]\n{vars}");
    let built = built("", &[("kustomization.yaml", &kustomization), ("r.yaml", &resources)]);
    let service = built.objects.iter().find(|object| object.kind() == "Service").unwrap();
    assert_eq!(service.origin_of(&["metadata", "labels", "a"]).to_string(), "r.yaml:4:11");
}
