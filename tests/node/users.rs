//! Pods with users of their own (`hostUsers: false`).

use crate::support::TestHost;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// A host whose run directory other users may pass.
fn host() -> TestHost {
    let host = TestHost::start();
    fs::set_permissions(host.path(""), fs::Permissions::from_mode(0o711)).unwrap();
    host
}

fn manifest(name: &str, spec: &str, container: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  hostUsers: false\n  terminationGracePeriodSeconds: 1\n{spec}  \
         containers:\n    - name: main\n      image: localhost/busybox:1\n      command: [/bin/sh, -c, 'echo up; exec sleep 1000000']\n{container}"
    )
}

fn sh(host: &TestHost, pod: &str, script: &str) -> String {
    host.exec(pod, "main", &["/bin/sh", "-c", script])
}

/// The host's id of root in the container.
fn first_id(host: &TestHost, pod: &str) -> u32 {
    let pid = host.container_pid(&host.pod(pod).unwrap(), "main");
    let map = fs::read_to_string(format!("/proc/{pid}/uid_map")).unwrap();
    let numbers: Vec<u32> = map.split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert_eq!((numbers[0], numbers[2]), (0, 65_536), "{map}");
    assert_eq!(fs::read_to_string(format!("/proc/{pid}/gid_map")).unwrap(), map);
    numbers[1]
}

/// shows: spec.hostUsers
#[test]
fn root_of_pod_is_nobody_on_host() {
    let mut host = host();
    let shared = host.path("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("by-host"), "x").unwrap();
    let volumes = format!(
        "  volumes: [{{name: empty, emptyDir: {{}}}}, {{name: memory, emptyDir: {{medium: Memory}}}}, {{name: shared, hostPath: {{path: {}}}}}]\n",
        shared.display()
    );
    let mounts =
        "      volumeMounts: [{name: empty, mountPath: /e}, {name: memory, mountPath: /m}, {name: shared, mountPath: /h}]\n";
    host.write_manifest("own.yaml", &manifest("own", &volumes, mounts));
    host.wait_running("own");
    let first = first_id(&host, "own");
    assert!(first >= 65_536);
    let pid = host.container_pid(&host.pod("own").unwrap(), "main");
    assert_eq!(fs::metadata(format!("/proc/{pid}")).unwrap().uid(), first, "the process is nobody of the host");
    host.wait_log("own", "main", "up");
    // Inside, all is as usual: files of the image and of volumes are root's.
    assert_eq!(sh(&host, "own", "id -u; stat -c %u / /bin/busybox /e /m /h /h/by-host /etc/hosts /dev/shm"), "0\n".repeat(9));
    sh(&host, "own", "touch /x /e/x /m/x /h/x /dev/shm/x && chown 1000 /h/x");
    // On the host, what is in volumes has no strange owner.
    assert_eq!(fs::metadata(shared.join("x")).unwrap().uid(), 1000);
    assert_eq!(sh(&host, "own", "stat -c %u /x /h/x"), "0\n1000\n");
    // It may do in its network and nothing outside of it.
    sh(&host, "own", "ip addr add 192.0.2.9/32 dev lo 2>/dev/null || hostname changed || true");
    assert!(sh(&host, "own", "cat /sys/class/net/lo/ifindex").starts_with('1'), "sysfs shows its own network");
    let users = fs::read_link(format!("/proc/{pid}/ns/user")).unwrap().display().to_string();
    assert_eq!(sh(&host, "own", "readlink /proc/self/ns/user").trim(), users, "exec has the same users");
    assert_ne!(fs::read_link("/proc/self/ns/user").unwrap().display().to_string(), users);
    // It is found again by the next daemon.
    host.kill_daemon();
    host.start_daemon();
    assert_eq!(host.container_pid(&host.wait_running("own"), "main"), pid);
    host.write_manifest("other.yaml", &manifest("other", "", ""));
    host.wait_running("other");
    let other = first_id(&host, "other");
    assert!(other.abs_diff(first) >= 65_536, "{first} and {other} overlap");
}

/// shows: spec.containers[].securityContext.procMount
#[test]
fn proc_is_unmasked_for_own_users() {
    let host = host();
    host.write_manifest("own.yaml", &manifest("own", "", "      securityContext: {procMount: Unmasked}\n"));
    host.wait_running("own");
    assert_eq!(sh(&host, "own", "grep -c ' /proc/' /proc/self/mountinfo || true"), "0\n", "nothing is mounted over it");
}

#[test]
fn user_and_capabilities_stay_in_pod() {
    let host = host();
    let context = "      securityContext: {runAsUser: 1000, runAsGroup: 1000}\n";
    host.write_manifest("own.yaml", &manifest("own", "  securityContext: {fsGroup: 2000, supplementalGroups: [3000]}\n", context));
    host.wait_running("own");
    let first = first_id(&host, "own");
    let pid = host.container_pid(&host.pod("own").unwrap(), "main");
    assert_eq!(fs::metadata(format!("/proc/{pid}")).unwrap().uid(), first + 1000);
    assert_eq!(sh(&host, "own", "id -u; id -g"), "1000\n1000\n");
    assert!(sh(&host, "own", "id -G").contains("3000"));
    host.remove_manifest("own.yaml");
    host.wait_gone("own");
}

#[test]
fn terminal_and_sysctls_work_with_own_users() {
    let host = host();
    let sysctls = "  securityContext: {sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: '77'}]}\n";
    host.write_manifest("own.yaml", &manifest("own", sysctls, "      tty: true\n      securityContext: {privileged: true}\n"));
    host.wait_running("own");
    host.wait_log("own", "main", "up");
    assert!(first_id(&host, "own") > 0);
    assert_eq!(sh(&host, "own", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start"), "77\n");
    assert_eq!(sh(&host, "own", "test -c /proc/1/fd/0 && echo terminal"), "terminal\n");
    // Privileged in the pod: the host's own settings are not its to change.
    assert!(sh(&host, "own", "echo 1 2>&1 > /proc/sys/kernel/panic || echo refused").contains("refused"));
}

/// shows: spec.hostUsers, spec.shareProcessNamespace
#[test]
fn processes_are_shared_among_own_users() {
    let mut host = host();
    let other = "    - {name: other, image: localhost/busybox:1, command: [sleep, '7654321'], securityContext: {runAsUser: 7}}\n";
    let spec = "  shareProcessNamespace: true\n";
    host.write_manifest("own.yaml", &manifest("own", spec, other));
    host.wait_running("own");
    let first = first_id(&host, "own");
    let seen = sh(&host, "own", "for p in /proc/[0-9]*; do echo $(stat -c %u $p) $(tr '\\0' ' ' < $p/cmdline); done");
    assert!(seen.lines().any(|line| line.trim() == "7 sleep 7654321"), "the other container's process, by its user: {seen}");
    assert!(seen.lines().any(|line| line.contains("podstead-shim init")), "{seen}");
    let pid = host.container_pid(&host.pod("own").unwrap(), "other");
    assert_eq!(fs::metadata(format!("/proc/{pid}")).unwrap().uid(), first + 7);
    // The first process is nobody there, and leads nowhere.
    assert_eq!(sh(&host, "own", "ls /proc/1/root/ 2>/dev/null | wc -l").trim(), "0");
    assert!(sh(&host, "own", "kill -9 1; grep ^Uid /proc/1/status").contains("65534"));
    // One container restarts in the same namespace, and all goes with the pod.
    host.kill_daemon();
    host.start_daemon();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL).unwrap();
    host.wait_for_pod("own", "the other container to run again", |pod| {
        pod.container("other")["restartCount"] == 1 && pod.container("other")["state"]["running"].is_object()
    });
    let seen = sh(&host, "own", "ps -o args");
    assert!(seen.contains("sleep 7654321"), "{seen}");
    host.remove_manifest("own.yaml");
    host.wait_gone("own");
}

#[test]
fn closed_run_directory_is_named() {
    let host = TestHost::start();
    fs::set_permissions(host.path(""), fs::Permissions::from_mode(0o700)).unwrap();
    host.write_manifest("own.yaml", &manifest("own", "", ""));
    let waiting = host.wait_for_pod("own", "the reason", |pod| pod.waiting_reason("main") == "CreateContainerError");
    let message = waiting.container("main")["state"]["waiting"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("chmod o+x"), "{message}");
}

#[test]
fn configured_ids_keep_for_running_pods() {
    let mut host = host();
    host.write_manifest("old.yaml", &manifest("old", "", ""));
    host.wait_running("old");
    let old = first_id(&host, "old");
    let path = host.path("config.yaml");
    let config = fs::read_to_string(&path).unwrap();
    host.kill_daemon();
    fs::write(&path, format!("{config}userNamespaces: {{firstId: 655360000, maxPods: 2}}\n")).unwrap();
    host.start_daemon();
    host.write_manifest("one.yaml", &manifest("one", "", ""));
    host.write_manifest("two.yaml", &manifest("two", "", ""));
    host.wait_running("one");
    host.wait_running("two");
    let mut new = [first_id(&host, "one"), first_id(&host, "two")];
    new.sort_unstable();
    assert_eq!(new, [655_360_000, 655_425_536]);
    assert_eq!(first_id(&host, "old"), old);
    // There is room for two.
    host.write_manifest("three.yaml", &manifest("three", "", ""));
    let told = |host: &TestHost| host.cli_ok(&["get", "events"]).contains("all 2 ID ranges are in use");
    crate::support::eventually("the event", || if told(&host) { Ok(()) } else { Err(host.cli_ok(&["get", "events"])) });
    host.remove_manifest("one.yaml");
    host.wait_running("three");
}
