//! Probes, and the actions that probes and hooks share.

use super::names::{Rule, header_name, port_name, port_number};
use crate::containers::{list, text};
use crate::field::{FieldPath, Problems};
use k8s_openapi::api::core::v1::{Container, ExecAction, GRPCAction, HTTPGetAction, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The three probes of a container.
pub(super) fn check(container: &Container, path: &FieldPath, problems: &mut Problems) {
    if let Some(probe) = &container.liveness_probe {
        let path = path.child("livenessProbe");
        check_probe(probe, &path, problems);
        check_single_success(probe, &path, problems);
    }
    if let Some(probe) = &container.startup_probe {
        let path = path.child("startupProbe");
        check_probe(probe, &path, problems);
        check_single_success(probe, &path, problems);
    }
    if let Some(probe) = &container.readiness_probe {
        let path = path.child("readinessProbe");
        check_probe(probe, &path, problems);
        if probe.termination_grace_period_seconds.is_some() {
            problems.forbidden(&path.child("terminationGracePeriodSeconds"), "a readiness probe does not stop the container");
        }
    }
}

/// A probe that restarts has no use for a count of successes.
fn check_single_success(probe: &Probe, path: &FieldPath, problems: &mut Problems) {
    if let Some(count) = probe.success_threshold.filter(|count| *count != 1) {
        problems.invalid(&path.child("successThreshold"), count, "must be 1");
    }
}

fn check_probe(probe: &Probe, path: &FieldPath, problems: &mut Problems) {
    let Probe {
        exec,
        failure_threshold,
        grpc,
        http_get,
        initial_delay_seconds,
        period_seconds,
        success_threshold,
        tcp_socket,
        termination_grace_period_seconds,
        timeout_seconds,
    } = probe;
    let actions = Actions { exec: exec.as_ref(), http_get: http_get.as_ref(), tcp_socket: tcp_socket.as_ref() };
    let others = usize::from(grpc.is_some());
    actions.check(others, "exec, httpGet, tcpSocket, grpc", path, problems);
    if let Some(action) = grpc {
        check_grpc(action, &path.child("grpc"), problems);
    }
    for (name, number) in [
        ("initialDelaySeconds", initial_delay_seconds),
        ("timeoutSeconds", timeout_seconds),
        ("periodSeconds", period_seconds),
        ("successThreshold", success_threshold),
        ("failureThreshold", failure_threshold),
    ] {
        if let Some(number) = number.filter(|number| *number < 0) {
            problems.invalid(&path.child(name), number, "must not be negative");
        }
    }
    if let Some(seconds) = termination_grace_period_seconds.filter(|seconds| *seconds <= 0) {
        problems.invalid(&path.child("terminationGracePeriodSeconds"), seconds, "must be greater than 0");
    }
}

/// The actions that both probes and hooks may take.
pub(super) struct Actions<'a> {
    pub(super) exec: Option<&'a ExecAction>,
    pub(super) http_get: Option<&'a HTTPGetAction>,
    pub(super) tcp_socket: Option<&'a TCPSocketAction>,
}

impl Actions<'_> {
    /// Exactly one action, `others` of which are not among these.
    pub(super) fn check(&self, others: usize, allowed: &str, path: &FieldPath, problems: &mut Problems) {
        let own = [self.exec.is_some(), self.http_get.is_some(), self.tcp_socket.is_some()];
        match others + own.iter().filter(|set| **set).count() {
            0 => problems.required(path, &format!("one of {allowed}")),
            1 => {}
            _ => problems.forbidden(path, format_args!("may have only one of {allowed}")),
        }
        if let Some(action) = self.exec
            && list(&action.command).is_empty()
        {
            problems.required(&path.child("exec.command"), "");
        }
        if let Some(action) = self.http_get {
            check_http_get(action, &path.child("httpGet"), problems);
        }
        if let Some(action) = self.tcp_socket {
            check_port(&action.port, &path.child("tcpSocket.port"), problems);
        }
    }
}

fn check_http_get(action: &HTTPGetAction, path: &FieldPath, problems: &mut Problems) {
    if text(&action.path).is_empty() {
        problems.required(&path.child("path"), "");
    }
    check_port(&action.port, &path.child("port"), problems);
    problems.one_of(&path.child("scheme"), text(&action.scheme), &["HTTP", "HTTPS"]);
    for (index, header) in list(&action.http_headers).iter().enumerate() {
        problems.rule(&path.child("httpHeaders").index(index).child("name"), &header.name, header_name(&header.name));
    }
}

fn check_grpc(action: &GRPCAction, path: &FieldPath, problems: &mut Problems) {
    problems.rule(&path.child("port"), action.port, port_number(action.port));
}

fn check_port(port: &IntOrString, path: &FieldPath, problems: &mut Problems) {
    match port {
        IntOrString::Int(number) => problems.rule(path, number, port_number(*number)),
        IntOrString::String(name) => {
            let rule: Rule = port_name(name);
            problems.rule(path, name, rule);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::check_container;

    const NAME: &str = "must be 1 to 15 lower-case letters, digits or single '-', with at least one letter, starting and ending with a letter or digit";

    #[test]
    fn a_probe_takes_one_action() {
        for action in ["exec: {command: ['true']}", "httpGet: {port: 80}", "tcpSocket: {port: http}", "grpc: {port: 80}"] {
            check_container(
                &format!("livenessProbe: {{{action}}}, readinessProbe: {{{action}}}, startupProbe: {{{action}}}"),
                "",
                &[],
            );
        }
        check_container("livenessProbe: {}", "", &["{P}.livenessProbe: is required: one of exec, httpGet, tcpSocket, grpc"]);
        check_container(
            "readinessProbe: {tcpSocket: {port: 1}, grpc: {port: 1}}",
            "",
            &["{P}.readinessProbe: forbidden: may have only one of exec, httpGet, tcpSocket, grpc"],
        );
    }

    #[test]
    fn actions_are_complete() {
        check_container("livenessProbe: {exec: {}}", "", &["{P}.livenessProbe.exec.command: is required"]);
        check_container(
            "livenessProbe: {httpGet: {port: 0, scheme: http, httpHeaders: [{name: 'a b', value: c}]}}",
            "",
            &[
                "{P}.livenessProbe.httpGet.port: invalid value 0: must be between 1 and 65535",
                "{P}.livenessProbe.httpGet.scheme: invalid value \"http\": must be one of \"HTTP\", \"HTTPS\"",
                "{P}.livenessProbe.httpGet.httpHeaders[0].name: invalid value \"a b\": must be letters, digits and '-'",
            ],
        );
        check_container(
            "livenessProbe: {tcpSocket: {port: HTTP}}",
            "",
            &[&format!("{{P}}.livenessProbe.tcpSocket.port: invalid value \"HTTP\": {NAME}")],
        );
        check_container(
            "livenessProbe: {grpc: {port: 65536}}",
            "",
            &["{P}.livenessProbe.grpc.port: invalid value 65536: must be between 1 and 65535"],
        );
    }

    #[test]
    fn numbers_are_not_negative_and_success_counts_for_readiness_only() {
        let with = |probe: &str, numbers: &str| format!("{probe}: {{tcpSocket: {{port: 1}}, {numbers}}}");
        check_container(&with("readinessProbe", "successThreshold: 3, timeoutSeconds: 5"), "", &[]);
        check_container(
            &with("livenessProbe", "successThreshold: 3"),
            "",
            &["{P}.livenessProbe.successThreshold: invalid value 3: must be 1"],
        );
        check_container(
            &with("startupProbe", "successThreshold: 3"),
            "",
            &["{P}.startupProbe.successThreshold: invalid value 3: must be 1"],
        );
        check_container(
            &with("readinessProbe", "initialDelaySeconds: -1, periodSeconds: -1"),
            "",
            &[
                "{P}.readinessProbe.initialDelaySeconds: invalid value -1: must not be negative",
                "{P}.readinessProbe.periodSeconds: invalid value -1: must not be negative",
            ],
        );
    }

    #[test]
    fn a_grace_period_is_for_probes_that_stop_a_container() {
        let with =
            |probe: &str, seconds: i32| format!("{probe}: {{tcpSocket: {{port: 1}}, terminationGracePeriodSeconds: {seconds}}}");
        check_container(&with("livenessProbe", 5), "", &[]);
        check_container(
            &with("livenessProbe", 0),
            "",
            &["{P}.livenessProbe.terminationGracePeriodSeconds: invalid value 0: must be greater than 0"],
        );
        check_container(
            &with("readinessProbe", 5),
            "",
            &["{P}.readinessProbe.terminationGracePeriodSeconds: forbidden: a readiness probe does not stop the container"],
        );
    }
}
