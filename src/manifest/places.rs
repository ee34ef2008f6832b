//! Positions of the nodes of a tree: in one text, or, for a patched tree, in several.

use super::lines::Lines;
use podstead_pod::Position;

/// A place in one of the files that a tree was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// 0 for the file of the object itself, from 1 for those of its patches in order.
    pub(super) file: u16,
    pub(super) position: Position,
}

/// Meaning of the offsets of a tree's nodes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Places<'a> {
    /// Bytes of this text.
    Text(&'a Lines<'a>),
    /// Entries of this table.
    Table(&'a [Place]),
}

impl<'a> Places<'a> {
    /// The place that belongs to `at`.
    pub(super) fn place(self, at: u32) -> Place {
        let nowhere = Place { file: 0, position: Position { line: 1, column: 1 } };
        match self {
            Self::Text(lines) => Place { file: 0, position: lines.position(at) },
            Self::Table(table) => table.get(at as usize).copied().unwrap_or(nowhere),
        }
    }

    /// The unquoted word that is written at `at`, where the text is known.
    pub(super) fn word(self, at: u32) -> Option<&'a str> {
        match self {
            Self::Text(lines) => lines.word(at),
            Self::Table(_) => None,
        }
    }
}
