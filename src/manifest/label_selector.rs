//! Label selectors as text. **Pure**.

use std::collections::BTreeMap;

/// A requirement that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unable to parse requirement {0:?}")]
pub struct LabelSelectorError(String);

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
pub struct LabelSelector(Vec<LabelRequirement>);

impl LabelSelector {
    /// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
    pub fn parse(text: &str) -> Result<Self, LabelSelectorError> {
        split_outside_parentheses(text).into_iter().map(parse_label_requirement).collect::<Result<_, _>>().map(Self)
    }

    /// Reports whether it selects everything.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports whether all requirements hold for `labels`. A missing label is unequal to every value, as in Kubernetes.
    pub fn matches(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
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

fn parse_label_requirement(text: &str) -> Result<LabelRequirement, LabelSelectorError> {
    let unreadable = || LabelSelectorError(text.to_owned());
    let key = |key: &str| {
        let key = key.trim();
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        if !key.is_empty() && key.chars().all(allowed) { Ok(key.to_owned()) } else { Err(unreadable()) }
    };
    // `a!==b` would else select everything.
    let value = |value: &str| {
        let value = value.trim();
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if value.chars().all(allowed) { Ok(value.to_owned()) } else { Err(unreadable()) }
    };
    let set = |list: &str| {
        let inner = list.trim().strip_prefix('(').and_then(|list| list.strip_suffix(')')).ok_or_else(unreadable)?;
        inner.split(',').map(value).collect::<Result<_, _>>()
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
    if let Some((name, wanted)) = text.split_once("!=") {
        return Ok(LabelRequirement::NotIn(key(name)?, vec![value(wanted)?]));
    }
    if let Some((name, wanted)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(LabelRequirement::In(key(name)?, vec![value(wanted)?]));
    }
    match text.strip_prefix('!') {
        Some(name) => Ok(LabelRequirement::Missing(key(name)?)),
        None => Ok(LabelRequirement::Exists(key(text)?)),
    }
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
        for text in ["a b", "a within (b)", "a in (b", "=x", "a in b c (d)", "a&b", "a!==b", "a===b", "a=b c", "a in (b;c)"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }
}
