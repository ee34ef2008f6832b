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

impl fmt::Display for Problem {
    /// `web.yaml:19:3: error[unknown-field]: spec.hostNetwrok: unknown field (did you mean "hostNetwork"?)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(position) = self.position {
            write!(f, ":{}:{}", position.line, position.column)?;
        }
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, ": {severity}[{}]: ", self.code)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}
