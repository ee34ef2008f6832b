//! The name that an object has by its content.

use super::Kind;
use crate::git::protocol::ObjectId;
use sha1_checked::{CollisionResult, Digest, Sha1};

/// Content that was made to have the same SHA-1 as other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its content was made to collide with other content of the same SHA-1")]
pub(in crate::git) struct Collision;

/// The name of an object with this content.
pub(in crate::git) fn name_of(kind: Kind, content: &[u8]) -> Result<ObjectId, Collision> {
    // Not the "safe" hash, which is another one than git's where there is a collision: such content is refused.
    let mut hasher = Sha1::builder().safe_hash(false).build();
    hasher.update(format!("{kind} {}\0", content.len()));
    hasher.update(content);
    match hasher.try_finalize() {
        CollisionResult::Ok(hash) => Ok(ObjectId::from_bytes(hash.into())),
        CollisionResult::Mitigated(_) | CollisionResult::Collision(_) => Err(Collision),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_git() {
        let name = |kind, content: &[u8]| name_of(kind, content).unwrap().to_string();
        assert_eq!(name(Kind::Blob, b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(name(Kind::Tree, b""), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        assert_eq!(name(Kind::Blob, b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_ne!(name(Kind::Tag, b"hello\n"), name(Kind::Commit, b"hello\n"));
    }
}
