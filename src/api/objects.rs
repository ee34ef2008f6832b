//! ConfigMaps, Secrets and PersistentVolumeClaims, to be read. What a Secret holds is not told: only its keys, and how much stands under each.

use super::Backend;
use super::failure::ApiFailure;
use super::published::SOURCE_ANNOTATION;
use super::respond::{self, Answer};
use super::route::PodPath;
use super::table::{self, Column, IncludeObject};
use crate::pod::claims::{ClaimName, ClaimTerms, RECLAIM_POLICY_ANNOTATION};
use crate::pod::objects::{Held, Object, ObjectKind, ObjectName};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

/// Annotation with the keys of a Secret, whose data are left out.
pub const KEYS_ANNOTATION: &str = "podstead.dev/keys";

const CONFIG_MAP_COLUMNS: &[Column] =
    &[Column::name(), Column::text("Data", "Keys that it has"), Column::text("Source", "Where it comes from").wide()];
const SECRET_COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Type", "What it is for"),
    Column::text("Data", "Keys that it has"),
    Column::text("Source", "Where it comes from").wide(),
];

const CLAIM_COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Status", "Whether its directory is there"),
    Column::text("Capacity", "What it asks for"),
    Column::text("Access Modes", "Who may use it at once"),
    Column::text("Reclaim Policy", "What becomes of the data when it goes"),
    Column::text("Source", "Where it comes from").wide(),
];

/// Objects of one kind, of one namespace or of all.
pub(super) fn list(backend: &Backend, kind: ObjectKind, namespace: Option<&str>, form: Option<IncludeObject>) -> Answer {
    let objects = backend.objects.get();
    let is_asked_for = |name: &ObjectName| name.kind == kind && namespace.is_none_or(|namespace| namespace == name.namespace);
    let asked: Vec<_> = objects.iter().filter(|(name, _)| is_asked_for(name)).collect();
    let Some(include) = form else {
        let items: Vec<Value> = asked.iter().map(|(name, held)| shown(backend, name, held)).collect();
        return respond::json(
            &json!({"kind": format!("{}List", kind.as_str()), "apiVersion": "v1", "metadata": {}, "items": items}),
        );
    };
    let rows = asked.iter().map(|(name, held)| row(backend, name, held, include)).collect();
    respond::json(&table::table(columns(kind), rows, 0))
}

/// One object.
pub(super) fn get(backend: &Backend, kind: ObjectKind, path: PodPath, form: Option<IncludeObject>) -> Answer {
    let objects = backend.objects.get();
    let name = ObjectName { kind, namespace: path.namespace, name: path.name };
    let held = objects.find(&name).map_err(|error| {
        let plural = match kind {
            ObjectKind::ConfigMap => "configmaps",
            ObjectKind::Secret => "secrets",
            ObjectKind::PersistentVolumeClaim => "persistentvolumeclaims",
        };
        ApiFailure { message: error.to_string(), ..ApiFailure::not_found(plural, &name.name) }
    })?;
    match form {
        Some(include) => respond::json(&table::table(columns(kind), vec![row(backend, &name, held, include)], 0)),
        None => respond::json(&shown(backend, &name, held)),
    }
}

const fn columns(kind: ObjectKind) -> &'static [Column] {
    match kind {
        ObjectKind::ConfigMap => CONFIG_MAP_COLUMNS,
        ObjectKind::Secret => SECRET_COLUMNS,
        ObjectKind::PersistentVolumeClaim => CLAIM_COLUMNS,
    }
}

fn row(backend: &Backend, name: &ObjectName, held: &Held, include: IncludeObject) -> Value {
    let (count, source) = (json!(held.object.files().len().to_string()), json!(held.source.as_str()));
    let cells = match &held.object {
        Object::ConfigMap(_) => vec![json!(name.name), count, source],
        Object::Secret(secret) => vec![json!(name.name), json!(type_of(secret)), count, source],
        Object::PersistentVolumeClaim(claim) => {
            let ClaimTerms { access_modes, capacity, reclaim_policy } = ClaimTerms::of(claim);
            let modes = access_modes.iter().map(|mode| short_mode(mode)).collect::<Vec<_>>().join(",");
            let phase = phase(backend, name);
            vec![json!(name.name), json!(phase), json!(capacity), json!(modes), json!(reclaim_policy.as_str()), source]
        }
    };
    let object = shown(backend, name, held);
    table::row(cells, include, || object["metadata"].clone(), || object.clone())
}

const BOUND: &str = "Bound";

/// A claim is bound when its directory is there.
fn phase(backend: &Backend, name: &ObjectName) -> &'static str {
    let claim = ClaimName { namespace: name.namespace.clone(), name: name.name.clone() };
    if backend.paths.persistent_data(&claim).is_dir() { BOUND } else { "Pending" }
}

/// As kubectl shows access modes.
fn short_mode(mode: &str) -> &str {
    match mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        other => other,
    }
}

fn type_of(secret: &Secret) -> &str {
    secret.type_.as_deref().filter(|kind| !kind.is_empty()).unwrap_or("Opaque")
}

/// The object as it is told: with its source, and a Secret without its data.
fn shown(backend: &Backend, name: &ObjectName, held: &Held) -> Value {
    let mut value = match &held.object {
        Object::ConfigMap(config_map) => json!(config_map),
        Object::PersistentVolumeClaim(claim) => {
            let ClaimTerms { access_modes, capacity, reclaim_policy } = ClaimTerms::of(claim);
            let phase = phase(backend, name);
            let mut value = json!(claim);
            value["status"] = match phase {
                BOUND => json!({"phase": phase, "accessModes": access_modes, "capacity": {"storage": capacity}}),
                _ => json!({"phase": phase}),
            };
            value["metadata"]["annotations"][RECLAIM_POLICY_ANNOTATION] = json!(reclaim_policy.as_str());
            value
        }
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
