//! Controls about the host's namespaces, ports and network.

use super::Findings;
use super::subject::{Place, Subject};
use k8s_openapi::api::core::v1::{HTTPGetAction, LifecycleHandler, TCPSocketAction};

pub(super) fn namespaces(subject: &Subject<'_>, findings: &mut Findings) {
    let spec = subject.spec;
    for (name, value) in [("hostNetwork", spec.host_network), ("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc)] {
        if value == Some(true) {
            findings.push(format!("spec.{name}"), "host namespaces are not allowed", "set it to false or leave it out");
        }
    }
}

pub(super) fn ports(subject: &Subject<'_>, findings: &mut Findings) {
    for place in &subject.containers {
        for (index, port) in place.ports.iter().enumerate() {
            if let Some(port) = port.host_port.filter(|port| *port != 0) {
                let field = format!("{}.ports[{index}].hostPort", place.field);
                findings.push(field, format!("host ports ({port}) are not allowed"), "leave it out");
            }
        }
    }
}

/// Hosts of probes and hooks, which are connected to from the host's network; since v1.34.
pub(super) fn probes(subject: &Subject<'_>, findings: &mut Findings) {
    for (field, host) in subject.containers.iter().flat_map(hosts) {
        let message = format!("a probe or hook must not set a host ({host:?}): the request is sent from the host's network");
        findings.push(field, message, "leave it out: the request then goes to the pod");
    }
}

/// Every host that a probe or hook of the container names, with the field.
fn hosts(place: &Place<'_>) -> Vec<(String, String)> {
    let lifecycle = place.lifecycle;
    let hooks = [
        ("lifecycle.postStart", lifecycle.and_then(|lifecycle| lifecycle.post_start.as_ref())),
        ("lifecycle.preStop", lifecycle.and_then(|lifecycle| lifecycle.pre_stop.as_ref())),
    ];
    let of_probes = place.probes.iter().filter_map(|(name, probe)| {
        let probe = (*probe)?;
        Some(actions(&place.field, name, probe.http_get.as_ref(), probe.tcp_socket.as_ref()))
    });
    let of_hooks = hooks.iter().filter_map(|(name, handler)| {
        let LifecycleHandler { http_get, tcp_socket, exec: _, sleep: _ } = (*handler)?;
        Some(actions(&place.field, name, http_get.as_ref(), tcp_socket.as_ref()))
    });
    of_probes.chain(of_hooks).flatten().collect()
}

fn actions(container: &str, handler: &str, http: Option<&HTTPGetAction>, tcp: Option<&TCPSocketAction>) -> Vec<(String, String)> {
    let hosts =
        [("httpGet", http.and_then(|action| action.host.clone())), ("tcpSocket", tcp.and_then(|action| action.host.clone()))];
    let named = |(action, host): (&str, Option<String>)| {
        host.filter(|host| !host.is_empty()).map(|host| (format!("{container}.{handler}.{action}.host"), host))
    };
    hosts.into_iter().filter_map(named).collect()
}

pub(super) fn windows_processes(subject: &Subject<'_>, findings: &mut Findings) {
    let contexts = subject.in_contexts(
        |context| context.windows_options.as_ref()?.host_process,
        |context| context.windows_options.as_ref()?.host_process,
    );
    for (context, _) in contexts.into_iter().filter(|(_, value)| *value) {
        let field = format!("{context}.windowsOptions.hostProcess");
        findings.push(field, "Windows HostProcess containers are not allowed", "set it to false or leave it out");
    }
}
