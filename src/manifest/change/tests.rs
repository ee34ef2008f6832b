//! Bodies, patches, ownership and edits, on small manifests.

use super::*;
use serde_json::json;

const POD: &str = "# the web server
apiVersion: v1
kind: Pod
metadata:
  name: web # as in DNS
spec:
  containers:
  - name: main
    image: 'nginx:1.27' # pinned
    env:
    - {name: A, value: x}

  # the end
  restartPolicy: Always
---
# another one
kind: ConfigMap
apiVersion: v1
metadata: {name: c}
data:
  a: |
    # no comment
    b
";

fn place(text: &str, kind: &str) -> Located {
    located(text.as_bytes(), "default", &LIMITS_OF_FILES).into_iter().find(|found| found.key.kind == kind).unwrap()
}

const LIMITS_OF_FILES: Limits = Limits { max_documents: 100, ..LIMITS };

fn changed(text: &str, kind: &str, change: impl FnOnce(&mut serde_json::Value)) -> (String, bool) {
    let place = place(text, kind);
    let mut value = place.value.clone();
    change(&mut value);
    let Replaced { bytes, comments_lost } = replaced(text.as_bytes(), &place, &value, &LIMITS_OF_FILES).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(self::place(&text, kind).value, value, "{text}");
    (text, comments_lost)
}

#[test]
fn scalar_is_replaced_in_its_place() {
    let (text, lost) = changed(POD, "Pod", |pod| pod["spec"]["containers"][0]["image"] = json!("nginx:1.28"));
    assert_eq!(text, POD.replace("'nginx:1.27'", "nginx:1.28"));
    assert!(!lost);
}

#[test]
fn keys_come_and_go_by_lines() {
    let (text, _) = changed(POD, "Pod", |pod| pod["metadata"]["labels"] = json!({"app": "web"}));
    assert_eq!(text, POD.replace("# as in DNS\n", "# as in DNS\n  labels:\n    app: web\n"));
    let (text, _) = changed(&text, "Pod", |pod| {
        pod["metadata"].as_object_mut().unwrap().remove("labels");
    });
    assert_eq!(text, POD);
    let (text, _) = changed(POD, "ConfigMap", |map| map["data"]["b"] = json!("1"));
    assert_eq!(text, format!("{POD}  b: \"1\"\n"));
}

#[test]
fn list_that_grows_is_written_anew() {
    let (text, lost) = changed(POD, "Pod", |pod| {
        pod["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "side", "image": "busybox"}));
    });
    assert!(
        !lost
            && text.contains("# as in DNS")
            && text.contains("# the end")
            && text.contains("  - name: side\n    image: busybox\n")
    );
}

#[test]
fn flow_style_is_written_anew() {
    let text = "apiVersion: v1 # one\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: \"1\", b: x}\n";
    let (text, lost) = changed(text, "ConfigMap", |map| map["data"]["a"] = json!("2"));
    assert!(text.contains("b: x") && lost != text.contains("# one"), "{text}");
}

#[test]
fn removal_takes_document_or_file() {
    let without = |text: &str, kind: &str| removed(text.as_bytes(), &place(text, kind), &LIMITS_OF_FILES).unwrap();
    let left = String::from_utf8(without(POD, "ConfigMap").unwrap()).unwrap();
    assert_eq!(left, POD.split("---").next().unwrap());
    assert_eq!(without(&left, "Pod"), None);
    let left = String::from_utf8(without(POD, "Pod").unwrap()).unwrap();
    assert!(left.starts_with("# another one\nkind: ConfigMap"), "{left}");
    let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n";
    let left = String::from_utf8(without(list, "ConfigMap").unwrap()).unwrap();
    assert_eq!(located(left.as_bytes(), "default", &LIMITS_OF_FILES).len(), 1);
}

#[test]
fn defaults_do_not_enter_files() {
    let written = json!({"spec": {"containers": [{"name": "a", "image": "x"}]}});
    let shown =
        json!({"spec": {"restartPolicy": "Always", "containers": [{"name": "a", "image": "x", "imagePullPolicy": "Always"}]}});
    let mut new = shown.clone();
    new["spec"]["containers"][0]["image"] = json!("y");
    new["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "b", "image": "z"}));
    let expected = json!({"spec": {"containers": [{"name": "a", "image": "y"}, {"name": "b", "image": "z"}]}});
    assert_eq!(carried(&written, &shown, &new), expected);
    assert_eq!(carried(&written, &shown, &shown), written);
    assert_eq!(carried(&written, &shown, &json!({"spec": {"containers": []}})), json!({"spec": {"containers": []}}));
}

#[test]
fn patches_of_all_forms_apply() {
    let object = json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}});
    let strategic = json!({"spec": {"containers": [{"name": "b", "image": "z"}]}});
    let merged = patched("Pod", &object, &strategic, PatchForm::Strategic).unwrap();
    assert_eq!(merged["spec"]["containers"][1]["image"], "z");
    assert_eq!(merged["spec"]["containers"].as_array().unwrap().len(), 2);
    let merged = patched("Pod", &object, &strategic, PatchForm::Merge).unwrap();
    assert_eq!(merged, strategic);
    let json =
        json!([{"op": "test", "path": "/spec/containers/0/name", "value": "a"}, {"op": "remove", "path": "/spec/containers/1"}]);
    assert_eq!(patched("Pod", &object, &json, PatchForm::Json).unwrap()["spec"]["containers"].as_array().unwrap().len(), 1);
}

#[test]
fn service_ports_merge_by_number_and_protocol() {
    let object = json!({"spec": {"ports": [
        {"name": "80-8080", "port": 80, "protocol": "TCP", "targetPort": 8080},
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    ]}});
    // As kubectl apply writes it, with the first key alone.
    let patch = json!({"spec": {
        "$setElementOrder/ports": [{"port": 80}, {"port": 53}, {"port": 53}],
        "ports": [
            {"port": 80, "nodePort": 30080, "targetPort": "http"},
            {"port": 53, "protocol": "UDP", "targetPort": 5353},
        ],
    }});
    let merged = patched("Service", &object, &patch, PatchForm::Strategic).unwrap();
    let expected = json!([
        {"name": "80-8080", "port": 80, "protocol": "TCP", "targetPort": "http", "nodePort": 30080},
        {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 5353},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    ]);
    assert_eq!(merged["spec"]["ports"], expected);
    let delete = json!({"spec": {"ports": [{"$patch": "delete", "port": 53, "protocol": "UDP"}]}});
    let left = patched("Service", &object, &delete, PatchForm::Strategic).unwrap();
    assert_eq!(left["spec"]["ports"].as_array().map(Vec::len), Some(2), "{left}");
}

#[test]
fn exploding_patches_are_refused() {
    let object = json!({"a": ["x"]});
    let copies: Vec<_> = (0..60).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"})).collect();
    assert!(matches!(patched("Pod", &object, &json!(copies), PatchForm::Json), Err(PatchError::Unfit(_))));
    let many: Vec<_> = (0..2000).map(|_| json!({"op": "test", "path": "/a", "value": 1})).collect();
    assert!(matches!(patched("Pod", &object, &json!(many), PatchForm::Json), Err(PatchError::Malformed(_))));
    for wrong in [json!({}), json!([{"op": "x"}]), json!([{"op": "add", "path": "a"}]), json!([1])] {
        assert!(matches!(patched("Pod", &object, &wrong, PatchForm::Json), Err(PatchError::Malformed(_))), "{wrong}");
    }
}

#[test]
fn hostile_bodies_are_refused() {
    let deep = format!("{}1{}", "[".repeat(2000), "]".repeat(2000));
    for bytes in [deep.as_bytes(), b"{", b"\xff", b"\0", &vec![b' '; (3 << 20) + 1]] {
        read_body(bytes, &LIMITS).unwrap_err();
    }
    let body = read_body(br#"{"a": {"b": 1, "b": 2}}"#, &LIMITS).unwrap();
    assert_eq!(body.duplicates, ["a.b"]);
    let mut pod = json!({"spec": {"hostNetwrok": true, "containers": [{"name": "a", "imag": "x"}]}});
    assert_eq!(drop_unknown_fields("Pod", &mut pod), ["spec.hostNetwrok", "spec.containers[0].imag"]);
}

fn map(data: serde_json::Value) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
}

#[test]
fn apply_removes_what_nobody_wants() {
    let (own, beta) = (map(json!({"a": "1", "b": "2", "c": "3"})), map(json!({"c": "3"})));
    let others = [("beta".to_owned(), beta)].into();
    let owners = Owners { own: Some(&own), others: &others };
    let written = map(json!({"a": "1", "b": "2", "c": "3", "hand": "x"}));
    let body = map(json!({"a": "9"}));
    assert_eq!(conflicts(&written, &body, owners), []);
    assert_eq!(applied("ConfigMap", &written, &body, owners).unwrap(), map(json!({"a": "9", "c": "3", "hand": "x"})));
    let pod = |containers: serde_json::Value| json!({"spec": {"containers": containers}});
    let (own, none) = (pod(json!([{"name": "a", "image": "x"}, {"name": "b", "image": "y"}])), std::collections::BTreeMap::new());
    let owners = Owners { own: Some(&own), others: &none };
    let body = pod(json!([{"name": "a", "image": "z"}]));
    assert_eq!(applied("Pod", &own, &body, owners).unwrap(), body);
}

#[test]
fn conflicts_name_owner_and_field() {
    let others = [("alpha".to_owned(), map(json!({"k": "1"})))].into();
    let owners = Owners { own: None, others: &others };
    let found = conflicts(&map(json!({"k": "1", "h": "1"})), &map(json!({"k": "2", "h": "2"})), owners);
    let told: Vec<_> = found.iter().map(|found| (found.owner.as_deref(), found.field.as_str())).collect();
    assert_eq!(told, [(None, ".data.h"), (Some("alpha"), ".data.k")]);
    assert_eq!(released(map(json!({"k": "1", "l": "1"})), &map(json!({"k": "2"}))), map(json!({"l": "1"})));
}
