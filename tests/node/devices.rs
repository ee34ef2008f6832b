//! Devices of the host by CDI annotations, without privilege.

use crate::support::{TestHost, eventually};
use std::fs;

fn manifest(devices: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: radio\n  annotations: {{cdi.k8s.io/radio: '{devices}'}}\nspec:\n  \
         terminationGracePeriodSeconds: 1\n  containers:\n    - name: main\n      image: localhost/busybox:1\n      \
         command: [sleep, '1000000']\n      {more}\n"
    )
}

fn sh(host: &TestHost, script: &str) -> String {
    host.exec("radio", "main", &["/bin/sh", "-c", script])
}

/// A host whose CDI specs are in a directory of its own.
fn host() -> TestHost {
    let mut host = TestHost::prepare("");
    let specs = host.path("cdi");
    fs::create_dir(&specs).unwrap();
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    fs::write(host.path("config.yaml"), format!("{config}cdiSpecDirs: [{}]\n", specs.display())).unwrap();
    host.start_daemon();
    host
}

const SPEC: &str = "
cdiVersion: 0.6.0
kind: v.org/radio
containerEdits: {env: [RADIOS=present]}
devices:
  - name: log
    containerEdits:
      env: [RADIO=log]
      deviceNodes: [{path: /dev/radio/log, hostPath: /dev/kmsg, permissions: rw}]
      mounts: [{hostPath: /etc/hostname, containerPath: /etc/radio.conf, options: [ro, nosuid, nodev, bind]}]
      additionalGids: [4444]
  - {name: full, containerEdits: {deviceNodes: [{path: /dev/radio/full, hostPath: /dev/full}]}}
";

/// shows: metadata.annotations
#[test]
fn a_container_gets_the_devices_that_its_pod_names_and_no_others() {
    let host = host();
    fs::write(host.path("cdi/radio.yaml"), SPEC).unwrap();
    host.write_manifest("radio.yaml", &manifest("v.org/radio=log", "securityContext: {runAsUser: 1234, runAsGroup: 1234}"));
    let before = host.wait_running("radio");
    assert_eq!(sh(&host, "echo $RADIO $RADIOS"), "log present\n");
    assert_eq!(sh(&host, "stat -c '%F %u %g' /dev/radio/log"), "character special file 1234 1234\n");
    // What the cgroup does not allow is EPERM; opening it for writing needs no right of the kernel's log.
    sh(&host, "exec 3>/dev/radio/log");
    assert!(sh(&host, "id -G").split_whitespace().any(|group| group == "4444"));
    assert_eq!(sh(&host, "cat /etc/radio.conf"), fs::read_to_string("/etc/hostname").unwrap());
    assert!(sh(&host, "echo x 2>&1 > /etc/radio.conf || true; ls /dev").lines().all(|name| name != "kmsg"));
    // Another list of devices is another container.
    host.write_manifest("radio.yaml", &manifest("v.org/radio=full", "securityContext: {capabilities: {add: [MKNOD]}}"));
    let after = host.wait_for_pod("radio", "the other device", |pod| {
        pod.runs("main") && pod.container_id("main") != before.container_id("main")
    });
    assert_eq!(after.uid(), before.uid());
    assert!(sh(&host, "ls /dev/radio").trim() == "full");
    // A node of a device that was not given can be made and not opened.
    assert!(sh(&host, "mknod /tmp-kmsg c 1 11; cat /tmp-kmsg 2>&1 || true").contains("not permitted"));
}

#[test]
fn a_device_that_no_spec_has_keeps_the_container_waiting_and_its_coming_heals_it() {
    let host = host();
    host.write_manifest("radio.yaml", &manifest("v.org/radio=log", "tty: false"));
    let waiting = host.wait_for_pod("radio", "the missing device", |pod| pod.waiting_reason("main") == "CreateContainerError");
    let message = waiting.container("main")["state"]["waiting"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("unresolvable CDI devices v.org/radio=log"), "{message}");
    fs::write(host.path("cdi/radio.json"), "{").unwrap();
    host.wait_for_pod("radio", "the broken file in the message", |pod| {
        pod.container("main").to_string().contains("radio.json cannot be used")
    });
    fs::write(host.path("cdi/radio.yaml"), SPEC).unwrap();
    host.wait_running("radio");
}

/// A program that says when it was called, where and with what, as NVIDIA's hooks look for the container: by the bundle in the state.
const HOOK: &str = r#"#!/bin/sh
state=$(cat)
bundle=$(echo "$state" | sed 's/.*"bundle":"\([^"]*\)".*/\1/')
root=$(sed 's/.*"root":{"path":"\([^"]*\)".*/\1/' "$bundle/config.json")
echo "$state" > "$LOG.state-$1"
echo "$0 $* debug=$NVIDIA_CTK_DEBUG home=$HOME" >> "$LOG"
case $1 in
  create-symlinks) mkdir -p "$root/lib"; ln -s libradio.so.1 "$root/lib/libradio.so"; echo "mounts: $(grep -c "$root/etc/radio.conf" /proc/self/mountinfo)" >> "$LOG" ;;
  fail) echo broken >&2; exit 3 ;;
esac
"#;

/// In the form that `nvidia-ctk cdi generate` writes.
fn spec_with_hooks(host: &TestHost, more: &str) -> String {
    let (hook, log) = (host.path("nvidia-cdi-hook"), host.path("hook.log"));
    format!(
        r#"{{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu",
          "devices": [{{"name": "all", "containerEdits": {{"deviceNodes": [{{"path": "/dev/nvidia0", "hostPath": "/dev/null"}}]}}}}],
          "containerEdits": {{"env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "mounts": [{{"hostPath": "/etc/hostname", "containerPath": "/etc/radio.conf", "options": ["ro", "nosuid", "nodev", "rbind", "rprivate"]}}],
            "hooks": [
              {{"hookName": "createContainer", "path": "{hook}", "args": ["nvidia-cdi-hook", "create-symlinks", "--link", "libradio.so.1::/lib/libradio.so"], "env": ["NVIDIA_CTK_DEBUG=false", "LOG={log}", "PATH=/bin:/usr/bin"]}},
              {{"hookName": "createContainer", "path": "{hook}", "args": ["nvidia-cdi-hook", "update-ldcache", "--folder", "/lib"], "env": ["NVIDIA_CTK_DEBUG=false", "LOG={log}", "PATH=/bin:/usr/bin"]}},
              {{"hookName": "createRuntime", "path": "{hook}", "args": ["nvidia-cdi-hook", "runtime"], "env": ["LOG={log}", "PATH=/bin:/usr/bin"]}}{more}]}}}}"#,
        hook = hook.display(),
        log = log.display()
    )
}

#[test]
fn hooks_of_a_spec_as_nvidia_writes_it_are_run_while_the_container_is_made() {
    let host = host();
    let hook = host.path("nvidia-cdi-hook");
    fs::write(&hook, HOOK).unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(host.path("cdi/nvidia.json"), spec_with_hooks(&host, "")).unwrap();
    host.write_manifest("radio.yaml", &manifest("nvidia.com/gpu=all", "tty: false"));
    let pod = host.wait_running("radio");
    assert_eq!(
        sh(&host, "readlink /lib/libradio.so; echo $NVIDIA_VISIBLE_DEVICES; ls /dev/nvidia0"),
        "libradio.so.1\nvoid\n/dev/nvidia0\n"
    );
    let log = fs::read_to_string(host.path("hook.log")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 4, "{log}");
    assert!(lines[0].ends_with("runtime debug= home="), "the host's part first, with its own environment only: {log}");
    assert!(lines[1].ends_with("create-symlinks --link libradio.so.1::/lib/libradio.so debug=false home="), "{log}");
    assert_eq!(lines[2], "mounts: 1", "in the container's mount namespace, when all is mounted");
    assert!(lines[3].ends_with("update-ldcache --folder /lib debug=false home="), "{log}");
    let state = |of: &str| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(host.path(&format!("hook.log.state-{of}"))).unwrap()).unwrap()
    };
    for of in ["runtime", "create-symlinks"] {
        let state = state(of);
        assert_eq!(state["id"], pod.container_id("main").as_str(), "{state}");
        assert_eq!(state["status"], "creating", "{state}");
        assert!(state["bundle"].as_str().unwrap().ends_with(&pod.container_id("main")), "{state}");
    }
    assert!(state("runtime")["pid"].as_u64().is_some_and(|pid| pid > 1), "{}", state("runtime"));
}

#[test]
fn a_hook_that_fails_or_cannot_be_run_fails_the_start_and_is_named() {
    let host = host();
    let hook = host.path("nvidia-cdi-hook");
    fs::write(&hook, HOOK).unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let more = r#", {"hookName": "poststop", "path": "/bin/true"}"#;
    fs::write(host.path("cdi/nvidia.json"), spec_with_hooks(&host, more)).unwrap();
    host.write_manifest("radio.yaml", &manifest("nvidia.com/gpu=all", "tty: false"));
    host.wait_for_pod("radio", "the name of the hook", |pod| {
        pod.waiting_reason("main") == "CreateContainerError"
            && pod.container("main").to_string().contains("hook poststop is not supported")
    });
    let failing = format!(
        r#", {{"hookName": "createContainer", "path": "{}", "args": ["x", "fail"], "env": ["LOG=/dev/null", "PATH=/bin:/usr/bin"]}}"#,
        hook.display()
    );
    fs::write(host.path("cdi/nvidia.json"), spec_with_hooks(&host, &failing)).unwrap();
    eventually("the failed hook", || {
        let events = host.cli_ok(&["get", "events"]);
        let told = "failed to run create container hooks err=NonZeroExitCode(3)";
        if events.contains(told) { Ok(()) } else { Err(events) }
    });
    fs::write(host.path("cdi/nvidia.json"), spec_with_hooks(&host, "")).unwrap();
    host.wait_running("radio");
}
