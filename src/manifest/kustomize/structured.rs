//! JSON or YAML inside of a string of an object, e.g. of a ConfigMap, that a replacement writes to.

use super::layout::{Layout, Refusal};
use super::replacement::{Make, for_each, set_text};
use super::tree::{Field, Scalar, Tree, Value};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Nesting of JSON that is read.
const MAX_BYTES: usize = 1 << 20;

/// Writes a value into the string that the beginning of the path names. False when there is none.
pub(super) fn set(tree: &mut Tree, value: &Tree, path: &[String], at: u32, make: Option<Make>) -> Result<bool, String> {
    let Some((scalar, rest)) = find(tree, path) else { return Ok(false) };
    let text = scalar.text().trim();
    if text.len() > MAX_BYTES {
        return Err(format!("the text has more than {MAX_BYTES} bytes"));
    }
    if !text.starts_with(['{', '[']) {
        let written = set_yaml(scalar.text(), value, rest, make)?;
        scalar.write(at, Scalar { text: written, ..Scalar::string("") });
        return Ok(true);
    }
    let json: Json = serde_json::from_str(text).map_err(|error| format!("the text is not JSON: {error}"))?;
    let mut inner = from_json(json, at);
    let copied = value.text().to_owned();
    let found = for_each(&mut inner, rest, make, at, &mut |field| set_text(field, value, copied.clone(), at))?;
    if found == 0 {
        return Err("the text has no such field".to_owned());
    }
    let is_pretty = scalar.text().contains('\n') && scalar.text().contains("  ");
    let mut written = String::new();
    match is_pretty {
        true => pretty(&mut written, &inner, 0),
        false => super::generate::value(&mut written, &inner),
    }
    scalar.write(at, Scalar::string(written));
    Ok(true)
}

/// YAML with another value.
fn set_yaml(text: &str, value: &Tree, path: &[String], make: Option<Make>) -> Result<String, String> {
    // Place of what would be made.
    const MADE: u32 = u32::MAX;
    let refused = |refusal: Refusal| format!("the text cannot be changed as YAML: {refusal}");
    if !value.is_scalar() {
        return Err(refused("only a single value can be copied into it"));
    }
    let layout = Layout::parse(text).map_err(refused)?;
    let mut changes = BTreeMap::new();
    let mut inner = layout.tree();
    let found = for_each(&mut inner, path, make, MADE, &mut |field| {
        if !field.is_scalar() {
            return Err(refused("only a single value can be replaced in it"));
        }
        changes.insert(field.at, value.text().to_owned());
        Ok(())
    })?;
    if found == 0 {
        return Err("the text has no such field".to_owned());
    }
    if changes.contains_key(&MADE) || inner.count(MAX_BYTES) != layout.tree().count(MAX_BYTES) {
        return Err(refused("fields cannot be added to it"));
    }
    // What is read must be what stands there: the places of keys and values are found by simple rules.
    let same = layout.write(&BTreeMap::new()).map_err(refused)?;
    if meaning(text).is_none_or(|meaning_of_text| meaning(&same) != Some(meaning_of_text)) {
        return Err(refused("it is written in an unusual way"));
    }
    Ok(layout.write(&changes).map_err(refused)?.trim().to_owned())
}

/// The values of a YAML text.
fn meaning(text: &str) -> Option<Tree> {
    fn without_places(tree: &mut Tree) {
        tree.at = 0;
        match &mut tree.value {
            Value::Scalar(_) => {}
            Value::List(items) => items.iter_mut().for_each(without_places),
            Value::Map(fields) => fields.iter_mut().for_each(|field| {
                field.at = 0;
                without_places(&mut field.value);
            }),
        }
    }
    let node = crate::yaml::load_kyaml(text, 0, 1, &crate::Limits::default()).ok()?;
    let mut tree = super::patch::from_node(node, 0);
    without_places(&mut tree);
    Some(tree)
}

/// The string on the way, and the rest of the path.
fn find<'t, 'p>(tree: &'t mut Tree, path: &'p [String]) -> Option<(&'t mut Tree, &'p [String])> {
    let mut found = tree;
    for (index, step) in path.iter().enumerate() {
        let next = match step.parse::<usize>() {
            Ok(item) => match &mut found.value {
                Value::List(items) => items.get_mut(item)?,
                Value::Scalar(_) | Value::Map(_) => return None,
            },
            Err(_) => match step.strip_prefix('[').and_then(|step| step.strip_suffix(']')?.split_once('=')) {
                Some((key, value)) => match &mut found.value {
                    Value::List(items) => items.iter_mut().find(|item| item.get(key).is_some_and(|field| field.text() == value))?,
                    Value::Scalar(_) | Value::Map(_) => return None,
                },
                None => found.get_mut(step)?,
            },
        };
        if next.is_null() {
            return None;
        }
        if next.is_scalar() {
            let rest = &path[index + 1..];
            return (!rest.is_empty()).then_some((next, rest));
        }
        found = next;
    }
    None
}

fn from_json(json: Json, at: u32) -> Tree {
    let value = match json {
        Json::Null => return Tree::null(at),
        Json::Bool(value) => Value::Scalar(Scalar::plain(value.to_string())),
        Json::Number(number) => Value::Scalar(Scalar::plain(number.to_string())),
        Json::String(text) => Value::Scalar(Scalar::string(text)),
        Json::Array(items) => Value::List(items.into_iter().map(|item| from_json(item, at)).collect()),
        Json::Object(map) => {
            Value::Map(map.into_iter().map(|(key, value)| Field { key, at, value: from_json(value, at) }).collect())
        }
    };
    Tree { at, value }
}

/// JSON with an indentation of two spaces.
fn pretty(text: &mut String, tree: &Tree, indent: usize) {
    let line = |text: &mut String, indent: usize| {
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', indent));
    };
    match &tree.value {
        Value::List(items) if !items.is_empty() => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                line(text, indent + 2);
                pretty(text, item, indent + 2);
            }
            line(text, indent);
            text.push(']');
        }
        Value::Map(fields) if !fields.is_empty() => {
            let mut sorted: Vec<&Field> = fields.iter().collect();
            sorted.sort_by(|one, other| one.key.cmp(&other.key));
            text.push('{');
            for (index, field) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                line(text, indent + 2);
                super::generate::value(text, &Tree::string(0, &*field.key));
                text.push_str(": ");
                pretty(text, &field.value, indent + 2);
            }
            line(text, indent);
            text.push('}');
        }
        Value::Scalar(_) | Value::List(_) | Value::Map(_) => super::generate::value(text, tree),
    }
}
