//! Objects in the text of a file: where each one is, and the text with one of them changed or removed.

use super::body::to_json;
use super::splice::spliced;
use crate::documents::{self, Document};
use crate::node::Node;
use crate::object::{self, Told};
use crate::yaml::{self, to_manifest};
use crate::{Limits, ObjectKey};
use podstead_pod::Position;
use serde_json::Value as Json;

/// One object of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// Its identity.
    pub key: ObjectKey,
    /// The object as written, nulls included.
    pub value: Json,
    /// Position where its document begins.
    pub position: Position,
    /// SOPS has encrypted it.
    pub is_sealed: bool,
    /// Index of its document.
    document: usize,
    /// Index of the item in a list.
    item: Option<usize>,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The text.
    pub bytes: Vec<u8>,
    /// Comments of the object's document were lost, because it had to be written anew.
    pub comments_lost: bool,
}

/// One document of a file, read.
struct Read {
    start: usize,
    end: usize,
    node: Node,
    value: Json,
}

fn read(bytes: &[u8], document: &Document<'_>, limits: &Limits) -> Option<Read> {
    let text = std::str::from_utf8(document.bytes).ok()?;
    documents::check_density(document, limits.max_nodes).ok()?;
    let node = yaml::load(text, document.start, 1, limits).ok()?;
    let value = to_json(&node).ok()?;
    debug_assert!(document.start + document.bytes.len() <= bytes.len(), "documents are parts of the file");
    Some(Read { start: document.start, end: document.start + document.bytes.len(), node, value })
}

/// All objects of a file that can be read; `namespace` is that of objects written without one.
pub fn located(bytes: &[u8], namespace: &str, limits: &Limits) -> Vec<Located> {
    let mut found = Vec::new();
    for (index, document) in documents::cut(bytes, limits.max_documents).iter().enumerate() {
        let Some(read) = read(bytes, document, limits) else { continue };
        let begin = document.start + leading_blanks(document.bytes);
        let line = bytes[..begin].iter().filter(|byte| **byte == b'\n').count() + 1;
        let position = Position { line: u32::try_from(line).unwrap_or(u32::MAX), column: 1 };
        let is_sealed = read.node.entry("sops").is_some();
        let mut note = |key: Option<ObjectKey>, value: &Json, item: Option<usize>| {
            if let Some(key) = key {
                found.push(Located { key, value: value.clone(), position, is_sealed, document: index, item });
            }
        };
        match object::tell(&read.node, 0, None).0 {
            Some(Told::Object(kind)) => note(object::key_of(&read.node, kind, namespace), &read.value, None),
            Some(Told::List { of }) => {
                let values = read.value["items"].as_array().cloned().unwrap_or_default();
                let (items, _) = object::into_items(read.node);
                for (at, (item, value)) in items.iter().zip(&values).enumerate() {
                    if let Some(Told::Object(kind)) = object::tell(item, 0, of).0 {
                        note(object::key_of(item, kind, namespace), value, Some(at));
                    }
                }
            }
            Some(Told::Patch | Told::Foreign(_)) | None => {}
        }
    }
    found
}

fn leading_blanks(bytes: &[u8]) -> usize {
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let text = line.trim_ascii();
        if !text.is_empty() && !text.starts_with(b"#") {
            break;
        }
        at += line.len();
    }
    at.min(bytes.len().saturating_sub(1))
}

/// The file with another value for the object; `None` when it cannot be found again.
pub fn replaced(bytes: &[u8], place: &Located, new: &Json, limits: &Limits) -> Option<Replaced> {
    let documents = documents::cut(bytes, limits.max_documents);
    let read = read(bytes, documents.get(place.document)?, limits)?;
    let mut wanted = read.value.clone();
    match place.item {
        None => wanted = new.clone(),
        Some(item) => *wanted.get_mut("items")?.get_mut(item)? = new.clone(),
    }
    Some(rewritten(bytes, &read, place.document, &wanted, limits))
}

fn rewritten(bytes: &[u8], old: &Read, index: usize, wanted: &Json, limits: &Limits) -> Replaced {
    let is_good = |bytes: &[u8]| {
        let again = documents::cut(bytes, limits.max_documents);
        again.get(index).and_then(|document| read(bytes, document, limits)).is_some_and(|read| read.value == *wanted)
    };
    let document = &bytes[old.start..old.end];
    let is_json = document.trim_ascii_start().starts_with(b"{");
    // A scalar of YAML would make a JSON document something that only YAML can read.
    if !is_json
        && let Some(text) = spliced(bytes, old.start..old.end, &old.node, wanted)
        && is_good(&text)
    {
        return Replaced { bytes: text, comments_lost: false };
    }
    let written = if is_json {
        let text = serde_json::to_string_pretty(wanted).unwrap_or_default();
        format!("{text}\n")
    } else {
        to_manifest(wanted)
    };
    let mut text = bytes[..old.start].to_vec();
    if text.ends_with(b"---") {
        text.push(b'\n');
    }
    text.extend_from_slice(written.as_bytes());
    text.extend_from_slice(&bytes[old.end..]);
    Replaced { bytes: text, comments_lost: document.contains(&b'#') }
}

/// The file without the object; `Some(None)` when nothing is left, `None` when it cannot be found again.
pub fn removed(bytes: &[u8], place: &Located, limits: &Limits) -> Option<Option<Vec<u8>>> {
    let documents = documents::cut(bytes, limits.max_documents);
    let document = documents.get(place.document)?;
    let read = read(bytes, document, limits)?;
    if let Some(item) = place.item {
        let mut wanted = read.value.clone();
        let items = wanted.get_mut("items")?.as_array_mut()?;
        if item >= items.len() {
            return None;
        }
        items.remove(item);
        if !items.is_empty() {
            return Some(Some(rewritten(bytes, &read, place.document, &wanted, limits).bytes));
        }
    }
    if documents.len() == 1 {
        return Some(None);
    }
    let (start, end) = (document.start, document.start + document.bytes.len());
    let has_marker = bytes[..start].ends_with(b"---");
    let start = if has_marker { start - 3 } else { start };
    let mut text = bytes[..start].to_vec();
    // The marker of the next document is needed only behind another one.
    let rest = &bytes[end..];
    let rest = if text.is_empty() { rest.strip_prefix(b"---\n").unwrap_or(rest) } else { rest };
    text.extend_from_slice(rest);
    Some(Some(text))
}
