//! Ways to the host that `allow` closes unless it names them.

use super::{host_with, pod, problems, refused, wait_refused};
use crate::support::servers::Server;
use crate::support::{TestHost, eventually};
use std::time::Duration;

/// A service on the host's loopback interface.
fn service() -> Server {
    Server::start("127.0.0.1", false, Box::new(|_, _| (200, Duration::ZERO)))
}

#[test]
fn http_probes_reach_no_service_of_host() {
    let (host, service) = (host_with("allow: {}"), service());
    let port = service.address.port();
    let probe = |kind: &str, host: &str| format!("{kind}:\n  httpGet:\n    host: {host}\n    port: {port}\n  periodSeconds: 1\n");
    let probes =
        probe("startupProbe", "localhost") + &probe("readinessProbe", "127.0.0.1") + &probe("livenessProbe", "'::ffff:127.0.0.1'");
    refused(
        &host,
        &pod("probing", "", &probes),
        &[
            ("hostile.yaml:13 spec.containers[0].startupProbe.httpGet.host", "allow.probeHosts"),
            ("hostile.yaml:18 spec.containers[0].readinessProbe.httpGet.host", "allow.probeHosts"),
            ("hostile.yaml:23 spec.containers[0].livenessProbe.httpGet.host", "allow.probeHosts"),
        ],
    );
    assert!(service.asked().is_empty(), "{:?}", service.asked());
}

#[test]
fn tcp_probes_reach_no_host_service() {
    let (host, service) = (host_with("allow: {}"), service());
    let port = service.address.port();
    let sidecar = format!(
        "initContainers:\n- name: s\n  image: localhost/busybox:1\n  restartPolicy: Always\n  command: [/bin/sleep, '1000000']\n  \
         startupProbe:\n    tcpSocket: {{host: 127.0.0.1, port: {port}}}"
    );
    let place = "hostile.yaml:13 spec.initContainers[0].startupProbe.tcpSocket.host";
    refused(&host, &pod("probing", &sidecar, ""), &[(place, "allow.probeHosts")]);
    assert!(service.asked().is_empty(), "{:?}", service.asked());
}

#[test]
fn hooks_reach_no_service_of_the_host() {
    let (host, service) = (host_with("allow: {}"), service());
    let port = service.address.port();
    let hooks = format!(
        "lifecycle:\n  postStart:\n    httpGet: {{host: 127.0.0.1, port: {port}, path: /shutdown}}\n  preStop:\n    \
         httpGet: {{host: 169.254.169.254, port: 80}}"
    );
    refused(
        &host,
        &pod("hooked", "", &hooks),
        &[
            ("hostile.yaml:13 spec.containers[0].lifecycle.postStart.httpGet.host", "allow.probeHosts"),
            ("hostile.yaml:15 spec.containers[0].lifecycle.preStop.httpGet.host", "allow.probeHosts"),
        ],
    );
    assert!(service.asked().is_empty(), "{:?}", service.asked());
}

#[test]
fn redirects_lead_no_probe_to_host() {
    let (host, service) = (host_with("allow: {namespaces: [default]}"), service());
    // Another name of the host, and the address by which the pod itself is asked.
    for (name, target) in [("name", "localhost"), ("address", "127.0.0.1")] {
        let answer = format!(
            "HTTP/1.1 302 Found\\r\\nLocation: http://{target}:{}/\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n",
            service.address.port()
        );
        let script = format!("while true; do printf '{answer}' | nc -l -p 8080; done");
        let manifest = pod(name, "", "readinessProbe:\n  httpGet: {port: 8080}\n  periodSeconds: 1\n  timeoutSeconds: 5")
            .replace("[/bin/sleep, '1000000']", &format!("[/bin/sh, -c, {script:?}]"));
        host.write_manifest(&format!("{name}.yaml"), &manifest);
    }
    for name in ["name", "address"] {
        eventually("two probes to be answered with a redirect", || {
            let log = String::from_utf8_lossy(&host.cli(&["logs", name, "-c", "c"]).stdout).into_owned();
            if log.matches("GET / ").count() >= 2 { Ok(()) } else { Err(log) }
        });
    }
    assert!(service.asked().is_empty(), "{:?}", service.asked());
}

#[test]
fn hosts_that_source_may_name_are_asked() {
    let service = service();
    let host = host_with("allow: {namespaces: [default], probeHosts: [127.0.0.1]}");
    let probe = format!("readinessProbe:\n  httpGet: {{host: 127.0.0.1, port: {}}}\n  periodSeconds: 1", service.address.port());
    host.write_manifest("probing.yaml", &pod("probing", "", &probe));
    host.wait_for_pod("probing", "ready", |pod| pod.container("c")["ready"] == true);
    assert!(!service.asked().is_empty());
    assert_eq!(problems(&host), [""; 0]);
}

#[test]
fn ports_of_the_host_are_not_taken() {
    let host = host_with("allow: {hostPorts: [8000-8099]}");
    let port = |number: u16, ip: &str| format!("ports:\n- containerPort: 80\n  hostPort: {number}\n{ip}");
    refused(
        &host,
        &format!("{}---\n{}", pod("ssh", "", &port(22, "")), pod("loopback", "", &port(8100, "  hostIP: 127.0.0.1"))),
        &[
            ("hostile.yaml:13 spec.containers[0].ports[0].hostPort", "host port 22 (remove it, or permit it with allow.hostPorts"),
            ("hostile.yaml:27 spec.containers[0].ports[0].hostPort", "host port 8100"),
        ],
    );
}

#[test]
fn networks_of_the_plant_are_not_joined() {
    let host = host_with("allow: {}");
    let annotations = "  annotations:\n    k8s.v1.cni.cncf.io/networks: '[{\"name\": \"plant\", \"ips\": [\"10.0.0.2\"], \"portMappings\": \
                       [{\"hostPort\": 22, \"containerPort\": 22}]}]'\n    v1.multus-cni.io/default-network: office\nspec:";
    refused(
        &host,
        &pod("wide", "", "").replace("spec:", annotations),
        &[
            ("hostile.yaml:6 metadata.annotations[k8s.v1.cni.cncf.io/networks]", "allow.networks"),
            ("hostile.yaml:6 metadata.annotations[k8s.v1.cni.cncf.io/networks]", "allow.hostPorts"),
            ("hostile.yaml:7 metadata.annotations[v1.multus-cni.io/default-network]", "allow.networks"),
        ],
    );
}

#[test]
fn profiles_of_other_programs_are_not_taken() {
    let host = host_with("allow: {seccompProfiles: [strict.json]}");
    let annotation = "  annotations:\n    container.apparmor.security.beta.kubernetes.io/d: localhost/unconfined-like\nspec:";
    let own = "securityContext:\n  appArmorProfile:\n    type: Localhost\n    localhostProfile: podman\n  seccompProfile:\n    \
               type: Localhost\n    localhostProfile: all-calls.json";
    refused(
        &host,
        &pod("loose", "", own).replace("spec:", annotation),
        &[
            ("hostile.yaml:6 metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]", "allow.appArmorProfiles"),
            ("hostile.yaml:16 spec.containers[0].securityContext.appArmorProfile.localhostProfile", "allow.appArmorProfiles"),
            ("hostile.yaml:19 spec.containers[0].securityContext.seccompProfile.localhostProfile", "allow.seccompProfiles"),
        ],
    );
}

#[test]
fn no_pod_precedes_the_hosts_services() {
    let host = host_with("allow: {}");
    let manifest = pod("vital", "priorityClassName: system-node-critical", "");
    refused(&host, &manifest, &[("hostile.yaml:7 spec.priorityClassName", "allow.priorityClasses")]);
}

#[test]
fn allowed_sysctls_are_not_every_sources() {
    let mut host = TestHost::prepare("    allow: {sysctls: [net.ipv4.tcp_congestion_control]}\nallowedUnsafeSysctls: ['net.*']\n");
    host.start_daemon();
    let sysctls = "securityContext:\n  sysctls:\n  - {name: net.ipv4.tcp_syncookies, value: '1'}\n  - name: net/core/somaxconn\n    value: '1'";
    let place = "hostile.yaml:10 spec.securityContext.sysctls[1].name";
    refused(&host, &pod("tuned", sysctls, ""), &[(place, "\"net.core.somaxconn\" (remove it, or permit it with allow.sysctls")]);
}

#[test]
fn list_hides_no_pod_from_rules() {
    let host = host_with("allow: {}");
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: inner}\n  spec:\n    containers:\n    \
                - name: c\n      image: localhost/busybox:1\n      ports:\n      - {containerPort: 1, hostPort: 22}\n";
    refused(&host, list, &[("hostile.yaml:12 items[0].spec.containers[0].ports[0].hostPort", "allow.hostPorts")]);
}

#[test]
fn patch_adds_nothing_that_rules_refuse() {
    let host = host_with("allow: {namespaces: [default]}");
    host.write_manifest("base.yaml", &pod("web", "", ""));
    let before = host.wait_running("web");
    let patch = "apiVersion: podstead.dev/v1alpha1\nkind: Patch\nmetadata: {name: p}\ntarget: {kind: Pod, name: web}\nstrategicMerge:\n  spec:\n    \
                 containers:\n    - name: c\n      livenessProbe:\n        tcpSocket: {host: 127.0.0.1, port: 22}\n";
    host.write_manifest("patch.yaml", patch);
    wait_refused(&host, &[("patch.yaml:10 spec.containers[0].livenessProbe.tcpSocket.host", "allow.probeHosts")]);
    let after = host.wait_running("web");
    assert_eq!((after.uid(), after.container_id("c")), (before.uid(), before.container_id("c")), "the running pod is left alone");
}

#[test]
fn edit_asking_for_more_leaves_pod() {
    let host = host_with("allow: {namespaces: [default]}");
    host.write_manifest("web.yaml", &pod("web", "", ""));
    let before = host.wait_running("web");
    host.write_manifest(
        "web.yaml",
        &pod("web", "priorityClassName: system-node-critical", "ports:\n- {containerPort: 1, hostPort: 22}"),
    );
    wait_refused(&host, &[("web.yaml:7 spec.priorityClassName", "allow.priorityClasses"), ("web.yaml:13 ", "allow.hostPorts")]);
    let after = host.wait_running("web");
    assert_eq!((after.uid(), after.container_id("c")), (before.uid(), before.container_id("c")));
    assert!(after.0["spec"]["priorityClassName"].is_null(), "{}", after.0["spec"]);
}
