//! Bytes to strict, typed objects. **Pure**: no files, no clock, no tokio.
//!
//! In: the bytes of one file (YAML, multi-document YAML or JSON) and its name. Out: [`Decoded`]: the objects that are good and
//! the problems of those that are not, each with file, line, column and field path; patches are applied to the trees of the objects
//! that they are for. One bad object never hides another.
//! YAML is read as sigs.k8s.io/yaml reads it, under a size, node and depth budget.
//!
//! The way of a file: [`decode`] looks at its encoding, cuts it at `---` lines, and for each document loads a tree of nodes
//! that know their place, holds the tree against the schema table of its kind ([`schema`]), and only when nothing is wrong
//! makes the typed object of it.

pub mod change;
mod decode;
mod documents;
mod encoding;
mod fault;
mod foreign;
mod kind;
pub mod kustomize;
mod label_selector;
mod limits;
mod lines;
mod locate;
mod node;
mod object;
mod patch;
mod places;
pub mod positions;
pub mod problem;
pub mod protobuf;
pub mod schema;
mod sealed;
pub mod sops;
mod substitute;
mod typed;
mod yaml;

pub use decode::{decode, decode_each, decode_in, decode_patched, decode_sealed};
pub use fault::code::SOPS;
pub use foreign::Ignored;
pub use label_selector::{LabelSelector, LabelSelectorError};
pub use limits::Limits;
pub use locate::locate;
pub use patch::{Patch, PatchStrategy, Target, patch_strategy};
pub use positions::PositionMap;
pub use problem::Problem;
pub use substitute::{Substitution, is_variable_name, substitute, variable_name_problem};
pub use typed::{Object, ObjectKey};
pub use yaml::{to_manifest, to_yaml};

use podstead_pod::Origin;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Content of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The good objects, in file order.
    pub objects: Vec<DecodedObject>,
    /// Problems, in file order.
    pub problems: Vec<Problem>,
    /// Refused objects, which must not be taken for removed. `None` stands for an object whose identity
    /// cannot be told, or for a part of the file that cannot be read: then every object that this file gave before may be meant.
    /// A key that is in `objects` is never here.
    pub broken: Vec<Option<ObjectKey>>,
    /// The good patches, in file order.
    pub patches: Vec<Arc<Patch>>,
    /// Targets of refused patches.
    pub broken_patches: Vec<Target>,
    /// Objects that a patch takes away.
    pub removed: Vec<ObjectKey>,
    /// Pairs of patches and objects of the file that they are for, applied or not.
    pub touched: Vec<Touch>,
    /// Objects of kinds that do no harm when they are left out, one entry for each kind.
    pub ignored: Vec<Ignored>,
}

/// A patch and an object that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Position of the patch.
    pub patch: Origin,
    /// The object.
    pub object: ObjectKey,
}

/// The patches that may be for an object, in the order of their application.
pub type PatchesByObject = BTreeMap<ObjectKey, Vec<Arc<Patch>>>;

/// One good object.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedObject {
    /// Its identity.
    pub key: ObjectKey,
    /// The object as written.
    pub object: Object,
    /// File and position where it begins.
    pub origin: Origin,
    /// Positions of its fields.
    pub positions: PositionMap,
    /// Positions of the patches that were applied to it, in order.
    pub patched_by: Vec<Origin>,
}
