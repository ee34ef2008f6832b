//! Pods that break the level of the Pod Security Standards of their source.

use super::{host_with, pod, problems, refused, wait_refused};
use crate::support::eventually;
use std::fs;

/// Satisfies `restricted`.
const OF_POD: &str = "securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}";
const OF_CONTAINER: &str = "securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}";

#[test]
fn baseline_refuses_every_known_way_out() {
    let host = host_with("podSecurity: baseline");
    let spec = "hostPID: true\nhostIPC: true\nhostNetwork: true\nvolumes:\n- name: v\n  hostPath:\n    path: /";
    let container = "securityContext:\n  privileged: true\n  procMount: Unmasked\n  capabilities:\n    add: [NET_ADMIN]\n  \
                     seccompProfile: {type: Unconfined}\n  appArmorProfile: {type: Unconfined}\n\
                     ports:\n- {containerPort: 22, hostPort: 22}\nlivenessProbe:\n  tcpSocket: {host: 127.0.0.1, port: 22}";
    let of = |place: &'static str| (place, "podSecurity baseline (latest)");
    refused(
        &host,
        &pod("greedy", spec, container),
        &[
            of("hostile.yaml:7 spec.hostPID"),
            of("hostile.yaml:8 spec.hostIPC"),
            of("hostile.yaml:9 spec.hostNetwork"),
            of("hostile.yaml:12 spec.volumes[0].hostPath"),
            of("hostile.yaml:19 spec.containers[0].securityContext.privileged"),
            of("hostile.yaml:20 spec.containers[0].securityContext.procMount"),
            of("hostile.yaml:22 spec.containers[0].securityContext.capabilities.add[0]"),
            of("hostile.yaml:23 spec.containers[0].securityContext.seccompProfile.type"),
            of("hostile.yaml:24 spec.containers[0].securityContext.appArmorProfile.type"),
            of("hostile.yaml:26 spec.containers[0].ports[0].hostPort"),
            of("hostile.yaml:28 spec.containers[0].livenessProbe.tcpSocket.host"),
        ],
    );
}

#[test]
fn restricted_level_refuses_open_pods_only() {
    let host = host_with("podSecurity: restricted");
    let of = |place: &'static str| (place, "podSecurity restricted (latest)");
    refused(
        &host,
        &pod("plain", "", ""),
        &[
            of("hostile.yaml:8 spec.containers[0].securityContext.allowPrivilegeEscalation"),
            of("hostile.yaml:8 spec.containers[0].securityContext.capabilities.drop"),
            of("hostile.yaml:8 spec.containers[0].securityContext.runAsNonRoot"),
            of("hostile.yaml:8 spec.containers[0].securityContext.seccompProfile.type"),
        ],
    );
    host.write_manifest("good.yaml", &pod("good", OF_POD, OF_CONTAINER));
    host.wait_running("good");
    assert_eq!(host.exec("good", "c", &["id", "-u"]).trim(), "1000");
    assert_eq!(host.pods().len(), 1);
}

#[test]
fn one_unrestricted_container_refuses_the_pod() {
    let host = host_with("podSecurity: restricted");
    let spec = format!(
        "{OF_POD}\ninitContainers:\n- name: good\n  image: localhost/busybox:1\n  {OF_CONTAINER}\n- name: bad\n  image: localhost/busybox:1\n  \
         securityContext:\n    runAsUser: 0\n    runAsNonRoot: false\n    allowPrivilegeEscalation: false\n    \
         capabilities: {{drop: [all], add: [CAP_NET_BIND_SERVICE]}}"
    );
    let of = |place: &'static str| (place, "podSecurity restricted (latest)");
    refused(
        &host,
        &pod("mixed", &spec, OF_CONTAINER),
        &[
            of("hostile.yaml:15 spec.initContainers[1].securityContext.runAsUser"),
            of("hostile.yaml:16 spec.initContainers[1].securityContext.runAsNonRoot"),
            // Names count as they are spelled, as in Kubernetes.
            of("hostile.yaml:18 spec.initContainers[1].securityContext.capabilities.drop"),
            of("hostile.yaml:18 spec.initContainers[1].securityContext.capabilities.add[0]"),
        ],
    );
}

#[test]
fn the_version_decides_which_rules_count() {
    let probe = "livenessProbe:\n  tcpSocket: {host: 192.0.2.1, port: 22}\n  initialDelaySeconds: 3600";
    let older = host_with("podSecurity: {level: baseline, version: v1.33}");
    older.write_manifest("probing.yaml", &pod("probing", "", probe));
    older.wait_running("probing");
    assert_eq!(problems(&older), [""; 0]);
    drop(older);
    let newer = host_with("podSecurity: {level: baseline, version: v1.34}");
    let place = "hostile.yaml:12 spec.containers[0].livenessProbe.tcpSocket.host";
    refused(&newer, &pod("probing", "", probe), &[(place, "podSecurity baseline (v1.34)")]);
}

#[test]
fn new_level_stops_pods_that_break_it() {
    let host = host_with("");
    host.write_manifest("plain.yaml", &pod("plain", "", ""));
    host.write_manifest("good.yaml", &pod("good", OF_POD, OF_CONTAINER));
    host.wait_running("plain");
    let before = host.wait_running("good");
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    fs::write(host.path("config.yaml.new"), format!("{config}    podSecurity: restricted\n")).unwrap();
    fs::rename(host.path("config.yaml.new"), host.path("config.yaml")).unwrap();
    host.wait_gone("plain");
    wait_refused(
        &host,
        &[("plain.yaml:8 spec.containers[0].securityContext.capabilities.drop", "podSecurity restricted (latest)")],
    );
    let after = host.wait_running("good");
    assert_eq!((after.uid(), after.container_id("c")), (before.uid(), before.container_id("c")));
}

#[test]
fn a_mistake_in_the_rules_opens_nothing() {
    let host = host_with("podSecurity: baseline");
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    fs::write(host.path("config.yaml.new"), config.replace("podSecurity: baseline", "podSecurity: none")).unwrap();
    fs::rename(host.path("config.yaml.new"), host.path("config.yaml")).unwrap();
    eventually("the mistake to be reported", || {
        let status = host.cli(&["status"]);
        let status = String::from_utf8_lossy(&status.stdout).into_owned();
        if status.contains("unknown variant `none`") { Ok(()) } else { Err(status) }
    });
    let manifest = pod("greedy", "", "securityContext: {privileged: true}");
    host.write_manifest("hostile.yaml", &manifest);
    wait_refused(&host, &[("hostile.yaml:11 spec.containers[0].securityContext.privileged", "podSecurity baseline (latest)")]);
    assert!(host.pods().is_empty());
}
