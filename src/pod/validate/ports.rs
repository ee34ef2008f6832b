//! Container ports.

use super::names::{ip, is_unspecified_ip, port_name, port_number};
use crate::containers::{self, ContainerKind, list, text};
use crate::field::{FieldPath, Problems};
use k8s_openapi::api::core::v1::{Container, ContainerPort, PodSpec};
use std::collections::HashSet;

/// The ports of one container.
pub(super) fn check(ports: &[ContainerPort], on_host_network: bool, path: &FieldPath, problems: &mut Problems) {
    let mut names = HashSet::new();
    let mut numbers = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = text(&port.name);
        problems.optional_text(&path.child("name"), name, port_name);
        if !name.is_empty() && !names.insert(name) {
            problems.duplicate(&path.child("name"), name);
        }
        if port.container_port != 0
            && !numbers.insert((port.container_port, text(&port.protocol), text(&port.host_ip), port.host_port))
        {
            problems
                .suspicious(&path.child("containerPort"), format_args!("port {} is listed more than once", port.container_port));
        }
        let host_port = port.host_port.unwrap_or(0);
        if port.container_port == 0 {
            problems.required(&path.child("containerPort"), "");
        } else {
            problems.rule(&path.child("containerPort"), port.container_port, port_number(port.container_port));
        }
        if host_port != 0 {
            problems.rule(&path.child("hostPort"), host_port, port_number(host_port));
        }
        if on_host_network && host_port != port.container_port {
            problems.invalid(&path.child("hostPort"), host_port, "must be equal to containerPort when hostNetwork is true");
        }
        problems.optional_text(&path.child("hostIP"), text(&port.host_ip), ip);
        problems.one_of(&path.child("protocol"), text(&port.protocol), &["TCP", "UDP", "SCTP"]);
    }
}

/// No two ports of containers that run at once may take the same port of the host. Init containers run one after the other and
/// before the main containers.
pub(super) fn check_host_ports(spec: &PodSpec, path: &FieldPath, problems: &mut Problems) {
    let mut taken = Vec::new();
    let sidecars = list(&spec.init_containers).iter().enumerate();
    let sidecars = sidecars.filter(|(_, container)| containers::init_kind(container) == ContainerKind::Sidecar);
    for (index, container) in sidecars {
        check_taken(container, &mut taken, &path.child("initContainers").index(index), problems);
    }
    for (index, container) in spec.containers.iter().enumerate() {
        check_taken(container, &mut taken, &path.child("containers").index(index), problems);
    }
}

struct HostPort<'a> {
    protocol: &'a str,
    ip: &'a str,
    port: i32,
}

impl HostPort<'_> {
    fn collides(&self, other: &Self) -> bool {
        let same_ip = self.ip == other.ip || is_unspecified_ip(self.ip) || is_unspecified_ip(other.ip);
        self.protocol == other.protocol && self.port == other.port && same_ip
    }
}

fn check_taken<'a>(container: &'a Container, taken: &mut Vec<HostPort<'a>>, path: &FieldPath, problems: &mut Problems) {
    for (index, port) in list(&container.ports).iter().enumerate() {
        let Some(number) = port.host_port.filter(|number| *number != 0) else { continue };
        let wanted = HostPort { protocol: text(&port.protocol), ip: text(&port.host_ip), port: number };
        if taken.iter().any(|other| other.collides(&wanted)) {
            problems.duplicate(&path.child("ports").index(index).child("hostPort"), format!("{}/{number}", wanted.protocol));
        } else {
            taken.push(wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::{check_container, check_spec};

    #[test]
    fn numbers_names_addresses_and_protocols_are_checked() {
        let range = "must be between 1 and 65535";
        check_container("ports: [{containerPort: 80, name: http, hostIP: 127.0.0.1, hostPort: 65535, protocol: UDP}]", "", &[]);
        check_container("ports: [{name: http}]", "", &["{P}.ports[0].containerPort: is required"]);
        check_container(
            "ports: [{containerPort: 65536, hostPort: -1}]",
            "",
            &[
                &format!("{{P}}.ports[0].containerPort: invalid value 65536: {range}"),
                &format!("{{P}}.ports[0].hostPort: invalid value -1: {range}"),
            ],
        );
        check_container(
            "ports: [{containerPort: 1, name: HTTP}]",
            "",
            &[
                "{P}.ports[0].name: invalid value \"HTTP\": must be 1 to 15 lower-case letters, digits or single '-', with at least one letter, starting and ending with a letter or digit",
            ],
        );
        check_container(
            "ports: [{containerPort: 1, name: a}, {containerPort: 2, name: a}]",
            "",
            &["{P}.ports[1].name: duplicate value \"a\""],
        );
        check_container(
            "ports: [{containerPort: 1, hostIP: localhost}]",
            "",
            &["{P}.ports[0].hostIP: invalid value \"localhost\": must be an IP address such as 10.9.8.7 or 2001:db8::ffff"],
        );
        check_container(
            "ports: [{containerPort: 1, protocol: tcp}]",
            "",
            &["{P}.ports[0].protocol: invalid value \"tcp\": must be one of \"TCP\", \"UDP\", \"SCTP\""],
        );
    }

    #[test]
    fn a_port_that_is_listed_twice_is_suspicious() {
        check_container("ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]", "", &[]);
        check_container(
            "ports: [{containerPort: 53}, {containerPort: 53}]",
            "",
            &["{P}.ports[1].containerPort: port 53 is listed more than once"],
        );
    }

    #[test]
    fn on_the_hosts_network_a_port_is_the_hosts_port() {
        check_container("ports: [{containerPort: 80}, {containerPort: 81, hostPort: 81}]", "hostNetwork: true", &[]);
        check_container(
            "ports: [{containerPort: 80, hostPort: 8080}]",
            "hostNetwork: true",
            &["{P}.ports[0].hostPort: invalid value 8080: must be equal to containerPort when hostNetwork is true"],
        );
    }

    #[test]
    fn a_host_port_is_taken_once() {
        let pod = |a: &str, b: &str| {
            format!(
                "containers: [{{name: a, image: x, ports: [{{containerPort: 1, {a}}}]}}, {{name: b, image: x, ports: [{{containerPort: 1, {b}}}]}}]"
            )
        };
        check_spec(&pod("hostPort: 1", "hostPort: 2"), &[]);
        check_spec(&pod("hostPort: 1", "hostPort: 1, protocol: UDP"), &[]);
        check_spec(&pod("hostPort: 1, hostIP: 127.0.0.1", "hostPort: 1, hostIP: 127.0.0.2"), &[]);
        for (a, b) in [
            ("hostPort: 1", "hostPort: 1"),
            ("hostPort: 1, hostIP: 127.0.0.1", "hostPort: 1, hostIP: 127.0.0.1"),
            ("hostPort: 1, hostIP: 0.0.0.0", "hostPort: 1, hostIP: 127.0.0.1"),
        ] {
            check_spec(&pod(a, b), &["spec.containers[1].ports[0].hostPort: duplicate value \"TCP/1\""]);
        }
    }

    #[test]
    fn an_init_container_may_take_the_port_of_a_main_container_and_a_sidecar_may_not() {
        let pod = |policy: &str| {
            let ports = "ports: [{containerPort: 1, hostPort: 1}]";
            format!("containers: [{{name: a, image: x, {ports}}}], initContainers: [{{name: b, image: x, {ports}, {policy}}}]")
        };
        check_spec(&pod(""), &[]);
        check_spec(&pod("restartPolicy: Always"), &["spec.containers[0].ports[0].hostPort: duplicate value \"TCP/1\""]);
    }
}
