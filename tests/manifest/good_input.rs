//! Tests of good files.

use crate::support::{WEB, decode, place_of, pod};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use podstead::manifest::{Object, ObjectKey};

#[test]
fn a_pod_is_decoded_with_its_places() {
    let decoded = decode("web.yaml", WEB);
    assert_eq!(decoded.problems, []);
    assert_eq!(decoded.broken, []);
    let object = &decoded.objects[0];
    assert_eq!(object.key, ObjectKey { kind: "Pod".into(), namespace: "default".into(), name: "web".into() });
    assert_eq!(object.origin.to_string(), "web.yaml:2:1");
    let at = |field: &str| object.positions.position(field).unwrap();
    assert_eq!(at("metadata.name"), place_of(WEB, "web\n"));
    assert_eq!(at("metadata.labels[app]"), place_of(WEB, "'web'"));
    assert_eq!(at("spec.containers"), place_of(WEB, "containers:"));
    assert_eq!(at("spec.containers[0]"), place_of(WEB, "name: server"));
    assert_eq!(at("spec.containers[0].image"), place_of(WEB, "nginx:1.27"));
    assert_eq!(at("spec.containers[0].ports[0].containerPort"), place_of(WEB, "80\n"));
    assert_eq!(at("spec.containers[0].command[1]"), place_of(WEB, "\"10\""));
    assert_eq!(at("spec.containers[0].livenessProbe.httpGet.port"), place_of(WEB, "80}"));
    assert_eq!(at("spec.containers[0].resources.limits[cpu]"), place_of(WEB, ".5"));
    assert_eq!(at("spec.hostNetwork"), place_of(WEB, "yes"));
    assert_eq!(at("spec.volumes[0].name"), place_of(WEB, "spec:"), "nothing is written below spec.volumes");
    assert_eq!(at("status"), object.origin.position);
}

#[test]
fn scalars_become_what_their_field_takes() {
    let pod = pod(WEB);
    let spec = pod.spec.unwrap();
    let container = &spec.containers[0];
    assert_eq!(container.command.as_ref().unwrap(), &["sleep", "10"]);
    let probe = container.liveness_probe.as_ref().unwrap().http_get.as_ref().unwrap();
    assert_eq!(probe.port, IntOrString::Int(80));
    let limits = container.resources.as_ref().unwrap().limits.as_ref().unwrap();
    assert_eq!((limits["cpu"].0.as_str(), limits["memory"].0.as_str()), ("0.5", "64Mi"));
    assert_eq!(spec.host_network, Some(true));
    assert_eq!(pod.metadata.creation_timestamp, None);
}

#[test]
fn other_kinds_of_objects_are_read() {
    let file = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: prod}\ndata:\n  a: |\n    b\nbinaryData:\n  c: |\n    YWJj\n    YWJj\n\
                ---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: \"1\"}\ndata: {q: YWJj}\n";
    let decoded = decode("c.yaml", file);
    assert_eq!(decoded.problems, []);
    let Object::ConfigMap(map) = &decoded.objects[0].object else { panic!("not a ConfigMap") };
    assert_eq!(map.data.as_ref().unwrap()["a"], "b\n");
    assert_eq!(map.binary_data.as_ref().unwrap()["c"].0, b"abcabc");
    let Object::Secret(secret) = &decoded.objects[1].object else { panic!("not a Secret") };
    assert_eq!(secret.data.as_ref().unwrap()["q"].0, b"abc");
    assert_eq!(decoded.objects[0].key.namespace, "prod");
    assert_eq!(decoded.objects[1].origin.position.line, 12);
}
