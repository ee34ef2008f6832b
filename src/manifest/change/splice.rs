//! A new value spliced into the text of a document, by the places of its nodes. The result is a proposal: whoever asks reads it back and
//! compares.

use super::body::to_json;
use crate::node::{Entry, Node, Value};
use crate::yaml::to_manifest;
use serde_json::{Map, Value as Json};
use std::ops::Range;

struct Edit {
    range: Range<usize>,
    text: String,
}

struct Splice<'a> {
    bytes: &'a [u8],
    document: Range<usize>,
}

/// The file with `wanted` in place of the document at `document`, whose tree is `node`; `None` where its style does not allow it.
pub(super) fn spliced(bytes: &[u8], document: Range<usize>, node: &Node, wanted: &Json) -> Option<Vec<u8>> {
    let splice = Splice { bytes, document };
    let mut edits = splice.edits(node, wanted)?;
    edits.sort_by_key(|edit| edit.range.start);
    if edits.windows(2).any(|pair| pair[0].range.end > pair[1].range.start) {
        return None;
    }
    let mut text = bytes.to_vec();
    for edit in edits.into_iter().rev() {
        text.splice(edit.range, edit.text.into_bytes());
    }
    Some(text)
}

impl Splice<'_> {
    fn edits(&self, node: &Node, wanted: &Json) -> Option<Vec<Edit>> {
        if to_json(node).ok()? == *wanted {
            return Some(Vec::new());
        }
        match (&node.value, wanted) {
            (Value::Map(entries), Json::Object(wanted)) => self.mapping(entries, wanted),
            (Value::List(items), Json::Array(wanted)) if items.len() == wanted.len() => {
                let mut edits = Vec::new();
                for (item, wanted) in items.iter().zip(wanted) {
                    edits.extend(self.edits(item, wanted)?);
                }
                Some(edits)
            }
            (Value::Map(_) | Value::List(_), _) | (_, Json::Object(_) | Json::Array(_)) => None,
            (_, wanted) => self.scalar(node.at? as usize, wanted).map(|edit| vec![edit]),
        }
    }

    fn mapping(&self, entries: &[Entry], wanted: &Map<String, Json>) -> Option<Vec<Edit>> {
        let first = entries.first()?.key_at? as usize;
        let column = self.column(first);
        let mut edits = Vec::new();
        let mut end = first;
        for entry in entries {
            let key_at = entry.key_at? as usize;
            if self.column(key_at) != column || entry.duplicate_of.is_some() {
                return None;
            }
            let range = self.lines_of(key_at, column, matches!(entry.value.value, Value::List(_)));
            end = end.max(range.end);
            match wanted.get(&entry.key) {
                None => {
                    let line = self.line_start(key_at);
                    if self.bytes[line..key_at].iter().any(|byte| *byte != b' ') {
                        return None;
                    }
                    edits.push(Edit { range: line..range.end, text: String::new() });
                }
                Some(value) => match self.edits(&entry.value, value) {
                    Some(inner) => edits.extend(inner),
                    None => edits.push(Edit { range: key_at..range.end, text: rendered(&entry.key, value, column, false) }),
                },
            }
        }
        let known = |key: &str| entries.iter().any(|entry| entry.key == key);
        let added: String =
            wanted.iter().filter(|(key, _)| !known(key)).map(|(key, value)| rendered(key, value, column, true)).collect();
        if !added.is_empty() {
            let needs_break = end > 0 && self.bytes[end - 1] != b'\n';
            edits.push(Edit { range: end..end, text: if needs_break { format!("\n{added}") } else { added } });
        }
        Some(edits)
    }

    fn line_start(&self, at: usize) -> usize {
        self.bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1).max(self.document.start)
    }

    fn column(&self, at: usize) -> usize {
        at - self.line_start(at)
    }

    /// From the key at `key_at` to behind its last line; blank lines and comments at the end belong to what follows.
    fn lines_of(&self, key_at: usize, column: usize, is_list: bool) -> Range<usize> {
        let line_end = |at: usize| {
            let found = self.bytes[at..self.document.end].iter().position(|byte| *byte == b'\n');
            found.map_or(self.document.end, |length| at + length + 1)
        };
        let mut end = line_end(key_at);
        let mut at = end;
        while at < self.document.end {
            let next = line_end(at);
            let line = &self.bytes[at..next];
            let indent = line.iter().take_while(|byte| **byte == b' ').count();
            let content = line.trim_ascii();
            let is_item = is_list && indent == column && (content.starts_with(b"- ") || content == b"-");
            if content.is_empty() || content.starts_with(b"#") && indent <= column {
                at = next;
                continue;
            }
            if indent <= column && !is_item {
                break;
            }
            end = next;
            at = next;
        }
        key_at..end
    }

    /// A scalar of one line in place of another one.
    fn scalar(&self, at: usize, wanted: &Json) -> Option<Edit> {
        let text = to_manifest(wanted);
        let text = text.trim_end_matches('\n');
        if text.contains('\n') {
            return None;
        }
        let rest = &self.bytes[at..self.document.end];
        let line = &rest[..rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())];
        let length = match line.first()? {
            b'|' | b'>' | b'&' | b'*' | b'!' => return None,
            b'"' => {
                let mut escaped = false;
                let closing = line[1..].iter().position(|byte| {
                    let is_end = *byte == b'"' && !escaped;
                    escaped = *byte == b'\\' && !escaped;
                    is_end
                });
                closing? + 2
            }
            b'\'' => {
                let mut end = 1;
                loop {
                    end += line.get(end..)?.iter().position(|byte| *byte == b'\'')? + 1;
                    if line.get(end) != Some(&b'\'') {
                        break end;
                    }
                    end += 1;
                }
            }
            _ => {
                let comment = line.windows(2).position(|pair| pair == b" #");
                line[..comment.unwrap_or(line.len())].trim_ascii_end().len()
            }
        };
        Some(Edit { range: at..at + length, text: text.to_owned() })
    }
}

/// `key: value` with its lines indented by `column`; the first one too if `indents_first`.
fn rendered(key: &str, value: &Json, column: usize, indents_first: bool) -> String {
    let pair = Json::Object(Map::from_iter([(key.to_owned(), value.clone())]));
    let mut text = String::new();
    for (index, line) in to_manifest(&pair).split_inclusive('\n').enumerate() {
        if (index > 0 || indents_first) && line != "\n" {
            text.extend(std::iter::repeat_n(' ', column));
        }
        text.push_str(line);
    }
    text
}
