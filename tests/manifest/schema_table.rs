//! `src/manifest/schema/table.rs` is what k8s-openapi's schema says. `UPDATE=1` writes it.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SelfSubjectRulesReview};
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod, ReplicationController, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/manifest/schema/table.rs");

const HEAD: &str = "\
//! The fields of the kinds that podstead reads and all that they are made of, as Kubernetes 1.34 has them.
//!
//! Made from k8s-openapi's schema by `UPDATE=1 cargo test --test manifest schema`; a test compares it.
#![allow(missing_docs, reason = \"the structures are documented by the Kubernetes API reference\")]

use super::Type::{Any, Base64, Bool, Int32, Int64, IntOrString, List, Map, Object, Quantity, Str, Time};
use super::{Struct, o, r};
";

/// Fields that the schema calls required, and that an API server fills in all the same.
const DEFAULTED: [(&str, &str); 1] = [("PodFailurePolicyOnPodConditionsPattern", "status")];

#[test]
fn schema_table_is_what_k8s_openapi_says() {
    let made = table();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(PATH, &made).unwrap();
    }
    let present = std::fs::read_to_string(PATH).unwrap();
    assert!(made == present, "src/manifest/schema/table.rs is not up to date: run UPDATE=1 cargo test --test manifest schema");
}

fn table() -> String {
    let mut structures = BTreeMap::new();
    add::<Pod>("Pod", &mut structures);
    add::<ConfigMap>("ConfigMap", &mut structures);
    add::<Secret>("Secret", &mut structures);
    add::<PersistentVolumeClaim>("PersistentVolumeClaim", &mut structures);
    add::<Deployment>("Deployment", &mut structures);
    add::<ReplicaSet>("ReplicaSet", &mut structures);
    add::<ReplicationController>("ReplicationController", &mut structures);
    add::<StatefulSet>("StatefulSet", &mut structures);
    add::<DaemonSet>("DaemonSet", &mut structures);
    add::<Job>("Job", &mut structures);
    add::<CronJob>("CronJob", &mut structures);
    add::<Service>("Service", &mut structures);
    add::<EndpointSlice>("EndpointSlice", &mut structures);
    add::<Namespace>("Namespace", &mut structures);
    add::<NetworkPolicy>("NetworkPolicy", &mut structures);
    // Not in manifests: bodies of requests.
    add::<Eviction>("Eviction", &mut structures);
    add::<Scale>("Scale", &mut structures);
    add::<SelfSubjectAccessReview>("SelfSubjectAccessReview", &mut structures);
    add::<SelfSubjectRulesReview>("SelfSubjectRulesReview", &mut structures);
    add::<SelfSubjectReview>("SelfSubjectReview", &mut structures);
    let mut text = HEAD.to_owned();
    for (name, schema) in &structures {
        let Some(properties) = schema["properties"].as_object() else { continue };
        let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut fields: Vec<(&String, &Value)> = properties.iter().collect();
        fields.sort_by_key(|(name, _)| *name);
        let fields = fields.iter().map(|(field, schema)| {
            let has_default = DEFAULTED.contains(&(name.as_str(), field.as_str()));
            let make = if required.contains(&field.as_str()) && !has_default { 'r' } else { 'o' };
            format!("{make}({field:?}, {}),", type_of(schema))
        });
        write!(
            text,
            "\n#[rustfmt::skip]\npub static {}: Struct = Struct {{\n    name: {name:?},\n    fields: &[\n",
            constant(name)
        )
        .unwrap();
        for line in wrapped(fields, 118) {
            writeln!(text, "        {line}").unwrap();
        }
        text.push_str("    ],\n};\n");
    }
    text
}

fn add<T: JsonSchema>(name: &str, structures: &mut BTreeMap<String, Value>) {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<T>().to_value();
    let definitions = schema.as_object_mut().unwrap().remove("definitions").unwrap();
    structures.insert(name.to_owned(), schema);
    for (name, schema) in definitions.as_object().unwrap() {
        structures.insert(short(name).to_owned(), schema.clone());
    }
}

fn type_of(schema: &Value) -> String {
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    if let Some(reference) = reference {
        return match short(reference) {
            name @ ("Quantity" | "IntOrString" | "Time") => name.to_owned(),
            "FieldsV1" => "Any".to_owned(),
            name => format!("Object(&{})", constant(name)),
        };
    }
    match (schema["type"].as_str().unwrap(), schema["format"].as_str()) {
        ("string", None) => "Str".to_owned(),
        ("string", Some("byte")) => "Base64".to_owned(),
        ("boolean", None) => "Bool".to_owned(),
        ("integer", Some("int32")) => "Int32".to_owned(),
        ("integer", Some("int64")) => "Int64".to_owned(),
        ("array", None) => format!("List(&{})", type_of(&schema["items"])),
        ("object", None) => format!("Map(&{})", type_of(&schema["additionalProperties"])),
        other => panic!("the table has no type for {other:?}"),
    }
}

/// `#/definitions/io.k8s.api.core.v1.Container` is `Container`.
fn short(reference: &str) -> &str {
    reference.rsplit(['.', '/']).next().unwrap()
}

/// `AWSElasticBlockStore` is `AWS_ELASTIC_BLOCK_STORE`.
fn constant(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut text = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let word_begins = letter.is_uppercase()
            && at > 0
            && (letters[at - 1].is_lowercase() || letters.get(at + 1).is_some_and(|next| next.is_lowercase()));
        if word_begins {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}

fn wrapped(words: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            Some(_) | None => lines.push(word),
        }
    }
    lines
}
