//! Problems of manifests, with position and remedy.

use super::ObjectKey;
use podstead_pod::{Position, Severity};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A problem with its position and remedy.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    /// Error if the object is refused.
    pub severity: Severity,
    /// A stable kebab-case word for the class of problem, e.g. `unknown-field`.
    pub code: String,
    /// Path of the file as the source names it.
    pub file: String,
    /// The field's place, or the object's where the field has none (e.g. a missing field).
    pub position: Option<Position>,
    /// The field, e.g. `spec.containers[0].image`; empty when the whole file or document is concerned.
    pub field: String,
    /// Message in lower case, without a final period, that names the offending value.
    pub message: String,
    /// Remedy, e.g. `did you mean "hostNetwork"?`.
    pub hint: Option<String>,
    /// The object concerned, as far as it is known.
    pub object: Option<ObjectKey>,
}

impl Problem {
    /// The place and the fault without the class, for a sentence: `web.yaml:19:3: spec.hostNetwrok: unknown field (did you mean "hostNetwork"?)`.
    pub fn fault(&self) -> String {
        format!("{}: {}", Place(self), Fault(self))
    }
}

/// `web.yaml:19:3`.
struct Place<'a>(&'a Problem);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.file)?;
        match self.0.position {
            Some(position) => write!(f, ":{}:{}", position.line, position.column),
            None => Ok(()),
        }
    }
}

/// `spec.hostNetwrok: unknown field (did you mean "hostNetwork"?)`.
struct Fault<'a>(&'a Problem);

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { field, message, hint, .. } = self.0;
        if !field.is_empty() {
            write!(f, "{field}: ")?;
        }
        write!(f, "{message}")?;
        match hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Problem {
    /// `web.yaml:19:3: error[unknown-field]: spec.hostNetwrok: unknown field (did you mean "hostNetwork"?)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{}: {severity}[{}]: {}", Place(self), self.code, Fault(self))
    }
}
