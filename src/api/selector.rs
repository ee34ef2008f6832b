//! Field selectors, as in query strings. **Pure**.

/// Errors of parsing a selector.
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

    /// True if all requirements are met; `value` returns the value of a field, empty if it is missing.
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
