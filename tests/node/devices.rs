//! Devices of the host by CDI annotations, without privilege.

use crate::support::{PodView, TestHost, eventually};
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
fn container_gets_only_its_named_devices() {
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
fn container_waits_for_an_unknown_device() {
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
fn nvidia_spec_hooks_run_at_creation() {
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
fn failing_spec_hook_fails_the_start() {
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

#[test]
fn directories_of_specs_count_without_a_restart() {
    let host = TestHost::start();
    let daemon = host.daemon_pid();
    host.write_manifest("radio.yaml", &manifest("v.org/radio=log", "tty: false"));
    host.wait_for_pod("radio", "the missing device", |pod| pod.waiting_reason("main") == "CreateContainerError");
    fs::create_dir(host.path("cdi")).unwrap();
    fs::write(host.path("cdi/radio.yaml"), SPEC).unwrap();
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    fs::write(host.path("config.yaml"), format!("{config}cdiSpecDirs: [{}]\n", host.path("cdi").display())).unwrap();
    host.wait_running("radio");
    assert_eq!(host.daemon_pid(), daemon);
}

/// A device of the host that comes and goes: a node below `/dev`, of which the kernel speaks as of any other.
struct Radio {
    directory: std::path::PathBuf,
}

impl Radio {
    fn new(host: &TestHost) -> Self {
        let name = host.path("").file_name().unwrap().to_string_lossy().into_owned();
        let directory = std::path::Path::new("/dev/podstead-test").join(format!("{name}-{}", std::process::id()));
        // Another test may remove the parent when it is empty.
        eventually("a directory for the device", || fs::create_dir_all(&directory).map_err(|error| error.to_string()));
        Self { directory }
    }

    fn path(&self) -> String {
        self.directory.join("radio").display().to_string()
    }

    /// The device gets this number of a memory device: 3 is null, 5 is zero, 7 is full.
    fn plug(&self, minor: u32) {
        self.remove();
        let made = std::process::Command::new("mknod").args([&self.path(), "c", "1", &minor.to_string()]).status().unwrap();
        assert!(made.success());
        Self::tell();
    }

    fn unplug(&self) {
        self.remove();
        Self::tell();
    }

    fn remove(&self) {
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
            Ok(()) | Err(_) => {}
        }
    }

    /// The kernel tells of a device with a node.
    fn tell() {
        fs::write("/sys/class/mem/full/uevent", "change").unwrap();
    }
}

impl Drop for Radio {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.directory).ok();
        // Others may have theirs there.
        self.directory.parent().map(fs::remove_dir);
    }
}

fn radio_pod(radio: &Radio, more: &str, container: &str) -> String {
    let path = radio.path();
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: radio\n  annotations:\n    devices.podstead.dev/radio: \"{{path: {path}, containerPath: \
         /dev/serial/radio, containers: [main]}}\"\nspec:\n  terminationGracePeriodSeconds: 1\n  {more}\n  containers:\n    - name: main\n      image: \
         localhost/busybox:1\n      command: [sleep, '1000000']\n      {container}\n    - name: other\n      image: localhost/busybox:1\n      \
         command: [sleep, '1000000']\n"
    )
}

/// Waits until the container can read so many bytes of its device; "no" when it cannot open it.
fn wait_for_bytes(host: &TestHost, expected: &str) {
    eventually("the device in the container", || {
        let read = sh(host, "head -c 2 /dev/serial/radio 2>/dev/null | wc -c; test -e /dev/serial/radio || echo gone");
        let read = read.split_whitespace().collect::<Vec<_>>().join(" ");
        if read == expected {
            Ok(())
        } else {
            Err(format!("{read:?} instead of {expected:?}\n{}", host.cli_ok(&["get", "events"])))
        }
    });
}

fn devices_attached(pod: &PodView) -> String {
    let conditions = pod.0["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == "podstead.dev/DevicesAttached");
    found.map_or_else(String::new, |found| format!("{} {}", found["status"], found["message"]))
}

fn follows_its_device(more: &str, container: &str) {
    let mut host = TestHost::start();
    let radio = Radio::new(&host);
    radio.plug(5);
    host.write_manifest("radio.yaml", &radio_pod(&radio, more, container));
    host.wait_running("radio");
    wait_for_bytes(&host, "2");
    let before = host.wait_for_pod("radio", "its device in the status", |pod| devices_attached(pod).starts_with("\"True\""));
    let other = host.exec("radio", "other", &["/bin/sh", "-c", "ls /dev/serial 2>&1; mknod /tmp/zero c 1 7 2>&1; true"]);
    assert!(other.contains("No such file"), "another container has it not: {other}");

    // The container makes a node of its own for what it had, and keeps it.
    sh(&host, "mknod /tmp/kept c 1 5 2>/dev/null; true");
    radio.unplug();
    wait_for_bytes(&host, "0 gone");
    let pod =
        host.wait_for_pod("radio", "the missing device in its status", |pod| devices_attached(pod).contains("is not plugged in"));
    assert!(devices_attached(&pod).starts_with("\"False\""), "{}", pod.0);

    // Comes back with another number: 7 is full, which gives zeros, and cannot be written to.
    radio.plug(7);
    wait_for_bytes(&host, "2");
    let said = sh(&host, "echo x 2>&1 > /dev/serial/radio || true; stat -c %t:%T /dev/serial/radio");
    assert!(said.contains("1:7"), "{said}");
    eventually("both events", || {
        let events = host.cli_ok(&["get", "events"]);
        if events.contains("DeviceDetached") && events.contains("DeviceAttached") { Ok(()) } else { Err(events) }
    });
    // A daemon that was not there when it went and came.
    host.kill_daemon();
    radio.plug(3);
    host.start_daemon();
    // First the right to the old number goes, then the node is another one.
    eventually("the node with the new number", || {
        let number = sh(&host, "stat -c %t:%T /dev/serial/radio 2>&1 || true");
        if number == "1:3\n" { Ok(()) } else { Err(number) }
    });
    wait_for_bytes(&host, "0");
    let after = host.wait_running("radio");
    assert_eq!(after.container_id("main"), before.container_id("main"), "the container never stopped");
}

#[test]
fn plugged_device_comes_back_in_running_container() {
    follows_its_device("", "securityContext: {runAsUser: 1234, runAsGroup: 1234}");
}

#[test]
fn plugged_device_comes_back_in_user_namespace() {
    follows_its_device("hostUsers: false", "tty: false");
}

#[test]
fn container_waits_for_a_missing_device() {
    let host = TestHost::start();
    let radio = Radio::new(&host);
    host.write_manifest("radio.yaml", &radio_pod(&radio, "", "tty: false"));
    let waiting = host.wait_for_pod("radio", "the missing device", |pod| pod.waiting_reason("main") == "DeviceMissing");
    let message = waiting.container("main")["state"]["waiting"]["message"].as_str().unwrap().to_owned();
    assert_eq!(message, format!("device radio: {} is not plugged in", radio.path()));
    let status = host.cli(&["status"]);
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("is not plugged in"), "{status}");
    radio.plug(5);
    host.wait_running("radio");
    wait_for_bytes(&host, "2");
}

#[test]
fn numbers_that_container_lost_are_closed() {
    let host = TestHost::start();
    let radio = Radio::new(&host);
    // The kernel's log, which no container may open.
    radio.plug(11);
    let make = "securityContext: {capabilities: {add: [MKNOD, SYS_ADMIN]}}";
    host.write_manifest("radio.yaml", &radio_pod(&radio, "", make));
    host.wait_running("radio");
    sh(&host, "mknod /tmp/kept c 1 11; exec 3>/tmp/kept");
    radio.unplug();
    eventually("the end of the right", || {
        let tried = sh(&host, "(exec 3>/tmp/kept) 2>&1 || true; test -e /dev/serial/radio || echo gone");
        if tried.contains("not permitted") && tried.contains("gone") { Ok(()) } else { Err(tried) }
    });
    // Links and mounts of the container where the node was.
    sh(&host, "rm -rf /dev/serial; mkdir /tmp/elsewhere; ln -s /tmp/elsewhere /dev/serial");
    radio.plug(11);
    eventually("the event of the failure", || {
        let events = host.cli_ok(&["get", "events"]);
        let told = "/dev/serial/radio: a symbolic link is in the way";
        if events.contains("FailedAttachDevice") && events.contains(told) { Ok(()) } else { Err(events) }
    });
    assert_eq!(sh(&host, "ls /tmp/elsewhere"), "");
    sh(&host, "rm /dev/serial");
    Radio::tell();
    eventually("the device, when nothing is in the way", || {
        let tried = sh(&host, "(exec 3>/dev/serial/radio) 2>&1 && echo open || true");
        if tried.contains("open") { Ok(()) } else { Err(tried) }
    });
    // A container that may unmount can take its node away; it comes again with the device.
    sh(&host, "umount /dev/serial/radio; rm /dev/serial/radio");
    radio.unplug();
    host.wait_for_pod("radio", "the missing device", |pod| devices_attached(pod).starts_with("\"False\""));
    radio.plug(11);
    eventually("the device, when it is plugged in again", || {
        let tried = sh(&host, "(exec 3>/dev/serial/radio) 2>&1 && echo open || true");
        if tried.contains("open") { Ok(()) } else { Err(tried) }
    });
}

/// A block device of the host over a file. Gone with its test.
struct Disk {
    path: String,
    _directory: tempfile::TempDir,
}

impl Disk {
    fn new(bytes: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("disk");
        fs::File::create(&file).unwrap().set_len(bytes).unwrap();
        let output = std::process::Command::new("losetup").args(["--find", "--show"]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { path: String::from_utf8(output.stdout).unwrap().trim().to_owned(), _directory: directory }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        std::process::Command::new("losetup").args(["--detach", &self.path]).status().ok();
    }
}

/// shows: spec.containers[].volumeDevices
#[test]
fn containers_have_block_devices_of_volumes() {
    let host = TestHost::start();
    let (of_claim, of_path) = (Disk::new(1 << 20), Disk::new(2 << 20));
    let claim = format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: raw\n  annotations: {{podstead.dev/block-device: {}}}\nspec:\n  \
         accessModes: [ReadWriteOnce]\n  volumeMode: Block\n  resources: {{requests: {{storage: 1Mi}}}}\n",
        of_claim.path
    );
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: radio}}\nspec:\n  hostUsers: false\n  terminationGracePeriodSeconds: 1\n  volumes:\n    \
         - {{name: raw, persistentVolumeClaim: {{claimName: raw}}}}\n    - {{name: path, hostPath: {{path: {}, type: BlockDevice}}}}\n  \
         containers:\n    - name: main\n      image: localhost/busybox:1\n      command: [sleep, '1000000']\n      securityContext: {{runAsUser: \
         1234, runAsGroup: 1234}}\n      volumeDevices: [{{name: raw, devicePath: /dev/xvda}}, {{name: path, devicePath: /dev/disk/b}}]\n    \
         - name: other\n      image: localhost/busybox:1\n      command: [sleep, '1000000']\n",
        of_path.path
    );
    host.write_manifest("claim.yaml", &claim);
    host.write_manifest("radio.yaml", &pod);
    host.wait_running("radio");
    assert_eq!(sh(&host, "wc -c < /dev/xvda; wc -c < /dev/disk/b"), "1048576\n2097152\n");
    sh(&host, "echo written > /dev/xvda; sync");
    let written = fs::read(&of_claim.path).unwrap();
    assert!(written.starts_with(b"written\n"));
    let others = host.exec("radio", "other", &["/bin/sh", "-c", "ls /dev/xvda /dev/disk 2>&1 || true"]);
    assert!(others.contains("No such file"), "{others}");
    // A claim that is a device cannot be mounted as a directory.
    let mounting = pod.replace("name: radio", "name: wrong").replace(
        "volumeDevices: [{name: raw, devicePath: /dev/xvda},",
        "volumeMounts: [{name: raw, mountPath: /raw}]\n      volumeDevices: [",
    );
    host.write_manifest("wrong.yaml", &mounting);
    eventually("the reason", || {
        let events = host.cli_ok(&["get", "events"]);
        let told = "the claim has volumeMode: Block, use it in volumeDevices instead of volumeMounts";
        if events.contains(told) { Ok(()) } else { Err(events) }
    });
}

/// The command of volumes with the configuration of the host.
fn volume(host: &TestHost, arguments: &[&str]) -> (bool, String) {
    let config = host.path("config.yaml").display().to_string();
    let output = host.cli(&[&["--config", &config, "volume"], arguments].concat());
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn content_of_block_device_is_exported_and_restored() {
    let host = TestHost::start();
    let disk = Disk::new(8 << 20);
    let claim = format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: raw\n  annotations: {{podstead.dev/block-device: {}}}\nspec:\n  \
         accessModes: [ReadWriteOnce]\n  volumeMode: Block\n  resources: {{requests: {{storage: 8Mi}}}}\n",
        disk.path
    );
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: radio}\nspec:\n  terminationGracePeriodSeconds: 1\n  volumes:\n    - {name: raw, \
               persistentVolumeClaim: {claimName: raw}}\n  containers:\n    - name: main\n      image: localhost/busybox:1\n      command: \
               [sleep, '1000000']\n      volumeDevices: [{name: raw, devicePath: /dev/xvda}]\n";
    host.write_manifest("claim.yaml", &claim);
    host.write_manifest("radio.yaml", pod);
    let before = host.wait_running("radio");
    let dd = |text: &str, seek: u32| {
        sh(&host, &format!("echo {text} | dd of=/dev/xvda bs=1M seek={seek} conv=notrunc,fsync 2>/dev/null"))
    };
    dd("first", 0);
    dd("last", 6);
    let original = fs::read(&disk.path).unwrap();
    let image = host.path("raw.img.zst").display().to_string();
    let (is_ok, told) = volume(&host, &["export", "raw", "-o", &image]);
    assert!(is_ok && told.contains("stopping pod radio-edge-1"), "{told}");
    assert!(told.contains("exported 8388608 bytes of ") && told.contains("2097152 of them in use"), "{told}");
    let size = fs::metadata(&image).unwrap().len();
    assert!(size < 10_000, "{size}");
    let again = eventually("the pod to run again", || host.pod("radio").filter(|pod| pod.runs("main")).ok_or_else(String::new));
    assert_ne!(again.container_id("main"), before.container_id("main"));

    // Parts that were zero are so again.
    dd("other", 3);
    dd("changed", 0);
    let changed = fs::read(&disk.path).unwrap();
    assert_ne!(changed, original);
    let refused = |arguments: &[&str], expected: &str| {
        let (is_ok, told) = volume(&host, &[&["import", "raw"], arguments].concat());
        assert!(!is_ok && told.contains(expected), "{arguments:?}: {told}");
        assert!(fs::read(&disk.path).unwrap() == changed, "{arguments:?}");
    };
    refused(&[&image], "--replace replaces its content");
    refused(&["-", "--replace"], "must be a file");
    let other = host.path("other").display().to_string();
    let whole = fs::read(&image).unwrap();
    for (content, expected) in [
        (&whole[..whole.len() - 5], "is unchanged"),
        (&[0; (8 << 20) + 1][..], "does not fit"),
        (&[][..], "is empty"),
        (&[&[b'x'; 257][..], b"ustar", &[0; 512]].concat(), "is a tar archive"),
    ] {
        fs::write(&other, content).unwrap();
        refused(&[&other, "--replace"], expected);
    }
    let (is_ok, told) = volume(&host, &["import", "raw", &image, "--replace"]);
    assert!(is_ok && told.contains("imported 8388608 bytes"), "{told}");
    assert!(fs::read(&disk.path).unwrap() == original);
    host.wait_running("radio");
    assert_eq!(sh(&host, "head -c 6 /dev/xvda"), "first\n");

    // A device with a file system that the host has mounted is not written.
    assert!(std::process::Command::new("mkfs.ext4").args(["-q", &disk.path]).status().unwrap().success());
    let mount = host.path("mounted");
    fs::create_dir(&mount).unwrap();
    assert!(std::process::Command::new("mount").arg(&disk.path).arg(&mount).status().unwrap().success());
    let (is_ok, told) = volume(&host, &["import", "raw", &image, "--replace"]);
    assert!(std::process::Command::new("umount").arg(&mount).status().unwrap().success());
    assert!(!is_ok && told.contains("must not be mounted"), "{told}");
    host.wait_running("radio");
}
