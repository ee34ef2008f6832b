//! `podstead describe source`. **Pure**.

use super::writer::Description;
use jiff::Timestamp;
use podstead_api::SourceObject;
use podstead_api::show::age_since;
use podstead_pod::Severity;
use podstead_store::history::{History, HistoryEntry};
use podstead_telemetry::counted;

/// Revisions of the history that are shown.
const REVISIONS: usize = 5;
/// Form of times: in UTC, to the second.
const SECONDS: &str = "%Y-%m-%dT%H:%M:%SZ";

/// Everything but the events.
pub(super) fn describe(source: &SourceObject, history: &History, now: Timestamp) -> String {
    let status = &source.status;
    let mut text = Description::default();
    text.field("Name", &source.metadata.name);
    text.field("Kind", &source.spec.kind);
    text.field("Location", &source.spec.location);
    text.field("Status", &standing(source));
    if let Some(error) = &status.last_error {
        text.field("Error", error);
    }
    text.field("Last Contact", &time(status.last_contact_at, now));
    if let Some(next) = status.next_look_at {
        let seconds = next.duration_since(now).as_secs().max(0);
        text.field("Next Fetch", &format!("in {seconds}s"));
    }
    text.field("Fetched", &revision(status.fetched_revision.as_deref(), status.fetched_at, now));
    text.field("Accepted", &revision(status.accepted_revision.as_deref(), status.accepted_at, now));
    text.field("Applied", &revision(status.applied_revision.as_deref(), status.applied_at, now));
    let in_force = history.revisions.iter().find(|entry| entry.in_force);
    if let Some(commit) = in_force.and_then(|entry| entry.commit.as_ref()) {
        text.field("Commit", &format!("{} ({})", commit.subject, commit.author));
    }
    if let Some(entry) = in_force {
        text.field("Objects", &objects(entry));
    }
    text.field("Pods", &status.pods.to_string());
    problems(&mut text, source);
    revisions(&mut text, history, now);
    text.finish()
}

/// One line: held, failed, rejected objects, not read yet, or ok.
fn standing(source: &SourceObject) -> String {
    let status = &source.status;
    let refused = podstead_api::refused_objects(&status.problems);
    let mut words = Vec::new();
    if let Some(hold) = &status.hold {
        words.push(format!("{} since {} by {:?}", hold.kind.word(), hold.since.strftime(SECONDS), hold.command));
    }
    if status.last_error.is_some() {
        words.push("failed".to_owned());
    }
    if refused > 0 {
        words.push(format!("{} rejected", counted(refused, "object")));
    }
    if words.is_empty() && status.is_unread() {
        words.push(podstead_api::UNREAD.to_owned());
    }
    if words.is_empty() { "ok".to_owned() } else { words.join(", ") }
}

fn time(at: Option<Timestamp>, now: Timestamp) -> String {
    at.map_or_else(|| "never".to_owned(), |at| format!("{} ({} ago)", at.strftime(SECONDS), age_since(Some(at), now)))
}

fn revision(revision: Option<&str>, at: Option<Timestamp>, now: Timestamp) -> String {
    match (revision, at) {
        (None, _) => "<none>".to_owned(),
        (Some(revision), None) => revision.to_owned(),
        (Some(revision), Some(at)) => format!("{revision}\nat {}", time(Some(at), now)),
    }
}

/// `2 pods, 1 workload, 3 ConfigMaps`.
fn objects(entry: &HistoryEntry) -> String {
    let counts = [
        (entry.pods, "pod"),
        (entry.workloads, "workload"),
        (entry.config_maps, "ConfigMap"),
        (entry.secrets, "Secret"),
        (entry.claims, "claim"),
        (entry.network_objects, "network object"),
    ];
    let parts: Vec<String> =
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, thing)| counted(count, thing)).collect();
    if parts.is_empty() { "<none>".to_owned() } else { parts.join(", ") }
}

/// Problems of the fetched revision, the errors first.
fn problems(text: &mut Description, source: &SourceObject) {
    for (severity, heading) in [(Severity::Error, "Rejected"), (Severity::Warning, "Warnings")] {
        let found = source.status.problems.iter().filter(|problem| problem.severity == severity);
        let lines: Vec<String> = found
            .map(|problem| {
                let object = problem.object.as_ref();
                let object = object.map(|key| format!("{} {}/{}: ", key.kind, key.namespace, key.name)).unwrap_or_default();
                format!("{object}{problem}")
            })
            .collect();
        if !lines.is_empty() {
            text.field(heading, &lines.join("\n"));
        }
    }
}

fn revisions(text: &mut Description, history: &History, now: Timestamp) {
    if history.revisions.is_empty() {
        return;
    }
    let line = |entry: &HistoryEntry| {
        let subject = entry.commit.as_ref().map(|commit| format!(": {}", commit.subject)).unwrap_or_default();
        let state = if entry.in_force { "in force" } else { entry.state.word() };
        let revision = podstead_api::short_revision(&entry.revision.0);
        format!("{} {revision} {} ago, {state}{subject}", entry.number, age_since(Some(entry.accepted_at), now))
    };
    let lines: Vec<String> = history.revisions.iter().take(REVISIONS).map(line).collect();
    text.field("History", &lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn source_is_described() {
        let problem = json!({
            "severity": "error", "code": "unknown-field", "file": "web.yaml", "position": {"line": 3, "column": 5},
            "field": "spec.imaeg", "message": "unknown field", "hint": null,
            "object": {"kind": "Pod", "namespace": "default", "name": "web"},
        });
        let source: SourceObject = serde_json::from_value(json!({
            "apiVersion": "podstead.dev/v1alpha1", "kind": "Source", "metadata": {"name": "fleet"},
            "spec": {"kind": "git", "location": "https://git.example/fleet"},
            "status": {
                "fetchedRevision": "bbbbbbbbbbbbbbbb", "fetchedAt": "2026-01-01T00:00:00Z", "lastContactAt": "2026-01-01T00:00:50.123456789Z",
                "acceptedRevision": "aaaaaaaaaaaaaaaa", "acceptedAt": "2026-01-01T00:00:00Z",
                "appliedRevision": "aaaaaaaaaaaaaaaa", "nextLookAt": "2026-01-01T00:01:30Z",
                "pods": 3, "lastError": "no route to host", "problems": [problem],
            },
        }))
        .unwrap();
        let history: History = serde_json::from_value(json!({
            "source": "fleet",
            "revisions": [{
                "number": 2, "revision": "aaaaaaaaaaaaaaaa", "acceptedAt": "2026-01-01T00:00:00Z", "inForce": true,
                "commit": {"subject": "web: more memory", "author": "Anna"},
                "pods": 1, "configMaps": 2, "secrets": 0, "workloads": 1,
            }],
            "unreadable": [],
        }))
        .unwrap();
        insta::assert_snapshot!(describe(&source, &history, "2026-01-01T00:01:00Z".parse().unwrap()));
    }
}
