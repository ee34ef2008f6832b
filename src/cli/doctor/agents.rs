//! Other programs on this host that run containers or clean up after them.

use super::finding::Finding;
use super::host::{Host, names};

/// Observed state.
#[derive(Debug, Default)]
struct Observed {
    /// Names of running processes that are of interest.
    processes: Vec<String>,
    /// Daemons of podstead.
    daemons: usize,
    /// Directory of logs.
    logs: String,
}

/// Programs that run containers of their own.
const ENGINES: [&str; 8] = ["dockerd", "containerd", "crio", "balenad", "nomad", "k3s-server", "k3s-agent", "k0s"];
/// Processes that contain a kubelet.
const KUBELETS: [&str; 4] = ["kubelet", "k3s-server", "k3s-agent", "k0s"];

pub(super) fn check(host: &Host) -> Vec<Finding> {
    judge(&look(host))
}

fn look(host: &Host) -> Observed {
    let mut observed = Observed { logs: host.paths.logs.display().to_string(), ..Observed::default() };
    for pid in names(&host.files.at("/proc")).iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        let Some(name) = host.files.read(&format!("/proc/{pid}/comm")) else { continue };
        let name = name.trim();
        if name == "podstead" {
            let arguments = host.files.read(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
            observed.daemons += usize::from(arguments.split('\0').any(|argument| argument == "daemon"));
        } else if (ENGINES.contains(&name) || KUBELETS.contains(&name)) && !observed.processes.iter().any(|known| known == name) {
            observed.processes.push(name.to_owned());
        }
    }
    observed
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let mut findings = Vec::new();
    let of = |list: &[&str]| observed.processes.iter().filter(|name| list.contains(&name.as_str())).cloned().collect::<Vec<_>>();
    let kubelets = of(&KUBELETS);
    if let [first, ..] = kubelets.as_slice() {
        if observed.logs == "/var/log/pods" {
            findings.push(Finding::problem(
                format!("{first} is also running on this host"),
                "a kubelet deletes directories of unknown pods in /var/log/pods, including the logs of podstead's pods",
                "set paths.logs to another directory, or stop one of the two",
            ));
        } else {
            let why = "both allocate host ports and memory, and neither knows about the other";
            findings.push(Finding::note(format!("{first} is also running on this host"), why, ""));
        }
    }
    let engines: Vec<_> = of(&ENGINES).into_iter().filter(|name| !kubelets.contains(name)).collect();
    if !engines.is_empty() {
        let why = "it has its own cgroups and network, but shares host ports and memory with podstead";
        findings.push(Finding::note(format!("also running on this host: {}", engines.join(", ")), why, ""));
    }
    if observed.daemons > 1 {
        findings.push(Finding::note(
            format!("{} podstead daemons are running", observed.daemons),
            "each needs its own state, run and log directories",
            "",
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::ok("no other container engine is running"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, Note, Ok, Problem};
    use super::*;

    #[test]
    fn a_kubelet_takes_the_logs_away_and_other_engines_are_neighbours() {
        let severities = |processes: &[&str], logs: &str, daemons| {
            let processes = processes.iter().map(|name| (*name).to_owned()).collect();
            let observed = Observed { processes, daemons, logs: logs.to_owned() };
            judge(&observed).iter().map(|finding| finding.severity).collect::<Vec<Severity>>()
        };
        assert_eq!(severities(&[], "/var/log/pods", 1), [Ok]);
        assert_eq!(severities(&["kubelet", "containerd"], "/var/log/pods", 1), [Problem, Note]);
        assert_eq!(severities(&["k3s-server"], "/var/log/podstead", 1), [Note]);
        assert_eq!(severities(&["dockerd", "containerd"], "/var/log/pods", 1), [Note]);
        assert_eq!(severities(&[], "/var/log/pods", 2), [Note]);
    }
}
