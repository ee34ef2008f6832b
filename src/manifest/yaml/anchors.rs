//! Anchors that are defined more than once. YAML lets an alias mean the definition before it; the parser mixes up the definitions. So all but the
//! first get names of their own before the text is parsed.

use crate::node::{Node, Value};
use std::collections::HashMap;
use std::fmt::Write;

/// Part of the new names, which no text is expected to have.
const MARK: &str = "-podstead-anchor-";

/// Bytes before a sign in which a comment is looked for.
const LONGEST_COMMENT: usize = 256;

/// A text whose anchors differ, and where its bytes stood before.
pub(super) struct Distinct {
    pub(super) text: String,
    /// Offsets from which on the text is longer, by how much.
    longer: Vec<(usize, usize)>,
}

/// A copy of the text with other names for anchors that repeat one; `None` when there are none.
pub(super) fn distinct(text: &str) -> Option<Distinct> {
    let mut definitions: HashMap<&str, usize> = HashMap::new();
    let mut distinct = Distinct { text: String::new(), longer: Vec::new() };
    let (mut copied, mut added) = (0, 0);
    for (at, sign) in text.match_indices(['&', '*']) {
        let Some(name) = name_at(text, at) else { continue };
        let number = match definitions.get_mut(name) {
            Some(number) => {
                *number += usize::from(sign == "&");
                *number
            }
            None if sign == "&" => {
                definitions.insert(name, 1);
                1
            }
            None => continue,
        };
        if number > 1 {
            let end = at + 1 + name.len();
            distinct.text.push_str(&text[copied..end]);
            let before = distinct.text.len();
            write!(distinct.text, "{MARK}{number}").ok()?;
            added += distinct.text.len() - before;
            distinct.longer.push((distinct.text.len(), added));
            copied = end;
        }
    }
    if distinct.longer.is_empty() {
        return None;
    }
    distinct.text.push_str(&text[copied..]);
    Some(distinct)
}

/// The name behind an `&` or `*` that begins a word. One in a comment has none.
pub(super) fn name_at(text: &str, at: usize) -> Option<&str> {
    let bytes = text.as_bytes();
    // Of a long line, the end is looked at, so that many signs in one cost no more than their number.
    let before = &bytes[at.saturating_sub(LONGEST_COMMENT)..at];
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or(before);
    if line.first() == Some(&b'#') || line.windows(2).any(|pair| pair == b" #") {
        return None;
    }
    let begins = at.checked_sub(1).is_none_or(|before| matches!(bytes[before], b' ' | b'\n' | b'[' | b',' | b'{'));
    let rest = &text[at + 1..];
    let end = rest.find([' ', '\n', '\r', '\t', ',', '[', ']', '{', '}']).unwrap_or(rest.len());
    (begins && end > 0).then(|| &rest[..end])
}

impl Distinct {
    fn before(&self, start: usize, at: u32) -> u32 {
        let Some(inside) = (at as usize).checked_sub(start) else { return at };
        let index = self.longer.partition_point(|(from, _)| *from <= inside);
        let added = index.checked_sub(1).map_or(0, |index| self.longer[index].1);
        (start + inside - added.min(inside)) as u32
    }

    /// The node with the places of the text that it was made of; `None` when a text of it was changed.
    pub(super) fn restored(&self, mut node: Node, start: usize) -> Option<Node> {
        self.restore(&mut node, start).then_some(node)
    }

    fn restore(&self, node: &mut Node, start: usize) -> bool {
        node.at = node.at.map(|at| self.before(start, at));
        match &mut node.value {
            Value::String(text) | Value::Unsupported(text) => !text.contains(MARK),
            Value::List(items) => items.iter_mut().all(|item| self.restore(item, start)),
            Value::Map(entries) => entries.iter_mut().all(|entry| {
                entry.key_at = entry.key_at.map(|at| self.before(start, at));
                entry.duplicate_of = entry.duplicate_of.map(|at| at.map(|at| self.before(start, at)));
                !entry.key.contains(MARK) && self.restore(&mut entry.value, start)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        }
    }
}
