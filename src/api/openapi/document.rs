//! From the table of fields to OpenAPI documents. Version 2 has the merge keys of lists, too: kubectl up to 1.32 computes patches from it.
//! **Pure**.

use super::beside;
use super::words::Words;
use crate::event_api;
use crate::kinds::{OWN_GROUP, OWN_VERSION};
use crate::leases;
use crate::storage;
use podstead_manifest::patch_strategy;
use podstead_manifest::schema::table as fields;
use podstead_manifest::schema::{Field, Struct, Type};
use podstead_pod::field_note;
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

    /// The name of a structure in version 2, where all groups are in one document. Each has its own: what is done with a field of a pod
    /// depends on the kind that makes the pod.
    fn definition(&self, structure: &str) -> String {
        let group = if self.name.is_empty() { "core" } else { self.name };
        format!("{group}.{}.{structure}", self.version)
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
            ("Node", "nodes", &beside::NODE, false),
            ("Event", "events", &beside::EVENT, true),
            ("Endpoints", "endpoints", &beside::ENDPOINTS, true),
            ("PersistentVolume", "persistentvolumes", &beside::PERSISTENT_VOLUME, false),
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
            ("ControllerRevision", "controllerrevisions", &beside::CONTROLLER_REVISION, true),
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
        kinds: &[
            ("NetworkPolicy", "networkpolicies", &fields::NETWORK_POLICY, true),
            ("Ingress", "ingresses", &beside::INGRESS, true),
        ],
    },
    DocumentedGroup {
        name: storage::GROUP,
        version: "v1",
        kinds: &[(storage::KIND, storage::PLURAL, &beside::STORAGE_CLASS, false)],
    },
    DocumentedGroup { name: event_api::GROUP, version: "v1", kinds: &[("Event", event_api::PLURAL, &beside::NEW_EVENT, true)] },
    DocumentedGroup {
        name: "discovery.k8s.io",
        version: "v1",
        kinds: &[("EndpointSlice", "endpointslices", &fields::ENDPOINT_SLICE, true)],
    },
    DocumentedGroup { name: leases::GROUP, version: "v1", kinds: &[("Lease", leases::PLURAL, &beside::LEASE, true)] },
    DocumentedGroup {
        name: OWN_GROUP,
        version: OWN_VERSION,
        kinds: &[
            ("Source", "sources", &beside::SOURCE, false),
            ("Image", "images", &beside::IMAGE, false),
            ("Pull", "pulls", &beside::PULL, false),
        ],
    },
];

/// Parameters of a patch: kubectl asks whether they are understood.
pub(super) const PATCH_PARAMETERS: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];

fn head(text: &str) -> Value {
    json!({"title": text, "version": concat!("v", env!("CARGO_PKG_VERSION"))})
}

/// The paths of a group. A patch has no body: kubectl would compute patches from the schemas of version 3, which have no merge keys.
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
    let named = |group: &'static DocumentedGroup| {
        Schemas::of(group, Form::Second(group)).into_iter().map(|(name, schema)| (group.definition(&name), schema))
    };
    let definitions: Map<String, Value> = DOCUMENTED_GROUPS.iter().flat_map(named).collect();
    json!({"swagger": "2.0", "info": head("podstead"), "paths": paths, "definitions": definitions})
}

/// Version 3, of one group.
pub(super) fn version_3(group: &'static DocumentedGroup) -> Value {
    let parameter = |name: &str| json!({"in": "query", "name": name, "schema": {"type": "string"}});
    let schemas = Schemas::of(group, Form::Third);
    json!({"openapi": "3.0.0", "info": head("podstead"), "paths": paths(group, parameter), "components": {"schemas": schemas}})
}

/// The version of OpenAPI that schemas are for.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Version 2, with the group whose structures these are.
    Second(&'static DocumentedGroup),
    Third,
}

impl Form {
    fn reference(self, name: &str) -> Value {
        match self {
            Self::Second(group) => json!({"$ref": format!("#/definitions/{}", group.definition(name))}),
            Self::Third => json!({"$ref": format!("#/components/schemas/{name}")}),
        }
    }

    /// The schemas that are no structures. Version 2 has no alternatives: a number is a string there, too.
    fn scalars(self, words: &Words) -> [(&'static str, Value); 2] {
        let described = |name: &str, mut schema: Value| {
            schema["description"] = json!(words.of_structure(name));
            schema
        };
        let (port, amount) = match self {
            Self::Second(_) => (json!({"type": "string"}), json!({"type": "string"})),
            Self::Third => {
                let either = |forms: [&str; 2]| json!({"oneOf": forms.map(|form| json!({"type": form}))});
                (either(["integer", "string"]), either(["string", "number"]))
            }
        };
        let mut port = described("IntOrString", port);
        port["format"] = json!("int-or-string");
        [("IntOrString", port), ("Quantity", described("Quantity", amount))]
    }

    fn schema(self, ty: &Type) -> Value {
        match ty {
            Type::Str => json!({"type": "string"}),
            Type::Bool => json!({"type": "boolean"}),
            Type::Int32 => json!({"type": "integer", "format": "int32"}),
            Type::Int64 => json!({"type": "integer", "format": "int64"}),
            Type::IntOrString => self.reference("IntOrString"),
            Type::Quantity => self.reference("Quantity"),
            Type::Time => json!({"type": "string", "format": "date-time"}),
            Type::Base64 => json!({"type": "string", "format": "byte"}),
            Type::Any => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            Type::List(inner) => json!({"type": "array", "items": self.schema(inner)}),
            Type::Map(inner) => json!({"type": "object", "additionalProperties": self.schema(inner)}),
            Type::Object(structure) => self.reference(structure.name),
        }
    }

    /// A schema with the description of the field that has it.
    fn described(self, mut schema: Value, description: &str) -> Value {
        if description.is_empty() {
            return schema;
        }
        if matches!(self, Self::Third) && schema.get("$ref").is_some() {
            // What stands beside a reference does not count.
            return json!({"description": description, "allOf": [schema]});
        }
        schema["description"] = json!(description);
        schema
    }
}

/// The schemas of a document, with the words for them.
struct Schemas {
    form: Form,
    words: Words,
    found: BTreeMap<String, Value>,
}

impl Schemas {
    /// Those of a group by the names of their structures.
    fn of(group: &DocumentedGroup, form: Form) -> BTreeMap<String, Value> {
        let words = Words::read();
        let found = form.scalars(&words).map(|(name, schema)| (name.to_owned(), schema)).into();
        let mut schemas = Self { form, words, found };
        for (kind, _, structure, _) in group.kinds {
            schemas.add(structure, kind, "", None);
            let identity = json!([{"group": group.name, "kind": kind, "version": group.version}]);
            if let Some(schema) = schemas.found.get_mut(structure.name) {
                schema["x-kubernetes-group-version-kind"] = identity;
            }
        }
        schemas.found
    }

    /// Adds a structure and all that it is made of; structures may contain themselves. `path` is its place in the kind, which says what is done
    /// with its fields. A structure with several places is described by the first one. `leading` are the words of the field that leads there:
    /// kubectl shows both, one below the other.
    fn add(&mut self, structure: &Struct, kind: &str, path: &str, leading: Option<&str>) {
        if self.found.contains_key(structure.name) {
            return;
        }
        // Before its fields, so that the walk ends.
        self.found.insert(structure.name.to_owned(), Value::Null);
        let mut properties = Map::new();
        for field in structure.fields {
            let path = if path.is_empty() { field.name.to_owned() } else { format!("{path}.{}", field.name) };
            properties.insert(field.name.to_owned(), self.property(field, structure.name, kind, &path));
            if let Some(inner) = field.ty.structure() {
                let leading = self.words.of_field(structure.name, field.name);
                self.add(inner, kind, &format!("{path}{}", items(&field.ty)), leading);
            }
        }
        let required: Vec<&str> = structure.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
        let mut whole = json!({"type": "object", "properties": properties});
        if let Some(description) = self.words.of_structure(structure.name).filter(|words| leading != Some(*words)) {
            whole["description"] = json!(description);
        }
        if !required.is_empty() {
            whole["required"] = json!(required);
        }
        self.found.insert(structure.name.to_owned(), whole);
    }

    /// The schema of a field with its description.
    fn property(&self, field: &Field, structure: &str, kind: &str, path: &str) -> Value {
        // Metadata is one structure for all kinds, whose own notes differ.
        let note = if structure == "ObjectMeta" { None } else { field_note(kind, path) };
        let words = [self.words.of_field(structure, field.name).map(str::to_owned), note];
        let description = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let mut schema = self.form.described(self.form.schema(&field.ty), &description);
        let strategy = if matches!(self.form, Form::Second(_)) { patch_strategy(structure, field.name) } else { None };
        if let Some(strategy) = strategy {
            schema["x-kubernetes-patch-strategy"] = json!(strategy.strategy);
            if let Some(key) = strategy.merge_key {
                schema["x-kubernetes-patch-merge-key"] = json!(key);
            }
        }
        schema
    }
}

/// The mark of items in a path, for a list.
const fn items(ty: &Type) -> &'static str {
    if matches!(ty, Type::List(_)) { "[]" } else { "" }
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
            assert!(!found.is_empty());
            for reference in found {
                assert!(document.pointer(&reference[1..]).is_some_and(Value::is_object), "{reference}");
            }
        }
        let (document, mut found) = (version_2(), Vec::new());
        references(&document, &mut found);
        assert!(found.iter().any(|reference| reference == "#/definitions/apps.v1.PodSpec"), "{found:?}");
        for reference in found {
            assert!(document.pointer(&reference[1..]).is_some_and(Value::is_object), "{reference}");
        }
    }

    #[test]
    fn second_version_has_every_kind_with_its_merge_keys() {
        let document = version_2();
        let definitions = document["definitions"].as_object().unwrap();
        for group in DOCUMENTED_GROUPS {
            for (kind, _, structure, _) in group.kinds {
                let identity = &definitions[&group.definition(structure.name)]["x-kubernetes-group-version-kind"];
                assert_eq!(identity, &json!([{"group": group.name, "kind": kind, "version": group.version}]));
            }
        }
        let spec = &definitions["apps.v1.PodSpec"]["properties"];
        assert_eq!(spec["containers"]["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(spec["volumes"]["x-kubernetes-patch-strategy"], "merge,retainKeys");
        let host = |definition: &str| definitions[definition]["properties"]["nodeName"]["description"].clone();
        assert_ne!(host("core.v1.PodSpec"), host("apps.v1.PodSpec"));
        let affinity = &definitions["core.v1.PodSpec"]["properties"]["affinity"];
        assert!(affinity["$ref"] == "#/definitions/core.v1.Affinity" && affinity["description"].is_string(), "{affinity}");
    }

    /// Structures and fields of all documents that somebody should have words for.
    fn documented() -> BTreeMap<String, Value> {
        let schemas = |group| match version_3(group)["components"]["schemas"].take() {
            Value::Object(schemas) => schemas,
            other => panic!("{other}"),
        };
        DOCUMENTED_GROUPS.iter().flat_map(schemas).collect()
    }

    #[test]
    fn everything_is_described() {
        let (mut without, words) = (Vec::new(), Words::read());
        for (structure, schema) in documented() {
            // The field that leads there says that podstead refuses it.
            let is_refused = structure.ends_with("VolumeSource") && words.of_structure(&structure).is_none()
                || ["EphemeralContainer", "WindowsSecurityContextOptions"].contains(&structure.as_str());
            if words.of_structure(&structure).is_none() && !is_refused {
                without.push(structure.clone());
            }
            for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
                if schema.get("description").is_none() && !is_refused {
                    without.push(format!("{structure}.{field}"));
                }
            }
        }
        assert_eq!(without, [""; 0]);
    }

    #[test]
    fn every_word_is_for_something() {
        let documented = documented();
        let is_known = |name: &str| match name.split_once('.') {
            None => documented.contains_key(name),
            Some(("*", field)) => documented.values().any(|schema| schema["properties"].get(field).is_some()),
            Some((structure, field)) => documented.get(structure).is_some_and(|schema| schema["properties"].get(field).is_some()),
        };
        let unknown: Vec<String> = Words::read().names().filter(|name| !is_known(name)).map(str::to_owned).collect();
        assert_eq!(unknown, [""; 0]);
    }

    #[test]
    fn fields_have_types_of_kubernetes() {
        let document = version_3(&DOCUMENTED_GROUPS[0]);
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["Pod"]["x-kubernetes-group-version-kind"], json!([{"group": "", "kind": "Pod", "version": "v1"}]));
        let node_name = &schemas["PodSpec"]["properties"]["nodeName"];
        assert_eq!(node_name["type"], "string");
        let description = node_name["description"].as_str().unwrap();
        assert!(description.starts_with("Name of the host") && description.contains("On this host: "), "{description}");
        let security = &schemas["PodSpec"]["properties"]["affinity"];
        assert_eq!(security["allOf"], json!([{"$ref": "#/components/schemas/Affinity"}]), "{security}");
        let time_zone = &version_3(&DOCUMENTED_GROUPS[2])["components"]["schemas"]["CronJobSpec"]["properties"]["timeZone"];
        assert!(time_zone["description"].as_str().unwrap().contains("On this host: UTC if omitted"), "{time_zone}");
        assert_eq!(schemas["PodSpec"]["required"], json!(["containers"]));
        let path = "/api/v1/namespaces/{namespace}/pods/{name}";
        assert_eq!(document["paths"][path]["patch"]["parameters"][0]["name"], "dryRun");
    }
}
