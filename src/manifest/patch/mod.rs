//! Changes of objects that other documents hold: `kind: Patch`.
//!
//! In: a document, and the trees of the objects that it is for. Out: the changed trees, whose nodes know which patch wrote them. What is
//! wrong with a patch is reported at its own place.

mod directive;
pub(super) mod json;
mod list;
mod merge_keys;
mod read;
pub(super) mod strategic;
mod target;
pub(super) mod tree;

pub use merge_keys::{PatchStrategy, patch_strategy};
pub(super) use read::read;
pub use target::Target;

use super::fault::{Fault, code};
use super::kind::{self, Kind};
use super::node::{Node, Value};
use super::places::{Place, Places};
use super::schema::{self, Extent, Type};
use super::{Limits, ObjectKey, object};
use json::Operation;
use podstead_pod::{DEFAULT_NAMESPACE, Origin, Position};
use std::fmt;
use tree::{fits, placed, without_nulls};

/// Patches that may change one object.
const MAX_PATCHES: usize = 100;

/// A change of objects that other documents hold.
#[derive(Clone, PartialEq)]
pub struct Patch {
    key: ObjectKey,
    origin: Origin,
    target: Target,
    change: Change,
    /// Positions that the nodes in `change` refer to.
    places: Vec<Position>,
}

#[derive(Clone, Debug, PartialEq)]
enum Change {
    Strategic(Node),
    Json(Vec<Operation>),
}

impl fmt::Debug for Patch {
    /// Without its content, which may be for a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Patch {} of {} at {}", self.key.name, self.target, self.origin)
    }
}

impl Patch {
    /// Its identity, of kind `Patch`.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// File and position of its manifest.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Its target.
    pub fn target(&self) -> &Target {
        &self.target
    }
}

/// A tree after its patches.
#[derive(Debug)]
pub(super) struct Patched {
    /// `None` when a patch removed the object.
    pub(super) node: Option<Node>,
    /// Positions that its nodes refer to.
    pub(super) table: Vec<Place>,
    /// Index of the tree's own position in the table.
    pub(super) at: u32,
}

/// Reason why an object cannot be patched.
#[derive(Debug)]
pub(super) struct PatchFault {
    /// Index of the failed patch.
    pub(super) patch: usize,
    pub(super) fault: Fault,
    pub(super) position: Position,
}

/// Applies patches in order to an object of this kind that begins at `at` and has no faults. Each has to leave an object that can be read.
pub(super) fn apply(
    node: Node,
    at: u32,
    kind: Kind,
    patches: &[&Patch],
    places: Places<'_>,
    limits: &Limits,
) -> Result<Patched, Vec<PatchFault>> {
    let mut table = vec![places.place(at)];
    let mut note = |at: u32| {
        table.push(places.place(at));
        (table.len() - 1) as u32
    };
    let mut node = placed(without_nulls(node), &mut note);
    let key = object::key_of(&node, kind, DEFAULT_NAMESPACE);
    for (index, patch) in patches.iter().enumerate() {
        let start = table.len() as u32;
        let file = u16::try_from(index + 1).unwrap_or(u16::MAX);
        table.extend(patch.places.iter().map(|position| Place { file, position: *position }));
        let fail = |table: &[Place], fault: Fault| {
            let own = fault.at.and_then(|at| table.get(at as usize)).filter(|place| place.file == file);
            let position = own.map_or(patch.origin.position, |place| place.position);
            PatchFault { patch: index, fault, position }
        };
        if index >= MAX_PATCHES {
            let fault = Fault::of_file(json::CODE, format!("more than {MAX_PATCHES} patches change one object"));
            return Err(vec![fail(&table, fault)]);
        }
        let Some(changed) = patch.change(node, kind, start, limits).map_err(|fault| vec![fail(&table, fault)])? else {
            return Ok(Patched { node: None, table, at: 0 });
        };
        let faults =
            schema::check(&changed, kind.structure, Extent::Whole, "", 0, Places::Table(&table), limits.max_problems).faults;
        let missing = object::required_faults(&changed, kind, "", 0);
        let mut failed: Vec<PatchFault> = faults.into_iter().chain(missing).map(|fault| fail(&table, fault)).collect();
        if failed.is_empty() && object::key_of(&changed, kind, DEFAULT_NAMESPACE) != key {
            let fault =
                Fault::of_file(json::CODE, "a patch cannot change the name or the namespace of an object").field("metadata");
            failed.push(fail(&table, fault));
        }
        if failed.is_empty() && !kind::says_its_kind(&changed, kind) {
            let fault = Fault::of_file(json::CODE, "a patch cannot change the kind or the version of an object").field("kind");
            failed.push(fail(&table, fault));
        }
        if !failed.is_empty() {
            return Err(failed);
        }
        node = changed;
    }
    Ok(Patched { node: Some(node), table, at: 0 })
}

impl Patch {
    /// The tree after this patch, whose places begin at `start`; `None` where it removes the object.
    fn change(&self, node: Node, kind: Kind, start: u32, limits: &Limits) -> Result<Option<Node>, Fault> {
        let mut shift = |at: u32| start + at;
        let too_large = |at: u32| Fault::at(code::TOO_COMPLEX, at, "the patched object is too large");
        match &self.change {
            Change::Strategic(patch) => {
                if is_removal(patch) {
                    return Ok(None);
                }
                let patch = placed(patch.clone(), &mut shift);
                let (Value::Map(entries), Value::Map(patch)) = (node.value, patch.value) else { return Ok(None) };
                let merged = strategic::merge(entries, patch, &Type::Object(kind.structure))?;
                let node = Node { at: node.at, value: Value::Map(merged) };
                if fits(&node, limits.max_nodes, limits.max_depth) { Ok(Some(node)) } else { Err(too_large(start)) }
            }
            Change::Json(operations) => {
                let mut node = node;
                for (index, operation) in operations.iter().enumerate() {
                    let operation = placed_operation(operation.clone(), &mut shift);
                    let (at, may_grow) = (operation.at, operation.change.may_grow());
                    json::apply(&mut node, operation).map_err(|fault| fault.field(format!("json[{index}]")))?;
                    // At once: each copy may double the tree.
                    if may_grow && !fits(&node, limits.max_nodes, limits.max_depth) {
                        return Err(too_large(at).field(format!("json[{index}]")));
                    }
                }
                let node = without_nulls(node);
                if fits(&node, limits.max_nodes, limits.max_depth) { Ok(Some(node)) } else { Err(too_large(start)) }
            }
        }
    }
}

/// `$patch: delete` at the top takes the object out, as kustomize has it.
fn is_removal(patch: &Node) -> bool {
    patch.entry(directive::PATCH).is_some_and(|entry| entry.value.as_str() == Some(directive::DELETE))
}

fn placed_operation(operation: Operation, place: &mut impl FnMut(u32) -> u32) -> Operation {
    let Operation { at, change, path } = operation;
    let at = place(at);
    let change = match change {
        json::Change::Add(value) => json::Change::Add(placed(value, place)),
        json::Change::Replace(value) => json::Change::Replace(placed(value, place)),
        json::Change::Test(value) => json::Change::Test(placed(value, place)),
        unchanged @ (json::Change::Remove | json::Change::Move { .. } | json::Change::Copy { .. }) => unchanged,
    };
    Operation { at, change, path }
}
