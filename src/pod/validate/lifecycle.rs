//! Hooks and the stop signal.

use super::probes::Actions;
use crate::containers::text;
use crate::field::{FieldPath, Problems};
use crate::signal::is_stop_signal;
use k8s_openapi::api::core::v1::{Lifecycle, LifecycleHandler};

/// `lifecycle` of one container. `os` is the pod's `os.name`, empty where it says nothing.
pub(super) fn check(lifecycle: &Lifecycle, os: &str, grace: i64, path: &FieldPath, problems: &mut Problems) {
    let Lifecycle { post_start, pre_stop, stop_signal } = lifecycle;
    if let Some(handler) = post_start {
        check_handler(handler, grace, &path.child("postStart"), problems);
    }
    if let Some(handler) = pre_stop {
        check_handler(handler, grace, &path.child("preStop"), problems);
    }
    let signal = text(stop_signal);
    if signal.is_empty() {
        return;
    }
    let path = path.child("stopSignal");
    if !is_stop_signal(signal) {
        problems.invalid(&path, signal, "must be the full name of a signal such as SIGQUIT or SIGRTMIN+3");
    }
    if os.is_empty() {
        problems.forbidden(&path, "may be set only where spec.os.name is set");
        problems.hint(Some("add os: {name: linux} to spec".to_owned()));
    }
}

fn check_handler(handler: &LifecycleHandler, grace: i64, path: &FieldPath, problems: &mut Problems) {
    let LifecycleHandler { exec, http_get, sleep, tcp_socket } = handler;
    let actions = Actions { exec: exec.as_ref(), http_get: http_get.as_ref(), tcp_socket: tcp_socket.as_ref() };
    actions.check(usize::from(sleep.is_some()), "exec, httpGet, tcpSocket, sleep", path, problems);
    if let Some(seconds) = sleep.as_ref().map(|sleep| sleep.seconds).filter(|seconds| !(0..=grace).contains(seconds)) {
        problems.invalid(
            &path.child("sleep.seconds"),
            seconds,
            format_args!("must be between 0 and the pod's grace period of {grace}"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::check_container;

    #[test]
    fn a_hook_takes_one_action() {
        check_container("lifecycle: {postStart: {exec: {command: ['true']}}, preStop: {sleep: {seconds: 30}}}", "", &[]);
        check_container(
            "lifecycle: {preStop: {}}",
            "",
            &["{P}.lifecycle.preStop: is required: one of exec, httpGet, tcpSocket, sleep"],
        );
        check_container(
            "lifecycle: {postStart: {sleep: {seconds: 1}, tcpSocket: {port: 1}}}",
            "",
            &["{P}.lifecycle.postStart: forbidden: may have only one of exec, httpGet, tcpSocket, sleep"],
        );
    }

    #[test]
    fn a_pause_fits_into_the_grace_period() {
        for (seconds, grace) in [(31, 30), (-1, 30), (6, 5)] {
            check_container(
                &format!("lifecycle: {{preStop: {{sleep: {{seconds: {seconds}}}}}}}"),
                &format!("terminationGracePeriodSeconds: {grace}"),
                &[&format!(
                    "{{P}}.lifecycle.preStop.sleep.seconds: invalid value {seconds}: must be between 0 and the pod's grace period of {grace}"
                )],
            );
        }
    }

    #[test]
    fn a_stop_signal_is_named_in_full_and_needs_an_os() {
        check_container("lifecycle: {stopSignal: SIGQUIT}", "os: {name: linux}", &[]);
        check_container(
            "lifecycle: {stopSignal: SIGQUIT}",
            "",
            &["{P}.lifecycle.stopSignal: forbidden: may be set only where spec.os.name is set"],
        );
        check_container(
            "lifecycle: {stopSignal: quit}",
            "os: {name: linux}",
            &["{P}.lifecycle.stopSignal: invalid value \"quit\": must be the full name of a signal such as SIGQUIT or SIGRTMIN+3"],
        );
    }
}
