//! State of the daemon, and access to its socket.

use super::finding::Finding;
use super::host::{Host, Silence};
use std::os::unix::fs::PermissionsExt;

/// Observed state.
#[derive(Debug)]
struct Observed {
    /// Its version, or why it does not answer.
    answer: Result<String, Silence>,
    own_version: String,
    socket: String,
    /// Permission bits of the socket, if there is one.
    mode: Option<u32>,
    is_root: bool,
}

pub(super) fn check(host: &Host) -> Vec<Finding> {
    judge(&Observed {
        answer: host.answers.as_ref().map(|answers| answers.daemon.version.clone()).map_err(Clone::clone),
        own_version: env!("CARGO_PKG_VERSION").to_owned(),
        socket: host.socket.display().to_string(),
        mode: std::fs::metadata(&host.socket).ok().map(|metadata| metadata.permissions().mode() & 0o777),
        is_root: host.is_root,
    })
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let start = "systemctl start podstead; journalctl -u podstead shows why it stopped";
    let unwatched = "running containers keep running, but nothing is started, restarted or changed";
    let Observed { socket, own_version, .. } = observed;
    let mut findings = vec![match &observed.answer {
        Ok(version) if version == own_version => Finding::ok(format!("running, version {version}")),
        Ok(version) => Finding::note(
            format!("the daemon is version {version}, this command {own_version}"),
            "the installed version is used after a restart",
            "systemctl restart podstead (pods keep running)",
        ),
        Err(Silence::NoSocket) => Finding::problem(format!("the daemon is not running: {socket} does not exist"), unwatched, start),
        Err(Silence::NobodyListens) => {
            Finding::problem(format!("the daemon is not running: nothing listens on {socket}"), unwatched, start)
        }
        Err(Silence::NotAllowed) => Finding::problem(
            format!("this user has no permission to use {socket}"),
            "sources and pods cannot be checked",
            "use sudo, or set apiSocketGroup to a group of this user",
        ),
        Err(Silence::Other(error)) => Finding::problem(format!("cannot query the daemon: {error}"), "", "journalctl -u podstead"),
    }];
    if observed.mode.is_some_and(|mode| mode & 0o006 != 0) {
        findings.push(Finding::problem(
            format!("every user can access {socket}"),
            "anyone with access to it can run programs in every container",
            format!("chmod o-rwx {socket}; set apiSocketGroup to give a group access"),
        ));
    }
    if !observed.is_root {
        findings.push(Finding::note("not running as root", "some checks are incomplete", "sudo podstead doctor"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, Note, Ok as Well, Problem};
    use super::*;

    fn severities(answer: Result<&str, Silence>, mode: u32, is_root: bool) -> Vec<Severity> {
        let observed = Observed {
            answer: answer.map(str::to_owned),
            own_version: "1.0".into(),
            socket: "/run/podstead/podstead.sock".into(),
            mode: Some(mode),
            is_root,
        };
        judge(&observed).iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn silence_is_a_problem_and_another_version_is_worth_knowing() {
        assert_eq!(severities(Ok("1.0"), 0o660, true), [Well]);
        assert_eq!(severities(Ok("0.9"), 0o660, true), [Note]);
        for silence in [Silence::NoSocket, Silence::NobodyListens, Silence::NotAllowed, Silence::Other("x".into())] {
            assert_eq!(severities(Err(silence), 0o660, true), [Problem]);
        }
        assert_eq!(severities(Ok("1.0"), 0o666, true), [Well, Problem]);
        assert_eq!(severities(Ok("1.0"), 0o600, false), [Well, Note]);
    }
}
