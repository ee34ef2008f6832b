//! Changes of manifests by programs: bodies of API requests, patches of objects, and edits of the text of a file. **Pure**.
//!
//! A change is computed on the object as the API shows it; [`carried`] takes over into the tree as written only what differs, and
//! [`replaced`] splices that into the text, so that comments and order stay.

mod body;
mod carry;
mod document;
mod owned;
mod patches;
mod splice;
#[cfg(test)]
mod tests;

pub use body::{Body, drop_unknown_fields, read_body, read_protobuf_body};
pub use carry::carried;
pub use document::{Located, Replaced, located, removed, replaced};
pub use owned::{Conflict, Owners, applied, conflicts, released, without_values};
pub use patches::{PatchError, PatchForm, patched};

use super::Limits;

/// Limits for bodies, patches and patched objects: an object of the API has at most 1.5 MiB.
pub const LIMITS: Limits = Limits { max_bytes: 3 << 20, max_nodes: 100_000, max_depth: 64, max_documents: 1, max_problems: 50 };
