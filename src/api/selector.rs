//! Label and field selectors, as in query strings. **Pure**.

use std::collections::BTreeMap;

/// Why a selector is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SelectorError {
    /// A requirement that cannot be read.
    #[error("unable to parse requirement {0:?}")]
    Unreadable(String),
    /// A field that this kind of object cannot be selected by.
    #[error("field label not supported: {field} (supported: {supported})")]
    UnknownField {
        /// As asked.
        field: String,
        /// Those that can be.
        supported: String,
    },
}

/// One requirement on labels.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LabelRequirement {
    Exists(String),
    Missing(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

/// A label selector; all requirements must hold. The empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LabelSelector(Vec<LabelRequirement>);

impl LabelSelector {
    /// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
    pub(super) fn parse(text: &str) -> Result<Self, SelectorError> {
        split_outside_parentheses(text).into_iter().map(parse_label_requirement).collect::<Result<_, _>>().map(Self)
    }

    /// Whether all requirements hold for `labels`. A label that is missing is unequal to every value, as in Kubernetes.
    pub(super) fn matches(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        let value = |key: &String| labels.and_then(|labels| labels.get(key));
        self.0.iter().all(|requirement| match requirement {
            LabelRequirement::Exists(key) => value(key).is_some(),
            LabelRequirement::Missing(key) => value(key).is_none(),
            LabelRequirement::In(key, values) => value(key).is_some_and(|value| values.contains(value)),
            LabelRequirement::NotIn(key, values) => value(key).is_none_or(|value| !values.contains(value)),
        })
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0usize;
    let parts = text.split(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn parse_label_requirement(text: &str) -> Result<LabelRequirement, SelectorError> {
    let unreadable = || SelectorError::Unreadable(text.to_owned());
    let key = |key: &str| {
        let key = key.trim();
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        if !key.is_empty() && key.chars().all(allowed) { Ok(key.to_owned()) } else { Err(unreadable()) }
    };
    let set = |list: &str| {
        let inner = list.trim().strip_prefix('(').and_then(|list| list.strip_suffix(')')).ok_or_else(unreadable)?;
        Ok(inner.split(',').map(|value| value.trim().to_owned()).collect())
    };
    if let Some((left, right)) = text.split_once('(') {
        let list = format!("({right}");
        let mut words = left.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(name), Some("in"), None) => Ok(LabelRequirement::In(key(name)?, set(&list)?)),
            (Some(name), Some("notin"), None) => Ok(LabelRequirement::NotIn(key(name)?, set(&list)?)),
            _ => Err(unreadable()),
        };
    }
    if let Some((name, value)) = text.split_once("!=") {
        return Ok(LabelRequirement::NotIn(key(name)?, vec![value.trim().to_owned()]));
    }
    if let Some((name, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(LabelRequirement::In(key(name)?, vec![value.trim().to_owned()]));
    }
    match text.strip_prefix('!') {
        Some(name) => Ok(LabelRequirement::Missing(key(name)?)),
        None => Ok(LabelRequirement::Exists(key(text)?)),
    }
}

/// A field selector; all requirements must hold. The empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSelector(Vec<FieldRequirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    field: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Reads `metadata.name=web,status.phase!=Running`; only fields in `supported` may be used.
    pub(super) fn parse(text: &str, supported: &[&str]) -> Result<Self, SelectorError> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(|part| parse_field_requirement(part, supported)).collect::<Result<_, _>>().map(Self)
    }

    /// Whether all requirements hold; `value` gives a field's value, empty where the object has none.
    pub(super) fn matches(&self, value: impl Fn(&str) -> String) -> bool {
        self.0.iter().all(|requirement| (value(&requirement.field) == requirement.value) == requirement.equal)
    }
}

fn parse_field_requirement(text: &str, supported: &[&str]) -> Result<FieldRequirement, SelectorError> {
    let split = |operator: &str, equal: bool| text.split_once(operator).map(|(field, value)| (field.trim(), value.trim(), equal));
    let (field, value, equal) = split("!=", false)
        .or_else(|| split("==", true))
        .or_else(|| split("=", true))
        .ok_or_else(|| SelectorError::Unreadable(text.to_owned()))?;
    if !supported.contains(&field) {
        return Err(SelectorError::UnknownField { field: field.to_owned(), supported: supported.join(", ") });
    }
    Ok(FieldRequirement { field: field.to_owned(), value: value.to_owned(), equal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_select_as_in_kubernetes() {
        let labels: BTreeMap<String, String> =
            [("app", "web"), ("tier", "front"), ("example.org/x", "")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let cases = [
            ("", true),
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app=db", false),
            ("app!=db", true),
            ("missing!=x", true),
            ("app in (web, db)", true),
            ("app notin (web)", false),
            ("missing notin (web)", true),
            ("app", true),
            ("!app", false),
            ("! missing", true),
            ("example.org/x=", true),
            ("app in (web,db),tier in(front),!missing", true),
        ];
        for (text, expected) in cases {
            assert_eq!(LabelSelector::parse(text).unwrap().matches(Some(&labels)), expected, "{text}");
        }
        assert!(!LabelSelector::parse("app").unwrap().matches(None));
    }

    #[test]
    fn what_is_no_label_selector_is_refused() {
        for text in ["a b", "a within (b)", "a in (b", "=x", "a in b c (d)", "a&b"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn field_selectors_know_their_fields_only() {
        let supported = ["metadata.name", "status.phase"];
        let value = |field: &str| if field == "metadata.name" { "web".to_owned() } else { String::new() };
        let matches = |text: &str| FieldSelector::parse(text, &supported).unwrap().matches(value);
        assert!(matches("metadata.name=web,status.phase!=Running"));
        assert!(!matches("metadata.name!=web"));
        assert!(matches("status.phase="));
        let error = FieldSelector::parse("spec.host=x", &supported).unwrap_err();
        assert_eq!(error.to_string(), "field label not supported: spec.host (supported: metadata.name, status.phase)");
        assert!(FieldSelector::parse("metadata.name", &supported).is_err());
    }
}
