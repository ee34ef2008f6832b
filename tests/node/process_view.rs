//! The view of a container's process: environment, files, user, limits, namespaces.

use crate::support::{TestHost, cgroup};

/// Runs one pod whose `main` container has `more` (YAML of its container) and `spec` (YAML of its spec), and returns the host.
fn run(spec: &str, container: &str) -> TestHost {
    let host = TestHost::start();
    let indent = |text: &str, by: usize| {
        text.lines().filter(|line| !line.trim().is_empty()).map(|line| format!("{}{line}\n", " ".repeat(by))).collect::<String>()
    };
    let manifest = format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: seen\n  labels: {{app: seen}}\nspec:\n  terminationGracePeriodSeconds: 1\n{}  containers:\n    \
         - name: main\n      image: localhost/busybox:1\n      command: [sleep, '1000000']\n{}",
        indent(spec, 2),
        indent(container, 6)
    );
    host.write_manifest("seen.yaml", &manifest);
    host.wait_running("seen");
    host
}

fn sh(host: &TestHost, script: &str) -> String {
    host.exec("seen", "main", &["/bin/sh", "-c", script])
}

/// shows: spec.containers[].env[].name, spec.containers[].env[].value, spec.containers[].env[].valueFrom.fieldRef
/// shows: spec.containers[].env[].valueFrom.resourceFieldRef.resource, spec.containers[].env[].valueFrom.resourceFieldRef.divisor
/// shows: metadata.labels
#[test]
fn environment_is_expanded_with_downward_fields() {
    let host = run(
        "",
        "
env:
  - {name: A, value: a}
  - {name: B, value: '$(A)b $$(A) $(LATER) $(UNCLOSED'}
  - {name: LATER, value: x}
  - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: APP, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['app']\"}}}
  - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
  - {name: LIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
resources: {limits: {memory: 32Mi}}
",
    );
    let pid = host.container_pid(&host.pod("seen").unwrap(), "main");
    let environ = String::from_utf8(std::fs::read(format!("/proc/{pid}/environ")).unwrap()).unwrap();
    let has = |entry: &str| assert!(environ.split('\0').any(|line| line == entry), "{entry:?} in {environ:?}");
    has("B=ab $(A) $(LATER) $(UNCLOSED");
    has("NAME=seen-edge-1");
    has("APP=seen");
    has("NODE=edge-1");
    has("LIMIT=32");
    assert_eq!(sh(&host, "echo $NAME"), "seen-edge-1\n", "exec has the same environment");
}

#[test]
fn default_confinement_is_that_of_container_engine() {
    let host = run("", "");
    let status = sh(&host, "cat /proc/1/status");
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_eq!(field("Seccomp:"), "2", "a filter is loaded");
    assert_eq!(field("CapEff:"), "00000000a80425fb", "containerd's default capabilities");
    assert_eq!(field("CapBnd:"), "00000000a80425fb");
    assert_eq!(sh(&host, "tr '\\0' ' ' < /proc/1/cmdline; hostname"), "sleep 1000000 seen-edge-1\n", "own PID and UTS namespaces");
    assert_ne!(sh(&host, "echo 1 > /proc/sys/kernel/panic 2>&1 || echo refused"), "");
    assert_eq!(sh(&host, "cat /proc/kcore 2>/dev/null | wc -c | tr -d ' '"), "0\n", "masked");
    let exec = sh(&host, "grep -E 'Seccomp:|CapEff' /proc/self/status");
    assert!(exec.contains("a80425fb") && exec.contains("\t2"), "exec is confined as well: {exec}");
}

/// shows: spec.securityContext.runAsUser, spec.securityContext.runAsGroup, spec.securityContext.supplementalGroups
/// shows: spec.containers[].securityContext.allowPrivilegeEscalation, spec.containers[].securityContext.readOnlyRootFilesystem
/// shows: spec.containers[].securityContext.capabilities.drop
#[test]
fn user_group_and_read_only_root_hold() {
    let host = run(
        "securityContext: {runAsUser: 1234, runAsGroup: 2345, supplementalGroups: [3456]}",
        "securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}",
    );
    assert_eq!(sh(&host, "id -u; id -g; id -G"), "1234\n2345\n2345 3456\n");
    let status = sh(&host, "cat /proc/1/status");
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    assert!(status.contains("CapBnd:\t0000000000000000"), "{status}");
    assert!(sh(&host, "touch /x 2>&1 || true").contains("Read-only file system"));
}

/// shows: spec.containers[].resources.limits, spec.containers[].resources.requests
#[test]
fn limits_are_in_the_cgroup() {
    let host = run("", "resources: {requests: {cpu: 50m}, limits: {cpu: 100m, memory: 64Mi}}");
    let pod = host.pod("seen").unwrap();
    let pid = host.container_pid(&pod, "main");
    let group = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    assert!(group.contains(&pod.uid()), "{group}");
    assert_eq!(cgroup::memory_limit(pid, 0), Some(64 << 20));
    assert_eq!(cgroup::cpu_quota(pid, 0), Some(10_000));
    assert_eq!(cgroup::cpu_share(pid, 0), cgroup::share_of(51));
}

/// shows: spec.hostAliases, spec.dnsPolicy, spec.dnsConfig
#[test]
fn host_files_are_kubernetes_own() {
    let host = run(
        "
hostAliases: [{ip: 10.1.2.3, hostnames: [db, db.local]}]
dnsPolicy: None
dnsConfig: {nameservers: [10.9.8.7], searches: [plant.local], options: [{name: ndots, value: '2'}]}
",
        "",
    );
    let hosts = sh(&host, "cat /etc/hosts");
    assert!(hosts.starts_with("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"), "{hosts}");
    assert!(hosts.contains("# Entries added by HostAliases.\n10.1.2.3\tdb\tdb.local\n"), "{hosts}");
    assert_eq!(sh(&host, "cat /etc/resolv.conf"), "search plant.local\nnameserver 10.9.8.7\noptions ndots:2\n");
    assert_eq!(sh(&host, "cat /etc/hostname"), "seen-edge-1\n");
}

/// shows: spec.restartPolicy
#[test]
fn the_termination_message_reaches_the_status() {
    let host = TestHost::start();
    host.write_manifest(
        "words.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: words}\nspec:\n  restartPolicy: Never\n  containers:\n    - name: main\n      \
         image: localhost/busybox:1\n      command: [/bin/sh, -c, 'echo last words > /dev/termination-log; exit 7']\n",
    );
    let pod = host.wait_for_pod("words", "Failed", |pod| pod.phase() == "Failed");
    let terminated = &pod.container("main")["state"]["terminated"];
    assert_eq!(terminated["exitCode"], 7);
    assert_eq!(terminated["message"], "last words\n");
    assert_eq!(terminated["reason"], "Error");
}

/// shows: spec.shareProcessNamespace
#[test]
fn containers_share_the_process_namespace_when_asked() {
    let host = run("shareProcessNamespace: true", "");
    let first = sh(&host, "cat /proc/1/cmdline | tr '\\0' ' '");
    assert!(first.contains("podstead-shim") || first.contains("init"), "pid 1 reaps for the pod: {first}");
    assert!(sh(&host, "ps").contains("sleep 1000000"));
}

/// On cgroup v1, the number of a process in the pod must not be taken for one of the host.
#[test]
fn shared_process_namespace_restarts_at_any_number() {
    let host = run("shareProcessNamespace: true", "resources: {limits: {memory: 32Mi}}");
    let pid = host.container_pid(&host.pod("seen").unwrap(), "main");
    // Numbers of which this host has no process.
    let is_free = |number: &u32| !std::path::Path::new(&format!("/proc/{number}")).try_exists().unwrap();
    let first = (20_000..32_000_u32).rev().step_by(300).find(|first| (*first..first + 300).all(|number| is_free(&number))).unwrap();
    let set = format!("echo {first} > /proc/sys/kernel/ns_last_pid");
    let set =
        std::process::Command::new("nsenter").args([&format!("--pid=/proc/{pid}/ns/pid"), "sh", "-c", &set]).status().unwrap();
    assert!(set.success());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL).unwrap();
    let pod = host.wait_for_pod("seen", "running again", |pod| pod.restarts("main") == 1 && pod.runs("main"));
    let again = host.container_pid(&pod, "main");
    let status = std::fs::read_to_string(format!("/proc/{again}/status")).unwrap();
    let inner = status.lines().find(|line| line.starts_with("NSpid:")).unwrap().split_whitespace().last().unwrap().to_owned();
    assert!(inner.parse::<u32>().unwrap() > first, "{inner}");
    let limit = sh(&host, "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; true");
    assert_eq!(limit, "33554432\n", "the container's own group");
    let written = sh(
        &host,
        "(echo 64M > /sys/fs/cgroup/memory/memory.limit_in_bytes) 2>&1; (echo 64M > /sys/fs/cgroup/memory.max) 2>&1; true",
    );
    assert_eq!(written.matches("Read-only file system").count() + written.matches("nonexistent directory").count(), 2, "{written}");
}

#[test]
fn network_namespace_has_loopback_that_is_up() {
    let host = run("", "");
    assert!(sh(&host, "ip -o addr show lo").contains("127.0.0.1"));
    assert_eq!(sh(&host, "ip -o link | wc -l | tr -d ' '"), "1\n");
}

#[test]
fn exit_codes_of_exec_reach_the_caller() {
    let host = run("", "");
    let out = host.cli(&["exec", "seen", "--", "/bin/sh", "-c", "echo out; echo err >&2; exit 42"]);
    assert_eq!(out.status.code(), Some(42));
    assert_eq!((out.stdout.as_slice(), out.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
}
