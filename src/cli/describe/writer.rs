//! Fields below each other, values in one column. **Pure**.

use crate::printable::printable;
use std::collections::BTreeMap;

/// Column that values begin in.
const VALUES: usize = 21;
/// Spaces per level.
const INDENT: usize = 2;

/// A description under way.
#[derive(Debug, Default)]
pub(super) struct Description(String);

impl Description {
    /// A field at the left.
    pub(super) fn field(&mut self, name: &str, value: &str) {
        self.indented(0, name, value);
    }

    /// A field, indented by some levels. Further lines of the value are put below its first.
    pub(super) fn indented(&mut self, level: usize, name: &str, value: &str) {
        let head = format!("{}{name}:", " ".repeat(level * INDENT));
        let width = VALUES.max(head.chars().count() + 1);
        let mut lines = value.lines();
        let first = lines.next().unwrap_or_default();
        self.line(&format!("{head:<width$}{}", printable(first)));
        for line in lines {
            self.line(&format!("{:width$}{}", "", printable(line)));
        }
    }

    /// A heading for fields below it.
    pub(super) fn heading(&mut self, name: &str) {
        self.line(&format!("{name}:"));
    }

    /// A heading, indented.
    pub(super) fn indented_heading(&mut self, level: usize, name: &str) {
        self.line(&format!("{}{name}:", " ".repeat(level * INDENT)));
    }

    /// A map, an entry per line.
    pub(super) fn entries(&mut self, name: &str, entries: Option<&BTreeMap<String, String>>) {
        let lines: Vec<String> =
            entries.into_iter().flatten().map(|(key, value)| format!("{key}={}", value.replace('\n', " "))).collect();
        let value = if lines.is_empty() { "<none>".to_owned() } else { lines.join("\n") };
        self.field(name, &value);
    }

    /// Fields, indented by some levels, whose values stand in a column of their own.
    pub(super) fn indented_rows(&mut self, level: usize, rows: &[(&str, String)]) {
        let indent = " ".repeat(level * INDENT);
        let longest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        let width = (longest + 2).max(VALUES - indent.len());
        for (name, value) in rows {
            let head = format!("{name}:");
            self.line(&format!("{indent}{head:<width$}{}", printable(value)));
        }
    }

    fn line(&mut self, text: &str) {
        self.0.push_str(text.trim_end());
        self.0.push('\n');
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        self.0
    }
}
