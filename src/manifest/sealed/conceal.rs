//! Placeholders for encrypted values, so that the rest of a document can be checked without a key.

use super::MARK;
use crate::node::{Node, Value};
use crate::sops::is_sealed;

/// Stands for a text.
const TEXT: &str = "(encrypted)";
/// The fields whose values are of no consequence for anything else, and whether they are base64.
const CONTENT: [(&str, bool); 3] = [("data", true), ("stringData", false), ("binaryData", true)];

/// Stands in for what is encrypted in the content of Secrets and ConfigMaps. `false` when anything else is encrypted, too: then nothing can
/// be said of the document.
pub(crate) fn conceal(node: &mut Node) -> bool {
    for (object, is_secret) in objects(node) {
        for (field, is_base64) in CONTENT {
            let Value::Map(entries) = &mut object.value else { continue };
            let content = entries.iter_mut().find(|entry| entry.key == field).map(|entry| &mut entry.value.value);
            let Some(Value::Map(values)) = content else { continue };
            for entry in values {
                if entry.value.as_str().is_some_and(is_sealed) {
                    let stand_in = if is_base64 && (is_secret || field == "binaryData") { "" } else { TEXT };
                    entry.value.value = Value::String(stand_in.to_owned());
                }
            }
        }
    }
    !holds_sealed(node)
}

/// Reports whether an object that is neither a Secret nor a patch of Secrets has sealed values.
pub(crate) fn holds_sealed_beside_secrets(node: &mut Node) -> bool {
    let beside_metadata = |object: &Node| match &object.value {
        Value::Map(entries) => entries.iter().any(|entry| entry.key != MARK && holds_sealed(&entry.value)),
        Value::List(_) | Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Unsupported(_) => {
            holds_sealed(object)
        }
    };
    objects(node).into_iter().any(|(object, is_secret)| !is_secret && beside_metadata(object))
}

/// The document itself, or the items of a list; and whether it is a Secret.
fn objects(node: &mut Node) -> Vec<(&mut Node, bool)> {
    let is_secret_list = kind(node) == Some("SecretList");
    if !kind(node).is_some_and(|kind| kind.ends_with("List")) {
        let is_secret = is_kept_secret(node);
        return vec![(node, is_secret)];
    }
    let Value::Map(entries) = &mut node.value else { return Vec::new() };
    match entries.iter_mut().find(|entry| entry.key == "items").map(|entry| &mut entry.value.value) {
        Some(Value::List(items)) => {
            let told = |item: &mut Node| is_kept_secret(item) || is_secret_list && kind(item).is_none();
            items
                .iter_mut()
                .map(|item| {
                    let is_secret = told(item);
                    (item, is_secret)
                })
                .collect()
        }
        Some(_) | None => Vec::new(),
    }
}

/// Reports whether the object is protected like a Secret: it is one, or a patch of Secrets, which itself is not kept on disk.
fn is_kept_secret(node: &Node) -> bool {
    match kind(node) {
        Some("Secret") => true,
        Some("Patch") => node.entry("target").and_then(|target| kind(&target.value)) == Some("Secret"),
        Some(_) | None => false,
    }
}

fn kind(node: &Node) -> Option<&str> {
    node.entry("kind")?.value.as_str()
}

fn holds_sealed(node: &Node) -> bool {
    match &node.value {
        Value::Map(entries) => entries.iter().any(|entry| holds_sealed(&entry.value)),
        Value::List(items) => items.iter().any(holds_sealed),
        Value::String(text) => is_sealed(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Unsupported(_) => false,
    }
}
