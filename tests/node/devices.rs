//! Devices of the host by CDI annotations, without privilege.

use crate::support::TestHost;
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
