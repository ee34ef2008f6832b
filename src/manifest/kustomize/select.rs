//! Selection of objects by patches and replacements: the parts of an identity as regular expressions, and labels and annotations.

use super::CODE;
use super::id::{Gvk, Id};
use super::reader::Text;
use super::resource::Resource;
use crate::LabelSelector;
use crate::fault::{Fault, quoted};
use regex_lite::{Regex, RegexBuilder};
use std::collections::BTreeMap;

/// A selector. What it does not name selects everything.
#[derive(Debug)]
pub(super) struct Selector {
    pub(super) at: u32,
    group: Option<Regex>,
    version: Option<Regex>,
    kind: Option<Regex>,
    name: Option<Regex>,
    namespace: Option<Regex>,
    labels: Option<LabelSelector>,
    annotations: Option<LabelSelector>,
    /// The name as written.
    pub(super) name_text: String,
}

/// Bytes that a compiled expression may have.
const MAX_REGEX: usize = 1 << 20;

/// Compiles an expression of the kustomization file.
pub(super) fn regex(pattern: &str, at: u32) -> Result<Regex, Fault> {
    let refused = |error| Fault::at(CODE, at, format!("{} is not a regular expression: {error}", quoted(pattern)));
    RegexBuilder::new(&with_plain_braces(pattern)).size_limit(MAX_REGEX).build().map_err(refused)
}

/// An expression whose braces that are no repetition are escaped: Go takes `{` in `${NAME}` for a character.
fn with_plain_braces(pattern: &str) -> String {
    let is_repetition = |behind: &str| {
        let Some((inner, _)) = behind.split_once('}') else { return false };
        let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        !least.is_empty() && are_digits(least) && are_digits(most)
    };
    let mut written = String::with_capacity(pattern.len());
    let (mut rest, mut in_class) = (pattern, false);
    while let Some(character) = rest.chars().next() {
        let (this, behind) = rest.split_at(character.len_utf8());
        rest = behind;
        match character {
            '\\' => {
                let escaped = behind.chars().next().map_or(0, char::len_utf8);
                written.extend([this, &behind[..escaped]]);
                rest = &behind[escaped..];
                // The braces of \x{61} and \p{L} belong to it.
                if matches!(&behind[..escaped], "x" | "p" | "P") && rest.starts_with('{') {
                    let end = rest.find('}').map_or(rest.len(), |end| end + 1);
                    written.push_str(&rest[..end]);
                    rest = &rest[end..];
                }
                continue;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '{' if !in_class && !is_repetition(behind) => written.push('\\'),
            _ => {}
        }
        written.push_str(this);
    }
    written
}

impl Selector {
    /// A selector of group, version, kind, name and namespace.
    pub(super) fn new(at: u32, parts: [Text; 5], labels: &Text, annotations: &Text) -> Result<Self, Fault> {
        let whole = |part: &Text| match part.is_empty() {
            true => Ok(None),
            false => regex(&format!("^(?:{})$", part.text), part.at).map(Some),
        };
        let selector = |text: &Text| match text.is_empty() {
            true => Ok(None),
            false => LabelSelector::parse(&text.text).map(Some).map_err(|error| Fault::at(CODE, text.at, error.to_string())),
        };
        let [group, version, kind, name, namespace] = &parts;
        Ok(Self {
            at,
            group: whole(group)?,
            version: whole(version)?,
            kind: whole(kind)?,
            name: whole(name)?,
            namespace: whole(namespace)?,
            labels: selector(labels)?,
            annotations: selector(annotations)?,
            name_text: name.text.clone(),
        })
    }

    fn selects_gvk(&self, gvk: &Gvk) -> bool {
        let selects = |regex: &Option<Regex>, text: &str| regex.as_ref().is_none_or(|regex| regex.is_match(text));
        selects(&self.group, &gvk.group) && selects(&self.version, &gvk.version) && selects(&self.kind, &gvk.kind)
    }

    fn selects_name(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|regex| regex.is_match(name))
    }

    fn selects_namespace(&self, namespace: &str) -> bool {
        self.namespace.as_ref().is_none_or(|regex| regex.is_match(namespace))
    }

    /// Reports whether it selects by identity at all.
    pub(super) fn names_an_identity(&self) -> bool {
        [&self.group, &self.version, &self.kind, &self.name, &self.namespace].iter().any(|part| part.is_some())
    }

    /// Reports whether it selects by labels or annotations at all.
    pub(super) fn names_metadata(&self) -> bool {
        self.labels.is_some() || self.annotations.is_some()
    }

    /// Selection by identity, namespace as written.
    pub(super) fn selects_id(&self, id: &Id) -> bool {
        self.selects_gvk(&id.gvk) && self.selects_name(&id.name) && self.selects_namespace(&id.namespace)
    }

    /// Selection by labels and annotations.
    pub(super) fn selects_metadata(&self, resource: &Resource) -> bool {
        let texts = |pairs: super::resource::Pairs| -> BTreeMap<String, String> {
            pairs.into_iter().map(|(key, (text, _))| (key, text)).collect()
        };
        self.labels.as_ref().is_none_or(|labels| labels.matches(Some(&texts(resource.labels()))))
            && self.annotations.as_ref().is_none_or(|annotations| annotations.matches(Some(&texts(resource.annotations()))))
    }

    /// Selection of a patch's target: by the name and namespace that the object has or had at first.
    pub(super) fn selects(&self, resource: &Resource) -> bool {
        let (now, original) = (resource.id(), resource.original_id());
        (self.selects_namespace(original.effective_namespace()) || self.selects_namespace(now.effective_namespace()))
            && (self.selects_name(&original.name) || self.selects_name(&now.name))
            && self.selects_gvk(&now.gvk)
            && self.selects_metadata(resource)
    }
}
