//! Holds the table against the schema of the Kubernetes API, both ways.

use super::Support;
use super::table::TABLE;
use crate::Pod;
use k8s_openapi::schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;
use std::collections::BTreeSet;

/// Fields of the API that must have an entry: all of an object whose own entry does not speak for all that is below it.
fn fields_of_the_api() -> BTreeSet<String> {
    let schema = SchemaGenerator::default().into_root_schema_for::<Pod>().to_value();
    let mut fields = BTreeSet::new();
    members(&schema, &schema, "", &mut fields);
    fields
}

fn members(root: &Value, schema: &Value, pattern: &str, fields: &mut BTreeSet<String>) {
    let schema = resolve(root, schema);
    if let Some(items) = schema.get("items") {
        return members(root, items, &format!("{pattern}[]"), fields);
    }
    for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if pattern.is_empty() && (name == "apiVersion" || name == "kind") {
            continue;
        }
        let field = super::join(pattern, name);
        fields.insert(field.clone());
        match TABLE.get(&field) {
            Some(Support::Honoured(_) | Support::Partly { .. }) => members(root, member, &field, fields),
            Some(Support::Ignored { .. } | Support::Refused { .. }) | None => {}
        }
    }
}

/// The fields of a kind whose names begin with `root`. Below a field it descends if `is_parent`.
pub(super) fn members_of<T: JsonSchema>(root: &str, is_parent: &dyn Fn(&str) -> bool, fields: &mut BTreeSet<String>) {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    let mut open = vec![(root.to_owned(), schema.clone())];
    while let Some((pattern, member)) = open.pop() {
        let properties = resolve(&schema, &member).get("properties").and_then(Value::as_object);
        for (name, member) in properties.into_iter().flatten() {
            if pattern == root && (name == "apiVersion" || name == "kind") {
                continue;
            }
            let field = super::join(&pattern, name);
            if is_parent(&field) {
                open.push((field.clone(), member.clone()));
            }
            fields.insert(field);
        }
    }
}

fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => {
            resolve(root, root.pointer(reference.trim_start_matches('#')).expect("the reference leads to a definition"))
        }
        None => match schema.get("allOf").and_then(|all| all.get(0)) {
            Some(only) => resolve(root, only),
            None => schema,
        },
    }
}

#[test]
fn every_field_of_the_api_has_an_entry_and_every_entry_a_field() {
    let api = fields_of_the_api();
    let table: BTreeSet<String> = TABLE.keys().cloned().collect();
    assert_eq!(api.difference(&table).collect::<Vec<_>>(), Vec::<&String>::new(), "fields without an entry");
    assert_eq!(table.difference(&api).collect::<Vec<_>>(), Vec::<&String>::new(), "entries without a field");
    assert!(api.len() > 200, "the walk sees the whole schema, not {} fields", api.len());
}

#[test]
fn no_field_has_two_entries() {
    let entries: usize = super::table::SECTIONS.iter().map(|section| section.places.len() * section.fields.len()).sum();
    assert_eq!(entries, TABLE.len());
}
