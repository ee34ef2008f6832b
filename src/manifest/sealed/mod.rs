//! Documents that SOPS has encrypted: the values are opened in place, so that each keeps its line, and all are held against the MAC.
//!
//! SOPS leaves names and structure as they are and puts what it needs into a mapping `sops` at the top of each document. Its MAC is over
//! all documents of the file that it wrote, so a file is read twice: [`Seals::look`] at each document finds out which MACs hold, then
//! [`Seals::open`] opens. Documents that were encrypted apart and stand in one file differ in their MACs. Comments are not looked at.

mod conceal;
mod metadata;
mod walk;

pub(super) use conceal::{conceal, holds_sealed_beside_secrets};

use super::fault::{Fault, code};
use super::node::{Entry, Node, Value};
use crate::sops::{DataKey, Mac, Opening, Rule, SopsError};
use metadata::Metadata;
use std::collections::HashMap;
use walk::{Counted, Walk};

/// The mapping that marks an encrypted document.
pub(super) const MARK: &str = "sops";
/// Keys that are tried for the documents of one file, each for some tenths of a millisecond.
const MAX_TRIED: usize = 2000;

/// State of the encrypted documents of one file.
#[derive(Debug)]
pub(super) struct Seals<'a> {
    opening: &'a Opening,
    /// By the MAC as it is sealed.
    groups: HashMap<String, Group>,
    tried: usize,
}

/// Documents that were encrypted together.
#[derive(Debug)]
struct Group {
    key: DataKey,
    /// Over the documents that were looked at.
    mac: Mac,
    /// The expected MAC.
    expected: String,
}

/// Result of opening a document.
#[derive(Debug)]
pub(super) enum Opened {
    /// It is not encrypted.
    Plain,
    /// It was, and is opened.
    Open,
    /// It is encrypted, and there is no key for it. Why.
    Closed(Fault),
}

/// Reports whether a file may have encrypted documents.
pub(super) fn may_be_in(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, MARK.as_bytes()).is_some()
}

impl<'a> Seals<'a> {
    pub(super) fn new(opening: &'a Opening) -> Self {
        Self { opening, groups: HashMap::new(), tried: 0 }
    }

    /// Adds a document to its MAC, if it can be opened. Its problems are reported when it is opened.
    pub(super) fn look(&mut self, mut node: Node) {
        let Some((_, metadata)) = take_metadata(&mut node) else { return };
        let Ok(metadata) = Metadata::of(&metadata) else { return };
        if !self.groups.contains_key(metadata.mac) {
            self.tried += metadata.wrapped.len();
            if self.tried > MAX_TRIED {
                return;
            }
            let Ok(key) = self.opening.identities.open(&metadata.wrapped) else { return };
            let Ok((_, expected)) = key.open(metadata.mac, metadata.last_modified) else { return };
            let mac = Mac::new(metadata.is_of_sealed_only);
            self.groups.insert(metadata.mac.to_owned(), Group { key, mac, expected });
        }
        if let Some(group) = self.groups.get_mut(metadata.mac) {
            let counted = if metadata.is_of_sealed_only { Counted::SealedOnly } else { Counted::All };
            Walk::new(&group.key, &metadata.rule, Some((&mut group.mac, counted))).document(&mut node, 0);
        }
    }

    /// Opens a document if it is encrypted, and takes its mapping `sops` out. `at` is where it begins. After a failure it is of no use.
    pub(super) fn open(&self, node: &mut Node, at: u32) -> Result<Opened, Vec<Fault>> {
        let Some((metadata_at, metadata)) = take_metadata(node) else { return Ok(Opened::Plain) };
        let at = metadata_at.unwrap_or(at);
        let fault = |error: &SopsError| vec![fault(error, at).field(MARK)];
        let metadata = Metadata::of(&metadata).map_err(|error| fault(&error))?;
        let Some(group) = self.groups.get(metadata.mac) else {
            return match self.reason(&metadata) {
                error if error.lacks_a_key() => Ok(Opened::Closed(fault(&error).swap_remove(0))),
                error => Err(fault(&error)),
            };
        };
        let mut walk = Walk::new(&group.key, &metadata.rule, None);
        walk.document(node, at);
        if !walk.faults.is_empty() {
            return Err(walk.faults);
        }
        if group.mac.clone().finish() != group.expected {
            return Err(vec![self::fault(&SopsError::MacMismatch, metadata.mac_at.unwrap_or(at)).field("sops.mac")]);
        }
        Ok(Opened::Open)
    }

    /// Reason why a document could not be checked.
    fn reason(&self, metadata: &Metadata<'_>) -> SopsError {
        if self.tried > MAX_TRIED {
            return SopsError::TooManyKeys;
        }
        match self.opening.identities.open(&metadata.wrapped) {
            Err(error) => error,
            // The MAC itself cannot be opened.
            Ok(_) => SopsError::MacMismatch,
        }
    }
}

/// Removes the metadata and returns them with their position; `None` for a document that is not encrypted.
fn take_metadata(node: &mut Node) -> Option<(Option<u32>, Node)> {
    let Value::Map(entries) = &mut node.value else { return None };
    let index = entries.iter().position(|entry| entry.key == MARK)?;
    let Entry { key_at, value, .. } = entries.remove(index);
    if entries.is_empty() {
        // SOPS gives an empty document its metadata, too.
        node.value = Value::Null;
    }
    Some((key_at.or(value.at), value))
}

fn fault(error: &SopsError, at: u32) -> Fault {
    Fault::at(code::SOPS, at, error.to_string()).hint(error.hint())
}

/// See [`Rule::encrypts`].
fn is_encrypted(rule: &Rule, is_named: bool, text: &str) -> bool {
    rule.encrypts(is_named, crate::sops::is_sealed(text))
}

#[cfg(test)]
mod tests;
