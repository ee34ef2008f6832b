//! The walls around jobs, the processes that ask servers, unpack images and read git objects.

use super::finding::Finding;
use super::host::Host;
use podstead_job::user::{self, JobUser};

/// Observed state.
#[derive(Debug)]
struct Observed {
    user: JobUser,
    /// The kernel ends a process that makes a forbidden system call.
    filter: bool,
    /// A group can limit memory.
    memory: bool,
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
    }
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !observed.filter {
        let why = "jobs refuse to work without a filter of system calls: no image can be pulled or imported, and no git, HTTP or OCI source read";
        findings.push(Finding::problem("the kernel cannot filter system calls", why, "use a kernel with CONFIG_SECCOMP_FILTER"));
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
        assert_eq!(severities(Observed { user: own, filter: true, memory: true }), [Severity::Ok]);
        assert_eq!(severities(Observed { user: own, filter: false, memory: false }), [Severity::Problem, Severity::Note]);
        let fallback = JobUser { is_own: false, ..own };
        let found = judge(&Observed { user: fallback, filter: true, memory: true });
        assert_eq!(found[0].severity, Severity::Note);
        assert!(found[0].what.contains("podstead-job") && found[0].why.contains("990"), "{found:?}");
    }
}
