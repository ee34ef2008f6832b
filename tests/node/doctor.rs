//! `podstead doctor` on this machine, with and without a daemon.

use crate::support::{TestHost, binary, eventually};
use nix::mount::{MsFlags, mount};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// Exit code and findings.
fn examine(host: &TestHost) -> (Option<i32>, Vec<Value>) {
    let mut command = Command::new(binary("podstead"));
    let output = command.arg("--config").arg(host.path("config.yaml")).args(["doctor", "-o", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(report["kind"], "HostReport");
    (output.status.code(), report["findings"].as_array().cloned().unwrap())
}

/// True if a finding of this check and severity says so.
fn says(findings: &[Value], check: &str, severity: &str, what: &str) -> bool {
    findings.iter().any(|finding| {
        finding["check"] == check && finding["severity"] == severity && finding["what"].as_str().unwrap().contains(what)
    })
}

#[test]
fn host_that_lets_no_job_give_up_its_rights_is_told_at_start() {
    let mut host = TestHost::prepare("");
    // Without an image to import, nothing else needs a job.
    fs::remove_file(host.path("preload/busybox.tar")).unwrap();
    // As in a container without this capability, which the daemon itself does not need.
    let start = || {
        remove_capability_from_bounding_set(CapabilitySet::SETPCAP).unwrap();
        host.spawn_daemon();
    };
    std::thread::scope(|scope| scope.spawn(start).join().unwrap());
    eventually("the event of the host", || {
        let events = host.cli(&["get", "events"]);
        let text = String::from_utf8_lossy(&events.stdout).into_owned();
        let is_told = text.contains("JobNotConfined") && text.contains("become another user");
        if is_told { Ok(()) } else { Err(format!("{text}{events:?}\n{}", host.daemon_log())) }
    });
}

#[test]
fn problems_everywhere_are_found_and_explained() {
    let mut host = TestHost::start();
    let good = "apiVersion: v1\nkind: Pod\nmetadata: {name: good}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers: \
                [{name: c, image: 'localhost/busybox:1', command: [sleep, '1000000']}]\n";
    host.write_manifest("good.yaml", good);
    let pod = host.wait_running("good");
    let (_, findings) = examine(&host);
    for (check, what) in [
        ("daemon", "running, version"),
        ("configuration", "1 source"),
        ("sources", "all synced"),
        ("pods", "1 pod, all healthy"),
        ("remains", "no leftovers"),
        ("secrets", "is readable"),
    ] {
        assert!(says(&findings, check, "ok", what), "{check}: {findings:#?}");
    }
    // What these say depends on the machine; that they say something does not.
    for check in ["cgroups", "kernel", "disk", "clock"] {
        assert!(findings.iter().any(|finding| finding["check"] == check), "{check}: {findings:#?}");
    }
    assert!(findings.iter().any(|finding| finding["check"] == "cgroups" && finding["severity"] == "ok"), "{findings:#?}");

    // First what is told as soon as it is read.
    host.write_manifest("worse.yaml", &good.replace("good", "worse").replace("image:", "imgae:"));
    host.write_manifest(
        "bad.yaml",
        &good.replace("good", "bad").replace("image:", "imagePullPolicy: Never, image:").replace("busybox:1", "none:1"),
    );
    host.wait_for_pod("bad", "the missing image", |pod| pod.waiting_reason("c") == "ErrImageNeverPull");
    let (code, findings) = examine(&host);
    assert_eq!(code, Some(1));
    assert!(says(&findings, "pods", "problem", "pod bad-edge-1 is ErrImageNeverPull"), "{findings:#?}");
    assert!(says(&findings, "pods", "problem", "image localhost/none:1"), "{findings:#?}");
    assert!(says(&findings, "sources", "problem", "worse.yaml:"), "{findings:#?}");

    host.kill_daemon();
    let orphan = host.path("state/pods/nobody");
    fs::create_dir_all(&orphan).unwrap();
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    let (code, findings) = examine(&host);
    assert_eq!(code, Some(1));
    assert!(says(&findings, "daemon", "problem", "nothing listens"), "{findings:#?}");
    assert!(says(&findings, "remains", "note", "nobody (directory)"), "{findings:#?}");
    // What a crash leaves beside: a mount, a pinned namespace, a group.
    let volume = orphan.join("volumes/empty-dir/memory");
    fs::create_dir_all(&volume).unwrap();
    mount(Some("tmpfs"), &volume, Some("tmpfs"), MsFlags::empty(), None::<&str>).unwrap();
    let pin = host.path("run/pods/pinned/ns/net");
    fs::create_dir_all(pin.parent().unwrap()).unwrap();
    fs::write(&pin, "").unwrap();
    mount(Some("/proc/self/ns/net"), &pin, None::<&str>, MsFlags::MS_BIND, None::<&str>).unwrap();
    let paths = podstead::sys::layout::Paths { state: host.path("state"), run: host.path("run"), logs: host.path("log/pods") };
    for slice in crate::support::cgroups(&paths.cgroup_slice()) {
        fs::create_dir_all(slice.join("burstable/podgrouped/c")).unwrap();
    }
    let (_, findings) = examine(&host);
    for what in ["nobody (directory, mount)", "pinned (directory, mount)", "grouped (cgroup)"] {
        assert!(says(&findings, "remains", "note", what), "{what}: {findings:#?}");
    }
    assert!(!findings.iter().any(|finding| finding["what"].as_str().unwrap().contains(&pod.uid())), "it is known: {findings:#?}");
    fs::write(host.path("config.yaml"), format!("{config}nodeNmae: x\n")).unwrap();
    let (code, findings) = examine(&host);
    assert_eq!(code, Some(1));
    assert!(says(&findings, "configuration", "problem", "nodeNmae"), "{findings:#?}");
    fs::write(host.path("config.yaml"), config).unwrap();

    host.start_daemon();
    host.wait_running("good");
    host.wait_for_pod("bad", "the missing image", |pod| pod.waiting_reason("c") == "ErrImageNeverPull");
    crate::support::eventually("the orphan to be removed", || {
        if orphan.try_exists().unwrap() { Err("it is there".to_owned()) } else { Ok(()) }
    });
    crate::support::eventually("doctor to find nothing left", || {
        let (_, findings) = examine(&host);
        if says(&findings, "remains", "ok", "no leftovers") { Ok(()) } else { Err(format!("{findings:#?}")) }
    });
    let mut command = Command::new(binary("podstead"));
    let text = command.arg("--config").arg(host.path("config.yaml")).args(["doctor", "pods", "remains"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("-> import the image (podstead image import)"), "{text}");
    assert!(!text.contains("cgroups"), "only what was asked for: {text}");
}

#[test]
fn rights_of_pods_are_told_with_line() {
    let host = TestHost::start();
    let pods = "apiVersion: v1\nkind: Pod\nmetadata: {name: meek}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    - {name: c, image: \
                'localhost/busybox:1', command: [sleep, '1000000'], resources: {limits: {memory: 32Mi, cpu: 100m}}, securityContext: {runAsUser: 7}}\n---\n\
                apiVersion: v1\nkind: Pod\nmetadata: {name: strong}\nspec:\n  hostPID: true\n  terminationGracePeriodSeconds: 1\n  containers:\n    - {name: c, \
                image: 'localhost/busybox:1', command: [sleep, '1000000'], securityContext: {privileged: true}}\n";
    host.write_manifest("pods.yaml", pods);
    host.wait_running("meek");
    host.wait_running("strong");
    let report: Value = serde_json::from_str(&host.cli_ok(&["doctor", "security", "-o", "json"])).unwrap();
    let [finding] = report["findings"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!(finding["severity"], "warning");
    assert_eq!(finding["pod"]["origin"], "pods.yaml:9:1", "{finding}");
    let rights: Vec<&str> =
        finding["pod"]["rights"].as_array().unwrap().iter().map(|right| right["right"].as_str().unwrap()).collect();
    assert_eq!(rights, ["hostPID", "privileged", "root", "noLimits"]);
}

/// The command line with another `/etc/resolv.conf`: exit code and output.
fn with_name_server(host: &TestHost, address: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let file = host.path("resolv.conf");
    fs::write(&file, format!("nameserver {address}\noptions timeout:1 attempts:1\n")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\""]);
    command.arg(&file).arg(binary("podstead")).arg("--config").arg(host.path("config.yaml")).args(arguments);
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn dead_name_server_and_registry_are_told() {
    // Nobody listens there, unless the test does.
    let address = "127.77.0.53";
    let host = TestHost::start();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: 'registry.example.invalid/web:1'}]}\n";
    host.write_manifest("web.yaml", pod);
    host.wait_for_pod("web", "the failed pull", |pod| matches!(pod.waiting_reason("c"), "ErrImagePull" | "ImagePullBackOff"));
    let dead = "no name server works (127.77.0.53: ";
    let (code, status) = with_name_server(&host, address, &["status", "--exit-code"]);
    assert!(code == Some(1) && status.contains(dead) && status.contains("-> check the uplink"), "{status}");
    let (code, found) = with_name_server(&host, address, &["doctor", "dns"]);
    assert!(code == Some(1) && found.contains(dead), "{found}");

    let server = std::net::UdpSocket::bind((address, 53)).unwrap();
    std::thread::spawn(move || {
        let mut message = [0; 512];
        while let Ok((length, from)) = server.recv_from(&mut message) {
            // A response: no such name.
            message[2] |= 0x80;
            message[3] = 0x83;
            server.send_to(&message[..length], from).ok();
        }
    });
    let unknown =
        ["registry.example.invalid does not resolve: ", "needed for image registry.example.invalid/web:1 of pod web-edge-1"];
    for arguments in [&["status"][..], &["doctor", "dns"]] {
        let (_, text) = with_name_server(&host, address, arguments);
        assert!(unknown.iter().all(|line| text.contains(line)) && !text.contains("no name server works"), "{arguments:?}: {text}");
    }
}

#[test]
fn full_disk_is_told_with_its_content() {
    let mut host = TestHost::prepare("");
    fs::create_dir(host.path("state")).unwrap();
    mount(Some("state"), &host.path("state"), Some("tmpfs"), MsFlags::empty(), Some("size=160m")).unwrap();
    host.start_daemon();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: hog}\nspec:\n  terminationGracePeriodSeconds: 1\n  volumes: [{name: v, emptyDir: {}}]\n  \
               containers:\n  - name: c\n    image: localhost/busybox:1\n    volumeMounts: [{name: v, mountPath: /v}]\n    \
               command: [/bin/sh, -c, 'dd if=/dev/zero of=/v/fat bs=1M count=80; echo full; exec sleep 1000000']\n";
    host.write_manifest("hog.yaml", pod);
    host.wait_log("hog", "c", "full");
    let status = host.cli(&["status", "--exit-code"]);
    assert_eq!(status.status.code(), Some(1));
    let text = String::from_utf8(status.stdout).unwrap();
    let state = host.path("state").display().to_string();
    let holder = "MiB files and emptyDir volumes of pod hog-edge-1";
    assert!(text.contains(&format!("{state} has ")) && text.contains(holder), "{text}");
    let (code, findings) = examine(&host);
    assert_eq!(code, Some(1));
    assert!(says(&findings, "disk", "problem", holder), "{findings:#?}");
}
