//! Validity of the configuration file, and its use by the daemon.

use super::finding::Finding;
use super::host::Host;

/// Observed state.
#[derive(Debug, Default)]
struct Observed {
    /// Error in the file.
    error: Option<String>,
    sources: usize,
    /// Reason why the daemon does not use the current file.
    refused: Option<String>,
    needs_restart_for: Vec<String>,
}

pub(super) fn check(host: &Host) -> Vec<Finding> {
    let daemon = host.answers.as_ref().ok().map(|answers| &answers.daemon);
    judge(&Observed {
        error: host.config.as_ref().err().cloned(),
        sources: host.config.as_ref().map_or(0, |config| config.sources.len()),
        refused: daemon.and_then(|daemon| daemon.config_error.clone()),
        needs_restart_for: daemon.map(|daemon| daemon.needs_restart_for.clone()).unwrap_or_default(),
    })
}

fn judge(observed: &Observed) -> Vec<Finding> {
    if let Some(error) = &observed.error {
        let why = "a running daemon keeps its current configuration; a restarted daemon uses the last valid one";
        return vec![Finding::problem(error.clone(), why, "fix the file, then run podstead config check")];
    }
    let mut findings = Vec::new();
    if let Some(error) = &observed.refused {
        findings.push(Finding::problem(
            format!("the daemon rejected the configuration file: {error}"),
            "it keeps the previous configuration",
            "podstead config check",
        ));
    }
    if !observed.needs_restart_for.is_empty() {
        let fields = observed.needs_restart_for.join(", ");
        let remedy = "systemctl restart podstead (pods keep running)";
        findings.push(Finding::note(format!("changed, but takes effect only after a restart: {fields}"), "", remedy));
    }
    if observed.sources == 0 {
        findings.push(Finding::warning(
            "no source is configured",
            "without a source there are no pods",
            "add a source under sources in the configuration",
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(format!("valid, {}", podstead_telemetry::counted(observed.sources, "source"))));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, Note, Ok, Problem, Warning};
    use super::*;

    #[test]
    fn each_state_of_the_configuration_has_its_judgement() {
        let severities = |observed: &Observed| judge(observed).iter().map(|finding| finding.severity).collect::<Vec<Severity>>();
        let well = || Observed { sources: 1, ..Observed::default() };
        assert_eq!(severities(&well()), [Ok]);
        assert_eq!(severities(&Observed { error: Some("line 3".into()), ..well() }), [Problem]);
        assert_eq!(severities(&Observed { refused: Some("line 3".into()), ..well() }), [Problem]);
        assert_eq!(severities(&Observed { needs_restart_for: vec!["paths".into()], ..well() }), [Note]);
        assert_eq!(severities(&Observed::default()), [Warning]);
    }
}
