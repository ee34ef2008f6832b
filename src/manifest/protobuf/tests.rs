//! Bodies as clients send them, and broken ones.

use super::*;
use crate::schema::table;
use proptest::prelude::*;
use serde_json::json;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 & 0x7f | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn bytes(number: u64, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    [varint(number << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn whole(number: u64, value: i64) -> Vec<u8> {
    [varint(number << 3), varint(value as u64)].concat()
}

fn body(object: &[u8]) -> Vec<u8> {
    let kind = [bytes(1, b"v1"), bytes(2, b"Thing")].concat();
    [MAGIC.to_vec(), bytes(1, kind), bytes(2, object)].concat()
}

fn read_as(structure: &'static Struct, object: &[u8]) -> Result<Value, ProtobufError> {
    read(&body(object), structure).map(|mut value| {
        let members = value.as_object_mut().unwrap();
        assert_eq!((members.remove("apiVersion"), members.remove("kind")), (Some("v1".into()), Some("Thing".into())));
        value
    })
}

#[test]
fn pod_is_read_as_json() {
    let port = [bytes(1, ""), whole(2, 0), whole(3, 8080), bytes(4, "TCP")].concat();
    let quantity = [bytes(1, "memory"), bytes(2, bytes(1, "64Mi"))].concat();
    let http = [bytes(1, "/"), bytes(2, [whole(1, 1), whole(2, 0), bytes(3, "web")].concat())].concat();
    let probe = [bytes(1, bytes(2, http)), whole(2, 0), whole(4, 5)].concat();
    let variable = [bytes(1, "A"), bytes(2, ""), bytes(3, bytes(3, [bytes(1, bytes(1, "m")), bytes(2, "k")].concat()))].concat();
    let container = [
        bytes(1, "main"),
        bytes(2, "busybox"),
        bytes(3, "sh"),
        bytes(3, "-c"),
        bytes(5, ""),
        bytes(6, port),
        bytes(7, variable),
        bytes(8, bytes(1, quantity)),
        bytes(10, probe),
        whole(16, 0),
    ]
    .concat();
    let directory = [bytes(1, "tmp"), bytes(2, bytes(2, bytes(1, "")))].concat();
    let security = [whole(2, -1), whole(4, 7), whole(4, 8)].concat();
    let spec = [
        bytes(1, directory),
        bytes(2, container),
        whole(4, 0),
        bytes(7, [bytes(1, "a"), bytes(2, "")].concat()),
        bytes(14, security),
    ];
    let labels = [bytes(1, "app"), bytes(2, "web")].concat();
    let metadata = [bytes(1, "web"), bytes(3, ""), bytes(8, ""), bytes(11, labels)].concat();
    let pod = [bytes(1, metadata), bytes(2, spec.concat()), bytes(3, "")].concat();
    let expected = json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            "containers": [{
                "name": "main",
                "image": "busybox",
                "command": ["sh", "-c"],
                "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}],
                "resources": {"limits": {"memory": "64Mi"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 5},
            }],
            // A pointer in Go: zero is what was asked for.
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"a": ""},
            "securityContext": {"runAsUser": -1, "supplementalGroups": [7, 8]},
        },
    });
    assert_eq!(read_as(&table::POD, &pod), Ok(expected));
}

#[test]
fn bytes_and_times_are_texts() {
    let data = [bytes(1, "k"), bytes(2, [0xff, 0x00])].concat();
    let metadata = [bytes(1, "s"), bytes(8, [whole(1, 1), whole(2, 0)].concat())].concat();
    let secret = [bytes(1, metadata), bytes(2, data), bytes(3, "Opaque")].concat();
    let expected =
        json!({"metadata": {"name": "s", "creationTimestamp": "1970-01-01T00:00:01Z"}, "data": {"k": "/wA="}, "type": "Opaque"});
    assert_eq!(read_as(&table::SECRET, &secret), Ok(expected));
    let late = bytes(1, bytes(8, whole(1, i64::MAX)));
    assert_eq!(read_as(&table::SECRET, &late), Err(ProtobufError::Time(8)));
}

#[test]
fn unknown_fields_are_refused_unless_empty() {
    let known = bytes(1, bytes(1, "m"));
    let with = |more: Vec<u8>| read_as(&table::CONFIG_MAP, &[known.clone(), more].concat());
    for empty in [whole(99, 0), bytes(99, "")] {
        assert_eq!(with(empty), Ok(json!({"metadata": {"name": "m"}})));
    }
    for set in [whole(99, 1), bytes(99, "x"), vec![0x99 | 5, 6, 0, 0, 0, 0]] {
        assert!(matches!(with(set), Err(ProtobufError::Unknown("ConfigMap", _))));
    }
}

#[test]
fn broken_bodies_are_errors() {
    let read = |object: &[u8]| read(object, &table::POD);
    let name = |value: &[u8]| bytes(1, bytes(1, value));
    let good = body(&name(b"a"));
    assert!(read(&good).is_ok());
    for length in 1..good.len() {
        // A cut between fields is a shorter message, any other one an error; never a panic.
        drop(read(&good[..length]));
    }
    assert_eq!(read(b"{}"), Err(ProtobufError::Magic));
    assert_eq!(read(&[MAGIC, &[0x12, 0xff]].concat()), Err(ProtobufError::Short));
    assert_eq!(read(&[MAGIC, &bytes(3, "gzip")].concat()), Err(ProtobufError::Encoding));
    assert_eq!(read(&body(&name(b"\xff"))), Err(ProtobufError::Text(1)));
    assert_eq!(read(&body(&whole(1, 1))), Err(ProtobufError::WireType(1)));
    assert_eq!(read(&body(&[1 << 3 | 3])), Err(ProtobufError::WireType(1)));
    assert_eq!(read(&body(&whole(99, 0).repeat(MAX_VALUES))), Err(ProtobufError::Many));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        for structure in [&table::POD, &table::CRON_JOB, &table::SECRET] {
            drop(read(&body(&bytes), structure));
            drop(read(&bytes, structure));
        }
    }
}
