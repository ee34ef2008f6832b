//! Selection of the objects that a patch changes.

use crate::{LabelSelector, ObjectKey};
use std::collections::BTreeMap;
use std::fmt;

/// Selector of the objects that a patch changes: all its conditions must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A kind that is read, such as `Pod` or `Deployment`.
    pub(super) kind: &'static str,
    /// A name in which `*` stands for any text.
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) labels: LabelSelector,
    /// The selector as written.
    pub(super) label_selector: Option<String>,
}

impl Target {
    /// Reports whether the selector matches this identity. Labels are matched separately: see [`Target::selects_labels`].
    pub fn selects(&self, key: &ObjectKey) -> bool {
        let ObjectKey { kind, namespace, name } = key;
        kind == self.kind
            && self.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
            && self.name.as_ref().is_none_or(|pattern| matches(pattern, name))
    }

    /// Reports whether the selector matches these labels: those of the object's own document, without patches.
    pub fn selects_labels(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.labels.matches(labels)
    }

    /// Reports whether it names exactly one object, which must exist.
    pub fn is_definite(&self) -> bool {
        self.label_selector.is_none() && self.name.as_ref().is_some_and(|name| !name.contains('*'))
    }
}

impl fmt::Display for Target {
    /// `Pod default/web`, with `*` for what is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |part: &Option<String>| part.clone().unwrap_or_else(|| "*".to_owned());
        write!(f, "{} {}/{}", self.kind, text(&self.namespace), text(&self.name))?;
        match &self.label_selector {
            Some(selector) => write!(f, " with labels {selector:?}"),
            None => Ok(()),
        }
    }
}

/// Reports whether `name` matches `pattern`, in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(head) else { return false };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    // Each part as early as it can be: what is behind it has then the most room.
    for part in middle.split('*') {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_a_name_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("web", "web", true),
            ("web", "web-1", false),
            ("*", "web", true),
            ("web*", "web", true),
            ("web-*", "web", false),
            ("*-db", "a-db", true),
            ("*-db", "a-dbx", false),
            ("a*c*e", "abcde", true),
            ("a*c*e", "ace", true),
            ("a*ce*e", "ace", false),
            ("a*a", "a", false),
            ("**", "x", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
