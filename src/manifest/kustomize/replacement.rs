//! Replacements: values that are copied from one object, or from the kustomization, to fields of others.

use super::CODE;
use super::field_path::{DEFAULT_PATH, MAX_STEPS, element, look_up, split_brackets};
use super::id::Id;
use super::kustomization::{FieldOptions, Replacement, Source, SourceField, Target};
use super::resource::Resource;
use super::select;
use super::structured;
use super::tree::{Field, Scalar, Tag, Tree, Value};
use crate::fault::{Fault, quoted};

/// Kind of the values that are made where `create` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Make {
    Scalar,
    List,
    Map,
}

/// Makes a replacement.
pub(super) fn apply(resources: &mut [Resource], replacement: &Replacement, max_nodes: usize) -> Result<(), Fault> {
    let value = match &replacement.source {
        Source::Value(text) => Tree::scalar(text.at, Scalar::plain(&*text.text)),
        Source::Field(source) => source_value(resources, source)?,
    };
    // What is copied may be copied again, so that a few replacements could make very large objects.
    if value.count(max_nodes) > max_nodes {
        return Err(Fault::at(crate::fault::code::TOO_COMPLEX, replacement.at, "the value is too large"));
    }
    replacement.targets.iter().try_for_each(|target| apply_target(resources, replacement.at, &value, target, max_nodes))
}

/// The identities that an object has and had. Whether its kind has a namespace is not known here, as upstream has it.
fn ids(resource: &Resource) -> Vec<Id> {
    let now = Id { cluster_scoped: false, ..resource.id() };
    [vec![now], resource.previous_ids()].concat()
}

fn source_value(resources: &[Resource], source: &SourceField) -> Result<Tree, Fault> {
    let fail = |message: String| Fault::at(CODE, source.at, message).field("source");
    let wanted =
        Id { gvk: source.gvk.clone(), name: source.name.clone(), namespace: source.namespace.clone(), cluster_scoped: false };
    let selects = |id: &Id| {
        (source.name.is_empty() || source.name == id.name)
            && (source.namespace.is_empty() || wanted.same_namespace(id))
            && id.gvk.is_selected(&source.gvk)
    };
    let mut found = resources.iter().filter(|resource| ids(resource).iter().any(selects));
    let resource = match (found.next(), found.next()) {
        (Some(one), None) => one,
        (None, _) => return Err(fail(format!("it selects no object: {}", wanted.text()))),
        (Some(_), Some(_)) => return Err(fail(format!("it selects several objects: {}", wanted.text()))),
    };
    let path = if source.field_path.is_empty() { DEFAULT_PATH } else { source.field_path.text.as_str() };
    let value = look_up(&resource.tree, &split_brackets(path, '.')).map_err(&fail)?;
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return Err(fail(format!("the object {} has no field {}", resource.id().text(), quoted(path))));
    };
    let FieldOptions { delimiter, index, .. } = &source.options;
    let mut value = value.clone();
    value.untie();
    if delimiter.is_empty() {
        return Ok(value);
    }
    let Value::Scalar(scalar) = &mut value.value else {
        return Err(fail(format!("a delimiter needs a single value, and {} is {}", quoted(path), value.kind_of_value())));
    };
    let parts: Vec<&str> = scalar.text.split(delimiter.as_str()).collect();
    let part = usize::try_from(*index).ok().and_then(|index| parts.get(index).copied());
    let Some(part) = part else {
        return Err(fail(format!("options.index {index} is not one of the {} parts of {}", parts.len(), quoted(path))));
    };
    scalar.text = part.to_owned();
    Ok(value)
}

fn apply_target(resources: &mut [Resource], at: u32, value: &Tree, target: &Target, max_nodes: usize) -> Result<(), Fault> {
    let default = [super::reader::Text { text: DEFAULT_PATH.to_owned(), at }];
    let paths = if target.field_paths.is_empty() { &default[..] } else { &target.field_paths[..] };
    for resource in resources {
        let ids = ids(resource);
        let rejects = |selector: &&select::Selector| {
            selector.names_metadata() && selector.selects_metadata(resource)
                || selector.names_an_identity() && ids.iter().any(|id| selector.selects_id(id))
        };
        let selected = target.select.selects_metadata(resource) && ids.iter().any(|id| target.select.selects_id(id));
        if !selected || target.reject.iter().any(|selector| rejects(&selector)) {
            continue;
        }
        let id = resource.id().text();
        for path in paths {
            copy(&mut resource.tree, value, &path.text, at, &target.options).map_err(|message| {
                Fault::at(CODE, path.at, format!("{}: {message}, in {id}", quoted(&path.text))).field("fieldPaths")
            })?;
            resource.tree.settle();
            if resource.tree.count(max_nodes) > max_nodes {
                return Err(Fault::at(crate::fault::code::TOO_COMPLEX, path.at, "the object becomes too large"));
            }
        }
    }
    Ok(())
}

/// Copies a value to the fields at a path.
fn copy(tree: &mut Tree, value: &Tree, path: &str, at: u32, options: &FieldOptions) -> Result<(), String> {
    let make = match (options.create, &value.value) {
        (false, _) => None,
        (true, Value::Scalar(_)) => Some(Make::Scalar),
        (true, Value::List(_)) => Some(Make::List),
        (true, Value::Map(_)) => Some(Make::Map),
    };
    let path = split_brackets(path, '.');
    if path.len() > MAX_STEPS {
        return Err(format!("the path has more than {MAX_STEPS} steps"));
    }
    if structured::set(tree, value, &path, at, make)? {
        return Ok(());
    }
    let found = for_each(tree, &path, make, at, &mut |field| set(field, value, at, options))?;
    match (found, make) {
        (0, None) => Err("the field does not exist".to_owned()),
        (0, Some(_)) => Err("the field cannot be found or made".to_owned()),
        (_, _) => Ok(()),
    }
}

/// Calls `set` for each value at a path, and counts them.
pub(super) fn for_each(
    tree: &mut Tree,
    path: &[String],
    make: Option<Make>,
    at: u32,
    set: &mut dyn FnMut(&mut Tree) -> Result<(), String>,
) -> Result<usize, String> {
    let Some((step, rest)) = path.split_first() else { return set(tree).map(|()| 1) };
    if let Ok(index) = step.parse::<usize>() {
        let Value::List(items) = &mut tree.value else { return Err(format!("expected a list at {step}")) };
        if let (true, Some(make)) = (index == items.len(), make) {
            items.push(made(rest, make, at));
        }
        let count = items.len();
        let item = items.get_mut(index).ok_or_else(|| format!("there is no item {index}, the list has {count}"))?;
        return for_each(item, rest, make, at, set);
    }
    if step.starts_with('[') && step.ends_with(']') {
        return for_elements(tree, step, rest, make, at, set);
    }
    if step == "*" {
        let Value::List(items) = &mut tree.value else { return Err("expected a list at *".to_owned()) };
        let mut count = 0;
        for item in items {
            count += for_each(item, rest, make, at, set)?;
        }
        return Ok(count);
    }
    if tree.is_null() || !matches!(tree.value, Value::Map(_)) {
        return if tree.is_null() { Ok(0) } else { Err(format!("expected a mapping with {step}, found {}", tree.kind_of_value())) };
    }
    if let (None, Some(make)) = (tree.get(step), make) {
        tree.set(step, made(rest, make, at));
    }
    match tree.get_mut(step) {
        Some(field) if field.is_scalar() && !rest.is_empty() => Ok(0),
        Some(field) => for_each(field, rest, make, at, set),
        None => Ok(0),
    }
}

fn for_elements(
    tree: &mut Tree,
    step: &str,
    rest: &[String],
    make: Option<Make>,
    at: u32,
    set: &mut dyn FnMut(&mut Tree) -> Result<(), String>,
) -> Result<usize, String> {
    let (key, pattern) = element(step)?;
    let Value::List(items) = &mut tree.value else { return Err(format!("expected a list at {step}")) };
    let regex = select::regex(pattern, at).map_err(|fault| fault.message)?;
    let printed = |tree: &Tree| match &tree.value {
        Value::Scalar(Scalar { text, styled: true, .. }) => format!("\"{text}\""),
        Value::Scalar(scalar) => scalar.text.clone(),
        Value::List(_) | Value::Map(_) => super::emit::emit(tree).trim().to_owned(),
    };
    let matches = |item: &Tree| match key.is_empty() {
        true => regex.is_match(&printed(item)),
        false => item.get(key).is_some_and(|field| regex.is_match(&printed(field))),
    };
    let mut count = 0;
    for item in items.iter_mut().filter(|item| matches(item)) {
        count += if key.is_empty() { set(item).map(|()| 1)? } else { for_each(item, rest, make, at, set)? };
    }
    if count > 0 || make.is_none() {
        return Ok(count);
    }
    let scalar = Tree::scalar(at, Scalar::plain(pattern));
    let mut item = match key.is_empty() {
        true => scalar,
        false => Tree { at, value: Value::Map(vec![Field { key: key.to_owned(), at, value: scalar }]) },
    };
    let count = if key.is_empty() { set(&mut item).map(|()| 1)? } else { for_each(&mut item, rest, make, at, set)? };
    items.push(item);
    Ok(count)
}

/// The value of a step that is missing.
fn made(rest: &[String], last: Make, at: u32) -> Tree {
    let kind = match rest.first() {
        None => last,
        Some(next) if next.starts_with('[') && next.ends_with(']') || next.parse::<usize>().is_ok() => Make::List,
        Some(_) => Make::Map,
    };
    match kind {
        Make::Scalar => Tree::scalar(at, Scalar::plain("")),
        Make::List => Tree { at, value: Value::List(Vec::new()) },
        Make::Map => Tree::map(at),
    }
}

/// Writes a value. A scalar keeps its type, so that a number becomes a string where one stood.
fn set(field: &mut Tree, value: &Tree, at: u32, options: &FieldOptions) -> Result<(), String> {
    let mut text = value.text().to_owned();
    if !options.delimiter.is_empty() {
        if !field.is_scalar() {
            return Err(format!("a delimiter needs a single value, found {}", field.kind_of_value()));
        }
        let mut parts: Vec<&str> = field.text().split(options.delimiter.as_str()).collect();
        match usize::try_from(options.index) {
            Err(_) => parts.insert(0, &text),
            Ok(index) if index >= parts.len() => parts.push(&text),
            Ok(index) => parts[index] = &text,
        }
        text = parts.join(&options.delimiter);
    }
    set_text(field, value, text, at)
}

/// Writes a text to a scalar, or the value to anything else.
pub(super) fn set_text(field: &mut Tree, value: &Tree, text: String, at: u32) -> Result<(), String> {
    let Value::Scalar(scalar) = &mut field.value else {
        *field = value.clone();
        field.at = at;
        return Ok(());
    };
    let now = Scalar::plain(text);
    let now = match (scalar.styled, scalar.tag) {
        (true, _) | (false, Tag::String | Tag::Time) => Scalar { styled: scalar.styled, tag: Tag::String, ..now },
        (false, Tag::Null) => now,
        (false, Tag::Int | Tag::Float) if matches!(now.tag, Tag::Int | Tag::Float) => now,
        (false, Tag::Bool) if now.tag == Tag::Bool => now,
        (false, tag) => {
            let wanted = if tag == Tag::Bool { "true or false" } else { "a number" };
            return Err(format!("the field has {wanted}, and cannot become {}", quoted(&now.text)));
        }
    };
    scalar.write(now);
    field.at = at;
    Ok(())
}
