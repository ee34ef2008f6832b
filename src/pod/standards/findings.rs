//! Findings of a control.

/// A control's findings: field, rule, remedy.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<(String, String, String)>);

impl Findings {
    pub(super) fn push(&mut self, field: String, message: impl Into<String>, fix: impl Into<String>) {
        self.0.push((field, message.into(), fix.into()));
    }
}
