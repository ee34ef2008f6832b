//! Judges of fields that are honoured for some of their values.

use super::Case;
use crate::field::Problems;
use crate::identity::STAMPED_ANNOTATIONS;
use crate::security::{dotted, is_of_ipc, is_of_network};
use serde_json::Value;

/// Sysctls that are namespaced and that a pod cannot harm its neighbours with, as the kubelet allows without being asked.
pub(super) const SAFE_SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

/// Tells if any pod may set the sysctl; dots separate its parts.
pub fn is_safe_sysctl(name: &str) -> bool {
    SAFE_SYSCTLS.contains(&name)
}

/// Reason why the name of a service account has no effect.
pub(super) const NO_SERVICE_ACCOUNTS: &str = "podstead has no service accounts: no token is mounted";

const SECCOMP_ANNOTATIONS: [&str; 2] = ["seccomp.security.alpha.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/"];

/// `metadata.annotations`: those that mean something to the kubelet.
pub(super) fn annotations(case: &Case<'_>, problems: &mut Problems) {
    for key in case.value.as_object().into_iter().flat_map(|annotations| annotations.keys()) {
        let path = case.path.key(key);
        if STAMPED_ANNOTATIONS.contains(&key.as_str()) {
            problems.ignored(&path, "podstead sets this annotation itself");
        } else if SECCOMP_ANNOTATIONS.iter().any(|prefix| key.starts_with(prefix)) {
            let instead = "use securityContext.seccompProfile";
            problems.unsupported(&path, "Kubernetes stopped reading this annotation with 1.27", Some(instead));
        }
    }
}

/// `automountServiceAccountToken`.
pub(super) fn automount(case: &Case<'_>, problems: &mut Problems) {
    if case.value == &Value::Bool(true) {
        problems.ignored(case.path, "no API server issues tokens");
    }
}

/// `nodeName`.
pub(super) fn node_name(case: &Case<'_>, problems: &mut Problems) {
    let node = case.context.node.as_str();
    if case.value != node {
        problems.ignored(case.path, format_args!("the pod runs on the host that has its manifest, {node:?}"));
    }
}

/// `os.name`.
pub(super) fn os(case: &Case<'_>, problems: &mut Problems) {
    if case.value == "windows" {
        problems.unsupported(case.path, "this host runs Linux", None);
    }
}

/// `priorityClassName`.
pub(super) fn priority_class(case: &Case<'_>, problems: &mut Problems) {
    if case.value != "system-node-critical" {
        problems.ignored(case.path, "podstead supports only system-node-critical");
    }
}

/// `serviceAccountName`. Nearly every manifest that was written for a cluster names one.
pub(super) fn service_account(case: &Case<'_>, problems: &mut Problems) {
    if case.value != "default" {
        problems.ignored(case.path, NO_SERVICE_ACCOUNTS);
    }
}

/// `securityContext.sysctls[].name` of the pod.
pub(super) fn sysctl(case: &Case<'_>, problems: &mut Problems) {
    let written = case.value.as_str().unwrap_or_default();
    let name = dotted(written);
    if is_safe_sysctl(&name) || case.context.unsafe_sysctls.allow(&name) {
        return;
    }
    if is_of_network(&name) || is_of_ipc(&name) {
        let reason = format_args!("{written:?} is not one of Kubernetes' safe sysctls");
        problems.unsupported(case.path, reason, Some("allow it with allowedUnsafeSysctls in podstead's configuration"));
    } else {
        let reason = format_args!("{written:?} applies to the whole host, not to a pod");
        problems.unsupported(case.path, reason, Some("set it on the host, e.g. in /etc/sysctl.d"));
    }
}

/// `resources.requests` and `resources.limits`.
pub(super) fn amounts(case: &Case<'_>, problems: &mut Problems) {
    for name in case.value.as_object().into_iter().flat_map(|amounts| amounts.keys()) {
        let path = case.path.key(name);
        if name.contains('/') {
            problems.unsupported(
                &path,
                "device plugins are not supported",
                Some("request the device with a CDI annotation on the pod"),
            );
        }
    }
}
