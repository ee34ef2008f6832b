//! From the table of fields to OpenAPI documents. Version 2 has the paths alone: kubectl has its own types for patches. **Pure**.

use podstead_manifest::schema::table as fields;
use podstead_manifest::schema::{Struct, Type};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A group with its documented kinds.
#[derive(Debug)]
pub(super) struct DocumentedGroup {
    name: &'static str,
    version: &'static str,
    /// Kind, plural, fields; whether it is in a namespace.
    kinds: &'static [(&'static str, &'static str, &'static Struct, bool)],
}

impl DocumentedGroup {
    /// Such as `api/v1` and `apis/apps/v1`.
    pub(super) fn path(&self) -> String {
        match self.name {
            "" => format!("api/{}", self.version),
            name => format!("apis/{name}/{}", self.version),
        }
    }
}

/// All of them.
pub(super) static DOCUMENTED_GROUPS: &[DocumentedGroup] = &[
    DocumentedGroup {
        name: "",
        version: "v1",
        kinds: &[
            ("Pod", "pods", &fields::POD, true),
            ("ConfigMap", "configmaps", &fields::CONFIG_MAP, true),
            ("Secret", "secrets", &fields::SECRET, true),
            ("PersistentVolumeClaim", "persistentvolumeclaims", &fields::PERSISTENT_VOLUME_CLAIM, true),
            ("Service", "services", &fields::SERVICE, true),
            ("ReplicationController", "replicationcontrollers", &fields::REPLICATION_CONTROLLER, true),
            ("Namespace", "namespaces", &fields::NAMESPACE, false),
        ],
    },
    DocumentedGroup {
        name: "apps",
        version: "v1",
        kinds: &[
            ("Deployment", "deployments", &fields::DEPLOYMENT, true),
            ("ReplicaSet", "replicasets", &fields::REPLICA_SET, true),
            ("StatefulSet", "statefulsets", &fields::STATEFUL_SET, true),
            ("DaemonSet", "daemonsets", &fields::DAEMON_SET, true),
        ],
    },
    DocumentedGroup {
        name: "batch",
        version: "v1",
        kinds: &[("Job", "jobs", &fields::JOB, true), ("CronJob", "cronjobs", &fields::CRON_JOB, true)],
    },
    DocumentedGroup {
        name: "networking.k8s.io",
        version: "v1",
        kinds: &[("NetworkPolicy", "networkpolicies", &fields::NETWORK_POLICY, true)],
    },
    DocumentedGroup {
        name: "discovery.k8s.io",
        version: "v1",
        kinds: &[("EndpointSlice", "endpointslices", &fields::ENDPOINT_SLICE, true)],
    },
];

/// Parameters of a patch: kubectl asks whether they are understood.
pub(super) const PATCH_PARAMETERS: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];

fn head(text: &str) -> Value {
    json!({"title": text, "version": concat!("v", env!("CARGO_PKG_VERSION"))})
}

/// The paths of a group. A patch has no body: kubectl would compute patches from the schemas, which have no merge keys.
fn paths(group: &DocumentedGroup, parameter: impl Fn(&str) -> Value) -> Map<String, Value> {
    let parameters: Vec<Value> = PATCH_PARAMETERS.into_iter().map(parameter).collect();
    let mut paths = Map::new();
    for (kind, plural, _, namespaced) in group.kinds {
        let scope = if *namespaced { "namespaces/{namespace}/" } else { "" };
        let path = format!("/{}/{scope}{plural}/{{name}}", group.path());
        let identity = json!({"group": group.name, "kind": kind, "version": group.version});
        let patch = json!({"parameters": parameters, "responses": {}, "x-kubernetes-group-version-kind": identity});
        paths.insert(path, json!({"patch": patch}));
    }
    paths
}

/// Version 2, of all groups.
pub(super) fn version_2() -> Value {
    let parameter = |name: &str| json!({"in": "query", "name": name, "type": "string"});
    let paths: Map<String, Value> = DOCUMENTED_GROUPS.iter().flat_map(|group| paths(group, parameter)).collect();
    json!({"swagger": "2.0", "info": head("podstead"), "paths": paths})
}

/// Version 3, of one group.
pub(super) fn version_3(group: &DocumentedGroup) -> Value {
    let parameter = |name: &str| json!({"in": "query", "name": name, "schema": {"type": "string"}});
    let mut schemas = BTreeMap::from([
        ("IntOrString".to_owned(), json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})),
        ("Quantity".to_owned(), json!({"oneOf": [{"type": "string"}, {"type": "number"}]})),
    ]);
    for (kind, _, structure, _) in group.kinds {
        add(&mut schemas, structure);
        let identity = json!([{"group": group.name, "kind": kind, "version": group.version}]);
        if let Some(schema) = schemas.get_mut(structure.name) {
            schema["x-kubernetes-group-version-kind"] = identity;
        }
    }
    json!({
        "openapi": "3.0.0", "info": head("podstead"), "paths": paths(group, parameter), "components": {"schemas": schemas},
    })
}

/// Adds a structure and all that it is made of. Structures may contain themselves.
fn add(schemas: &mut BTreeMap<String, Value>, structure: &Struct) {
    if schemas.contains_key(structure.name) {
        return;
    }
    // Before its fields, so that the walk ends.
    schemas.insert(structure.name.to_owned(), Value::Null);
    let mut properties = Map::new();
    for field in structure.fields {
        properties.insert(field.name.to_owned(), schema(&field.ty));
        if let Some(inner) = field.ty.structure() {
            add(schemas, inner);
        }
    }
    let required: Vec<&str> = structure.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut whole = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        whole["required"] = json!(required);
    }
    schemas.insert(structure.name.to_owned(), whole);
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn schema(ty: &Type) -> Value {
    match ty {
        Type::Str => json!({"type": "string"}),
        Type::Bool => json!({"type": "boolean"}),
        Type::Int32 => json!({"type": "integer", "format": "int32"}),
        Type::Int64 => json!({"type": "integer", "format": "int64"}),
        Type::IntOrString => reference("IntOrString"),
        Type::Quantity => reference("Quantity"),
        Type::Time => json!({"type": "string", "format": "date-time"}),
        Type::Base64 => json!({"type": "string", "format": "byte"}),
        Type::Any => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        Type::List(inner) => json!({"type": "array", "items": schema(inner)}),
        Type::Map(inner) => json!({"type": "object", "additionalProperties": schema(inner)}),
        Type::Object(structure) => reference(structure.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every reference below a value.
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
                members.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        for group in DOCUMENTED_GROUPS {
            let document = version_3(group);
            let mut found = Vec::new();
            references(&document, &mut found);
            assert!(found.len() > 3);
            for reference in found {
                assert!(document.pointer(&reference[1..]).is_some_and(Value::is_object), "{reference}");
            }
        }
    }

    #[test]
    fn fields_have_types_of_kubernetes() {
        let document = version_3(&DOCUMENTED_GROUPS[0]);
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["Pod"]["x-kubernetes-group-version-kind"], json!([{"group": "", "kind": "Pod", "version": "v1"}]));
        assert_eq!(schemas["PodSpec"]["properties"]["nodeName"], json!({"type": "string"}));
        assert_eq!(schemas["PodSpec"]["required"], json!(["containers"]));
        let path = "/api/v1/namespaces/{namespace}/pods/{name}";
        assert_eq!(document["paths"][path]["patch"]["parameters"][0]["name"], "dryRun");
    }
}
