//! Each field of the security contexts, seen from inside of the container.

use crate::support::{TestHost, eventually, make_image};
use std::fs;

/// A host with a pod `web` that has more fields in its spec and in its container, each a line of YAML flow.
fn run(spec: &str, container: &str) -> TestHost {
    let host = TestHost::start();
    host.write_manifest("web.yaml", &manifest(spec, container));
    host.wait_running("web");
    host
}

fn manifest(spec: &str, container: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  terminationGracePeriodSeconds: 1\n  {spec}\n  containers:\n    \
         - name: main\n      image: localhost/busybox:1\n      command: [sleep, '1000000']\n      {container}\n"
    )
}

fn sh(host: &TestHost, script: &str) -> String {
    host.exec("web", "main", &["/bin/sh", "-c", script])
}

/// A field of the first process's status.
fn status(host: &TestHost, field: &str) -> String {
    let text = sh(host, "cat /proc/1/status");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:"))).map(str::trim);
    line.unwrap_or_else(|| panic!("no {field} in {text}")).to_owned()
}

/// The capability of that number in the bounding set.
fn has_capability(host: &TestHost, number: u32) -> bool {
    u64::from_str_radix(&status(host, "CapBnd"), 16).unwrap() & (1 << number) != 0
}

const NET_ADMIN: u32 = 12;
const CHOWN: u32 = 0;

/// shows: spec.containers[].securityContext.runAsUser, spec.containers[].securityContext.runAsGroup
#[test]
fn user_of_container_precedes_that_of_pod() {
    let host = run("securityContext: {runAsUser: 1000, runAsGroup: 2000}", "securityContext: {runAsUser: 1234, runAsGroup: 4321}");
    assert_eq!(
        (status(&host, "Uid").as_str(), status(&host, "Gid").as_str()),
        ("1234\t1234\t1234\t1234", "4321\t4321\t4321\t4321")
    );
}

/// shows: spec.containers[].securityContext.runAsNonRoot, spec.securityContext.runAsNonRoot
#[test]
fn run_as_non_root_refuses_root() {
    let host = TestHost::start();
    for (spec, container) in [
        ("securityContext: {runAsNonRoot: true}", "tty: false"),
        ("restartPolicy: Always", "securityContext: {runAsNonRoot: true}"),
    ] {
        host.write_manifest("web.yaml", &manifest(spec, container));
        let waiting = host.wait_for_pod("web", "the refusal", |pod| pod.waiting_reason("main") == "CreateContainerConfigError");
        let message = &waiting.container("main")["state"]["waiting"]["message"];
        assert!(message.as_str().unwrap().contains("container has runAsNonRoot and image will run as root"), "{message}");
        host.remove_manifest("web.yaml");
        host.wait_gone("web");
    }
    host.write_manifest("web.yaml", &manifest("securityContext: {runAsNonRoot: true, runAsUser: 7}", "tty: false"));
    host.wait_running("web");
}

/// shows: spec.containers[].securityContext.capabilities.add, spec.containers[].securityContext.capabilities.drop
#[test]
fn capabilities_are_added_and_dropped_by_name() {
    let host = run("restartPolicy: Always", "securityContext: {capabilities: {add: [NET_ADMIN], drop: [CHOWN]}}");
    assert!(has_capability(&host, NET_ADMIN) && !has_capability(&host, CHOWN));
    sh(&host, "ip link add d0 type dummy 2>/dev/null || ip link set lo down");
    assert!(sh(&host, "touch /x; chown 5 /x 2>&1 || true").contains("not permitted"));
}

/// shows: spec.containers[].securityContext.privileged
#[test]
fn privileged_container_has_devices_without_filter() {
    let host = run("restartPolicy: Always", "securityContext: {privileged: true}");
    assert_eq!(status(&host, "Seccomp"), "0");
    let bounding = u64::from_str_radix(&status(&host, "CapBnd"), 16).unwrap();
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("CapBnd:")).unwrap().trim();
    assert_eq!(bounding, u64::from_str_radix(own, 16).unwrap(), "all that this host can give");
    let devices = sh(&host, "ls /dev");
    assert!(devices.lines().any(|name| name == "kmsg" || name == "vda" || name == "mem"), "{devices}");
    assert_eq!(sh(&host, "test -w /proc/sys/kernel/panic && echo writable"), "writable\n");
}

/// shows: spec.containers[].securityContext.seccompProfile.type, spec.containers[].securityContext.seccompProfile.localhostProfile
#[test]
fn hosts_seccomp_profile_refuses_its_calls() {
    let mut host = TestHost::prepare("");
    let profiles = host.path("state/seccomp");
    fs::create_dir_all(&profiles).unwrap();
    let profile =
        r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}"#;
    fs::write(profiles.join("no-directories.json"), profile).unwrap();
    host.start_daemon();
    let localhost = "securityContext: {seccompProfile: {type: Localhost, localhostProfile: no-directories.json}}";
    host.write_manifest("web.yaml", &manifest("restartPolicy: Always", localhost));
    host.wait_running("web");
    assert_eq!(status(&host, "Seccomp"), "2");
    assert!(sh(&host, "mkdir /x 2>&1 || true").contains("not permitted"));
    sh(&host, "touch /y");
}

/// shows: spec.securityContext.seccompProfile.type, spec.securityContext.seccompProfile.localhostProfile
#[test]
fn pods_seccomp_profile_holds_for_containers() {
    let host = run("securityContext: {seccompProfile: {type: Unconfined}}", "tty: false");
    assert_eq!(status(&host, "Seccomp"), "0");
    let missing = "securityContext: {seccompProfile: {type: Localhost, localhostProfile: missing.json}}";
    host.write_manifest("web.yaml", &manifest(missing, "tty: false"));
    let waiting = host.wait_for_pod("web", "the missing profile", |pod| pod.waiting_reason("main") == "CreateContainerError");
    assert!(waiting.container("main").to_string().contains("missing.json"));
}

/// As with containerd, which refuses to create such a container: there is no run that could have failed for good.
#[test]
fn container_with_late_profile_runs_then() {
    let host = TestHost::start();
    let late = "securityContext: {seccompProfile: {type: Localhost, localhostProfile: late.json}}";
    host.write_manifest("web.yaml", &manifest("restartPolicy: Never", late));
    let is_told = |events: &str| events.contains("late.json");
    let waiting = host.wait_for_pod("web", "the missing profile", |pod| {
        pod.waiting_reason("main") == "CreateContainerError" && is_told(&host.cli_ok(&["get", "events"]))
    });
    assert_eq!(waiting.phase(), "Pending");
    assert_eq!(waiting.container("main")["lastState"], serde_json::json!({}));
    let profiles = host.path("state/seccomp");
    fs::create_dir_all(&profiles).unwrap();
    fs::write(profiles.join("late.json"), r#"{"defaultAction": "SCMP_ACT_ALLOW"}"#).unwrap();
    let running = host.wait_running("web");
    assert_eq!(running.container("main")["restartCount"], 0);
}

/// shows: spec.securityContext.supplementalGroupsPolicy
#[test]
fn image_groups_count_unless_policy_is_strict() {
    let host = TestHost::start();
    let layer = host.path("layer");
    fs::create_dir_all(layer.join("etc")).unwrap();
    fs::write(layer.join("etc/passwd"), "root:x:0:0::/:/bin/sh\nalice:x:1000:1000::/:/bin/sh\n").unwrap();
    fs::write(layer.join("etc/group"), "root:x:0:\nalice:x:1000:\nfriends:x:5555:alice\n").unwrap();
    let archive = host.path("groups.tar");
    make_image(&["--layer".as_ref(), layer.as_os_str()], &archive, "localhost/groups:1");
    host.cli_ok(&["image", "import", archive.to_str().unwrap()]);
    for (policy, groups) in [("Merge", "1000 7 5555"), ("Strict", "1000 7")] {
        let spec = format!("securityContext: {{runAsUser: 1000, supplementalGroups: [7], supplementalGroupsPolicy: {policy}}}");
        host.write_manifest("web.yaml", &manifest(&spec, "tty: false").replace("busybox:1", "groups:1"));
        let expected: std::collections::BTreeSet<&str> = groups.split(' ').collect();
        host.wait_for_pod("web", policy, |pod| {
            pod.runs("main") && {
                let out = host.cli(&["exec", "web", "--", "id", "-G"]);
                let text = String::from_utf8_lossy(&out.stdout).into_owned();
                text.split_whitespace().collect::<std::collections::BTreeSet<_>>() == expected
            }
        });
    }
}

/// shows: spec.securityContext.sysctls
#[test]
fn sysctls_are_set_in_the_pod_only() {
    let file = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
    let before = fs::read_to_string(file).unwrap();
    let host = run("securityContext: {sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: '77'}]}", "tty: false");
    assert_eq!(sh(&host, &format!("cat {file}")), "77\n");
    assert_eq!(fs::read_to_string(file).unwrap(), before);
}

/// shows: spec.securityContext.sysctls
#[test]
fn unsafe_sysctls_are_set_if_allowed() {
    const PLACES: [&str; 2] = ["/proc/sys/kernel/msgmax", "/proc/sys/net/core/somaxconn"];
    let on_host = || PLACES.map(|place| fs::read_to_string(place).unwrap());
    let before = on_host();
    let spec = "securityContext: {sysctls: [{name: kernel.msgmax, value: '4321'}, {name: net/core/somaxconn, value: '77'}]}";
    let host = TestHost::start_with("allowedUnsafeSysctls: ['kernel.msg*', net.core.somaxconn]\n");
    host.write_manifest("web.yaml", &manifest(spec, "tty: false"));
    host.wait_running("web");
    assert_eq!(PLACES.map(|place| sh(&host, &format!("cat {place}"))), ["4321\n", "77\n"]);
    assert_eq!(on_host(), before);
    host.write_manifest("web.yaml", &manifest(&spec.replace("net/core/somaxconn", "net.core.rmem_max"), "tty: false"));
    eventually("the sysctl that is not allowed to be told", || {
        let log = host.daemon_log();
        let expected = "sysctls[1].name: \"net.core.rmem_max\" is not one of Kubernetes' safe sysctls";
        if log.contains(expected) { Ok(()) } else { Err(log) }
    });
}

/// shows: spec.hostPID, spec.hostIPC
#[test]
fn namespaces_of_host_are_shared_when_asked() {
    let host = run("{hostPID: true, hostIPC: true}".trim_matches(['{', '}']).replace(", ", "\n  ").as_str(), "tty: false");
    let own = |kind: &str| fs::read_link(format!("/proc/self/ns/{kind}")).unwrap().display().to_string();
    for kind in ["pid", "ipc"] {
        assert_eq!(sh(&host, &format!("readlink /proc/self/ns/{kind}")).trim(), own(kind), "{kind}");
    }
    let apart = run("restartPolicy: Always", "tty: false");
    for kind in ["pid", "ipc"] {
        assert_ne!(sh(&apart, &format!("readlink /proc/self/ns/{kind}")).trim(), own(kind), "{kind}");
    }
}

/// shows: spec.priorityClassName
#[test]
fn critical_pod_is_spared_by_oom_killer() {
    let host = run("priorityClassName: system-node-critical", "tty: false");
    let score: i32 = sh(&host, "cat /proc/1/oom_score_adj").trim().parse().unwrap();
    // -997, or as low as this machine lets root set it.
    assert!(score <= 0, "{score}; 1000 for another pod without requests");
}
