//! A tree: the names in a directory.

use super::header::Fault;
use crate::git::protocol::ObjectId;
use std::collections::BTreeMap;

const ID: usize = 20;
const FORMAT: u32 = 0o170_000;

/// Longest name in a directory.
const MAX_NAME: usize = 4096;

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::git) enum EntryKind {
    /// A directory.
    Directory,
    /// A file.
    File,
    /// A symlink.
    Symlink,
    /// A commit of another repository.
    Submodule,
}

/// Entry of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::git) struct Entry {
    /// Its kind.
    pub(in crate::git) kind: EntryKind,
    /// Its object.
    pub(in crate::git) id: ObjectId,
}

/// Entries of a directory, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::git) struct Tree(BTreeMap<Vec<u8>, Entry>);

impl Tree {
    /// Reads a tree. A name that git itself checks out nowhere, or two of the same name, are faults of the whole.
    pub(in crate::git) fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let (mut entries, mut rest) = (BTreeMap::new(), bytes);
        while !rest.is_empty() {
            let space = memchr::memchr(b' ', rest).ok_or(Fault("it has an entry without a name"))?;
            let kind = kind_of(&rest[..space]).ok_or(Fault("it has an entry with a mode that is none"))?;
            rest = &rest[space + 1..];
            let end = memchr::memchr(0, rest).ok_or(Fault("it has a name without an end"))?;
            let name = &rest[..end];
            check_name(name)?;
            let (id, after) = rest[end + 1..].split_first_chunk::<ID>().ok_or(Fault("it is cut off"))?;
            rest = after;
            if entries.insert(name.to_vec(), Entry { kind, id: ObjectId::from_bytes(*id) }).is_some() {
                return Err(Fault("it has two entries of the same name"));
            }
        }
        Ok(Self(entries))
    }

    /// The entry of this name.
    pub(in crate::git) fn get(&self, name: &str) -> Option<Entry> {
        self.0.get(name.as_bytes()).copied()
    }

    /// All entries, in the order of their names.
    pub(in crate::git) fn iter(&self) -> impl Iterator<Item = (&[u8], Entry)> {
        self.0.iter().map(|(name, entry)| (&name[..], *entry))
    }
}

fn kind_of(mode: &[u8]) -> Option<EntryKind> {
    // Six digits; old writers put zeros in front or leave one out.
    let is_octal = (1..=8).contains(&mode.len()) && mode.iter().all(|digit| (b'0'..=b'7').contains(digit));
    let mode = mode.iter().fold(0, |mode, digit| mode << 3 | u32::from(digit & 7));
    match mode & FORMAT {
        _ if !is_octal => None,
        0o040_000 => Some(EntryKind::Directory),
        0o100_000 => Some(EntryKind::File),
        0o120_000 => Some(EntryKind::Symlink),
        0o160_000 => Some(EntryKind::Submodule),
        _ => None,
    }
}

fn check_name(name: &[u8]) -> Result<(), Fault> {
    match name {
        b"" => Err(Fault("it has an entry with an empty name")),
        b"." | b".." => Err(Fault("it has an entry that is called . or ..")),
        name if name.eq_ignore_ascii_case(b".git") => Err(Fault("it has an entry that is called .git")),
        name if name.contains(&b'/') => Err(Fault("it has a name with a slash")),
        name if name.len() > MAX_NAME => Err(Fault("it has a name that is too long")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tree(entries: &[(&str, &str)]) -> Vec<u8> {
        entries.iter().flat_map(|(mode, name)| [format!("{mode} {name}\0").as_bytes(), &[7; ID]].concat()).collect()
    }

    #[test]
    fn entries_are_found_by_name() {
        let bytes =
            tree(&[("100644", "a.yaml"), ("100755", "b c"), ("40000", "d"), ("040000", "e"), ("120000", "f"), ("160000", "g")]);
        let tree = Tree::parse(&bytes).unwrap();
        let kinds: Vec<EntryKind> = tree.iter().map(|(_, entry)| entry.kind).collect();
        use EntryKind::{Directory, File, Submodule, Symlink};
        assert_eq!(kinds, [File, File, Directory, Directory, Symlink, Submodule]);
        assert_eq!(tree.get("b c"), Some(Entry { kind: File, id: ObjectId::from_bytes([7; ID]) }));
        assert_eq!(tree.get("b"), None);
        assert_eq!(Tree::parse(b""), Ok(Tree::default()));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", ".", "..", ".git", ".GiT", "a/b", "../a", &"x".repeat(MAX_NAME + 1)] {
            assert!(Tree::parse(&tree(&[("100644", "ok"), ("40000", name)])).is_err(), "{name}");
        }
        for mode in ["", "9", "644", "100644444", "-1", "020000", "140000"] {
            assert!(Tree::parse(&tree(&[(mode, "a")])).is_err(), "{mode}");
        }
        assert_eq!(Tree::parse(&tree(&[("100644", "a"), ("40000", "a")])), Err(Fault("it has two entries of the same name")));
        let cut = tree(&[("100644", "a")]);
        (1..cut.len()).for_each(|length| assert!(Tree::parse(&cut[..length]).is_err(), "{length}"));
    }

    proptest! {
        #[test]
        fn written_trees_are_read(names in proptest::collection::btree_set("[a-zA-Z0-9 _-]{1,12}", 0..20), rest in proptest::collection::vec(any::<u8>(), 0..40)) {
            let entries: Vec<(&str, &str)> = names.iter().map(|name| ("100644", name.as_str())).collect();
            let bytes = tree(&entries);
            let read = Tree::parse(&bytes).unwrap();
            let found: Vec<_> = read.iter().map(|(name, _)| String::from_utf8(name.to_vec()).unwrap()).collect();
            prop_assert_eq!(found, names.iter().cloned().collect::<Vec<_>>());
            if let Ok(longer) = Tree::parse(&[bytes, rest].concat()) {
                for (name, _) in longer.iter() {
                    prop_assert!(check_name(name).is_ok());
                }
            }
        }
    }
}
