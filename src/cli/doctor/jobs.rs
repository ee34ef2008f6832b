//! The walls around jobs, the processes that ask servers, unpack images and read git objects.

use super::finding::Finding;
use super::host::Host;
use podstead_image::list_job::Lister;
use podstead_job::launch::{JobSettings, Launcher};
use podstead_job::user::{self, JobUser};
use podstead_telemetry::error_chain;
use podstead_telemetry::events::NoEvents;
use std::sync::Arc;

/// Observed state.
#[derive(Debug)]
struct Observed {
    user: JobUser,
    /// The kernel ends a process that makes a forbidden system call.
    filter: bool,
    /// A group can limit memory.
    memory: bool,
    /// Reason for which a job that was started here did not do its task.
    refused: Option<String>,
}

pub(super) fn check(host: &Host) -> Vec<Finding> {
    judge(&look(host))
}

fn look(host: &Host) -> Observed {
    let files = &host.files;
    let actions = files.read("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    let controllers = files.read("/proc/cgroups").unwrap_or_default();
    let is_enabled = |line: &str| {
        let mut fields = line.split_whitespace();
        fields.next() == Some("memory") && fields.next_back() == Some("1")
    };
    Observed {
        user: user::find(&files.at(user::PASSWD)),
        filter: actions.split_whitespace().any(|action| action == "kill_process"),
        // Not on every kernel with v2 alone: there the check of cgroups tells.
        memory: controllers.is_empty() || controllers.lines().any(is_enabled),
        // Only root may start one.
        refused: (files.is_of_the_host() && rustix::process::geteuid().is_root()).then(attempt).and_then(Result::err),
    }
}

fn attempt() -> Result<(), String> {
    let lister = Lister::new(Arc::new(Launcher::new(JobSettings::default())), Arc::new(NoEvents));
    lister.try_out().map_err(|error| error_chain(&error).to_string())
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !observed.filter {
        let why = "jobs refuse to work without a filter of system calls: no image can be pulled or imported, and no git, HTTP or OCI source read";
        findings.push(Finding::problem("the kernel cannot filter system calls", why, "use a kernel with CONFIG_SECCOMP_FILTER"));
    }
    if let Some(reason) = observed.refused.as_ref().filter(|_| observed.filter) {
        let why = "jobs refuse to work with more rights than they need: no image can be pulled or imported, and no git, HTTP or OCI source read";
        let hint = "podstead needs namespaces, system call filters and the capabilities of root: in a container, run it privileged";
        findings.push(Finding::problem(format!("a job cannot be confined on this host: {reason}"), why, hint));
    }
    if !observed.user.is_own {
        findings.push(Finding::note(
            format!("there is no user {}", user::NAME),
            format!(
                "servers are asked, images unpacked and git objects read with uid {}, which another program could have, too; ssh of git sources runs as nobody",
                observed.user.uid
            ),
            "systemd-sysusers podstead.conf",
        ));
    }
    if !observed.memory {
        let why = "memory of jobs is limited by address space alone";
        findings.push(Finding::note("the kernel has no memory controller", why, ""));
    }
    if findings.is_empty() {
        let JobUser { uid, .. } = observed.user;
        let what = format!(
            "servers are asked, images unpacked and git objects read as {} ({uid}), with a system call filter and a memory limit, and only servers with network",
            user::NAME
        );
        findings.push(Finding::ok(what));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity;
    use super::*;

    #[test]
    fn walls_that_are_missing_are_told() {
        let own = JobUser { uid: 990, gid: 990, is_own: true };
        let severities = |observed: Observed| judge(&observed).iter().map(|finding| finding.severity).collect::<Vec<_>>();
        assert_eq!(severities(Observed { user: own, filter: true, memory: true, refused: None }), [Severity::Ok]);
        let refused = Some("unshare".to_owned());
        let found = judge(&Observed { user: own, filter: true, memory: true, refused: refused.clone() });
        assert!(found[0].severity == Severity::Problem && found[0].what.ends_with(": unshare"), "{found:?}");
        assert_eq!(severities(Observed { user: own, filter: false, memory: false, refused }), [Severity::Problem, Severity::Note]);
        let fallback = JobUser { is_own: false, ..own };
        let found = judge(&Observed { user: fallback, filter: true, memory: true, refused: None });
        assert_eq!(found[0].severity, Severity::Note);
        assert!(found[0].what.contains("podstead-job") && found[0].why.contains("990"), "{found:?}");
    }
}
