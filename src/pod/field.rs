//! Problems in a Pod, with their fields.

use crate::Severity;
use std::fmt;

/// One thing that is wrong with a Pod, or has no effect here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldProblem {
    /// Severity: an error refuses the pod.
    pub severity: Severity,
    /// A stable kebab-case word for the class of problem, see [`code`].
    pub code: String,
    /// The field as Kubernetes writes it: members by `.name`, list items by `[0]`, map entries by `[key]`, e.g.
    /// `spec.containers[0].resources.limits[cpu]`.
    pub field: String,
    /// The problem: lower case, no final period, naming the offending value.
    pub message: String,
    /// The fix.
    pub hint: Option<String>,
}

/// Words for [`FieldProblem::code`].
pub mod code {
    /// A required field is missing.
    pub const REQUIRED: &str = "required";
    /// A value breaks its field's rule.
    pub const INVALID: &str = "invalid-value";
    /// A value is not one of a fixed list.
    pub const NOT_ONE_OF: &str = "not-one-of";
    /// A value that must be unique is there twice.
    pub const DUPLICATE: &str = "duplicate";
    /// A field may not be set, or not together with another.
    pub const FORBIDDEN: &str = "forbidden";
    /// A text or list is too long.
    pub const TOO_LONG: &str = "too-long";
    /// Kubernetes knows the field; podstead refuses it.
    pub const UNSUPPORTED: &str = "unsupported-field";
    /// The field has no effect here.
    pub const IGNORED: &str = "ignored-field";
    /// Kubernetes takes the value, but hardly anybody means it.
    pub const SUSPICIOUS: &str = "suspicious-value";
}

/// A place in a Pod. Grows from its parent, so that checks pass it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldPath(String);

impl FieldPath {
    /// A member of the object itself, e.g. `spec`.
    pub(super) fn root(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The member `name`; dots in it name a member of a member.
    #[must_use]
    pub(super) fn child(&self, name: &str) -> Self {
        Self(format!("{}.{name}", self.0))
    }

    /// The list item `index`.
    #[must_use]
    pub(super) fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The map entry `key`.
    #[must_use]
    pub(super) fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Collects problems. Every check reports here and goes on, so that none hides another.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<FieldProblem>);

impl Problems {
    /// All of them, in the order of their finding.
    pub(super) fn into_vec(self) -> Vec<FieldProblem> {
        self.0
    }

    /// Returns true if one of them refuses the pod.
    pub(super) fn refuse(&self) -> bool {
        self.0.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// A required field is missing; `what` names its values, or is empty.
    pub(super) fn required(&mut self, path: &FieldPath, what: &str) {
        let message = if what.is_empty() { "is required".to_owned() } else { format!("is required: {what}") };
        self.error(code::REQUIRED, path, message);
    }

    /// `value` breaks the rule that `rule` states.
    pub(super) fn invalid(&mut self, path: &FieldPath, value: impl fmt::Debug, rule: impl fmt::Display) {
        self.error(code::INVALID, path, format!("invalid value {value:?}: {rule}"));
    }

    /// `value` is not in `allowed`; names the nearest one.
    pub(super) fn not_one_of(&mut self, path: &FieldPath, value: &str, allowed: &[&str]) {
        let list = allowed.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
        self.error(code::NOT_ONE_OF, path, format!("invalid value {value:?}: must be one of {list}"));
        self.hint(did_you_mean(value, allowed.iter().copied()));
    }

    /// `value` is there a second time.
    pub(super) fn duplicate(&mut self, path: &FieldPath, value: impl fmt::Debug) {
        self.error(code::DUPLICATE, path, format!("duplicate value {value:?}"));
    }

    /// The field may not be set; `why` continues the sentence.
    pub(super) fn forbidden(&mut self, path: &FieldPath, why: impl fmt::Display) {
        self.error(code::FORBIDDEN, path, format!("forbidden: {why}"));
    }

    /// More than `limit` of `unit` (`bytes`, `items`).
    pub(super) fn too_long(&mut self, path: &FieldPath, limit: usize, unit: &str) {
        self.error(code::TOO_LONG, path, format!("too long: must be at most {limit} {unit}"));
    }

    /// The field is known and refused.
    pub(super) fn unsupported(&mut self, path: &FieldPath, reason: impl fmt::Display, instead: Option<&str>) {
        self.error(code::UNSUPPORTED, path, reason.to_string());
        self.hint(instead.map(str::to_owned));
    }

    /// The field has no effect here.
    pub(super) fn ignored(&mut self, path: &FieldPath, reason: impl fmt::Display) {
        self.push(Severity::Warning, code::IGNORED, path, format!("has no effect: {reason}"));
    }

    /// Kubernetes takes the value and warns.
    pub(super) fn suspicious(&mut self, path: &FieldPath, what: impl fmt::Display) {
        self.push(Severity::Warning, code::SUSPICIOUS, path, what.to_string());
    }

    /// Adds a hint to the problem reported last.
    pub(super) fn hint(&mut self, hint: Option<String>) {
        if let Some(last) = self.0.last_mut() {
            last.hint = hint;
        }
    }

    fn error(&mut self, code: &str, path: &FieldPath, message: String) {
        self.push(Severity::Error, code, path, message);
    }

    fn push(&mut self, severity: Severity, code: &str, path: &FieldPath, message: String) {
        let problem = FieldProblem { severity, code: code.to_owned(), field: path.to_string(), message, hint: None };
        self.0.push(problem);
    }
}

/// Names the word of `known` that `written` is a near miss of.
pub(super) fn did_you_mean<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|word| (strsim::damerau_levenshtein(&word.to_lowercase(), &written.to_lowercase()), word))
        .min()
        .filter(|(distance, word)| *distance <= word.len() / 3)
        .map(|(_, word)| format!("did you mean {word:?}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_as_kubernetes_writes_it() {
        let container = FieldPath::root("spec").child("containers").index(2);
        assert_eq!(container.child("resources.limits").key("cpu").to_string(), "spec.containers[2].resources.limits[cpu]");
    }

    #[test]
    fn a_near_miss_is_answered_with_the_word_that_was_meant() {
        let mut problems = Problems::default();
        problems.not_one_of(&FieldPath::root("spec").child("restartPolicy"), "always", &["Always", "OnFailure", "Never"]);
        problems.not_one_of(&FieldPath::root("spec").child("restartPolicy"), "sometimes", &["Always", "OnFailure", "Never"]);
        let [near, far] = problems.into_vec().try_into().unwrap();
        assert_eq!(near.message, r#"invalid value "always": must be one of "Always", "OnFailure", "Never""#);
        assert_eq!(near.hint.as_deref(), Some(r#"did you mean "Always"?"#));
        assert_eq!(far.hint, None);
    }

    #[test]
    fn only_errors_refuse() {
        let mut problems = Problems::default();
        problems.ignored(&FieldPath::root("spec"), "nothing schedules here");
        assert!(!problems.refuse());
        problems.required(&FieldPath::root("spec"), "");
        assert!(problems.refuse());
    }
}
