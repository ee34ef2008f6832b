//! Findings of the checks, and their output. **Pure**.

use super::security::PodRights;
use crate::printable::printable;
use crate::table::Style;
use podstead_telemetry::counted;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Something does not work, or will not.
    Problem,
    /// It works now, and may not for long.
    Warning,
    /// Worth knowing.
    Note,
    /// As it should be.
    Ok,
}

impl Severity {
    const fn word(self) -> &'static str {
        match self {
            Severity::Problem => "problem",
            Severity::Warning => "warning",
            Severity::Note => "note",
            Severity::Ok => "ok",
        }
    }

    const fn style(self) -> Style {
        match self {
            Severity::Problem => Style::Bad,
            Severity::Warning => Style::Pending,
            Severity::Note => Style::Bold,
            Severity::Ok => Style::Good,
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// The observation.
    pub(crate) what: String,
    /// Its effect; empty if that is obvious.
    pub(crate) why: String,
    /// The fix; empty if there is none.
    pub(crate) remedy: String,
    /// The pod whose rights it is about.
    pub(super) pod: Option<Box<PodRights>>,
}

impl Finding {
    /// As it should be.
    pub(super) fn ok(what: impl Into<String>) -> Self {
        Self { severity: Severity::Ok, ..Self::note(what, "", "") }
    }

    /// Worth knowing.
    pub(super) fn note(what: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity: Severity::Note, what: what.into(), why: why.into(), remedy: remedy.into(), pod: None }
    }

    /// May not work for long.
    pub(crate) fn warning(what: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::note(what, why, remedy) }
    }

    /// Does not work.
    pub(crate) fn problem(what: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity: Severity::Problem, ..Self::note(what, why, remedy) }
    }
}

/// Findings of all checks, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings(pub(super) Vec<(&'static str, Vec<Finding>)>);

impl Findings {
    fn count(&self, severity: Severity) -> usize {
        self.0.iter().flat_map(|(_, findings)| findings).filter(|finding| finding.severity == severity).count()
    }

    /// True if there is a problem.
    pub(super) fn has_problems(&self) -> bool {
        self.count(Severity::Problem) > 0
    }

    /// Text for people: an explanation of each problem, and a line for each check without one.
    pub(super) fn text(&self, color: bool) -> String {
        let mut text = String::new();
        for (check, findings) in &self.0 {
            for Finding { severity, what, why, remedy, pod: _ } in findings {
                let word = severity.style().paint(&format!("{:<8}", severity.word()), color);
                // Writing to a string cannot fail.
                writeln!(text, "{word} {check:<14} {}", lines(what)).ok();
                for (mark, said) in [("", why), ("-> ", remedy)] {
                    if !said.is_empty() {
                        writeln!(text, "{:24}{mark}{}", "", lines(said)).ok();
                    }
                }
            }
        }
        writeln!(text, "\n{}", self.summary()).ok();
        text
    }

    fn summary(&self) -> String {
        let counts = [(Severity::Problem, "problem"), (Severity::Warning, "warning"), (Severity::Note, "note")];
        let said: Vec<String> = counts
            .into_iter()
            .map(|(severity, word)| (self.count(severity), word))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| counted(count, word))
            .collect();
        if said.is_empty() { "no problems found".to_owned() } else { said.join(", ") }
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let items: Vec<Value> = self
            .0
            .iter()
            .flat_map(|(check, findings)| findings.iter().map(move |finding| (check, finding)))
            .map(|(check, Finding { severity, what, why, remedy, pod })| {
                let mut item = json!({"check": check, "severity": severity, "what": what, "why": why, "remedy": remedy});
                if let Some(pod) = pod {
                    item["pod"] = json!(pod);
                }
                item
            })
            .collect();
        json!({"apiVersion": "podstead.dev/v1alpha1", "kind": "HostReport", "findings": items})
    }
}

/// Further lines of a text stand below its first; what comes from manifests does not steer the terminal.
fn lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join(&format!("\n{:24}", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_told_with_reason_and_remedy_and_counted() {
        let found = Findings(vec![
            ("clock", vec![Finding::ok("is right")]),
            (
                "disk",
                vec![Finding::problem("is full\nvery", "nothing can be written", "delete something"), Finding::note("n", "", "")],
            ),
        ]);
        assert!(found.has_problems());
        assert_eq!(
            found.text(false),
            "ok       clock          is right
problem  disk           is full
                        very
                        nothing can be written
                        -> delete something
note     disk           n

1 problem, 1 note
"
        );
        assert_eq!(found.json()["findings"][1]["severity"], "problem");
        let well = Findings(vec![("clock", vec![Finding::ok("is right")])]);
        assert!(!well.has_problems() && well.text(false).ends_with("\nno problems found\n"));
    }
}
