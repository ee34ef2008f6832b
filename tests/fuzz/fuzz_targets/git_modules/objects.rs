//! The readers of objects, on anything.

#[path = "../../../../src/source/git/format/mod.rs"]
mod format;
#[path = "../../../../src/source/git/protocol/mod.rs"]
mod protocol;

use format::{Commit, Kind, Tag, Tree, name_of};

/// Gives `bytes` to every reader.
pub fn read_anything(bytes: &[u8]) {
    if let Ok(tree) = Tree::parse(bytes) {
        let names: Vec<&[u8]> = tree.iter().map(|(name, _)| name).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "each name once");
        for name in names {
            assert!(!name.is_empty() && !name.contains(&b'/') && !matches!(name, b"." | b".." | b".git"), "{name:?}");
        }
    }
    if let Ok(commit) = Commit::parse(bytes) {
        assert!(commit.parents.len() <= bytes.len() / 48 && !commit.subject.contains(&b'\n'));
    }
    if let Ok(tag) = Tag::parse(bytes) {
        assert!(bytes.len() > 47 && tag.target.to_string().len() == 40);
    }
    if let (Ok(one), Ok(other)) = (name_of(Kind::Blob, bytes), name_of(Kind::Tree, bytes)) {
        assert_ne!(one, other, "the kind is a part of the name");
    }
}
