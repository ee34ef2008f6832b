//! Problems of a workload's fields, in the form that problems of Pods have.

use std::fmt::{Debug, Display};

/// One thing that is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The class of the problem.
    pub code: Code,
    /// The field as Kubernetes writes it, such as `spec.strategy.rollingUpdate.maxSurge`.
    pub field: String,
    /// The rule that is broken, and the value that breaks it.
    pub message: String,
    /// The fix, where it is not obvious.
    pub hint: Option<String>,
}

/// Classes of problems, as those of Pods have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A required field is missing.
    Required,
    /// A value breaks its field's rule.
    Invalid,
    /// A value is not one of a fixed list.
    NotOneOf,
    /// A field may not be set, or not together with another.
    Forbidden,
    /// A list is too long.
    TooLong,
}

/// Collects problems. Every check reports here and goes on, so that none hides another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// All that were found.
    pub fn into_vec(self) -> Vec<Problem> {
        self.0
    }

    /// Adds problems that were found elsewhere.
    pub fn extend(&mut self, problems: Vec<Problem>) {
        self.0.extend(problems);
    }

    /// Adds a problem in words of its own.
    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.push(Code::Invalid, field, message);
    }

    fn push(&mut self, code: Code, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(Problem { code, field: field.into(), message: message.into(), hint: None });
    }

    /// Adds the fix of the problem that was found last.
    pub fn hint(&mut self, hint: impl Into<String>) {
        if let Some(last) = self.0.last_mut() {
            last.hint = Some(hint.into());
        }
    }

    /// A field that has to be written. `detail` may be empty.
    pub fn required(&mut self, field: impl Into<String>, detail: &str) {
        let message = if detail.is_empty() { "is required".to_owned() } else { format!("is required: {detail}") };
        self.push(Code::Required, field, message);
    }

    /// A value that breaks a rule.
    pub fn invalid(&mut self, field: impl Into<String>, value: impl Debug, rule: impl Display) {
        self.add(field, format!("invalid value {value:?}: {rule}"));
    }

    /// A field that may not be written here.
    pub fn forbidden(&mut self, field: impl Into<String>, detail: impl Display) {
        self.push(Code::Forbidden, field, format!("forbidden: {detail}"));
    }

    /// A value that is not one of a list.
    pub fn not_one_of(&mut self, field: impl Into<String>, value: &str, allowed: &[&str]) {
        let allowed: Vec<String> = allowed.iter().map(|word| format!("{word:?}")).collect();
        self.push(Code::NotOneOf, field, format!("invalid value {value:?}: must be one of {}", allowed.join(", ")));
    }

    /// A list with too many items.
    pub fn at_most(&mut self, field: impl Into<String>, count: usize, limit: usize) {
        if count > limit {
            self.push(Code::TooLong, field, format!("too many: {count}: must have at most {limit} items"));
        }
    }

    /// A number that is below 0.
    pub fn not_negative(&mut self, field: impl Into<String>, value: Option<i64>) {
        if let Some(value) = value.filter(|value| *value < 0) {
            self.invalid(field, value, "must be greater than or equal to 0");
        }
    }
}
