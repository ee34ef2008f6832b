//! Changes that a kustomization makes to all of its objects: namespace, names, labels, annotations, images and replicas.

use super::CODE;
use super::config::{Config, FieldSpec, merge};
use super::field_path::{Make, visit};
use super::id::{Gvk, Id};
use super::kustomization::{Image, Label, Replica};
use super::reader::{Pairs, Text};
use super::resource::{PREFIXES, Resource, SUFFIXES};
use super::select;
use super::tree::{Scalar, Share, Tag, Tree, Value};
use crate::fault::{Fault, quoted};
use regex_lite::Regex;
use std::collections::HashSet;

/// Subjects of role bindings that follow the namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subjects {
    /// Those named `default`.
    Default,
    ServiceAccounts,
    None,
}

/// A namespace, and the fields that it is written to besides the objects' own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Namespace<'n> {
    pub(super) name: &'n Text,
    pub(super) fields: &'n [FieldSpec],
    pub(super) subjects: Subjects,
    /// Fields that have a value keep it.
    pub(super) unset_only: bool,
}

/// Sets the namespace of all objects that have one, and of fields that name it.
pub(super) fn namespace(resources: &mut [Resource], namespace: Namespace<'_>) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    for resource in resources {
        resource.store_id();
        set_namespace(&mut resource.tree, namespace)?;
        let id = resource.id();
        if !seen.insert((id.gvk.text(), id.name.clone(), id.effective_namespace().to_owned())) {
            let name = namespace.name;
            let message = format!("in namespace {} there would be two objects {}", quoted(&name.text), id.text());
            return Err(Fault::at(CODE, name.at, message).field("namespace"));
        }
    }
    Ok(())
}

/// Sets the namespace of one object.
pub(super) fn set_namespace(tree: &mut Tree, namespace: Namespace<'_>) -> Result<(), Fault> {
    let Namespace { name, fields, subjects, unset_only } = namespace;
    let mut set = |field: &mut Tree| match unset_only && !field.is_empty() && !field.text().is_empty() {
        true => Ok(()),
        false => set_scalar(field, Scalar::string(&*name.text), name.at),
    };
    let gvk = Gvk::of(tree);
    if !gvk.is_cluster_scoped() {
        let own = FieldSpec { gvk: Gvk::default(), path: "metadata/namespace".to_owned(), create: true };
        visit(tree, &own, Make::Scalar, name.at, &mut set)?;
    }
    let is_binding = matches!(gvk.kind.as_str(), "RoleBinding" | "ClusterRoleBinding");
    if is_binding {
        set_subjects(tree, namespace, subjects);
    }
    let is_core = tree.get("apiVersion").is_some_and(|version| version.text() == "v1");
    for spec in fields {
        let is_subject = is_binding && spec.path == "subjects/namespace" && spec.gvk.kind.ends_with("RoleBinding");
        if spec.path == "metadata/namespace" || spec.path == "metadata/name" && !is_core || is_subject {
            continue;
        }
        visit(tree, spec, Make::Scalar, name.at, &mut set)?;
    }
    Ok(())
}

fn set_subjects(tree: &mut Tree, namespace: Namespace<'_>, which: Subjects) {
    let (key, wanted) = match which {
        Subjects::Default => ("name", "default"),
        Subjects::ServiceAccounts => ("kind", "ServiceAccount"),
        Subjects::None => return,
    };
    let Some(Tree { value: Value::List(subjects), .. }) = tree.get_mut("subjects") else { return };
    for subject in subjects {
        let keeps = namespace.unset_only && subject.get("namespace").is_some_and(|name| !name.text().is_empty());
        if !keeps && subject.get(key).is_some_and(|value| value.text() == wanted) {
            subject.set("namespace", Tree::string(namespace.name.at, &*namespace.name.text));
        }
    }
}

/// Gives a scalar this value; anything else cannot have it.
fn set_scalar(field: &mut Tree, scalar: Scalar, at: u32) -> Result<(), Fault> {
    if !field.is_scalar() {
        let message = format!("expected a single value to replace, found {}", field.kind_of_value());
        return Err(Fault::at(CODE, field.at, message));
    }
    field.write(at, scalar);
    Ok(())
}

/// End of a name that is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Affix {
    Prefix,
    Suffix,
}

/// Adds a prefix or a suffix to the names of all objects but definitions, API services and namespaces.
pub(super) fn affix(resources: &mut [Resource], text: &Text, affix: Affix, specs: &[FieldSpec]) -> Result<(), Fault> {
    for resource in resources {
        let id = resource.original_id();
        let is_skipped = match id.gvk.kind.as_str() {
            "CustomResourceDefinition" | "Namespace" => true,
            "APIService" => id.gvk.group == "apiregistration.k8s.io",
            _ => false,
        };
        if is_skipped {
            continue;
        }
        for spec in specs.iter().filter(|spec| id.gvk.is_selected(&spec.gvk)) {
            if spec.path == "metadata/name" {
                let noted = match affix {
                    Affix::Prefix => PREFIXES,
                    Affix::Suffix => SUFFIXES,
                };
                resource.append_to_annotation(noted, &text.text);
                if !text.is_empty() {
                    resource.store_id();
                }
            }
            visit(&mut resource.tree, spec, Make::Scalar, text.at, &mut |field| {
                if !field.is_scalar() {
                    return Err(Fault::at(CODE, field.at, format!("expected a name, found {}", field.kind_of_value())));
                }
                let name = match affix {
                    Affix::Prefix => format!("{}{}", text.text, field.text()),
                    Affix::Suffix => format!("{}{}", field.text(), text.text),
                };
                field.set_text(text.at, name);
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Fields that an entry of `labels` is written to.
pub(super) fn label_fields(label: &Label, config: &Config, at: u32) -> Result<Vec<FieldSpec>, Fault> {
    let mut fields = label.fields.clone();
    merge(&mut fields, &config.labels, at)?;
    if label.include_selectors {
        merge(&mut fields, &config.common_labels, at)?;
    } else {
        if label.include_templates {
            merge(&mut fields, &config.template_labels, at)?;
        }
        let own = FieldSpec { gvk: Gvk::default(), path: "metadata/labels".to_owned(), create: true };
        merge(&mut fields, &[own], at)?;
    }
    Ok(fields)
}

/// Writes labels or annotations to these fields of all objects.
pub(super) fn pairs(resources: &mut [Resource], pairs: &Pairs, fields: &[FieldSpec]) -> Result<(), Fault> {
    for resource in resources {
        for (key, text) in pairs {
            resource.shares += 1;
            let share = Share::With(resource.shares);
            for spec in fields {
                visit(&mut resource.tree, spec, Make::Map, text.at, &mut |field| {
                    if field.is_null() {
                        return Ok(());
                    }
                    if !matches!(field.value, Value::Map(_)) {
                        let message = format!("expected a mapping for {}, found {}", quoted(key), field.kind_of_value());
                        return Err(Fault::at(CODE, field.at, message));
                    }
                    let scalar = Scalar::string(&*text.text);
                    match field.get_mut(key) {
                        Some(known) => known.write(text.at, scalar),
                        None => field.set(key, Tree::scalar(text.at, Scalar { share, ..scalar })),
                    }
                    Ok(())
                })?;
            }
            resource.tree.settle();
        }
    }
    Ok(())
}

/// Sets the number of replicas of the objects with a name.
pub(super) fn replicas(resources: &mut [Resource], replica: &Replica, specs: &[FieldSpec]) -> Result<(), Fault> {
    let mut found = false;
    for spec in specs {
        let matches = |id: &Id| id.name == replica.name && id.gvk.is_selected(&spec.gvk);
        for resource in resources.iter_mut() {
            if !resource.previous_ids().iter().chain([&resource.id()]).any(matches) {
                continue;
            }
            found = true;
            let scalar = Scalar::tagged(replica.count.to_string(), Tag::Int);
            visit(&mut resource.tree, spec, Make::Scalar, replica.at, &mut |field| {
                // A number that stood in quotes stays in them.
                let styled = matches!(&field.value, Value::Scalar(Scalar { styled: true, .. }));
                let scalar = if styled { Scalar::string(scalar.text.clone()) } else { scalar.clone() };
                set_scalar(field, scalar, replica.at)
            })?;
        }
    }
    if found {
        return Ok(());
    }
    let kinds: Vec<&str> = specs.iter().map(|spec| spec.gvk.kind.as_str()).collect();
    let known = ["Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"];
    let message = match kinds == known {
        true => format!("no Deployment, ReplicationController, ReplicaSet or StatefulSet is named {}", quoted(&replica.name)),
        false => format!("no object of the kinds in fieldSpecs is named {}", quoted(&replica.name)),
    };
    Err(Fault::at(CODE, replica.at, message).field("replicas"))
}

/// Changes name, tag or digest of images.
pub(super) fn images(resources: &mut [Resource], image: &Image, specs: &[FieldSpec]) -> Result<(), Fault> {
    // The name is an expression, as upstream has it.
    let tag = "(:[a-zA-Z0-9_.{}-]*)?(@sha256:[a-zA-Z0-9_.{}-]*)?";
    let matcher = select::regex(&format!("^{}{tag}$", image.name.text), image.name.at)?;
    for resource in resources.iter_mut().filter(|resource| resource.kind() != "CustomResourceDefinition") {
        walk_containers(&mut resource.tree, image, &matcher)?;
    }
    for resource in resources.iter_mut().filter(|resource| resource.kind() != "CustomResourceDefinition") {
        for spec in specs {
            visit(&mut resource.tree, spec, Make::Nothing, image.at, &mut |field| set_image(field, image, &matcher))?;
        }
    }
    Ok(())
}

/// Finds containers at any depth.
fn walk_containers(tree: &mut Tree, image: &Image, matcher: &Regex) -> Result<(), Fault> {
    match &mut tree.value {
        Value::Scalar(_) => Ok(()),
        Value::List(items) => items.iter_mut().try_for_each(|item| walk_containers(item, image, matcher)),
        Value::Map(fields) => fields.iter_mut().try_for_each(|field| {
            walk_containers(&mut field.value, image, matcher)?;
            let Value::List(containers) = &mut field.value.value else { return Ok(()) };
            if !matches!(field.key.as_str(), "containers" | "initContainers") {
                return Ok(());
            }
            containers
                .iter_mut()
                .filter_map(|container| container.get_mut("image"))
                .try_for_each(|field| set_image(field, image, matcher))
        }),
    }
}

fn set_image(field: &mut Tree, image: &Image, matcher: &Regex) -> Result<(), Fault> {
    if field.is_null() {
        return Ok(());
    }
    if !field.is_scalar() {
        return Err(Fault::at(CODE, field.at, format!("expected an image, found {}", field.kind_of_value())));
    }
    if !matcher.is_match(field.text()) {
        return Ok(());
    }
    let (mut name, mut tag, mut digest) = split_image(field.text());
    if !image.new_name.is_empty() {
        name.clone_from(&image.new_name.text);
    }
    match (image.new_tag.is_empty(), image.digest.is_empty(), image.tag_suffix.is_empty()) {
        (false, _, _) => {
            tag.clone_from(&image.new_tag.text);
            digest.clone_from(&image.digest.text);
        }
        (true, false, _) => {
            tag.clear();
            digest.clone_from(&image.digest.text);
        }
        (true, true, false) => {
            tag.push_str(&image.tag_suffix.text);
            digest.clear();
        }
        (true, true, true) => {}
    }
    if !tag.is_empty() {
        name = format!("{name}:{tag}");
    }
    if !digest.is_empty() {
        name = format!("{name}@{digest}");
    }
    if name != field.text() {
        field.set_text(image.at, name);
    }
    Ok(())
}

/// Name, tag and digest. A port belongs to the name.
fn split_image(image: &str) -> (String, String, String) {
    let start = image.find('/').unwrap_or(0);
    let find = |sign| image[start..].find(sign).map(|at| at + start);
    match (find(':'), find('@')) {
        (None, None) => (image.to_owned(), String::new(), String::new()),
        (Some(colon), Some(at)) if colon < at => {
            (image[..colon].to_owned(), image[colon + 1..at].to_owned(), image[at + 1..].to_owned())
        }
        (_, Some(at)) => (image[..at].to_owned(), String::new(), image[at + 1..].to_owned()),
        (Some(colon), None) => (image[..colon].to_owned(), image[colon + 1..].to_owned(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::split_image;

    #[test]
    fn images_are_split_as_upstream_splits_them() {
        for (image, name, tag, digest) in [
            ("nginx", "nginx", "", ""),
            ("nginx:1.2", "nginx", "1.2", ""),
            ("host:5000/nginx", "host:5000/nginx", "", ""),
            ("host:5000/nginx:1.2", "host:5000/nginx", "1.2", ""),
            ("nginx@sha256:ab", "nginx", "", "sha256:ab"),
            ("host/nginx:1@sha256:ab", "host/nginx", "1", "sha256:ab"),
        ] {
            assert_eq!(split_image(image), (name.to_owned(), tag.to_owned(), digest.to_owned()), "{image}");
        }
    }
}
