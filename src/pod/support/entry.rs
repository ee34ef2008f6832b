//! Entries of the table of fields: support, its judgement, and the sections that they stand in. **Pure**.

use crate::AdmitContext;
use crate::field::{FieldPath, Problems};
use serde_json::Value;

/// Support of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Support {
    /// It has the effect that it has in Kubernetes. The note is for the documentation and may be empty.
    Honoured(&'static str),
    /// It is honoured for some values; `judge` reports the others.
    Partly {
        /// For the documentation: which values.
        note: &'static str,
        judge: Judge,
    },
    /// It does no harm here and has no effect: a warning.
    Ignored {
        reason: &'static str,
        /// Values, as JSON, that ask for nothing: no warning. [`OWN_NAME`] stands for the name of the object.
        silent: &'static [&'static str],
    },
    /// Running the pod without it would not be what its author wants: an error.
    Refused {
        reason: &'static str,
        /// The alternative, or empty.
        instead: &'static str,
        /// Values, as JSON, that ask for nothing: no error.
        silent: &'static [&'static str],
    },
}

/// The name of the object that has the field, among values that ask for nothing. It is no JSON.
pub(super) const OWN_NAME: &str = "metadata.name";

/// Reports what is wrong with one field's value.
pub(super) type Judge = fn(&Case<'_>, &mut Problems);

/// A field that is set.
pub(super) struct Case<'a> {
    pub(super) value: &'a Value,
    pub(super) path: &'a FieldPath,
    pub(super) context: &'a AdmitContext,
}

/// Fields that belong together, at one or more places.
pub(super) struct Section {
    #[cfg_attr(not(test), expect(dead_code, reason = "only the page of the documentation has it"))]
    pub(super) title: &'static str,
    /// Paths of the objects that have the fields: `spec`, `spec.containers[]`. Empty for the Pod itself.
    pub(super) places: &'static [&'static str],
    /// Fields relative to each place, e.g. `env[].valueFrom`.
    pub(super) fields: &'static [(&'static str, Support)],
}

pub(super) fn join(place: &str, field: &str) -> String {
    if place.is_empty() { field.to_owned() } else { format!("{place}.{field}") }
}
