//! The cluster, where one is configured: whether its files can be used, and whether it takes what this host says.

use super::finding::Finding;
use super::host::Host;
use podstead_settings::UpstreamConfig;
use podstead_status::{NodeStanding, UpstreamStatus};
use podstead_telemetry::{counted, error_chain};
use podstead_upstream::client::Kubeconfig;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Effect of a missing connection to the cluster.
const UNTOUCHED: &str = "pods keep running; the cluster shows their last reported status";

/// Observed state.
#[derive(Debug)]
struct Observed {
    /// Error of the kubeconfig.
    kubeconfig: Result<(), String>,
    /// Files with secrets that everybody may read.
    open_files: Vec<PathBuf>,
    /// Status from the daemon; `None` without a response, or if the daemon runs without a cluster.
    status: Option<UpstreamStatus>,
}

pub(super) fn check(host: &Host) -> Vec<Finding> {
    let Some(upstream) = host.config.as_ref().ok().and_then(|config| config.upstream.as_ref()) else { return Vec::new() };
    let status = host.answers.as_ref().ok().and_then(|answers| answers.daemon.upstream.clone());
    judge(&look(upstream, status))
}

fn look(upstream: &UpstreamConfig, status: Option<UpstreamStatus>) -> Observed {
    let kubeconfig = Kubeconfig::load(&upstream.kubeconfig, upstream.context.as_deref());
    let secrets = kubeconfig.as_ref().map(Kubeconfig::secret_files).unwrap_or_default();
    let missing =
        secrets.iter().find(|path| std::fs::metadata(path).is_err()).map(|path| format!("{} does not exist", path.display()));
    // Without secrets in it, the kubeconfig itself may be read by anybody.
    let own = kubeconfig.as_ref().is_ok_and(Kubeconfig::has_secrets).then_some(upstream.kubeconfig.as_path());
    let is_open = |path: &Path| std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o004 != 0);
    Observed {
        open_files: secrets.iter().copied().chain(own).filter(|path| is_open(path)).map(Path::to_owned).collect(),
        kubeconfig: match kubeconfig {
            Ok(_) => missing.map_or(Ok(()), Err),
            Err(error) => Err(error_chain(&error).to_string()),
        },
        status,
    }
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let Observed { kubeconfig, open_files, status } = observed;
    let mut findings = Vec::new();
    if let Err(error) = kubeconfig {
        let remedy = "podstead config check; the daemon reads the files again when they change";
        findings.push(Finding::problem(error.clone(), UNTOUCHED, remedy));
    }
    for path in open_files {
        let path = path.display();
        let why = "anyone who can read it can act as this Node";
        findings.push(Finding::problem(format!("every user can read {path}"), why, format!("chmod o-r {path}")));
    }
    if let Some(status) = status {
        findings.extend(of_status(status, kubeconfig.is_ok()));
    }
    findings
}

fn of_status(status: &UpstreamStatus, is_usable: bool) -> Vec<Finding> {
    let UpstreamStatus { server, connected, since: _, node, node_error, watch_error, pods, mirrors, problems } = status;
    let mut findings = Vec::new();
    match node {
        NodeStanding::StandBy => findings.push(Finding::problem(
            "another agent renews the Lease of this Node: this host reports nothing to the cluster",
            "the cluster shows what the other agent reports",
            "change the nodeName of one of them, or stop the other agent; this host takes over after 40 s",
        )),
        NodeStanding::Unknown | NodeStanding::Registered => {
            let error = node_error.as_ref().or(watch_error.as_ref());
            if *connected && let Some(error) = error {
                let remedy = "let an administrator of the cluster set it, or remove it from the configuration";
                findings.push(Finding::warning(format!("{server}: {error}"), "the Node is registered, but incomplete", remedy));
            } else if is_usable && !*connected {
                let error = error.map_or_else(|| "no request was made yet".to_owned(), Clone::clone);
                let remedy = "check that this host can reach it (curl), its permissions, and the dates of its certificates";
                findings.push(Finding::problem(format!("not connected to {server}: {error}"), UNTOUCHED, remedy));
            }
        }
    }
    for problem in problems {
        findings.push(Finding::warning(problem.clone(), "the cluster shows an outdated status of this pod", "podstead retries"));
    }
    if findings.is_empty() && *connected {
        findings.push(Finding::ok(format!("connected to {server}, {mirrors} of {}", counted(*pods, "mirror pod"))));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, Ok as Well, Problem, Warning};
    use super::*;

    fn severities(observed: &Observed) -> Vec<Severity> {
        judge(observed).iter().map(|finding| finding.severity).collect()
    }

    fn with(change: impl FnOnce(&mut UpstreamStatus)) -> Observed {
        let mut status = UpstreamStatus {
            server: "https://api.lan/".into(),
            connected: true,
            node: NodeStanding::Registered,
            ..Default::default()
        };
        change(&mut status);
        Observed { kubeconfig: Ok(()), open_files: Vec::new(), status: Some(status) }
    }

    #[test]
    fn a_cluster_that_does_not_hear_this_host_is_a_problem_and_one_that_hears_a_part_a_warning() {
        assert_eq!(severities(&with(|_| {})), [Well]);
        assert_eq!(severities(&with(|status| status.connected = false)), [Problem]);
        assert_eq!(severities(&with(|status| status.node = NodeStanding::StandBy)), [Problem]);
        assert_eq!(severities(&with(|status| status.node_error = Some("labels: 403".into()))), [Warning]);
        assert_eq!(severities(&with(|status| status.problems = vec!["a".into(), "b".into()])), [Warning, Warning]);
    }

    #[test]
    fn a_kubeconfig_that_cannot_be_used_is_one_problem_and_a_key_that_everybody_reads_another() {
        let away = |status: &mut UpstreamStatus| status.connected = false;
        assert_eq!(severities(&Observed { kubeconfig: Err("is none".into()), ..with(away) }), [Problem]);
        let open = Observed { open_files: vec!["/k".into()], ..with(|_| {}) };
        assert_eq!(severities(&open), [Problem, Well]);
        assert!(severities(&Observed { kubeconfig: Ok(()), open_files: Vec::new(), status: None }).is_empty());
    }

    #[test]
    fn files_are_looked_at() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        let upstream = UpstreamConfig {
            kubeconfig: path.clone(),
            context: None,
            register_node: true,
            labels: Default::default(),
            taints: Vec::new(),
            max_pods: 110,
            pressure: podstead_settings::PressureThresholds::default(),
        };
        assert!(look(&upstream, None).kubeconfig.is_err());
        let text = r#"{"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://api.lan"}}], "users": [{"name": "u", "user": {"tokenFile": "token"}}]}"#;
        std::fs::write(&path, text).unwrap();
        let found = look(&upstream, None);
        assert!(found.kubeconfig.unwrap_err().contains("token") && found.open_files.is_empty());
        let token = directory.path().join("token");
        std::fs::write(&token, "t").unwrap();
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
        let found = look(&upstream, None);
        assert_eq!((found.kubeconfig, found.open_files), (Ok(()), vec![token.clone()]));
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(look(&upstream, None).open_files.is_empty());
    }
}
