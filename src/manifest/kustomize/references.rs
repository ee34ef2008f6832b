//! The directories that a kustomization refers to, read without building it.

use super::paths;
use crate::Limits;
use crate::node::{Entry, Node, Value};
use crate::{documents, encoding, yaml};
use std::collections::BTreeSet;

/// Directories that belong to a kustomization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Paths from the root of the source that it lists as resources, components, generators or transformers: directories, or files.
    pub paths: BTreeSet<String>,
    /// True for `kind: Component`, which is built as a part of a kustomization only.
    pub is_component: bool,
}

/// The references of the kustomization with this content in `directory`; `None` when its content is no mapping in YAML. Everything else
/// that is wrong with it is for [`super::build`] to report.
pub fn references(directory: &str, bytes: &[u8], limits: &Limits) -> Option<References> {
    encoding::check_file(bytes, limits).ok()?;
    encoding::check_file(bytes, limits).ok()?;
    let documents = documents::cut(bytes, limits.max_documents);
    let document = documents.first()?;
    let text = encoding::check_document(document.bytes, document.start).ok()?;
    documents::check_density(document, limits.max_nodes).ok()?;
    let node = yaml::load(text, document.start, 1, limits).ok()?;
    let Value::Map(entries) = &node.value else { return None };
    let mut found = References::default();
    for Entry { key, value, .. } in entries {
        let fields = ["resources", "bases", "components", "generators", "transformers"];
        let lists_paths = fields.iter().any(|name| name.eq_ignore_ascii_case(key));
        match &value.value {
            Value::List(items) if lists_paths => {
                let written = items.iter().filter_map(Node::as_str).filter(|path| is_path(path));
                found.paths.extend(written.filter_map(|path| paths::join(directory, path).ok()));
            }
            Value::String(kind) if key.eq_ignore_ascii_case("kind") => found.is_component = kind == "Component",
            Value::List(_)
            | Value::String(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Map(_)
            | Value::Unsupported(_) => {}
        }
    }
    Some(found)
}

/// Reports whether an entry may be a path in the source, and is no configuration that is written inline.
fn is_path(text: &str) -> bool {
    // A variable of the source has braces, too.
    !paths::is_remote(text) && !text.contains('\n') && !text.replace("${", "").contains('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<References> {
        references("overlays/a", text.as_bytes(), &Limits::default())
    }

    #[test]
    fn paths_are_those_of_the_source() {
        let text =
            "resources: [../../base/, web.yaml, https://example.org/x, ../../../out]\nComponents: [../../parts/tls]\nunknown: 1\n";
        let references = found(text).unwrap();
        assert_eq!(Vec::from_iter(&references.paths), ["base", "overlays/a/web.yaml", "parts/tls"]);
        assert!(!references.is_component && found("kind: Component\n").unwrap().is_component);
    }

    #[test]
    fn configurations_have_directories_too() {
        let text = "transformers: [../../t, \"{apiVersion: builtin}\", \"kind: a\\n\"]\ngenerators: [g]\n";
        assert_eq!(Vec::from_iter(&found(text).unwrap().paths), ["overlays/a/g", "t"]);
    }

    #[test]
    fn broken_text_has_no_references() {
        assert_eq!(found("resources: [\n"), None);
        assert_eq!(found("- a\n"), None);
        assert_eq!(found(""), None);
    }
}
