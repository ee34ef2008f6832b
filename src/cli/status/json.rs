//! `podstead status -o json`. **Pure**.

use super::report::Report;
use crate::doctor::finding::Severity as HostSeverity;
use crate::pods::{name_of, namespace_of, source_of};
use crate::trouble::{WorkloadTrouble, explain, explain_workloads};
use jiff::Timestamp;
use podstead_api::show::PodRow;
use serde_json::{Value, json};

/// The same as the text says, for programs.
pub(super) fn json(report: &Report, now: Timestamp) -> Value {
    let pods = report.pods.iter().map(|pod| {
        let row = PodRow::of(pod);
        let trouble = (!report.has_no_trouble(pod, &row)).then(|| explain(pod, &row, &report.evidence, now));
        let problem = trouble.map(|trouble| {
            json!({
                "container": trouble.container,
                "since": trouble.since.map(|since| since.to_string()),
                "causes": trouble.causes,
                "remedy": trouble.remedy,
            })
        });
        json!({
            "namespace": namespace_of(pod), "name": name_of(pod), "source": source_of(pod), "status": row.status,
            "ready": row.ready, "containers": row.total, "restarts": row.restarts, "problem": problem,
        })
    });
    let workloads = explain_workloads(&report.workloads, &report.evidence).into_iter().map(|trouble| {
        let WorkloadTrouble { name, what, is_failure, since, causes, remedy } = trouble;
        json!({
            "name": name, "problem": what, "isFailure": is_failure, "since": since.map(|since| since.to_string()),
            "causes": causes, "remedy": remedy,
        })
    });
    let host = report.host.iter().map(|finding| {
        let is_problem = finding.severity == HostSeverity::Problem;
        json!({"isProblem": is_problem, "what": finding.what, "why": finding.why, "remedy": finding.remedy})
    });
    json!({
        "isWell": report.is_well(),
        "daemon": report.daemon,
        "host": host.collect::<Vec<_>>(),
        "sources": report.sources,
        "pods": pods.collect::<Vec<_>>(),
        "workloadProblems": workloads.collect::<Vec<_>>(),
    })
}

/// The state that is compared to see a change: without the daemon, and as of no time in particular.
pub(super) fn state(report: &Report) -> String {
    let mut state = json(report, Timestamp::UNIX_EPOCH);
    state["daemon"] = json!([report.daemon.config_error, report.daemon.needs_restart_for, report.daemon.waiting_for_sources]);
    for source in state["sources"].as_array_mut().into_iter().flatten() {
        // A fetch without a change is none.
        for field in ["fetchedAt", "lastContactAt", "nextLookAt"] {
            source["status"][field] = Value::Null;
        }
    }
    state.to_string()
}
