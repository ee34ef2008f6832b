//! State of a revision, from what the API serves. **Pure**.

use super::super::notify::Failure;
use super::course::State;
use podstead_pod::{Severity, SourceId};
use podstead_store::SourceStatus;
use serde_json::Value;

/// Knowledge of a source and of everybody's objects.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) status: &'a SourceStatus,
    /// Pods and workloads that are not well.
    pub(super) failing: &'a [(String, Failure)],
    /// Workloads that are not complete, with their sources.
    pub(super) rolling: &'a [(SourceId, String)],
}

/// State of the fetched revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) revision: String,
    pub(super) state: State,
    /// A sentence.
    pub(super) description: String,
    /// Waiting changes nothing.
    pub(super) is_final: bool,
}

/// Judges the fetched revision; `None` before one was fetched.
pub(super) fn verdict(seen: &Seen<'_>) -> Option<Verdict> {
    let status = seen.status;
    let fetched = status.fetched.as_ref()?;
    let (state, description, is_final) = state_of(seen);
    Some(Verdict { revision: fetched.0.clone(), state, description, is_final })
}

fn state_of(seen: &Seen<'_>) -> (State, String, bool) {
    let status = seen.status;
    let mut refused = status.problems.iter().filter(|problem| problem.severity == Severity::Error);
    if let Some(first) = refused.next() {
        let more = refused.count();
        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        return (State::Failure, format!("refused: {first}{more}"), true);
    }
    if status.applied != status.fetched {
        let why = if status.hold.is_some() { "the source is held at another revision" } else { "being applied" };
        return (State::Pending, why.to_owned(), false);
    }
    let source = status.id.to_string();
    let mut own = seen.failing.iter().filter(|(_, failure)| failure.source == source);
    if let Some((object, failure)) = own.clone().find(|(_, failure)| !failure.is_progress) {
        return (State::Failure, format!("{object}: {}: {}", failure.reason, failure.message), false);
    }
    if let Some((object, failure)) = own.next() {
        return (State::Pending, format!("waiting for {object}: {}", failure.reason), false);
    }
    if let Some((_, workload)) = seen.rolling.iter().find(|(of, _)| *of == status.id) {
        return (State::Pending, format!("waiting for {workload}"), false);
    }
    (State::Success, "all pods are as they should be".to_owned(), false)
}

/// Returns true if a workload has the pods that it wants, of its newest template. Jobs and CronJobs have no such state.
pub(super) fn is_complete(object: &Value) -> bool {
    let (spec, status) = (&object["spec"], &object["status"]);
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let replicas = spec["replicas"].as_u64().unwrap_or(1);
    let is_partial =
        spec["updateStrategy"]["type"] == "OnDelete" || number(&spec["updateStrategy"]["rollingUpdate"]["partition"]) > 0;
    match object["kind"].as_str() {
        Some("Deployment") => {
            let [updated, available, all] =
                ["updatedReplicas", "availableReplicas", "replicas"].map(|field| number(&status[field]));
            spec["paused"] == true || (updated == replicas && available == replicas && all == replicas)
        }
        Some("StatefulSet") => {
            number(&status["readyReplicas"]) == replicas && (is_partial || number(&status["updatedReplicas"]) == replicas)
        }
        Some("DaemonSet") => {
            let desired = number(&status["desiredNumberScheduled"]);
            number(&status["numberReady"]) == desired && (is_partial || number(&status["updatedNumberScheduled"]) == desired)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::Revision;
    use serde_json::json;

    fn status(fetched: &str, applied: &str) -> SourceStatus {
        let revision = |text: &str| (!text.is_empty()).then(|| Revision(text.to_owned()));
        SourceStatus {
            id: SourceId::new("fleet"),
            kind: "git".to_owned(),
            location: String::new(),
            fetched: revision(fetched),
            fetched_at: None,
            accepted: revision(applied),
            accepted_at: None,
            applied: revision(applied),
            applied_at: None,
            hold: None,
            pods: 1,
            last_error: None,
            problems: Vec::new(),
        }
    }

    fn failure(source: &str, is_progress: bool) -> (String, Failure) {
        let [reason, message, revision] = ["CrashLoopBackOff", "exit code 1", "a"].map(str::to_owned);
        ("pod default/web".to_owned(), Failure { reason, message, source: source.to_owned(), revision, is_progress })
    }

    fn of(status: &SourceStatus, failing: &[(String, Failure)], rolling: &[(SourceId, String)]) -> Option<(State, String)> {
        verdict(&Seen { status, failing, rolling }).map(|verdict| (verdict.state, verdict.description))
    }

    #[test]
    fn state_follows_pods_and_workloads() {
        let applied = status("a", "a");
        assert_eq!(of(&status("", ""), &[], &[]), None);
        assert_eq!(of(&status("b", "a"), &[], &[]).unwrap().0, State::Pending);
        assert_eq!(of(&applied, &[], &[]).unwrap().0, State::Success);
        assert_eq!(of(&applied, &[failure("other", false)], &[]).unwrap().0, State::Success, "of another source");
        let (state, text) = of(&applied, &[failure("fleet", true), failure("fleet", false)], &[]).unwrap();
        assert_eq!((state, text.as_str()), (State::Failure, "pod default/web: CrashLoopBackOff: exit code 1"));
        assert_eq!(of(&applied, &[failure("fleet", true)], &[]).unwrap().0, State::Pending);
        let rolling = [(SourceId::new("fleet"), "Deployment/web".to_owned())];
        assert_eq!(of(&applied, &[], &rolling).unwrap(), (State::Pending, "waiting for Deployment/web".to_owned()));
    }

    #[test]
    fn workloads_are_complete_with_new_pods() {
        let deployment = |updated: u64, available: u64, all: u64| {
            json!({"kind": "Deployment", "spec": {"replicas": 2},
                "status": {"updatedReplicas": updated, "availableReplicas": available, "replicas": all}})
        };
        assert!(is_complete(&deployment(2, 2, 2)));
        assert!(!is_complete(&deployment(1, 2, 2)) && !is_complete(&deployment(2, 1, 2)) && !is_complete(&deployment(2, 2, 3)));
        let set = json!({"kind": "StatefulSet", "spec": {"replicas": 2}, "status": {"readyReplicas": 2, "updatedReplicas": 1}});
        assert!(!is_complete(&set));
        let mut held = set;
        held["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
        assert!(is_complete(&held));
        assert!(is_complete(&json!({"kind": "DaemonSet", "status": {"desiredNumberScheduled": 0}})));
        assert!(is_complete(&json!({"kind": "Job"})));
    }
}
