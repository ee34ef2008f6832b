//! Fields of an object by the path of a field specification, e.g. `spec/template/spec/containers[]/image`.

use super::CODE;
use super::config::FieldSpec;
use super::id::Gvk;
use super::tree::{Scalar, Tree, Value};
use crate::fault::{Fault, code, quoted};

/// Field of a value that says none.
pub(super) const DEFAULT_PATH: &str = "metadata.name";

/// Steps of a path. What is missing is made, and deeper trees would exhaust the stack.
pub(super) const MAX_STEPS: usize = 64;

/// Kinds of nodes that replace a missing field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Make {
    Nothing,
    Scalar,
    Map,
}

/// Calls `set` for each field that a specification is about. Lists on the way are walked item by item; `at` is the place of what is made.
pub(super) fn visit(
    tree: &mut Tree,
    spec: &FieldSpec,
    make: Make,
    at: u32,
    set: &mut dyn FnMut(&mut Tree) -> Result<(), Fault>,
) -> Result<(), Fault> {
    if !Gvk::of(tree).is_selected(&spec.gvk) {
        return Ok(());
    }
    let steps = split(&spec.path, '/');
    if steps.len() > MAX_STEPS {
        return Err(Fault::at(code::TOO_COMPLEX, at, format!("the path of a field has more than {MAX_STEPS} steps")));
    }
    let make = if spec.create { make } else { Make::Nothing };
    let mut is_unsettled = false;
    let mut set = |field: &mut Tree| {
        let done = set(field);
        is_unsettled |= field.is_unsettled();
        done
    };
    walk(tree, &steps, make, at, &mut set).map_err(|fault| {
        let field = if fault.field.is_empty() { spec.path.replace('/', ".") } else { fault.field.clone() };
        fault.field(field)
    })?;
    if is_unsettled {
        tree.settle();
    }
    Ok(())
}

fn walk(
    tree: &mut Tree,
    steps: &[String],
    make: Make,
    at: u32,
    set: &mut dyn FnMut(&mut Tree) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Some((step, rest)) = steps.split_first() else { return set(tree) };
    if tree.is_null() {
        return Ok(());
    }
    match &mut tree.value {
        Value::List(items) => items.iter_mut().try_for_each(|item| walk(item, steps, make, at, set)),
        Value::Map(_) => {
            let (name, is_list) = step.strip_suffix("[]").map_or((step.as_str(), false), |name| (name, true));
            if name.is_empty() {
                return Err(Fault::at(CODE, at, "a step of the path has no name"));
            }
            let made = match (is_list, make, rest.is_empty()) {
                (true, _, _) | (_, Make::Nothing, _) => None,
                (false, Make::Scalar, true) => Some(Tree::scalar(at, Scalar::plain(""))),
                (false, Make::Scalar | Make::Map, _) => Some(Tree::map(at)),
            };
            match (tree.get_mut(name), made) {
                (None, None) => return Ok(()),
                (None, Some(made)) => tree.set(name, made),
                // A list that is null becomes an empty one, and what is null is made.
                (Some(field), None) if is_list && field.is_null() => field.value = Value::List(Vec::new()),
                (Some(field), Some(made)) if field.is_null() => *field = made,
                (Some(_), _) => {}
            }
            match tree.get_mut(name) {
                Some(field) => walk(field, rest, make, at, set),
                None => Ok(()),
            }
        }
        Value::Scalar(_) => {
            let message = format!("expected a mapping or a list with the field {step}, found a single value");
            Err(Fault::at(CODE, tree.at, message))
        }
    }
}

/// The value at a path, where every step names one value.
pub(super) fn look_up<'t>(tree: &'t Tree, path: &[String]) -> Result<Option<&'t Tree>, String> {
    let mut found = tree;
    for step in path.iter().map(|step| step.trim()).filter(|step| !step.is_empty()) {
        let next = if let Ok(index) = step.parse::<usize>() {
            found.items().get(index)
        } else if step == "-" {
            found.items().last()
        } else if step == "*" {
            return Err("a source names one value: * is not possible".to_owned());
        } else if step.starts_with('[') && step.ends_with(']') {
            let (key, value) = element(step)?;
            found.items().iter().find(|item| match key.is_empty() {
                true => item.text() == value,
                false => item.get(key).is_some_and(|field| !field.is_null() && field.text() == value),
            })
        } else {
            found.get(step)
        };
        match next.filter(|next| !next.is_null()) {
            Some(next) => found = next,
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// Key and value of a step `[key=value]`.
pub(super) fn element(step: &str) -> Result<(&str, &str), String> {
    let inner = step.strip_prefix('[').and_then(|step| step.strip_suffix(']')).unwrap_or(step);
    inner.split_once('=').ok_or_else(|| format!("{} is not [name=value]", quoted(step)))
}

/// The steps of a path; a delimiter behind a backslash belongs to its step.
pub(super) fn split(path: &str, delimiter: char) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    let path = path.strip_prefix(delimiter).unwrap_or(path);
    for part in path.split(delimiter) {
        match steps.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push(delimiter);
                last.push_str(part);
            }
            Some(_) | None => steps.push(part.to_owned()),
        }
    }
    steps
}

/// As [`split`]; a step in brackets may contain the delimiter, and one without `=` is a plain name.
pub(super) fn split_brackets(path: &str, delimiter: char) -> Vec<String> {
    let mut steps = Vec::new();
    let mut parts = split(path, delimiter).into_iter();
    while let Some(part) = parts.next() {
        if !part.starts_with('[') || part.ends_with(']') {
            steps.push(part);
            continue;
        }
        let mut whole = part;
        for part in parts.by_ref() {
            whole.push(delimiter);
            whole.push_str(&part);
            if part.ends_with(']') {
                break;
            }
        }
        steps.push(if whole.contains('=') { whole } else { whole.trim_matches(['[', ']']).to_owned() });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_as_upstream_splits_them() {
        assert_eq!(split("/spec/a", '/'), ["spec", "a"]);
        assert_eq!(split(r"metadata/annotations/a.b\/c", '/'), ["metadata", "annotations", "a.b/c"]);
        assert_eq!(split_brackets("spec.x.[name=a.b].c", '.'), ["spec", "x", "[name=a.b]", "c"]);
        assert_eq!(split_brackets("metadata.annotations.[a.b/c]", '.'), ["metadata", "annotations", "a.b/c"]);
        assert_eq!(split_brackets(r"metadata.annotations.a\.b", '.'), ["metadata", "annotations", "a.b"]);
        assert_eq!(split_brackets("a.[x]", '.'), ["a", "[x]"]);
    }
}
