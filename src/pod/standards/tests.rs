//! Every control, with pods that pass and pods that do not, by version.

use super::{Level, Version, violations};
use crate::Pod;
use Level::{Baseline, Privileged, Restricted};

/// A version before any, the last before each change, each change, an unknown one, and the newest.
const VERSIONS: [&str; 25] = [
    "v1.0", "v1.7", "v1.8", "v1.18", "v1.19", "v1.21", "v1.22", "v1.23", "v1.24", "v1.25", "v1.26", "v1.27", "v1.28", "v1.29",
    "v1.30", "v1.31", "v1.32", "v1.33", "v1.34", "v1.35", "v1.36", "v1.37", "v1.38", "v1.99", "latest",
];

/// Fields of a container that satisfy `restricted`, without its pod's.
const GOOD: &str = "allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}";
/// Fields of a pod's security context that satisfy `restricted`.
const GOOD_POD: &str = "runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}";

fn pod(text: &str) -> Pod {
    serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A pod that satisfies `restricted` but for what is added to the pod's context, to the container's, to the container and to the spec.
fn close_to_restricted(of_pod: &str, of_container: &str, container: &str, spec: &str) -> Pod {
    pod(&format!(
        "{{metadata: {{name: a}}, spec: {{securityContext: {{{GOOD_POD}{of_pod}}}, {spec} \
         containers: [{{name: c, image: x, securityContext: {{{GOOD}{of_container}}}{container}}}]}}}}"
    ))
}

/// `control field` of all violations.
fn found(pod: &Pod, level: Level, version: &str) -> Vec<String> {
    let version: Version = version.parse().unwrap();
    let all = violations(pod, level, version);
    all.iter().for_each(|violation| assert!(!violation.message.is_empty() && !violation.fix.is_empty(), "{violation:?}"));
    all.into_iter().map(|violation| format!("{} {}", violation.control, violation.field)).collect()
}

/// Asserts that the level refuses the pod for this from `since` to before `until`, and for nothing else in any version.
#[track_caller]
fn refused(pod: &Pod, level: Level, expected: &str, since: &str, until: Option<&str>) {
    let at = |version: &str| version.parse::<Version>().unwrap();
    for version in VERSIONS {
        let is_refused = at(version) >= at(since) && until.is_none_or(|until| at(version) < at(until));
        let expected = if is_refused { vec![expected.to_owned()] } else { Vec::new() };
        assert_eq!(found(pod, level, version), expected, "{level} {version}");
    }
    assert_eq!(found(pod, Privileged, "latest"), [""; 0]);
}

#[track_caller]
fn admitted(pod: &Pod, level: Level) {
    for version in VERSIONS {
        assert_eq!(found(pod, level, version), [""; 0], "{level} {version}");
    }
}

#[test]
fn a_pod_without_wishes_is_of_baseline_and_not_of_restricted() {
    let plain = pod("{metadata: {name: a}, spec: {containers: [{name: c, image: x}]}}");
    admitted(&plain, Baseline);
    admitted(&plain, Privileged);
    let of = |version| found(&plain, Restricted, version);
    let (escalation, capabilities, non_root, seccomp) = (
        "allowPrivilegeEscalation spec.containers[0].securityContext.allowPrivilegeEscalation",
        "capabilities_restricted spec.containers[0].securityContext.capabilities.drop",
        "runAsNonRoot spec.containers[0].securityContext.runAsNonRoot",
        "seccompProfile_restricted spec.containers[0].securityContext.seccompProfile.type",
    );
    assert_eq!(of("v1.7"), [non_root]);
    assert_eq!(of("v1.18"), [escalation, non_root]);
    assert_eq!(of("v1.19"), [escalation, non_root, seccomp]);
    assert_eq!(of("v1.22"), [escalation, capabilities, non_root, seccomp]);
    assert_eq!(of("latest"), [escalation, capabilities, non_root, seccomp]);
    admitted(&close_to_restricted("", "", "", ""), Restricted);
}

#[test]
fn pods_without_a_spec_have_nothing_to_refuse() {
    admitted(&pod("{metadata: {name: a}}"), Restricted);
}

#[test]
fn namespaces_of_the_host_are_refused() {
    for name in ["hostNetwork", "hostPID", "hostIPC"] {
        for level in [Baseline, Restricted] {
            let text = |value| close_to_restricted("", "", "", &format!("{name}: {value},"));
            refused(&text("true"), level, &format!("hostNamespaces spec.{name}"), "v1.0", None);
            admitted(&text("false"), level);
        }
    }
}

#[test]
fn ports_of_the_host_are_refused_in_every_kind_of_container() {
    for level in [Baseline, Restricted] {
        let port = |number| {
            close_to_restricted("", "", &format!(", ports: [{{containerPort: 1}}, {{containerPort: 2, hostPort: {number}}}]"), "")
        };
        refused(&port(80), level, "hostPorts spec.containers[0].ports[1].hostPort", "v1.0", None);
        admitted(&port(0), level);
    }
    for kind in ["initContainers", "ephemeralContainers"] {
        let pod = pod(&format!(
            "{{metadata: {{name: a}}, spec: {{{kind}: [{{name: i}}, {{name: j, ports: [{{containerPort: 1, hostPort: 9}}]}}], containers: []}}}}"
        ));
        refused(&pod, Baseline, &format!("hostPorts spec.{kind}[1].ports[0].hostPort"), "v1.0", None);
    }
}

#[test]
fn hosts_of_probes_and_hooks_are_refused_since_1_34() {
    for probe in ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"] {
        for action in ["httpGet", "tcpSocket"] {
            let with = |host: &str| {
                let action = format!("{{{action}: {{port: 80{host}}}}}");
                let field = match probe.split_once('.') {
                    Some((lifecycle, hook)) => format!(", {lifecycle}: {{{hook}: {action}}}"),
                    None => format!(", {probe}: {action}"),
                };
                close_to_restricted("", "", &field, "")
            };
            for level in [Baseline, Restricted] {
                let expected = format!("hostProbesAndHostLifecycle spec.containers[0].{probe}.{action}.host");
                refused(&with(", host: 127.0.0.1"), level, &expected, "v1.34", None);
                admitted(&with(", host: ''"), level);
                admitted(&with(""), level);
            }
        }
    }
}

#[test]
fn volumes_of_the_host_are_refused_and_restricted_has_a_list() {
    let with = |source: &str| close_to_restricted("", "", "", &format!("volumes: [{{name: v{source}}}],"));
    let host_path = with(", hostPath: {path: /a}");
    refused(&host_path, Baseline, "hostPathVolumes spec.volumes[0].hostPath", "v1.0", None);
    refused(&host_path, Restricted, "restrictedVolumes spec.volumes[0].hostPath", "v1.0", None);
    for allowed in [
        "",
        ", configMap: {name: a}",
        ", csi: {driver: a}",
        ", downwardAPI: {items: []}",
        ", emptyDir: {}",
        ", ephemeral: {volumeClaimTemplate: {spec: {}}}",
        ", image: {reference: a}",
        ", persistentVolumeClaim: {claimName: a}",
        ", projected: {sources: []}",
        ", secret: {secretName: a}",
    ] {
        admitted(&with(allowed), Restricted);
    }
    for (name, fields) in [
        ("awsElasticBlockStore", "volumeID: a"),
        ("azureDisk", "diskName: a, diskURI: a"),
        ("azureFile", "secretName: a, shareName: a"),
        ("cephfs", "monitors: [a]"),
        ("cinder", "volumeID: a"),
        ("fc", "lun: 1"),
        ("flexVolume", "driver: a"),
        ("flocker", "datasetName: a"),
        ("gcePersistentDisk", "pdName: a"),
        ("gitRepo", "repository: a"),
        ("glusterfs", "endpoints: a, path: a"),
        ("iscsi", "targetPortal: a, iqn: a, lun: 1"),
        ("nfs", "server: a, path: /"),
        ("photonPersistentDisk", "pdID: a"),
        ("portworxVolume", "volumeID: a"),
        ("quobyte", "registry: a, volume: a"),
        ("rbd", "monitors: [a], image: a"),
        ("scaleIO", "gateway: a, system: a, secretRef: {name: a}"),
        ("storageos", "volumeName: a"),
        ("vsphereVolume", "volumePath: a"),
    ] {
        let volume = with(&format!(", {name}: {{{fields}}}"));
        refused(&volume, Restricted, &format!("restrictedVolumes spec.volumes[0].{name}"), "v1.0", None);
        admitted(&volume, Baseline);
    }
}

#[test]
fn privileged_containers_are_refused_in_every_kind_of_container() {
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        let with = |value: &str| {
            let main = if kind == "containers" { "" } else { "containers: []," };
            pod(&format!(
                "{{metadata: {{name: a}}, spec: {{{main} {kind}: [{{name: c, securityContext: {{privileged: {value}}}}}]}}}}"
            ))
        };
        refused(&with("true"), Baseline, &format!("privileged spec.{kind}[0].securityContext.privileged"), "v1.0", None);
        admitted(&with("false"), Baseline);
    }
    refused(
        &close_to_restricted("", ", privileged: true", "", ""),
        Restricted,
        "privileged spec.containers[0].securityContext.privileged",
        "v1.0",
        None,
    );
}

#[test]
fn capabilities_are_compared_as_they_are_spelled() {
    let with = |capabilities: &str| {
        pod(&format!(
            "{{metadata: {{name: a}}, spec: {{securityContext: {{{GOOD_POD}}}, containers: [{{name: c, securityContext: \
             {{allowPrivilegeEscalation: false, capabilities: {{{capabilities}}}}}}}]}}}}"
        ))
    };
    let add = |place: usize, control: &str| format!("{control} spec.containers[0].securityContext.capabilities.add[{place}]");
    let drop = "capabilities_restricted spec.containers[0].securityContext.capabilities.drop";
    let all = "add: [AUDIT_WRITE, CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, MKNOD, NET_BIND_SERVICE, SETFCAP, SETGID, SETPCAP, SETUID, SYS_CHROOT]";
    admitted(&with(all), Baseline);
    for name in ["NET_RAW", "SYS_ADMIN", "ALL", "CAP_CHOWN", "chown", "''"] {
        let pod = with(&format!("drop: [ALL], add: [CHOWN, {name}]"));
        refused(&pod, Baseline, &add(1, "capabilities_baseline"), "v1.0", None);
        for version in ["v1.0", "v1.21"] {
            assert_eq!(found(&pod, Restricted, version), [add(1, "capabilities_baseline")], "{name} {version}");
        }
        for version in ["v1.22", "latest"] {
            let both = [add(0, "capabilities_restricted"), add(1, "capabilities_restricted")];
            assert_eq!(found(&pod, Restricted, version), both, "{name} {version}");
        }
    }
    admitted(&with("drop: [KILL, ALL], add: [NET_BIND_SERVICE]"), Restricted);
    for missing in ["drop: [all]", "drop: [CAP_ALL]", "drop: []", "add: [NET_BIND_SERVICE]"] {
        refused(&with(missing), Restricted, drop, "v1.22", None);
    }
}

#[test]
fn privilege_escalation_is_refused_by_restricted_since_1_8() {
    for value in ["", "allowPrivilegeEscalation: true,"] {
        let pod = pod(&format!(
            "{{metadata: {{name: a}}, spec: {{securityContext: {{{GOOD_POD}}}, containers: [{{name: c, securityContext: \
             {{{value} capabilities: {{drop: [ALL]}}}}}}]}}}}"
        ));
        let expected = "allowPrivilegeEscalation spec.containers[0].securityContext.allowPrivilegeEscalation";
        refused(&pod, Restricted, expected, "v1.8", None);
        admitted(&pod, Baseline);
    }
}

#[test]
fn the_whole_of_proc_needs_users_of_the_pods_own_in_baseline_since_1_35() {
    let with = |users: &str, value: &str| close_to_restricted("", &format!(", procMount: {value}"), "", users);
    let field = "spec.containers[0].securityContext.procMount";
    for value in ["Unmasked", "Other"] {
        for users in ["", "hostUsers: true,"] {
            refused(&with(users, value), Baseline, &format!("procMount {field}"), "v1.0", None);
        }
        refused(&with("hostUsers: false,", value), Baseline, &format!("procMount {field}"), "v1.0", Some("v1.35"));
        for users in ["", "hostUsers: false,"] {
            let pod = with(users, value);
            assert_eq!(found(&pod, Restricted, "v1.34"), [format!("procMount {field}")]);
            assert_eq!(found(&pod, Restricted, "v1.35"), [format!("procMount_restricted {field}")]);
            assert_eq!(found(&pod, Restricted, "latest"), [format!("procMount_restricted {field}")]);
        }
    }
    admitted(&with("", "Default"), Restricted);
}

#[test]
fn apparmor_may_be_another_profile_but_not_none() {
    for level in [Baseline, Restricted] {
        for good in ["RuntimeDefault", "Localhost"] {
            let profile = format!(", appArmorProfile: {{type: {good}, localhostProfile: a}}");
            admitted(&close_to_restricted(&profile, &profile, "", ""), level);
        }
        for bad in ["Unconfined", "Other", "''"] {
            let profile = format!(", appArmorProfile: {{type: {bad}}}");
            let expected = |at: &str| format!("appArmorProfile spec.{at}.appArmorProfile.type");
            refused(&close_to_restricted(&profile, "", "", ""), level, &expected("securityContext"), "v1.0", None);
            refused(&close_to_restricted("", &profile, "", ""), level, &expected("containers[0].securityContext"), "v1.0", None);
        }
    }
    let annotated = |value: &str| {
        pod(&format!(
            "{{metadata: {{name: a, annotations: {{container.apparmor.security.beta.kubernetes.io/any: {value}}}}}, spec: {{containers: []}}}}"
        ))
    };
    for good in ["runtime/default", "localhost/a", "''"] {
        admitted(&annotated(good), Baseline);
    }
    for bad in ["unconfined", "localhost", "other"] {
        let expected = "appArmorProfile metadata.annotations[container.apparmor.security.beta.kubernetes.io/any]";
        refused(&annotated(bad), Baseline, expected, "v1.0", None);
    }
}

#[test]
fn selinux_has_types_of_containers_and_neither_user_nor_role() {
    let with = |options: &str| close_to_restricted("", &format!(", seLinuxOptions: {{{options}}}"), "", "");
    let field = |name: &str| format!("seLinuxOptions spec.containers[0].securityContext.seLinuxOptions.{name}");
    for level in [Baseline, Restricted] {
        for good in
            ["", "level: s0", "type: ''", "type: container_t", "type: container_init_t", "type: container_kvm_t", "user: ''"]
        {
            admitted(&with(good), level);
        }
        refused(&with("type: container_engine_t"), level, &field("type"), "v1.0", Some("v1.31"));
        refused(&with("type: unconfined_t"), level, &field("type"), "v1.0", None);
        refused(&with("user: system_u"), level, &field("user"), "v1.0", None);
        refused(&with("role: object_r"), level, &field("role"), "v1.0", None);
        let of_pod = close_to_restricted(", seLinuxOptions: {user: a}", "", "", "");
        refused(&of_pod, level, "seLinuxOptions spec.securityContext.seLinuxOptions.user", "v1.0", None);
    }
}

#[test]
fn seccomp_was_judged_by_annotations_before_1_19() {
    let annotated = |key: &str, value: &str| {
        pod(&format!("{{metadata: {{name: a, annotations: {{{key}: {value}}}}}, spec: {{containers: [{{name: c}}]}}}}"))
    };
    let (of_pod, of_container) = ("seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/c");
    for key in [of_pod, of_container] {
        for good in ["runtime/default", "docker/default", "localhost/a"] {
            admitted(&annotated(key, good), Baseline);
        }
        for bad in ["unconfined", "''"] {
            let expected = format!("seccompProfile_baseline metadata.annotations[{key}]");
            refused(&annotated(key, bad), Baseline, &expected, "v1.0", Some("v1.19"));
        }
    }
    admitted(&annotated("container.seccomp.security.alpha.kubernetes.io/other", "unconfined"), Baseline);
}

#[test]
fn seccomp_may_not_be_off_since_1_19_and_has_to_be_set_in_restricted() {
    let with = |of_pod: &str, of_container: &str| {
        let profile = |text: &str| match text {
            "" => String::new(),
            text => format!(", seccompProfile: {{type: {text}}}"),
        };
        pod(&format!(
            "{{metadata: {{name: a}}, spec: {{securityContext: {{runAsNonRoot: true{}}}, containers: [{{name: c, securityContext: {{{GOOD}{}}}}}]}}}}",
            profile(of_pod),
            profile(of_container)
        ))
    };
    let (at_pod, at_container) =
        ("spec.securityContext.seccompProfile.type", "spec.containers[0].securityContext.seccompProfile.type");
    for bad in ["Unconfined", "Other"] {
        refused(&with(bad, ""), Baseline, &format!("seccompProfile_baseline {at_pod}"), "v1.19", None);
        refused(&with("", bad), Baseline, &format!("seccompProfile_baseline {at_container}"), "v1.19", None);
        for (of_pod, of_container, at) in
            [(bad, "", at_pod), (bad, "RuntimeDefault", at_pod), ("RuntimeDefault", bad, at_container)]
        {
            refused(&with(of_pod, of_container), Restricted, &format!("seccompProfile_restricted {at}"), "v1.19", None);
        }
    }
    admitted(&with("", ""), Baseline);
    refused(&with("", ""), Restricted, &format!("seccompProfile_restricted {at_container}"), "v1.19", None);
    for (of_pod, of_container) in [("RuntimeDefault", ""), ("", "RuntimeDefault"), ("Localhost", ""), ("", "Localhost")] {
        admitted(&with(of_pod, of_container), Restricted);
    }
}

#[test]
fn sysctls_are_allowed_by_version_and_as_they_are_spelled() {
    for (name, since) in [
        ("kernel.shm_rmid_forced", "v1.0"),
        ("net.ipv4.ip_local_port_range", "v1.0"),
        ("net.ipv4.tcp_syncookies", "v1.0"),
        ("net.ipv4.ping_group_range", "v1.0"),
        ("net.ipv4.ip_unprivileged_port_start", "v1.0"),
        ("net.ipv4.ip_local_reserved_ports", "v1.27"),
        ("net.ipv4.tcp_keepalive_time", "v1.29"),
        ("net.ipv4.tcp_fin_timeout", "v1.29"),
        ("net.ipv4.tcp_keepalive_intvl", "v1.29"),
        ("net.ipv4.tcp_keepalive_probes", "v1.29"),
        ("net.ipv4.tcp_rmem", "v1.32"),
        ("net.ipv4.tcp_wmem", "v1.32"),
        ("net.ipv4.tcp_slow_start_after_idle", "v1.37"),
        ("net.ipv4.tcp_notsent_lowat", "v1.37"),
    ] {
        let pod = close_to_restricted(&format!(", sysctls: [{{name: {name}, value: '1'}}]"), "", "", "");
        for level in [Baseline, Restricted] {
            refused(&pod, level, "sysctls spec.securityContext.sysctls[0].name", "v1.0", Some(since));
        }
    }
    for name in ["kernel.msgmax", "net.core.somaxconn", "kernel/shm_rmid_forced", "''"] {
        let pod = close_to_restricted(
            &format!(", sysctls: [{{name: net.ipv4.tcp_syncookies, value: '1'}}, {{name: {name}, value: '1'}}]"),
            "",
            "",
            "",
        );
        refused(&pod, Baseline, "sysctls spec.securityContext.sysctls[1].name", "v1.0", None);
    }
}

#[test]
fn processes_of_a_windows_host_are_refused() {
    let options = |value| format!(", windowsOptions: {{hostProcess: {value}}}");
    let field = |at: &str| format!("windowsHostProcess spec.{at}.windowsOptions.hostProcess");
    for level in [Baseline, Restricted] {
        refused(&close_to_restricted(&options(true), "", "", ""), level, &field("securityContext"), "v1.0", None);
        refused(&close_to_restricted("", &options(true), "", ""), level, &field("containers[0].securityContext"), "v1.0", None);
        admitted(&close_to_restricted(&options(false), &options(false), "", ""), level);
    }
}

#[test]
fn users_are_not_root_in_restricted_unless_they_are_the_pods_own() {
    let with = |users: &str, of_pod: &str, of_container: &str| {
        pod(&format!(
            "{{metadata: {{name: a}}, spec: {{{users} securityContext: {{seccompProfile: {{type: RuntimeDefault}}{of_pod}}}, \
             containers: [{{name: c, securityContext: {{{GOOD}{of_container}}}}}]}}}}"
        ))
    };
    let (at_pod, at_container) = ("spec.securityContext", "spec.containers[0].securityContext");
    let (yes, no) = (", runAsNonRoot: true", ", runAsNonRoot: false");
    for (of_pod, of_container, at) in
        [("", "", at_container), (no, "", at_pod), (no, yes, at_pod), (yes, no, at_container), ("", no, at_container)]
    {
        let expected = format!("runAsNonRoot {at}.runAsNonRoot");
        refused(&with("", of_pod, of_container), Restricted, &expected, "v1.0", None);
        refused(&with("hostUsers: true,", of_pod, of_container), Restricted, &expected, "v1.0", None);
        refused(&with("hostUsers: false,", of_pod, of_container), Restricted, &expected, "v1.0", Some("v1.35"));
        admitted(&with("", of_pod, of_container), Baseline);
    }
    for (of_pod, of_container) in [(yes, ""), ("", yes), (yes, yes)] {
        admitted(&with("", of_pod, of_container), Restricted);
    }
    for (of_pod, of_container, at) in [(", runAsNonRoot: true, runAsUser: 0", "", at_pod), (yes, ", runAsUser: 0", at_container)] {
        let expected = format!("runAsUser {at}.runAsUser");
        refused(&with("", of_pod, of_container), Restricted, &expected, "v1.23", None);
        refused(&with("hostUsers: false,", of_pod, of_container), Restricted, &expected, "v1.23", Some("v1.35"));
    }
    admitted(&with("", ", runAsNonRoot: true, runAsUser: 1", ", runAsUser: 1000"), Restricted);
}

#[test]
fn pods_for_windows_need_not_set_fields_of_linux_since_1_25() {
    let with = |os: &str| {
        pod(&format!(
            "{{metadata: {{name: a}}, spec: {{os: {{name: {os}}}, securityContext: {{runAsNonRoot: true}}, containers: [{{name: c}}]}}}}"
        ))
    };
    for version in VERSIONS {
        let (windows, linux) = (found(&with("windows"), Restricted, version), found(&with("linux"), Restricted, version));
        if version.parse::<Version>().unwrap().includes(25) {
            assert_eq!(windows, [""; 0], "{version}");
            assert_eq!(linux.len(), 3, "{version}: {linux:?}");
        } else {
            assert_eq!(windows, linux, "{version}");
        }
    }
}
