//! `buildMetadata`: annotations and a label with the way that an object was built.

use super::resource::{ORIGIN, Resource, TRANSFORMATIONS};
use super::tree::{Field, Tree, Value};
use std::fmt::Write as _;

/// Version of kustomize that Kubernetes 1.36 has.
const VERSION: &str = "v5.8.1";

/// What is noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BuildMetadata {
    pub(super) origins: bool,
    pub(super) transformations: bool,
    pub(super) managed_by: bool,
}

impl BuildMetadata {
    pub(super) fn is_any(self) -> bool {
        self.origins || self.transformations || self.managed_by
    }
}

/// A field of a kustomization that made or changed an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Maker<'m> {
    /// Path of the kustomization file, seen from the directory that is built.
    pub(super) file: &'m str,
    /// Kind of the generator or transformer, e.g. `ConfigMapGenerator`.
    pub(super) kind: &'static str,
}

impl Maker<'_> {
    fn text(&self, indent: &str) -> String {
        let Self { file, kind } = self;
        let file = super::emit::emit(&Tree::string(0, *file));
        let file = file.trim_end();
        format!("configuredIn: {file}\n{indent}configuredBy:\n{indent}  apiVersion: builtin\n{indent}  kind: {kind}\n")
    }
}

/// Notes the file of an object.
pub(super) fn note_file(resource: &mut Resource, path: &str) {
    let path = super::emit::emit(&Tree::string(0, path));
    resource.annotate(ORIGIN, &format!("path: {}\n", path.trim_end()));
}

/// Notes the generator of an object.
pub(super) fn note_generator(resource: &mut Resource, maker: &Maker<'_>) {
    if resource.annotation(ORIGIN).is_none() {
        resource.set_annotation(ORIGIN, &maker.text(""));
    }
}

/// Notes a transformer, for all objects, as upstream does.
pub(super) fn note_transformer(resources: &mut [Resource], maker: &Maker<'_>) {
    for resource in resources {
        if resource.annotation(ORIGIN).is_none() {
            resource.set_annotation(ORIGIN, &maker.text(""));
            continue;
        }
        let mut text = resource.annotation(TRANSFORMATIONS).unwrap_or_default().to_owned();
        let written = write!(text, "- {}", maker.text("  "));
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
        resource.set_annotation(TRANSFORMATIONS, &text);
    }
}

/// Finishes the objects: the label, and no annotation that nobody asked for.
pub(super) fn finish(resources: &mut [Resource], metadata: BuildMetadata) {
    for resource in resources {
        if metadata.managed_by {
            let at = resource.tree.at;
            let labels = resource.tree.get_or_make("metadata", at).and_then(|metadata| metadata.get_or_make("labels", at));
            if let Some(labels) = labels {
                labels.set("app.kubernetes.io/managed-by", Tree::string(at, format!("kustomize-{VERSION}")));
            }
        }
        resource.remove_build_annotations();
        if !metadata.origins {
            resource.remove_annotation(ORIGIN);
        }
        if !metadata.transformations {
            resource.remove_annotation(TRANSFORMATIONS);
        }
        drop_places_of_nothing(&mut resource.tree);
    }
}

/// Values that have no place of their own have that of what they belong to.
fn drop_places_of_nothing(tree: &mut Tree) {
    fn walk(tree: &mut Tree, parent: u32) {
        if tree.at == 0 {
            tree.at = parent;
        }
        let at = tree.at;
        match &mut tree.value {
            Value::Scalar(_) => {}
            Value::List(items) => items.iter_mut().for_each(|item| walk(item, at)),
            Value::Map(fields) => fields.iter_mut().for_each(|Field { at: key_at, value, .. }| {
                if *key_at == 0 {
                    *key_at = at;
                }
                walk(value, *key_at);
            }),
        }
    }
    walk(tree, 0);
}
