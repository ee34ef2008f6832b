//! ConfigMaps and Secrets, read-only. Of a Secret only keys and sizes are shown, never values.

use super::Backend;
use super::failure::ApiFailure;
use super::published::SOURCE_ANNOTATION;
use super::respond::{self, Answer};
use super::route::PodPath;
use super::table::{self, Column, IncludeObject};
use k8s_openapi::api::core::v1::Secret;
use podstead_pod::objects::{Held, Object, ObjectKind, ObjectName};
use serde_json::{Value, json};

/// Annotation with the keys of a Secret, whose data are left out.
pub const KEYS_ANNOTATION: &str = "podstead.dev/keys";

const CONFIG_MAP_COLUMNS: &[Column] =
    &[Column::name(), Column::text("Data", "Number of keys"), Column::text("Source", "Source that the object comes from").wide()];
const SECRET_COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Type", "Type of the Secret"),
    Column::text("Data", "Number of keys"),
    Column::text("Source", "Source that the object comes from").wide(),
];

/// Kinds served here. Claims are served elsewhere, with their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListedKind {
    /// `ConfigMap`.
    ConfigMap,
    /// `Secret`.
    Secret,
}

impl ListedKind {
    const fn object_kind(self) -> ObjectKind {
        match self {
            ListedKind::ConfigMap => ObjectKind::ConfigMap,
            ListedKind::Secret => ObjectKind::Secret,
        }
    }

    pub(super) const fn plural(self) -> &'static str {
        match self {
            ListedKind::ConfigMap => "configmaps",
            ListedKind::Secret => "secrets",
        }
    }

    const fn columns(self) -> &'static [Column] {
        match self {
            ListedKind::ConfigMap => CONFIG_MAP_COLUMNS,
            ListedKind::Secret => SECRET_COLUMNS,
        }
    }
}

/// Objects of one kind, of one namespace or of all.
pub(super) fn list(backend: &Backend, kind: ListedKind, namespace: Option<&str>, form: Option<IncludeObject>) -> Answer {
    let objects = backend.objects.get();
    let is_of_kind = |name: &ObjectName| name.kind == kind.object_kind();
    let is_asked_for = |name: &ObjectName| is_of_kind(name) && namespace.is_none_or(|namespace| namespace == name.namespace);
    let asked: Vec<_> = objects.iter().filter(|(name, _)| is_asked_for(name)).collect();
    let Some(include) = form else {
        let items: Vec<Value> = asked.iter().map(|(name, held)| shown(name, held)).collect();
        return respond::json(
            &json!({"kind": format!("{}List", kind.object_kind().as_str()), "apiVersion": "v1", "metadata": {}, "items": items}),
        );
    };
    let rows = asked.iter().map(|(name, held)| row(name, held, include)).collect();
    respond::json(&table::table(kind.columns(), rows, 0))
}

/// One object.
pub(super) fn get(backend: &Backend, kind: ListedKind, path: PodPath, form: Option<IncludeObject>) -> Answer {
    let objects = backend.objects.get();
    let name = ObjectName { kind: kind.object_kind(), namespace: path.namespace, name: path.name };
    let held = objects
        .first(&name)
        .map_err(|error| ApiFailure { message: error.to_string(), ..ApiFailure::not_found(kind.plural(), &name.name) })?;
    match form {
        Some(include) => respond::json(&table::table(kind.columns(), vec![row(&name, held, include)], 0)),
        None => respond::json(&shown(&name, held)),
    }
}

fn row(name: &ObjectName, held: &Held, include: IncludeObject) -> Value {
    let mut cells = vec![json!(name.name)];
    if let Object::Secret(secret) = &held.object {
        cells.push(json!(type_of(secret)));
    }
    cells.extend([json!(held.object.files().len().to_string()), json!(held.source.as_str())]);
    let object = shown(name, held);
    table::row(cells, include, || object["metadata"].clone(), || object.clone())
}

fn type_of(secret: &Secret) -> &str {
    secret.type_.as_deref().filter(|kind| !kind.is_empty()).unwrap_or("Opaque")
}

/// The object as shown: with its source, and a Secret without its data.
fn shown(name: &ObjectName, held: &Held) -> Value {
    let mut value = match &held.object {
        Object::ConfigMap(config_map) => json!(config_map),
        Object::PersistentVolumeClaim(claim) => json!(claim),
        Object::Network(object) => json!(object.to_json().unwrap_or_default()),
        Object::Secret(secret) => {
            let keys = held.object.files().into_iter().map(|(key, value)| format!("{key} ({} bytes)", value.len()));
            let keys = keys.collect::<Vec<_>>().join(", ");
            let Secret { metadata, immutable, type_: _, data: _, string_data: _ } = &**secret;
            let mut metadata = metadata.clone();
            // What applied it elsewhere may have left a copy of everything in there.
            metadata.annotations.get_or_insert_default().retain(|name, _| name != LAST_APPLIED);
            metadata.annotations.get_or_insert_default().insert(KEYS_ANNOTATION.to_owned(), keys);
            let bare = Secret { metadata, immutable: *immutable, type_: Some(type_of(secret).to_owned()), ..Secret::default() };
            json!(bare)
        }
    };
    value["metadata"]["namespace"] = json!(name.namespace);
    value["metadata"]["annotations"][SOURCE_ANNOTATION] = json!(held.source.as_str());
    value
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
