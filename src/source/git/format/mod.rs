//! Objects of git as bytes: their names, and what commits, tags and trees say. **Pure**.
//!
//! In: bytes that nobody vouches for. Out: what they say, or the fault for which they are refused. A name is the SHA-1 of what it names, computed
//! here, so that whoever has the name of a commit can check all that it leads to.

mod commit;
mod header;
mod name;
mod tag;
mod tree;

pub(super) use commit::Commit;
pub(super) use header::Fault;
pub(super) use name::{Collision, name_of};
pub(super) use tag::Tag;
pub(super) use tree::{Entry, EntryKind, Tree};

use serde::{Deserialize, Serialize};
use std::fmt;

/// Size of the largest commit, tag or tree.
pub(super) const MAX_STRUCTURE: u64 = 32 << 20;

/// Kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// A commit.
    Commit,
    /// A directory.
    Tree,
    /// A file, or the target of a symlink.
    Blob,
    /// An annotated tag.
    Tag,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        })
    }
}
