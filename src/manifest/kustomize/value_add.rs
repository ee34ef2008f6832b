//! The built-in `ValueAddTransformer`: one value that is written to fields, or inserted into paths that they hold.

use super::CODE;
use super::builtin::ValueTarget;
use super::field_path::{MAX_STEPS, element, split};
use super::reader::Text;
use super::resource::Resource;
use super::transform::{Namespace, Subjects, set_namespace};
use super::tree::{Field, Scalar, Tree, Value};
use crate::fault::{Fault, quoted};

/// Writes the value to the field of all objects that the target selects.
pub(super) fn apply(resources: &mut [Resource], value: &Text, target: &ValueTarget) -> Result<(), Fault> {
    let selects = |resource: &Resource| target.select.as_ref().is_none_or(|select| select.selects(resource));
    for resource in resources.iter_mut().filter(|resource| selects(resource)) {
        if target.path.text == "metadata/namespace" {
            let namespace = Namespace { name: value, fields: &[], subjects: Subjects::Default, unset_only: false };
            set_namespace(&mut resource.tree, namespace)?;
            continue;
        }
        let id = resource.id().text();
        let fault = |message: String| {
            let message = format!("{}: {message}, in {id}", quoted(&target.path.text));
            Fault::at(CODE, target.path.at, message).field("fieldPath")
        };
        // As upstream has it, nothing is written where an item of a list is missing.
        let Some(field) = field(&mut resource.tree, &target.path.text, value.at).map_err(fault)? else { continue };
        if !field.is_scalar() {
            return Err(fault(format!("expected a single value, found {}", field.kind_of_value())));
        }
        let text = match usize::try_from(target.position - 1) {
            Ok(position) if field.is_null() => inserted("", position, &value.text),
            Ok(position) => inserted(field.text(), position, &value.text),
            Err(_) => value.text.clone(),
        };
        field.set_text(value.at, text);
        if field.is_unsettled() {
            resource.tree.settle();
        }
    }
    Ok(())
}

/// The field at a path, which is made when it is missing; `None` behind null, and behind items by number that are missing.
fn field<'t>(tree: &'t mut Tree, path: &str, at: u32) -> Result<Option<&'t mut Tree>, String> {
    let steps: Vec<String> = split_all(path);
    if steps.len() > MAX_STEPS {
        return Err(format!("the path has more than {MAX_STEPS} steps"));
    }
    let mut found = tree;
    for (index, step) in steps.iter().enumerate() {
        let is_index = step == "-" || step.parse::<usize>().is_ok();
        if step == "*" {
            return Err("* is not possible here".to_owned());
        }
        if step.parse::<i64>().is_ok_and(|index| index < 0) {
            return Err(format!("{step} is not the number of an item"));
        }
        if found.is_null() {
            return Ok(None);
        }
        found = if is_index {
            let Value::List(items) = &mut found.value else { return Err(format!("expected a list at {step}")) };
            let index = step.parse().unwrap_or(items.len().wrapping_sub(1));
            let Some(item) = items.get_mut(index) else { return Ok(None) };
            item
        } else if step.starts_with('[') && step.ends_with(']') {
            item(found, step, at)?
        } else {
            if !matches!(found.value, Value::Map(_)) {
                return Err(format!("expected a mapping with {step}, found {}", found.kind_of_value()));
            }
            if found.get(step).is_none() {
                found.set(step, made(steps.get(index + 1), at));
            }
            found.get_mut(step).ok_or_else(|| format!("there is no field {step}"))?
        };
    }
    Ok(Some(found))
}

/// The steps of a path; spaces around them do not count.
fn split_all(path: &str) -> Vec<String> {
    split(path, '/').iter().map(|step| step.trim().to_owned()).filter(|step| !step.is_empty()).collect()
}

/// The value of a field that is missing: what the next step needs.
fn made(next: Option<&String>, at: u32) -> Tree {
    match next {
        None => Tree::scalar(at, Scalar::plain("")),
        Some(next) if next.starts_with('[') && next.ends_with(']') || next.parse::<usize>().is_ok() => {
            Tree { at, value: Value::List(Vec::new()) }
        }
        Some(_) => Tree::map(at),
    }
}

/// The item of a list that `[key=value]` or `[=value]` selects, which is added when it is missing.
fn item<'t>(tree: &'t mut Tree, step: &str, at: u32) -> Result<&'t mut Tree, String> {
    let (key, value) = element(step)?;
    let Value::List(items) = &mut tree.value else { return Err(format!("expected a list at {step}")) };
    let matches = |item: &Tree| match key.is_empty() {
        true => item.is_scalar() && item.text() == value,
        false => item.get(key).is_some_and(|field| field.is_scalar() && field.text() == value),
    };
    let index = items.iter().position(matches).unwrap_or_else(|| {
        let scalar = Tree::scalar(at, Scalar::plain(value));
        items.push(match key.is_empty() {
            true => scalar,
            false => Tree { at, value: Value::Map(vec![Field { key: key.to_owned(), at, value: scalar }]) },
        });
        items.len() - 1
    });
    Ok(&mut items[index])
}

/// A path with one more step at a position: from 0, or at the end. It stays absolute.
fn inserted(path: &str, position: usize, step: &str) -> String {
    let (root, rest) = path.strip_prefix('/').map_or(("", path), |rest| ("/", rest));
    let mut steps: Vec<&str> = if rest.is_empty() { Vec::new() } else { rest.split('/').collect() };
    steps.insert(position.min(steps.len()), step);
    format!("{root}{}", super::build::clean(&steps.join("/")))
}

#[cfg(test)]
mod tests {
    use super::inserted;

    #[test]
    fn steps_are_inserted_as_upstream_inserts_them() {
        for (path, position, expected) in [
            ("", 3, "P"),
            ("/", 0, "/P"),
            ("pie", 0, "P/pie"),
            ("/pie", 0, "/P/pie"),
            ("raw", 1, "raw/P"),
            ("/raw", 9, "/raw/P"),
            ("a/nice/warm/pie", 3, "a/nice/warm/P/pie"),
            ("/a/nice/warm/pie", 3, "/a/nice/warm/P/pie"),
        ] {
            assert_eq!(inserted(path, position, "P"), expected, "{path} {position}");
        }
    }
}
