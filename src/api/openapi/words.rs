//! Words for kinds and fields, which `kubectl explain` shows. **Pure**.

use std::collections::HashMap;

/// Lines of `NAME: TEXT`; its head says what names there are.
const TEXT: &str = include_str!("words.txt");

/// The words by the names of what they describe.
#[derive(Debug)]
pub(super) struct Words(HashMap<&'static str, &'static str>);

impl Words {
    /// Reads them. They are read for each document, since few people ask for one.
    pub(super) fn read() -> Self {
        let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(|line| line.split_once(": ")).collect())
    }

    /// Words for a structure.
    pub(super) fn of_structure(&self, name: &str) -> Option<&'static str> {
        self.0.get(name).copied()
    }

    /// Words for a field.
    pub(super) fn of_field(&self, structure: &str, field: &str) -> Option<&'static str> {
        let own = self.0.get(format!("{structure}.{field}").as_str());
        own.or_else(|| self.0.get(format!("*.{field}").as_str())).copied()
    }

    /// All that there are words for.
    #[cfg(test)]
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}
