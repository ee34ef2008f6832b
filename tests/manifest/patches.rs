//! Patches: what they make of objects, compared with kubectl, and what is told of those that cannot be used.

use crate::support::keys;
use k8s_openapi::api::core::v1::Pod;
use podstead::manifest::sops::Opening;
use podstead::manifest::{self, Decoded, Limits, Object, PatchesByObject};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::process::Command;

const BASE: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - name: a
    image: a:1
    env: [{name: X, value: '1'}, {name: Z, value: '2'}]
  - name: b
    image: b:1
";

/// A patch of the pod `web`; `change` is its strategicMerge or json, indented by nothing.
fn patch(change: &str) -> String {
    format!("apiVersion: podstead.dev/v1alpha1\nkind: Patch\nmetadata: {{name: p}}\ntarget: {{kind: Pod, name: web}}\n{change}\n")
}

/// `base` with the patches of `patches`, one file each.
fn apply(base: &str, patches: &[&str]) -> Decoded {
    let limits = Limits::default();
    let mut by_object = PatchesByObject::new();
    let objects = manifest::decode("base.yaml", base.as_bytes(), &limits).objects;
    for (index, text) in patches.iter().enumerate() {
        let decoded = manifest::decode(&format!("patch-{index}.yaml"), text.as_bytes(), &limits);
        assert_eq!(decoded.problems, [], "{text}");
        for object in &objects {
            let found = decoded.patches.iter().filter(|patch| patch.target().selects(&object.key)).cloned();
            by_object.entry(object.key.clone()).or_default().extend(found);
        }
    }
    manifest::decode_patched("base.yaml", base.as_bytes(), &limits, &Opening::default(), &by_object)
}

/// The pod that comes of it.
fn pod(decoded: Decoded) -> Value {
    assert_eq!(decoded.problems, []);
    match decoded.objects.into_iter().next().unwrap().object {
        Object::Pod(pod) => serde_json::to_value(pod).unwrap(),
        other => panic!("not a pod: {other:?}"),
    }
}

/// Problems of the patched object.
fn problems(base: &str, patches: &[&str]) -> Vec<String> {
    let decoded = apply(base, patches);
    assert_eq!((decoded.objects.len(), keys(&decoded.broken)), (0, vec!["web"]));
    decoded.problems.iter().map(ToString::to_string).collect()
}

/// Problems of a patch by itself.
fn faults(text: &str) -> Vec<String> {
    let decoded = manifest::decode("p.yaml", text.as_bytes(), &Limits::default());
    assert!(decoded.patches.is_empty() && !decoded.problems.is_empty(), "{text}");
    decoded.problems.iter().map(ToString::to_string).collect()
}

/// The result of kubectl for the same; `None` when it refuses.
fn kubectl(base: &Value, kind: &str, patch: &Value) -> Option<Value> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("base.json");
    std::fs::write(&file, base.to_string()).unwrap();
    let mut command = Command::new("kubectl");
    command.args(["patch", "--local", "-o", "json", "--type", kind, "-p", &patch.to_string(), "-f"]).arg(&file);
    let output = command.env("HOME", directory.path()).env("KUBECONFIG", "/dev/null").output().unwrap();
    // It takes what is not there for null, where RFC 6902 says that the operation fails.
    let pod: Option<Pod> = serde_json::from_slice(&output.stdout).ok();
    pod.filter(|_| output.status.success()).map(|pod| serde_json::to_value(pod).unwrap())
}

/// The result of podstead for the same, or the reason for its refusal.
fn podstead(base: &Value, kind: &str, patch: &Value) -> Result<Value, String> {
    let field = if kind == "strategic" { "strategicMerge" } else { "json" };
    let document = json!({
        "apiVersion": "podstead.dev/v1alpha1", "kind": "Patch", "metadata": {"name": "p"}, "target": {"kind": "Pod"}, field: patch,
    });
    let limits = Limits::default();
    let decoded = manifest::decode("p.json", document.to_string().as_bytes(), &limits);
    let patches = decoded.patches;
    if patches.is_empty() {
        return Err(decoded.problems[0].to_string());
    }
    let bytes = base.to_string();
    let key = manifest::decode("b.json", bytes.as_bytes(), &limits).objects.remove(0).key;
    let decoded = manifest::decode_patched(
        "b.json",
        bytes.as_bytes(),
        &limits,
        &Opening::default(),
        &PatchesByObject::from([(key, patches)]),
    );
    match decoded.problems.first() {
        None => Ok(pod(decoded)),
        Some(problem) => Err(problem.to_string()),
    }
}

fn names() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["a", "b", "c", "d"][..])
}

/// A list of items told apart by `key`, each name once.
fn list(key: &'static str, item: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    let named = (names(), item).prop_map(move |(name, mut item)| {
        item[key] = json!(if key == "mountPath" { format!("/{name}") } else { name.to_owned() });
        item
    });
    prop::collection::vec(named, 0..4).prop_map(move |mut items| {
        let mut seen = std::collections::BTreeSet::new();
        items.retain(|item| seen.insert(item[key].to_string()));
        Value::from(items)
    })
}

fn env() -> impl Strategy<Value = Value> {
    list("name", prop::sample::select(vec![json!({"value": "1"}), json!({"value": "2"}), json!({})]))
}

fn container() -> impl Strategy<Value = Value> {
    let ports = prop::collection::btree_map(80u16..83, 0u16..2, 0..3).prop_map(|ports| {
        let port = |(port, host): (u16, u16)| {
            if host == 0 { json!({"containerPort": port}) } else { json!({"containerPort": port, "hostPort": host}) }
        };
        Value::from(ports.into_iter().map(port).collect::<Vec<_>>())
    });
    let mounts = list("mountPath", prop::sample::select(vec![json!({"name": "v"}), json!({"name": "w", "readOnly": true})]));
    let args = prop::sample::select(vec![json!([]), json!(["x"]), json!(["x", "y", "x"])]);
    (env(), ports, mounts, args).prop_map(|(env, ports, mounts, args)| {
        json!({"image": "i", "env": env, "ports": ports, "volumeMounts": mounts, "args": args, "securityContext": {"privileged": true}})
    })
}

fn base() -> impl Strategy<Value = Value> {
    let volume = prop::sample::select(vec![json!({"emptyDir": {}}), json!({"hostPath": {"path": "/x", "type": "Directory"}})]);
    (list("name", container()), list("name", volume), prop::collection::vec(names(), 0..3)).prop_map(
        |(containers, volumes, finalizers)| {
            let (mut finalizers, mut containers) = (finalizers, containers);
            finalizers.dedup();
            // Without any, kubectl cannot tell what kind of list it is.
            if containers == json!([]) {
                containers = json!([{"name": "a", "image": "i", "args": ["x"], "securityContext": {"privileged": true}}]);
            }
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "web", "labels": {"a": "1", "b": "2"}, "finalizers": finalizers},
                "spec": {"containers": containers, "volumes": volumes, "hostNetwork": true,
                    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["x"]}], "tolerations": [{"key": "t"}]},
            })
        },
    )
}

/// Parts of objects, with every directive there is.
fn strategic_patch() -> impl Strategy<Value = Value> {
    let env_item = prop::sample::select(vec![
        json!({"value": "9"}),
        json!({"$patch": "delete"}),
        json!({"value": null, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
    ]);
    let mount_item =
        prop::sample::select(vec![json!({"name": "z"}), json!({"$patch": "delete"}), json!({"name": "z", "readOnly": null})]);
    let container_item = prop_oneof![
        2 => (list("name", env_item), list("mountPath", mount_item), any::<[bool; 4]>()).prop_map(|(env, mounts, with)| {
            let mut item = json!({"env": env, "volumeMounts": mounts, "image": "j"});
            if with[0] {
                item["ports"] = json!([{"containerPort": 80, "name": "p"}, {"containerPort": 90}]);
            }
            if with[1] {
                item["args"] = json!(["z"]);
            }
            if with[2] {
                item["$deleteFromPrimitiveList/args"] = json!(["x"]);
                item.as_object_mut().unwrap().remove("args");
            }
            if with[3] {
                item["securityContext"] = json!({"$patch": "replace", "runAsUser": 1});
            }
            item
        }),
        1 => Just(json!({"$patch": "delete"})),
    ];
    let containers = (list("name", container_item), 0..8u8).prop_map(|(mut items, word)| {
        if word == 0 {
            items = json!([{"name": "b", "image": "k"}, {"$patch": "replace"}, {"name": "a", "image": "k"}]);
        }
        items
    });
    let volume_item = prop::sample::select(vec![
        json!({"emptyDir": {"medium": "Memory"}}),
        json!({"$patch": "delete"}),
        json!({"$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}),
        json!({"hostPath": null, "emptyDir": {}}),
    ]);
    let metadata = prop::sample::select(vec![
        json!({"labels": {"a": null, "c": "3"}}),
        json!({"labels": {"$patch": "replace", "c": "3"}}),
        json!({"finalizers": ["c", "a"]}),
        json!({"finalizers": ["d"], "$setElementOrder/finalizers": ["d", "b", "a"]}),
        json!({"$deleteFromPrimitiveList/finalizers": ["a", "d"]}),
        json!({}),
    ]);
    let rest = prop::sample::select(vec![
        json!({}),
        json!({"hostNetwork": null, "tolerations": [{"key": "u"}]}),
        json!({"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["y"]}, {"ip": "10.0.0.2", "hostnames": ["z"]}]}),
        json!({"securityContext": {"runAsUser": 5, "sysctls": null}, "nodeSelector": {"a": "b"}}),
    ]);
    let order =
        prop::sample::select(vec![None, Some(["d", "b", "a", "c"]), Some(["a", "b", "c", "d"]), Some(["c", "a", "d", "b"])]);
    (containers, list("name", volume_item), metadata, rest, order).prop_map(|(containers, volumes, metadata, rest, order)| {
        let mut spec = rest;
        if let Some(order) = order {
            spec["$setElementOrder/containers"] = order.iter().map(|name| json!({"name": name})).collect();
        }
        spec["containers"] = containers;
        spec["volumes"] = volumes;
        json!({"metadata": metadata, "spec": spec})
    })
}

/// kubectl leaves directives in items that are new, and what comes of it is no object.
fn without_directives_in_new_items(base: &Value, patch: &mut Value) {
    for list in ["containers", "volumes"] {
        let is_new = |item: &Value| !base["spec"][list].as_array().unwrap().iter().any(|known| known["name"] == item["name"]);
        for item in patch["spec"][list].as_array_mut().into_iter().flatten() {
            if is_new(item) && item["name"].is_string() && item["$patch"].is_null() {
                strip(item);
            }
        }
    }
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| !key.starts_with('$') && !value.is_null());
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => {
            items.retain(|item| item["$patch"].is_null());
            items.iter_mut().for_each(strip);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Runs so many cases of both programs; kubectl takes a twentieth of a second each.
fn compare(kind: &str, at_least: u32, patches: impl Strategy<Value = Value>) {
    let mut runner = TestRunner::new(Config { cases: 150, failure_persistence: None, max_shrink_iters: 200, ..Config::default() });
    let mut agreed = std::cell::Cell::new(0);
    runner
        .run(&(base(), patches), |(base, mut patch)| {
            if patch.is_object() {
                without_directives_in_new_items(&base, &mut patch);
            }
            let (ours, theirs) = (podstead(&base, kind, &patch), kubectl(&base, kind, &patch));
            match ours {
                // RFC 6902: what is replaced or copied has to be there. kubectl makes it.
                Err(reason) if reason.contains("does not exist") => {}
                Err(reason) => prop_assert_eq!(None, theirs, "{}: {} of {}", reason, patch, base),
                Ok(ours) => {
                    agreed.set(agreed.get() + 1);
                    prop_assert_eq!(Some(ours), theirs, "{} of {}", patch, base);
                }
            }
            Ok(())
        })
        .unwrap();
    assert!(*agreed.get_mut() >= at_least, "hardly any patch of the test is one");
}

#[test]
fn strategic_merges_give_what_kubectl_gives() {
    compare("strategic", 100, strategic_patch());
}

#[test]
fn json_patches_give_what_kubectl_gives() {
    let path = prop::sample::select(
        &[
            "/metadata/labels/a",
            "/metadata/labels/x~1y",
            "/metadata/labels/x~0y",
            "/metadata/labels/z",
            "/metadata/annotations/a",
            "/spec/containers/0/image",
            "/spec/containers/1/image",
            "/spec/containers/0/args/0",
            "/spec/containers/0/args/1",
            "/spec/containers/0/args/-",
            "/spec/containers/0/args/7",
            "/spec/containers/0/workingDir",
            "/spec/hostname",
        ][..],
    );
    let operation = (path.clone(), path, prop::sample::select(&["add", "remove", "replace", "move", "copy", "test"][..]), 0..3u8)
        .prop_map(|(path, from, op, value)| {
            let value = ["1", "x", "i"][usize::from(value)];
            match op {
                "remove" => json!({"op": op, "path": path}),
                "move" | "copy" => json!({"op": op, "path": path, "from": from}),
                _ => json!({"op": op, "path": path, "value": value}),
            }
        });
    compare("json", 10, prop::collection::vec(operation, 1..3).prop_map(Value::from));
}

#[test]
fn ports_of_different_protocols_stay_apart() {
    let base = BASE.replace("    image: a:1", "    image: a:1\n    ports: [{containerPort: 53, protocol: UDP}]");
    let change = "strategicMerge: {spec: {containers: [{name: a, ports: [{containerPort: 53, protocol: TCP, hostPort: 53}]}]}}";
    let pod = pod(apply(&base, &[&patch(change)]));
    let ports = json!([
        {"containerPort": 53, "protocol": "TCP", "hostPort": 53}, {"containerPort": 53, "protocol": "UDP"},
    ]);
    assert_eq!(pod["spec"]["containers"][0]["ports"], ports);
}

#[test]
fn patches_are_applied_in_their_order() {
    let first = patch("strategicMerge: {spec: {containers: [{name: a, image: 'a:2'}]}}");
    let second = patch(
        "json: [{op: test, path: /spec/containers/0/image, value: 'a:2'}, {op: replace, path: /spec/containers/0/image, value: 'a:3'}]",
    );
    assert_eq!(pod(apply(BASE, &[&first, &second]))["spec"]["containers"][0]["image"], "a:3");
    let failed = problems(BASE, &[&second, &first]);
    assert_eq!(
        failed,
        [
            "patch-0.yaml:5:9: error[patch-failed]: json[0]: test failed: /spec/containers/0/image has another value, in Pod default/web of base.yaml:1:1"
        ]
    );
}

#[test]
fn a_patch_can_take_an_object_away() {
    let decoded = apply(BASE, &[&patch("strategicMerge: {$patch: delete}")]);
    assert_eq!((decoded.objects.len(), decoded.broken.len(), decoded.problems.len()), (0, 0, 0));
    assert_eq!(decoded.removed[0].name, "web");
}

#[test]
fn objects_without_pods_merge_as_mappings() {
    let base = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: '1', b: '2'}\n";
    let change = patch("strategicMerge: {data: {a: null, c: '3'}}").replace("kind: Pod", "kind: ConfigMap");
    let decoded = apply(base, &[&change]);
    assert_eq!(decoded.problems, []);
    let Object::ConfigMap(config_map) = &decoded.objects[0].object else { panic!() };
    assert_eq!(serde_json::to_value(&config_map.data).unwrap(), json!({"b": "2", "c": "3"}));
}

#[test]
fn patched_object_problems_point_at_patch() {
    let mut wrong = Vec::new();
    for (change, expected) in [
        (
            "json: [{op: remove, path: /spec/containers/5}]",
            "patch-0.yaml:5:9: error[patch-failed]: json[0]: /spec/containers/5 does not exist, in",
        ),
        (
            "json:\n- {op: add, path: /spec/hostnam, value: x}",
            "patch-0.yaml:6:4: error[unknown-field]: spec.hostnam: unknown field, in",
        ),
        (
            "json:\n- {op: add, path: /spec/hostname, value: 5}",
            "patch-0.yaml:6:42: error[wrong-type]: spec.hostname: expected a string, found the number 5, in",
        ),
        ("json: [{op: remove, path: /spec}]", "patch-0.yaml:1:1: error[required]: spec: is required, in"),
        (
            "json: [{op: move, from: /spec, path: /spec/x}]",
            "patch-0.yaml:5:9: error[patch-failed]: json[0]: /spec cannot be moved into itself, in",
        ),
        (
            "strategicMerge: {metadata: {name: other}}",
            "patch-0.yaml:1:1: error[patch-failed]: metadata: a patch cannot change the name",
        ),
        ("strategicMerge: {kind: ConfigMap}", "patch-0.yaml:1:1: error[patch-failed]: kind: a patch cannot change the kind"),
    ] {
        let found = problems(BASE, &[&patch(change)]);
        if !found[0].starts_with(expected) || !found[0].contains("in Pod default/web of base.yaml:1:1") {
            wrong.push(found);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn patch_problems_point_at_their_place() {
    let mut wrong = Vec::new();
    for (change, expected) in [
        (
            "strategicMerge: {spec: {hostNetwrok: true}}",
            "p.yaml:5:25: error[unknown-field]: strategicMerge.spec.hostNetwrok: unknown field (did you mean \"hostNetwork\"?)",
        ),
        (
            "strategicMerge: {spec: {hostNetwork: 'yes'}}",
            "p.yaml:5:38: error[wrong-type]: strategicMerge.spec.hostNetwork: expected true or false",
        ),
        (
            "strategicMerge: {spec: {containers: [{image: x}]}}",
            "p.yaml:5:39: error[required]: strategicMerge.spec.containers[0].name: is required (it identifies the item)",
        ),
        (
            "strategicMerge: {spec: {$patch: merge}}",
            "p.yaml:5:33: error[invalid-value]: strategicMerge.spec.$patch: expected replace or delete",
        ),
        (
            "strategicMerge: {spec: {$setElementOrder/tolerations: []}}",
            "p.yaml:5:25: error[invalid-value]: strategicMerge.spec.$setElementOrder/tolerations: \"tolerations\" is replaced as a whole",
        ),
        (
            "strategicMerge: {spec: {$deleteFromPrimitiveList/containers: []}}",
            "p.yaml:5:25: error[invalid-value]: strategicMerge.spec.$deleteFromPrimitiveList/containers: \"containers\" is not a list of plain values",
        ),
        ("strategicMerge: []", "p.yaml:5:1: error[wrong-type]: strategicMerge: expected a mapping"),
        ("strategicMerge: {}\njson: []", "p.yaml:6:1: error[invalid-value]: json: a patch has strategicMerge or json, not both"),
        ("", "p.yaml:1:1: error[required]: a patch must have strategicMerge or json"),
        ("jsn: []", "p.yaml:5:1: error[unknown-field]: jsn: unknown field (did you mean \"json\"?)"),
        (
            "json: [{op: put, path: /a}]",
            "p.yaml:5:13: error[invalid-value]: json[0].op: \"put\" is not an operation (write add, remove",
        ),
        ("json: [{op: add, path: /a}]", "p.yaml:5:9: error[invalid-value]: json[0].value: add requires a value"),
        (
            "json: [{op: remove, path: /a, value: 1}]",
            "p.yaml:5:38: error[invalid-value]: json[0].value: remove must not have a value",
        ),
        ("json: [{op: copy, path: /a}]", "p.yaml:5:9: error[invalid-value]: json[0].from: copy requires a from"),
        ("json: [{op: remove, path: a}]", "p.yaml:5:27: error[invalid-value]: json[0].path: a path must start with /"),
        ("json: [{op: remove, path: /a~2}]", "p.yaml:5:27: error[invalid-value]: json[0].path: write ~ as ~0"),
        ("json: [{op: remove}]", "p.yaml:5:9: error[required]: json[0].path: is required"),
    ] {
        let found = faults(&patch(change));
        if !found.iter().any(|found| found.starts_with(expected)) {
            wrong.push((expected, found));
        }
    }
    for (target, expected) in [
        ("{name: web}", "target.kind: is required"),
        (
            "{kind: Ingress}",
            "target.kind: \"Ingress\" cannot be patched (write a kind that podstead reads, such as Pod, Deployment, ConfigMap or \
             Secret)",
        ),
        ("{kind: Pod, name: 'web.*'}", "target.name: \"web.*\" is not a name (write a name, in which * matches any text (web-*)"),
        ("{kind: Pod, labelSelector: 'a in b'}", "target.labelSelector: unable to parse requirement \"a in b\""),
        ("{kind: Pod, nmae: web}", "target.nmae: unknown field (did you mean \"name\"?)"),
    ] {
        let found = faults(&patch("json: []").replace("{kind: Pod, name: web}", target));
        if !found.iter().any(|found| found.contains(expected)) {
            wrong.push((expected, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let found = faults(&patch("json: []").replace("podstead.dev/v1alpha1", "v1"));
    assert_eq!(
        found,
        ["p.yaml:1:13: error[unsupported-kind]: apiVersion: \"v1\" is not the version of a Patch (write podstead.dev/v1alpha1)"]
    );
}

#[test]
fn refused_patch_names_its_target_if_known() {
    let decode = |text: &str| manifest::decode("p.yaml", text.as_bytes(), &Limits::default());
    let told = decode(&patch("strategicMerge: {spec: {x: 1}}"));
    assert_eq!((told.broken_patches[0].to_string().as_str(), told.broken.len()), ("Pod */web", 0));
    let untold = decode(&patch("strategicMerge: {}").replace("kind: Pod", "kind: Pot"));
    assert_eq!((untold.broken_patches.len(), keys(&untold.broken)), (0, vec!["?"]));
}

#[test]
fn copies_do_not_grow_without_bound() {
    let mut change = "json:\n- {op: add, path: /metadata/annotations, value: {a: x}}\n".to_owned();
    for step in 0..40 {
        change.push_str(&format!("- {{op: copy, from: /spec, path: /spec/x{step}}}\n"));
    }
    let found = problems(BASE, &[&patch(&change)]);
    assert!(found[0].contains("error[too-complex]: json["), "{found:?}");
}

#[test]
fn nothing_says_what_patch_of_secret_holds() {
    let text = patch("strategicMerge: {stringData: {password: hunter2}}").replace("kind: Pod", "kind: Secret");
    let decoded = manifest::decode("p.yaml", text.as_bytes(), &Limits::default());
    assert_eq!(decoded.problems, []);
    assert!(!format!("{decoded:?}").contains("hunter2"), "{decoded:?}");
}

#[test]
fn templates_of_workloads_are_merged_by_container() {
    let base = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 1\n  selector: {matchLabels: {a: b}}\n  \
                template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: one, image: 'a:1'}, {name: two, image: 'b:1'}]}\n";
    let patch = "apiVersion: podstead.dev/v1alpha1\nkind: Patch\nmetadata: {name: p}\ntarget: {kind: Deployment, name: web}\n\
                 strategicMerge: {spec: {replicas: 3, template: {spec: {containers: [{name: two, image: 'b:2'}]}}}}\n";
    let decoded = apply(base, &[patch]);
    assert_eq!(decoded.problems, []);
    let Object::Workload(workload) = &decoded.objects[0].object else { panic!("no workload") };
    let json = workload.to_json();
    assert_eq!(json["spec"]["replicas"], 3);
    let containers = &json["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers, &serde_json::json!([{"name": "one", "image": "a:1"}, {"name": "two", "image": "b:2"}]));
    let version = patch.replace("{spec: {replicas", "{apiVersion: apps/v1beta1, spec: {replicas");
    assert_eq!(
        problems(base, &[&version]),
        [
            "patch-0.yaml:1:1: error[patch-failed]: kind: a patch cannot change the kind or the version of an object, in Deployment default/web of base.yaml:1:1"
        ]
    );
}
