//! The text of `podstead status`. **Pure**.

use super::upstream;
use crate::doctor::finding::{Finding, Severity as HostSeverity};
use crate::get::style_of;
use crate::pods::shown_name;
use crate::printable::printable;
use crate::table::Style;
use crate::trouble::{Evidence, WorkloadTrouble, explain, explain_workloads, is_attempt_of_a_job, is_of_a_manifest, owner_of};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use podstead_api::short_revision;
use podstead_api::show::{PodRow, age_since};
use podstead_api::{DaemonObject, SourceObject, refused_objects};
use podstead_pod::Severity;
use podstead_settings::HookStanding;
use podstead_status::UpstreamStatus;
use podstead_telemetry::counted;
use serde_json::Value;
use std::fmt::Write;

/// Problems shown per source; the rest is counted.
const MAX_PROBLEMS: usize = 20;

/// Responses of the daemon.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) daemon: DaemonObject,
    /// Problems of the host itself.
    pub(super) host: Vec<Finding>,
    pub(super) sources: Vec<SourceObject>,
    pub(super) pods: Vec<Pod>,
    pub(super) workloads: Vec<Value>,
    pub(super) evidence: Evidence,
}

/// A hook whose last attempt did not succeed.
fn write_hook(text: &mut String, hook: &HookStanding, color: bool) -> std::fmt::Result {
    let waiting = match hook.waiting {
        0 => "the receiver refused a notification, which is lost".to_owned(),
        waiting => format!("{} waiting, cannot be delivered", counted(waiting, "notification")),
    };
    writeln!(text, "  {}", Style::Pending.paint(&format!("notify hook {}: {waiting}", printable(&hook.name)), color))?;
    writeln!(text, "      {}", printable(hook.error.as_deref().unwrap_or_default()))
}

impl Report {
    /// True if there are no problems.
    pub(super) fn is_well(&self) -> bool {
        let sources = self.sources.iter().all(|source| source.status.last_error.is_none() && source.status.problems.is_empty());
        let configured = self.daemon.config_error.is_none() && self.daemon.needs_restart_for.is_empty();
        let upstream = self.daemon.upstream.as_ref().is_none_or(UpstreamStatus::is_well);
        let host = self.host.iter().all(|finding| finding.severity != HostSeverity::Problem);
        sources
            && host
            && configured
            && upstream
            && self.daemon.waiting_for_sources.is_empty()
            && self.daemon.hooks.iter().all(|hook| hook.error.is_none())
            && self.pods.iter().all(|pod| self.has_no_trouble(pod, &PodRow::of(pod)))
            && explain_workloads(&self.workloads, &self.evidence).is_empty()
    }

    /// True for a pod that is healthy, and for a failed attempt of a Job, which is the Job's matter.
    pub(super) fn has_no_trouble(&self, pod: &Pod, row: &PodRow) -> bool {
        row.is_well() || is_attempt_of_a_job(pod, &self.workloads)
    }

    /// The whole screen.
    pub(super) fn text(&self, now: Timestamp, color: bool) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        self.write(&mut text, now, color).ok();
        text
    }

    fn write(&self, text: &mut String, now: Timestamp, color: bool) -> std::fmt::Result {
        let daemon = &self.daemon;
        let title = format!("podstead {} on {}", daemon.version, daemon.node_name);
        let up = age_since(Some(daemon.started_at), now);
        writeln!(text, "{}, up {up} (pid {})", Style::Bold.paint(&title, color), daemon.pid)?;
        if let Some(error) = &daemon.config_error {
            writeln!(text, "  {}", Style::Bad.paint(error, color))?;
        }
        if !daemon.needs_restart_for.is_empty() {
            let fields = daemon.needs_restart_for.join(", ");
            writeln!(
                text,
                "  {}",
                Style::Pending
                    .paint(&format!("changed in the configuration, takes effect after a restart of the daemon: {fields}"), color)
            )?;
        }
        for hook in daemon.hooks.iter().filter(|hook| hook.error.is_some()) {
            write_hook(text, hook, color)?;
        }
        for Finding { severity, what, why, remedy, .. } in &self.host {
            let style = if *severity == HostSeverity::Problem { Style::Bad } else { Style::Pending };
            let mut lines = what.lines().map(printable);
            writeln!(text, "  {}", style.paint(&lines.next().unwrap_or_default(), color))?;
            for line in lines.chain([printable(why)]) {
                writeln!(text, "      {line}")?;
            }
            writeln!(text, "      -> {}", printable(remedy))?;
        }
        for source in &self.sources {
            writeln!(text)?;
            write_source(text, source, now, color)?;
        }
        for name in daemon.waiting_for_sources.iter().filter(|name| !self.sources.iter().any(|s| s.metadata.name == **name)) {
            writeln!(text, "\nsource {name}: {}", Style::Pending.paint("not synced yet", color))?;
        }
        if let Some(upstream) = &daemon.upstream {
            writeln!(text)?;
            upstream::write(text, upstream, now, color)?;
        }
        writeln!(text)?;
        self.write_pods(text, now, color)?;
        self.write_workloads(text, now, color)
    }

    fn write_pods(&self, text: &mut String, now: Timestamp, color: bool) -> std::fmt::Result {
        let rows: Vec<(&Pod, PodRow)> = self.pods.iter().map(|pod| (pod, PodRow::of(pod))).collect();
        let unwell: Vec<_> = rows.iter().filter(|(pod, row)| !self.has_no_trouble(pod, row)).collect();
        let well = rows.len() - unwell.len();
        let refused: usize = self.sources.iter().map(|source| refused_objects(&source.status.problems)).sum();
        match (rows.len(), unwell.len()) {
            (0, _) => writeln!(text, "no pods")?,
            (all, 0) if refused > 0 => {
                let refused = format!("but {} rejected: see above", counted(refused, "object"));
                writeln!(text, "{} healthy, {}", pods(all), Style::Bad.paint(&refused, color))?;
            }
            (all, 0) => writeln!(text, "{}, {}", pods(all), Style::Good.paint("all healthy", color))?,
            (all, _) => writeln!(
                text,
                "{}, {well} healthy, {}",
                pods(all),
                Style::Bad.paint(&format!("{} unhealthy", unwell.len()), color)
            )?,
        }
        for (pod, row) in unwell {
            let trouble = explain(pod, row, &self.evidence, now);
            let name = shown_name(pod);
            let owner = owner_of(pod, &self.workloads).map(|owner| format!(" ({owner})")).unwrap_or_default();
            let since = trouble.since.map(|since| format!(" for {}", age_since(Some(since), now))).unwrap_or_default();
            let restarts = usize::try_from(row.restarts).ok().filter(|restarts| *restarts > 0);
            let restarts = restarts.map(|restarts| format!(", {}", counted(restarts, "restart"))).unwrap_or_default();
            writeln!(text, "  {name}{owner}: {}{since}{restarts}", style_of(row).paint(&row.status, color))?;
            for cause in &trouble.causes {
                writeln!(text, "      {cause}")?;
            }
            if let Some(remedy) = &trouble.remedy {
                writeln!(text, "      -> {remedy}")?;
            }
        }
        Ok(())
    }

    /// Nothing on a host without workloads.
    fn write_workloads(&self, text: &mut String, now: Timestamp, color: bool) -> std::fmt::Result {
        let all = self.workloads.iter().filter(|workload| is_of_a_manifest(workload)).count();
        let troubles = explain_workloads(&self.workloads, &self.evidence);
        match (all, troubles.len()) {
            (0, 0) => return Ok(()),
            (all, 0) => writeln!(text, "{}, {}", counted(all, "workload"), Style::Good.paint("all healthy", color))?,
            (all, some) => {
                writeln!(text, "{}, {}", counted(all, "workload"), Style::Bad.paint(&format!("{some} unhealthy"), color))?
            }
        }
        for WorkloadTrouble { name, what, is_failure, since, causes, remedy } in troubles {
            let since = since.map(|since| format!(" for {}", age_since(Some(since), now))).unwrap_or_default();
            let style = if is_failure { Style::Bad } else { Style::Pending };
            writeln!(text, "  {name}: {}{since}", style.paint(&what, color))?;
            for cause in causes {
                writeln!(text, "      {cause}")?;
            }
            writeln!(text, "      -> {remedy}")?;
        }
        Ok(())
    }
}

fn write_source(text: &mut String, source: &SourceObject, now: Timestamp, color: bool) -> std::fmt::Result {
    let status = &source.status;
    let title = format!("source {} ({} {})", source.metadata.name, source.spec.kind, source.spec.location);
    writeln!(text, "{}", Style::Bold.paint(&title, color))?;
    let read = status.last_contact_at.map_or_else(
        || "no contact since the daemon started".to_owned(),
        |at| format!("last contact {} ago", age_since(Some(at), now)),
    );
    let ago = |at: Option<Timestamp>| at.map(|at| format!(" {} ago", age_since(Some(at), now))).unwrap_or_default();
    match (&status.fetched_revision, &status.accepted_revision) {
        (fetched, Some(accepted)) => {
            write!(text, "  accepted {}{} ({})", short_revision(accepted), ago(status.accepted_at), pods(status.pods))?;
            match &status.applied_revision {
                Some(applied) if applied == accepted => {}
                Some(applied) => write!(text, ", applied {}{}", short_revision(applied), ago(status.applied_at))?,
                None => write!(text, ", not applied yet")?,
            }
            if let Some(fetched) = fetched.as_ref().filter(|fetched| *fetched != accepted) {
                write!(text, ", fetched {}", short_revision(fetched))?;
            }
            writeln!(text, ", {read}")?;
        }
        (Some(fetched), None) => writeln!(text, "  nothing accepted yet, fetched {}, {read}", short_revision(fetched))?,
        (None, None) => writeln!(text, "  nothing accepted yet, {read}")?,
    }
    if let Some(hold) = &status.hold {
        let since = age_since(Some(hold.since), now);
        let held = format!("{} {since} ago ({}): held at the accepted revision", hold.kind.word(), hold.command);
        writeln!(text, "  {}", Style::Pending.paint(&held, color))?;
        writeln!(text, "      -> podstead resume {}", source.metadata.name)?;
    }
    if let Some(error) = &status.last_error {
        writeln!(text, "  {}", Style::Bad.paint(error, color))?;
        // The error itself says which pods keep running.
        if let Some(at) = status.next_look_at.filter(|at| *at > now) {
            writeln!(text, "      next retry in {}", age_since(Some(now), at))?;
        }
    }
    for problem in status.problems.iter().take(MAX_PROBLEMS) {
        let style = match problem.severity {
            Severity::Error => Style::Bad,
            Severity::Warning => Style::Pending,
        };
        writeln!(text, "  {}", style.paint(&problem.to_string(), color))?;
    }
    if let Some(more) = status.problems.len().checked_sub(MAX_PROBLEMS).filter(|more| *more > 0) {
        writeln!(text, "  and {more} more (podstead get sources {} -o yaml)", source.metadata.name)?;
    }
    Ok(())
}

fn pods(number: usize) -> String {
    counted(number, "pod")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> Report {
        serde_json::from_value::<Vec<serde_json::Value>>(json!([
            {
                "version": "0.1.0", "nodeName": "edge", "startedAt": "2026-01-01T00:00:00Z", "pid": 712, "waitingForSources": ["fleet"],
            },
            [{
                "apiVersion": "podstead.dev/v1alpha1", "kind": "Source", "metadata": {"name": "manifests"},
                "spec": {"kind": "directory", "location": "/etc/podstead/manifests"},
                "status": {
                    "fetchedRevision": "sha256:bbbbbbbbbbbbbbbb", "fetchedAt": "2026-01-01T00:20:00Z", "lastContactAt": "2026-01-01T00:59:50Z",
                    "acceptedRevision": "sha256:aaaaaaaaaaaaaaaa", "acceptedAt": "2026-01-01T00:30:00Z",
                    "appliedRevision": "sha256:aaaaaaaaaaaaaaaa", "appliedAt": "2026-01-01T00:30:01Z", "pods": 2, "nextLookAt": "2026-01-01T01:02:30Z",
                    "hold": {"kind": "rolledBack", "since": "2026-01-01T00:30:00Z", "command": "podstead rollback manifests"}, "lastError": "list directory: input/output error",
                    "problems": [{
                        "severity": "error", "code": "unknown-field", "file": "web.yaml", "position": {"line": 19, "column": 3},
                        "field": "spec.hostNetwrok", "message": "unknown field", "hint": "did you mean \"hostNetwork\"?", "object": null,
                    }],
                },
            }],
            [
                {
                    "metadata": {"name": "web-edge", "namespace": "default"},
                    "spec": {"containers": [{"name": "app"}, {"name": "side"}]},
                    "status": {
                        "phase": "Running",
                        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:55:00Z"}],
                        "containerStatuses": [
                            {"name": "app", "ready": true, "restartCount": 0, "image": "", "imageID": "", "state": {"running": {}}},
                            {
                                "name": "side", "ready": false, "restartCount": 6, "image": "", "imageID": "",
                                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 2m40s restarting failed container=side"}},
                            },
                        ],
                    },
                },
                {
                    "metadata": {"name": "dns-edge", "namespace": "kube-system"},
                    "spec": {"containers": [{"name": "dns"}]},
                    "status": {
                        "phase": "Running",
                        "containerStatuses": [{"name": "dns", "ready": true, "restartCount": 0, "image": "", "imageID": "", "state": {"running": {}}}],
                    },
                },
            ],
        ]))
        .map(|mut parts| {
            let pods = serde_json::from_value(parts.remove(2)).unwrap();
            let sources = serde_json::from_value(parts.remove(1)).unwrap();
            Report { daemon: serde_json::from_value(parts.remove(0)).unwrap(), sources, pods, host: Vec::new(), workloads: Vec::new(), evidence: Evidence::default() }
        })
        .unwrap()
    }

    #[test]
    fn what_is_wrong_is_told_with_reason_time_and_remedy() {
        let report = report();
        assert!(!report.is_well());
        insta::assert_snapshot!(report.text("2026-01-01T01:00:00Z".parse().unwrap(), false));
    }

    #[test]
    fn full_disk_of_the_host_is_told() {
        let mut report = report();
        report.pods.remove(0);
        report.daemon.waiting_for_sources.clear();
        report.sources.clear();
        report.host = vec![Finding::warning("disk has little\n5 MiB images", "why", "do that")];
        assert!(report.is_well(), "it works");
        report.host.push(Finding::problem("disk is full", "why", "do this"));
        assert!(!report.is_well());
        let text = report.text(Timestamp::UNIX_EPOCH, false);
        let told =
            "\n  disk has little\n      5 MiB images\n      why\n      -> do that\n  disk is full\n      why\n      -> do this\n";
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn a_host_that_is_well_says_so_in_few_lines() {
        let mut report = report();
        report.pods.remove(0);
        report.daemon.waiting_for_sources.clear();
        report.sources[0].status.last_error = None;
        report.sources[0].status.problems.clear();
        assert!(report.is_well());
        assert!(report.text(Timestamp::UNIX_EPOCH, false).ends_with("\n\n1 pod, all healthy\n"));
    }

    #[test]
    fn stalled_workload_is_a_problem() {
        let mut report = report();
        report.daemon.waiting_for_sources.clear();
        report.sources.clear();
        report.pods.remove(0);
        report.workloads = vec![json!({
            "kind": "Deployment", "metadata": {"name": "web", "namespace": "default", "uid": "1"}, "spec": {"replicas": 1},
            "status": {"readyReplicas": 1},
        })];
        assert!(report.is_well());
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        assert!(report.text(now, false).ends_with("1 pod, all healthy\n1 workload, all healthy\n"));
        report.workloads[0]["status"]["conditions"] = json!([{
            "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "ReplicaSet has timed out",
            "lastTransitionTime": "2026-01-01T00:50:00Z",
        }]);
        assert!(!report.is_well());
        let expected = "1 workload, 1 unhealthy\n  deployment web: does not progress for 10m\n      \
                        ProgressDeadlineExceeded: ReplicaSet has timed out\n      1 of 1 pods are ready\n      -> podstead describe deployment/web\n";
        assert!(report.text(now, false).ends_with(expected), "{}", report.text(now, false));
    }

    #[test]
    fn failed_attempt_of_job_is_no_problem() {
        let mut report = report();
        report.daemon.waiting_for_sources.clear();
        report.sources.clear();
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "dump", "uid": "2", "controller": true});
        let attempt = json!({
            "metadata": {"name": "dump-0", "namespace": "default", "ownerReferences": [owner]}, "spec": {"containers": []},
            "status": {"phase": "Failed"},
        });
        report.pods = vec![serde_json::from_value(attempt).unwrap()];
        assert!(!report.is_well(), "no Job of this host made it");
        report.workloads = vec![json!({"kind": "Job", "metadata": {"name": "dump", "namespace": "default", "uid": "2"}})];
        assert!(report.is_well());
    }
}
