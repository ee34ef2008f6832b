//! Server-side apply: a merge of what a manager wants, what it wanted before, and what the others want. Nothing but these bodies is kept:
//! a field has the owners whose bodies have it.

use super::patches::{PatchError, PatchForm, patched};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// Fields that identify the items of a list, in the order in which they are tried.
const KEYS: [&str; 8] = ["name", "containerPort", "mountPath", "devicePath", "ip", "port", "key", "topologyKey"];

/// A field that a manager wants to have another value than its owner gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Name of the owner; `None` for the file.
    pub owner: Option<String>,
    /// The field, as Kubernetes writes it: `.data.k`.
    pub field: String,
}

/// Step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Field(String),
    /// The item whose key has this value.
    Item(&'static str, String),
}

type Leaves<'a> = BTreeMap<Vec<Step>, &'a Json>;

/// Bodies of the managers of an object.
#[derive(Clone, Copy, Debug)]
pub struct Owners<'a> {
    /// The last body of the manager who applies; `None` before its first one.
    pub own: Option<&'a Json>,
    /// The last bodies of the others, by name.
    pub others: &'a BTreeMap<String, Json>,
}

/// The conflicts of a body with the object as written.
pub fn conflicts(written: &Json, body: &Json, owners: Owners<'_>) -> Vec<Conflict> {
    let (current, wanted) = (leaves(written), leaves(body));
    let own = owners.own.map(leaves).unwrap_or_default();
    let others: Vec<(&String, Leaves<'_>)> = owners.others.iter().map(|(name, body)| (name, leaves(body))).collect();
    let mut found = Vec::new();
    for (path, value) in wanted {
        let Some(present) = current.get(&path).filter(|present| **present != value) else { continue };
        let field = shown(&path);
        let of_others = others.iter().filter(|(_, leaves)| leaves.contains_key(&path));
        let before = found.len();
        found.extend(of_others.map(|(name, _)| Conflict { owner: Some((*name).clone()), field: field.clone() }));
        // Values of Secrets are not kept: null says only that the key is owned.
        let is_own = own.get(&path).is_some_and(|own| own.is_null() || own == present);
        if found.len() == before && !is_own {
            found.push(Conflict { owner: None, field });
        }
    }
    found
}

/// The object with a body applied: fields that the manager wanted before and nobody wants any more go.
pub fn applied(kind: &str, object: &Json, body: &Json, owners: Owners<'_>) -> Result<Json, PatchError> {
    let mut object = object.clone();
    let wanted = leaves(body);
    let others: Vec<Leaves<'_>> = owners.others.values().map(leaves).collect();
    let is_wanted = |path: &[Step]| {
        let has = |leaves: &Leaves<'_>| leaves.keys().any(|known| known.starts_with(path));
        has(&wanted) || others.iter().any(has)
    };
    for path in owners.own.map(leaves).unwrap_or_default().keys() {
        // The first part of the way that nobody wants: an item goes as a whole.
        if let Some(length) = (1..=path.len()).find(|length| !is_wanted(&path[..*length])) {
            remove(&mut object, &path[..length]);
        }
    }
    patched(kind, &object, body, PatchForm::Strategic)
}

/// The last body of another manager, without what this body takes over from it.
pub fn released(mut other: Json, body: &Json) -> Json {
    let wanted = leaves(body);
    let known = leaves(&other);
    let taken: Vec<Vec<Step>> = known
        .iter()
        .filter(|(path, value)| wanted.get(*path).is_some_and(|wanted| wanted != *value))
        .map(|(path, _)| path.clone())
        .collect();
    for path in taken {
        remove(&mut other, &path);
    }
    other
}

fn leaves(value: &Json) -> Leaves<'_> {
    let mut found = BTreeMap::new();
    collect(value, &mut Vec::new(), &mut found);
    found
}

fn collect<'a>(value: &'a Json, path: &mut Vec<Step>, found: &mut Leaves<'a>) {
    match value {
        Json::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                // The identity of the object has no owner.
                if path.is_empty() && matches!(key.as_str(), "apiVersion" | "kind" | "status") {
                    continue;
                }
                let is_of_metadata = matches!(path.as_slice(), [Step::Field(field)] if field == "metadata");
                if is_of_metadata && !matches!(key.as_str(), "labels" | "annotations") {
                    continue;
                }
                path.push(Step::Field(key.clone()));
                collect(value, path, found);
                path.pop();
            }
        }
        Json::Array(items) if !items.is_empty() => match key_of(items) {
            Some(key) => {
                for item in items {
                    path.push(Step::Item(key, item[key].to_string()));
                    collect(item, path, found);
                    path.pop();
                }
            }
            None => {
                found.insert(path.clone(), value);
            }
        },
        _ => {
            found.insert(path.clone(), value);
        }
    }
}

fn key_of(items: &[Json]) -> Option<&'static str> {
    KEYS.into_iter().find(|key| items.iter().all(|item| item.get(*key).is_some_and(|value| !value.is_object())))
}

fn remove(value: &mut Json, path: &[Step]) {
    let Some((first, rest)) = path.split_first() else { return };
    match (first, value) {
        (Step::Field(field), Json::Object(map)) => {
            if rest.is_empty() {
                map.remove(field);
            } else if let Some(inner) = map.get_mut(field) {
                remove(inner, rest);
            }
        }
        (Step::Item(key, wanted), Json::Array(items)) => {
            let is_wanted = |item: &Json| item.get(*key).map(ToString::to_string).as_ref() == Some(wanted);
            let Some(at) = items.iter().position(is_wanted) else { return };
            if rest.is_empty() {
                items.remove(at);
            } else {
                remove(&mut items[at], rest);
            }
        }
        (Step::Field(_) | Step::Item(..), _) => {}
    }
}

fn shown(path: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Field(field) if field.contains(['.', '/']) => format!("[{field:?}]"),
        Step::Field(field) => format!(".{field}"),
        Step::Item(key, value) => format!("[{key}={value}]"),
    };
    path.iter().map(step).collect()
}

/// The body without the values of a Secret, which are kept nowhere but in the file: its keys say what is owned.
pub fn without_values(mut body: Json) -> Json {
    for part in ["data", "stringData"] {
        if let Some(data) = body.get_mut(part).and_then(Json::as_object_mut) {
            let keys: Vec<String> = data.keys().cloned().collect();
            *data = Map::from_iter(keys.into_iter().map(|key| (key, Json::Null)));
        }
    }
    body
}
