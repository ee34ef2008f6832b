//! Lists of objects: each identity is there once.

use super::generate::{self, Behavior};
use super::id::Id;
use super::resource::{ORIGIN, Resource};
use super::tree::{Tree, Value};
use super::{BuildLimits, CODE};
use crate::fault::{Fault, code};
use std::collections::HashSet;

/// The objects of documents. Lists are replaced by their items, which come behind the other documents.
pub(super) fn resources_of(trees: Vec<Tree>, limits: &BuildLimits) -> Result<Vec<Resource>, Fault> {
    let mut queue = std::collections::VecDeque::new();
    for tree in trees {
        if !tree.is_empty() {
            check(&tree)?;
            queue.push_back(tree);
        }
    }
    let mut resources = Vec::new();
    while let Some(mut tree) = queue.pop_front() {
        if resources.len() >= limits.max_objects {
            let message = format!("there are more than {} objects", limits.max_objects);
            return Err(Fault::at(code::TOO_COMPLEX, tree.at, message));
        }
        let is_list = tree.get("kind").is_some_and(|kind| kind.text().ends_with("List"));
        let at = tree.at;
        match if is_list { tree.remove("items") } else { None } {
            None => resources.push(Resource::new(tree)),
            Some(Tree { value: Value::List(items), .. }) => {
                for item in items {
                    if !item.is_empty() {
                        check(&item)?;
                        queue.push_back(item);
                    }
                }
            }
            Some(items) if items.is_null() => {}
            Some(items) => {
                let message = format!("expected a list, found {}", items.kind_of_value());
                return Err(Fault::at(CODE, if items.at > 0 { items.at } else { at }, message).field("items"));
            }
        }
    }
    Ok(resources)
}

/// Refuses what is no object: each has a kind and, unless it is a list, a name.
fn check(tree: &Tree) -> Result<(), Fault> {
    let at = tree.at;
    if !matches!(tree.value, Value::Map(_)) {
        let message = format!("expected an object of Kubernetes, found {}", tree.kind_of_value());
        return Err(Fault::at(code::NOT_AN_OBJECT, at, message));
    }
    let kind = tree.get("kind").map_or("", Tree::text);
    if kind.is_empty() {
        let fault = Fault::at(code::MISSING_FIELD, at, "is required").field("kind");
        return Err(fault.hint("a file that resources or patches name must hold objects of Kubernetes only"));
    }
    let name =
        tree.get("metadata").and_then(|metadata| metadata.get("name")).filter(|name| !name.is_empty()).map_or("", Tree::text);
    if name.is_empty() && !kind.ends_with("List") {
        return Err(Fault::at(code::MISSING_FIELD, at, "is required").field("metadata.name"));
    }
    Ok(())
}

/// Adds an object, whose identity must be new.
pub(super) fn append(resources: &mut Vec<Resource>, resource: Resource) -> Result<(), Fault> {
    let id = resource.id();
    match resources.iter().find(|known| same_text(known, &resource) && known.id().same(&id)) {
        Some(_) => Err(duplicate(&resource, &id)),
        None => {
            resources.push(resource);
            Ok(())
        }
    }
}

fn duplicate(resource: &Resource, id: &Id) -> Fault {
    let fault = Fault::at(code::DUPLICATE_NAME, resource.tree.at, format!("there is another object {}", id.text()));
    fault.hint("list each object once, and change it with patches")
}

/// The parts of an identity that are compared.
fn key(resource: &Resource) -> (String, String, String) {
    let id = resource.id();
    (id.gvk.text(), id.effective_namespace().to_owned(), id.name)
}

/// Refuses two objects of one identity: names and namespaces may have become the same.
pub(super) fn distinct(resources: &[Resource]) -> Result<(), Fault> {
    let mut known = HashSet::new();
    match resources.iter().find(|resource| !known.insert(key(resource))) {
        Some(resource) => Err(duplicate(resource, &resource.id())),
        None => Ok(()),
    }
}

/// Removes objects that are only for the build. All must be objects still, each of its own identity: transformers may have changed them.
pub(super) fn drop_local(resources: &mut Vec<Resource>) -> Result<(), Fault> {
    for resource in &*resources {
        check(&resource.tree)?;
    }
    let is_local =
        |resource: &&Resource| resource.annotation("config.kubernetes.io/local-config").is_some_and(|text| text != "false");
    let kept: HashSet<_> = resources.iter().filter(|resource| !is_local(resource)).map(key).collect();
    // By identity, as upstream has it: a local object that has the name of another one stays, and is refused.
    resources.retain(|resource| kept.contains(&key(resource)));
    distinct(resources)
}

/// A quick look before identities are made.
fn same_text(one: &Resource, other: &Resource) -> bool {
    one.name() == other.name() && one.kind() == other.kind()
}

/// Index of the one object that has or had an identity.
pub(super) fn find(resources: &[Resource], id: &Id) -> Result<usize, String> {
    let matches = all(resources, id);
    match matches[..] {
        [one] => Ok(one),
        [] => Err(format!("there is no object {}", id.text())),
        _ => Err(format!("there are several objects {}", id.text())),
    }
}

fn all(resources: &[Resource], id: &Id) -> Vec<usize> {
    let has = |resource: &Resource| resource.id().same(id) || resource.previous_ids().iter().any(|known| known.same(id));
    resources.iter().enumerate().filter(|(_, resource)| has(resource)).map(|(index, _)| index).collect()
}

/// Adds a generated object, or merges it into the one that is there.
pub(super) fn absorb(resources: &mut Vec<Resource>, mut resource: Resource) -> Result<(), Fault> {
    let id = resource.id();
    let fail = |message: String| Fault::at(CODE, resource.tree.at, message).field("behavior");
    let behavior = Behavior::of(&resource);
    match (all(resources, &id)[..].to_vec().as_slice(), behavior) {
        ([], Behavior::Create) => append(resources, resource),
        ([], Behavior::Merge | Behavior::Replace) => {
            let message = format!("there is no object {} to {}", id.text(), behavior.word());
            Err(fail(message).hint("remove behavior, or name an object of a base, in its namespace"))
        }
        ([_], Behavior::Create) => {
            Err(fail(format!("there is another object {}", id.text())).hint("write behavior: merge or behavior: replace"))
        }
        ([index], Behavior::Merge | Behavior::Replace) => {
            let known = resources[*index].clone();
            resource.take_over_metadata(&known);
            if behavior == Behavior::Merge {
                generate::merge_data(&mut resource, &known);
                if let Some(origin) = known.annotation(ORIGIN) {
                    resource.set_annotation(ORIGIN, origin);
                }
            }
            resources[*index] = resource;
            Ok(())
        }
        (_, _) => Err(fail(format!("there are several objects {} to {}", id.text(), behavior.word()))),
    }
}
