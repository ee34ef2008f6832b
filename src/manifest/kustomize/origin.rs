//! `buildMetadata`: annotations and a label with the way that an object was built.

use super::resource::{ORIGIN, Resource, TRANSFORMATIONS};
use super::tree::{Field, Tree, Value};
use std::fmt::Write as _;

/// Version of kustomize that Kubernetes 1.36 has.
const VERSION: &str = "v5.8.1";

/// Metadata of a build that are noted.
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

/// Maker of an object or of a change: a field of a kustomization, or the configuration of a generator or a transformer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Maker<'m> {
    /// Path of its file, seen from the directory that is built, as YAML.
    pub(super) file: String,
    /// Kind of the generator or transformer, e.g. `ConfigMapGenerator`.
    pub(super) kind: &'m str,
    /// Name and namespace of a configuration.
    pub(super) name: &'m str,
    pub(super) namespace: &'m str,
}

impl<'m> Maker<'m> {
    /// A field of the kustomization in this file.
    pub(super) fn field(file: &str, kind: &'m str) -> Self {
        Self { file: yaml(file), kind, name: "", namespace: "" }
    }

    /// The configuration that an object is; `None` when its file was not noted.
    pub(super) fn configuration(config: &'m Resource, kind: &'m str) -> Option<Self> {
        let file = config.annotation(ORIGIN)?.strip_prefix("path: ")?.trim_end().to_owned();
        Some(Self { file, kind, name: config.name(), namespace: config.namespace() })
    }

    fn text(&self, indent: &str) -> String {
        let Self { file, kind, name, namespace } = self;
        let mut text =
            format!("configuredIn: {file}\n{indent}configuredBy:\n{indent}  apiVersion: builtin\n{indent}  kind: {kind}\n");
        for (key, value) in [("name", name), ("namespace", namespace)] {
            if !value.is_empty() {
                let written = writeln!(text, "{indent}  {key}: {}", yaml(value));
                debug_assert!(written.is_ok(), "writing to a string cannot fail");
            }
        }
        text
    }
}

/// A string as YAML.
fn yaml(text: &str) -> String {
    super::emit::emit(&Tree::string(0, text)).trim_end().to_owned()
}

/// Notes the file of an object.
pub(super) fn note_file(resource: &mut Resource, path: &str) {
    resource.annotate(ORIGIN, &format!("path: {}\n", yaml(path)));
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
