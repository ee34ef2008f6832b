//! The configuration that `kubectl apply` last applied: kept beside the source, shown on reads, never in a file of the source.
//!
//! Of a Secret only the names of its keys are kept.

use super::target::{Part, Target};
use crate::Backend;
use crate::failure::ApiFailure;
use crate::key::SOURCE_ANNOTATION;
use crate::respond::{self, Answer, Body};
use crate::route::Route;
use http_body_util::BodyExt as _;
use hyper::Response;
use podstead_manifest::ObjectKey;
use podstead_manifest::change::without_values;
use podstead_pod::SourceId;
use podstead_sys::atomic_file;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// Managers of one object whose bodies are kept.
const MAX_MANAGERS: usize = 4;
/// The annotation.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The record of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// Text of the annotation; of a Secret without its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_applied: Option<String>,
    /// Keys of the data of a Secret.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) keys: BTreeSet<String>,
    /// The last body of each manager of server-side apply; of a Secret without values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) managers: BTreeMap<String, Value>,
}

impl Record {
    /// The record with another applied configuration.
    pub(super) fn with_applied(mut self, kind: &str, last_applied: Option<&str>) -> Self {
        (self.last_applied, self.keys) = (last_applied.map(str::to_owned), BTreeSet::new());
        let Some(last_applied) = last_applied.filter(|_| kind == "Secret") else { return self };
        let mut value: Value = serde_json::from_str(last_applied).unwrap_or_default();
        let mut keys = BTreeSet::new();
        for part in ["data", "stringData"] {
            let removed = value.as_object_mut().and_then(|object| object.remove(part));
            keys.extend(removed.as_ref().and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned());
        }
        Self { last_applied: Some(format!("{value}\n")), keys, ..self }
    }

    /// Keeps the body of a manager, and drops those of others where there are too many.
    pub(super) fn keep(&mut self, kind: &str, manager: &str, body: &Value) {
        let body = if kind == "Secret" { without_values(body.clone()) } else { body.clone() };
        self.managers.insert(manager.to_owned(), body);
        while self.managers.len() > MAX_MANAGERS {
            let Some(other) = self.managers.keys().find(|name| *name != manager).cloned() else { break };
            self.managers.remove(&other);
        }
    }

    fn is_empty(&self) -> bool {
        self.last_applied.is_none() && self.managers.is_empty()
    }
}

fn path(backend: &Backend, source: &SourceId, key: &ObjectKey) -> Option<PathBuf> {
    let ObjectKey { kind, namespace, name } = key;
    let is_plain = |text: &str| {
        !text.is_empty()
            && text.len() <= 100
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
    };
    let is_named = is_plain(kind) && is_plain(namespace) && is_plain(name);
    is_named.then(|| backend.paths.source_objects(source).join(format!("{kind}_{namespace}_{name}.json")))
}

/// The record of an object, if there is one that can be read.
pub(super) fn load(backend: &Backend, source: &SourceId, key: &ObjectKey) -> Option<Record> {
    let bytes = fs::read(path(backend, source, key)?).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Replaces or removes the record of an object.
pub(super) fn store(backend: &Backend, source: &SourceId, key: &ObjectKey, record: &Record) -> Result<(), ApiFailure> {
    let Some(path) = path(backend, source, key) else { return Ok(()) };
    if load(backend, source, key).as_ref() == Some(record) {
        return Ok(());
    }
    let done = if !record.is_empty() {
        let bytes = serde_json::to_vec(record).unwrap_or_default();
        atomic_file::write_durable_with_directories(&path, &bytes, 0o600, 0o700)
    } else if fs::symlink_metadata(&path).is_ok() {
        atomic_file::remove_durable(&path)
    } else {
        Ok(())
    };
    done.map_err(|error| ApiFailure::internal(format!("write {}: {error}; nothing is changed", path.display())))
}

/// Texts of the annotation for what a route reads: by namespace and name; the namespace of what is in none is that of the source.
#[derive(Debug)]
pub(crate) struct Applied {
    source: SourceId,
    namespace: String,
    texts: BTreeMap<(String, String), String>,
}

/// Configurations that were applied last, of the objects that a route reads, where they are of the writable source; `None` without any.
pub(crate) fn applied(backend: &Backend, route: &Route) -> Option<Applied> {
    let writable = backend.writable.borrow().clone()?;
    let (source, namespace) = (writable.source.clone(), writable.check.namespace().to_owned());
    let text = |key: &ObjectKey| {
        let text = load(backend, &source, key)?.last_applied?;
        Some(((key.namespace.to_string(), key.name.to_string()), text))
    };
    let texts: BTreeMap<_, _> = match Target::of(route, &namespace) {
        Some(target) if target.part != Part::Whole => return None,
        Some(Target { name: Some(name), kind, namespace, .. }) => {
            text(&ObjectKey { kind: kind.into(), namespace: namespace.into(), name: name.into() }).into_iter().collect()
        }
        Some(_) | None => {
            let (kind, within) = Target::of_collection(route, &namespace)?;
            let keys = recorded(backend, &source, kind).into_iter();
            keys.filter(|key| within.as_ref().is_none_or(|within| *within == key.namespace)).filter_map(|key| text(&key)).collect()
        }
    };
    (!texts.is_empty()).then_some(Applied { source, namespace, texts })
}

/// Objects of a kind that have records. No name of an object has the sign between the parts of the name of a file.
fn recorded(backend: &Backend, source: &SourceId, kind: &str) -> Vec<ObjectKey> {
    let entries = fs::read_dir(backend.paths.source_objects(source)).into_iter().flatten().flatten();
    let key = |name: &str| {
        let (namespace, name) = name.strip_suffix(".json")?.strip_prefix(kind)?.strip_prefix('_')?.split_once('_')?;
        Some(ObjectKey { kind: kind.into(), namespace: namespace.into(), name: name.into() })
    };
    entries.filter_map(|entry| key(entry.file_name().to_str()?)).collect()
}

/// The answer to a read, with the annotation: `kubectl apply --prune` looks for it in lists.
pub(crate) async fn with_applied(answer: Response<Body>, applied: Option<Applied>) -> Answer {
    let Some(applied) = applied else { return Ok(answer) };
    let (parts, body) = answer.into_parts();
    // The bytes are in memory: this cannot fail.
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let Ok(mut answer) = serde_json::from_slice::<Value>(&bytes) else {
        return Ok(Response::from_parts(parts, respond::whole(bytes)));
    };
    match answer.get_mut("items").and_then(Value::as_array_mut) {
        Some(items) => items.iter_mut().for_each(|item| applied.annotate(item)),
        None => applied.annotate(&mut answer),
    }
    Ok(Response::from_parts(parts, respond::whole(answer.to_string())))
}

impl Applied {
    fn annotate(&self, object: &mut Value) {
        let metadata = &mut object["metadata"];
        if metadata["annotations"][SOURCE_ANNOTATION] != self.source.as_str() {
            return;
        }
        let text = |field: &str| metadata[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let namespace = text("namespace").unwrap_or_else(|| self.namespace.clone());
        if let Some(text) = self.texts.get(&(namespace, text("name").unwrap_or_default())) {
            metadata["annotations"][LAST_APPLIED] = json!(text);
        }
    }
}
