//! Sources: fetch errors, and problems in their manifests.

use super::finding::Finding;
use super::host::{Answers, Host};
use jiff::Timestamp;
use podstead_api::show::age_since;
use podstead_pod::Severity;
use podstead_telemetry::counted;

pub(super) fn check(host: &Host) -> Vec<Finding> {
    match &host.answers {
        Ok(answers) => judge(answers, Timestamp::now()),
        // Without the daemon only its configuration could be looked at.
        Err(_) => Vec::new(),
    }
}

fn judge(answers: &Answers, now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &answers.sources {
        let (name, status) = (&source.metadata.name, &source.status);
        let read = match status.last_contact_at {
            Some(at) => format!("last contact {} ago", age_since(Some(at), now)),
            None => "no contact since the daemon started".to_owned(),
        };
        if let Some(error) = &status.last_error {
            findings.push(Finding::problem(
                format!("source {name} ({}) cannot be fetched: {error}", source.spec.location),
                format!("{read}; changes of its manifests are not applied"),
                format!("podstead sync {name} --wait retries at once"),
            ));
        }
        let errors = status.problems.iter().filter(|problem| problem.severity == Severity::Error).count();
        if let Some(first) = status.problems.iter().find(|problem| problem.severity == Severity::Error) {
            let more = if errors > 1 { format!(" (and {} more)", errors - 1) } else { String::new() };
            findings.push(Finding::problem(
                format!("source {name}: {first}{more}"),
                "the last accepted version of the object stays in force",
                "fix the manifest; podstead status shows all problems",
            ));
        }
        let warnings = status.problems.len() - errors;
        if warnings > 0 {
            let what = format!("source {name} has {}", counted(warnings, "warning"));
            findings.push(Finding::note(what, "fields that have no effect here", "podstead status shows them"));
        }
        if let Some(hold) = &status.hold {
            let what = format!("source {name} is {} ({})", hold.kind.word(), hold.command);
            findings.push(Finding::note(what, "changes are not applied", format!("podstead resume {name}")));
        }
    }
    for name in &answers.daemon.waiting_for_sources {
        if !findings.iter().any(|finding| finding.what.starts_with(&format!("source {name} "))) {
            let why = "nothing is removed before the first sync of all sources";
            findings.push(Finding::warning(format!("source {name} has not been synced yet"), why, ""));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::ok(format!("{}, all synced", counted(answers.sources.len(), "source"))));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{Note, Ok, Problem, Warning};
    use super::*;
    use serde_json::json;

    fn answers(status: &serde_json::Value) -> Answers {
        let mut whole = json!({"pods": 1, "problems": []});
        whole.as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
        let source = json!({
            "apiVersion": "podstead.dev/v1alpha1", "kind": "Source", "metadata": {"name": "fleet"},
            "spec": {"kind": "git", "location": "ssh://git.example.org/fleet"}, "status": whole,
        });
        let daemon =
            json!({"version": "1", "nodeName": "e", "startedAt": "2026-01-01T00:00:00Z", "pid": 1, "waitingForSources": []});
        Answers {
            daemon: serde_json::from_value(daemon).unwrap(),
            sources: vec![serde_json::from_value(source).unwrap()],
            pods: Vec::new(),
            workloads: Vec::new(),
            unserved: Vec::new(),
            evidence: crate::trouble::Evidence::default(),
        }
    }

    fn now() -> Timestamp {
        "2026-01-01T02:00:00Z".parse().unwrap()
    }

    #[test]
    fn errors_are_told_with_the_last_success_and_the_first_problem() {
        let problem = |severity: &str| {
            json!({
                "severity": severity, "code": "unknown-field", "file": "web.yaml", "position": {"line": 1, "column": 3}, "field": "spec.x",
                "message": "unknown field", "hint": null, "object": null,
            })
        };
        assert_eq!(judge(&answers(&json!({})), now())[0].severity, Ok);
        let failed = judge(&answers(&json!({"lastError": "no route to host", "lastContactAt": "2026-01-01T01:00:00Z"})), now());
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].severity, Problem);
        assert!(failed[0].what.ends_with("no route to host") && failed[0].why.starts_with("last contact 60m ago"), "{failed:?}");
        let problems = judge(&answers(&json!({"problems": [problem("error"), problem("error"), problem("warning")]})), now());
        assert_eq!(problems.iter().map(|finding| finding.severity).collect::<Vec<_>>(), [Problem, Note]);
        assert!(problems[0].what.contains("web.yaml:1:3") && problems[0].what.ends_with("(and 1 more)"), "{problems:?}");
    }

    #[test]
    fn a_source_that_was_not_heard_is_waited_for() {
        let mut waiting = answers(&json!({}));
        waiting.daemon.waiting_for_sources = vec!["fleet".into()];
        assert_eq!(judge(&waiting, now())[0].severity, Warning);
    }
}
