//! Attacks on the runtime while it makes a container or goes into one.

use super::{Container, FOREVER, HOSTILE, SECRET, Victim, import, pod, refusals, sh, try_sh};
use crate::support::{TestHost, binary, eventually};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

const BUSYBOX: &str = "localhost/busybox:1";
const CORE_PATTERN: &str = "/proc/sys/kernel/core_pattern";

/// A host with a copy of the shim: a case that fails may overwrite it.
fn host_with_own_shim() -> (TestHost, PathBuf) {
    let mut host = TestHost::prepare("");
    let shim = host.path("podstead-shim");
    fs::copy(binary("podstead-shim"), &shim).unwrap();
    let config = host.path("config.yaml");
    let text = fs::read_to_string(&config).unwrap() + &format!("shimPath: {}\n", shim.display());
    fs::write(config, text).unwrap();
    host.start_daemon();
    (host, shim)
}

/// Finds the process that executes the runtime's binary, holds its file open, ends the process, and writes to the file. The process is one that waits
/// for its configuration from a FIFO.
const OVERWRITE: &str = r#"
    for tries in $(seq 600); do
        for process in /proc/[0-9]*; do
            case $(tr '\0' ' ' <$process/cmdline 2>/dev/null) in "/proc/self/exe pod "*) lure=$process ;; esac
        done
        [ -n "$lure" ] && exec 3<$lure/exe && break
        usleep 100000
    done
    [ -n "$lure" ] || { echo no lure; exit; }
    kill -9 ${lure#/proc/}
    while [ -e $lure/exe ]; do usleep 10000; done
    echo overwritten 2>&1 >/proc/self/fd/3
    echo attacked
"#;

fn assert_not_overwritten(said: &str, shim: &PathBuf) {
    assert!(said.contains("attacked") && said.contains("Read-only file system"), "{said}");
    assert!(fs::read(shim).unwrap() == fs::read(binary("podstead-shim")).unwrap(), "the shim's binary was changed");
}

/// CVE-2019-5736: a container whose program is `/proc/self/exe` makes the runtime execute its own binary inside, where it can be overwritten.
#[test]
fn container_cannot_overwrite_binary_of_shim() {
    let (host, shim) = host_with_own_shim();
    let volume = "volumeMounts: [{name: shared, mountPath: /shared}]";
    let fields = ["command: [/proc/self/exe, pod, /shared/fifo, x]", volume];
    let lure = Container::new("lure", "", &fields);
    let make = format!("initContainers: [{{name: make, image: '{BUSYBOX}', command: [mkfifo, /shared/fifo], {volume}}}]");
    let spec = ["shareProcessNamespace: true", "restartPolicy: Never", "volumes: [{name: shared, emptyDir: {}}]", &make];
    host.write_manifest("web.yaml", &pod("web", BUSYBOX, &spec, &[lure, Container::new("main", OVERWRITE, &[])]));
    let said = host.wait_log("web", "main", "attacked");
    assert_not_overwritten(&said, &shim);
}

/// CVE-2019-5736 by exec: the program that somebody executes in the container is a link to `/proc/self/exe`.
#[test]
fn exec_session_cannot_overwrite_binary_of_shim() {
    let (host, shim) = host_with_own_shim();
    host.write_manifest("web.yaml", &pod("web", BUSYBOX, &[], &[Container::new("main", FOREVER, &[])]));
    host.wait_running("web");
    sh(&host, "web", "mkfifo /fifo");
    std::thread::scope(|scope| {
        let lure = scope.spawn(|| host.cli(&["exec", "web", "--", "/proc/self/exe", "pod", "/fifo", "x"]));
        let said = try_sh(&host, "web", OVERWRITE);
        assert_not_overwritten(&said, &shim);
        drop(lure.join());
    });
    assert_eq!(sh(&host, "web", "echo fine"), "fine\n", "the shim still works");
}

/// CVE-2024-21626: a working directory `/proc/self/fd/N` is a directory of the host that the runtime has open.
#[test]
fn working_directory_cannot_be_descriptor_of_runtime() {
    let host = TestHost::start();
    let victim = Victim::new(&host);
    let script = format!("for up in . ../../../../../../../../../..; do cat $up{}; done; ls -la ../.. .", victim.path.display());
    let names: Vec<String> = (3..20).map(|number| format!("fd{number}")).collect();
    let fields: Vec<String> = (3..20).map(|number| format!("workingDir: /proc/self/fd/{number}")).collect();
    let fields: Vec<[&str; 1]> = fields.iter().map(|field| [field.as_str()]).collect();
    let containers: Vec<_> = names.iter().zip(&fields).map(|(name, fields)| Container::new(name, &script, fields)).collect();
    host.write_manifest("web.yaml", &pod("web", BUSYBOX, &["restartPolicy: Never"], &containers));
    let ended = host.wait_for_pod("web", "an end of every container", |pod| {
        let state = |name: &String| &pod.container(name)["state"];
        names.iter().all(|name| state(name)["terminated"].is_object() || state(name)["waiting"]["message"].is_string())
    });
    for name in &names {
        let said = host.cli(&["logs", "web", "-c", name]);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(!said.contains(SECRET), "{name}: {said}\n{}", ended.container(name));
    }
    victim.assert_unharmed();
}

/// CVE-2024-21626 by exec: the working directory becomes a link to a descriptor of the process that comes in.
#[test]
fn exec_session_cannot_enter_descriptor_of_runtime() {
    let host = TestHost::start();
    let victim = Victim::new(&host);
    let planter = Container::new("planter", FOREVER, &[]);
    let main = Container::new("main", "exec sleep 1000001", &["workingDir: /work"]);
    host.write_manifest("web.yaml", &pod("web", BUSYBOX, &["shareProcessNamespace: true"], &[planter, main]));
    host.wait_running("web");
    let plant = |script: &str| host.exec("web", "planter", &["/bin/sh", "-c", script]);
    let find = "for process in /proc/[0-9]*; do case $(tr '\\0' ' ' <$process/cmdline) in 'sleep 1000001 ') echo $process/root;; esac; done";
    let root = eventually("the container's root", || {
        let found = plant(find).trim().to_owned();
        if found.is_empty() { Err(plant("ps")) } else { Ok(found) }
    });
    plant(&format!("mv {root}/work {root}/was"));
    let climb = format!("../../../../../../../../../..{}", victim.path.display());
    for number in 3..24 {
        plant(&format!("ln -sfn /proc/self/fd/{number} {root}/work"));
        let read = host.cli(&["exec", "web", "-c", "main", "--", "cat", &climb]);
        assert!(
            !read.status.success() && !String::from_utf8_lossy(&read.stdout).contains(SECRET),
            "descriptor {number} leads to the host"
        );
    }
    plant(&format!("rm {root}/work && mkdir {root}/work"));
    assert_eq!(sh(&host, "web", "pwd"), "/work\n", "a directory of the container is entered as ever");
    victim.assert_unharmed();
}

/// CVE-2024-21626, its other half: descriptors of the runtime that a container or a session inherits.
#[test]
fn descriptors_of_runtime_are_not_inherited() {
    let host = TestHost::start();
    // The shell's own; the directory that it reads is closed again by then.
    let list = "for file in /proc/self/fd/*; do [ ! -L $file ] || echo ${file##*/}; done";
    let script = format!("{list}; echo listed; exec sleep 1000000");
    host.write_manifest("web.yaml", &pod("web", BUSYBOX, &[], &[Container::new("main", &script, &[])]));
    for listed in [host.wait_log("web", "main", "listed"), sh(&host, "web", list)] {
        let numbers: Vec<&str> = listed.lines().filter(|line| *line != "listed").collect();
        assert_eq!(numbers, ["0", "1", "2"], "{listed}");
    }
}

/// Masked paths give nothing, and `/dev/null` is the null device.
fn assert_masked(host: &TestHost) {
    let peek = "for file in /proc/kcore /proc/keys /proc/timer_list /proc/sched_debug /proc/latency_stats; do [ ! -e $file ] || head -c 1 $file; done";
    assert_eq!(sh(host, "web", peek), "");
    assert_eq!(sh(host, "web", "stat -c %t:%T /dev/null"), "1:3\n");
    let mounts = sh(host, "web", "cat /proc/self/mountinfo");
    assert!(!mounts.contains("core_pattern"), "{mounts}");
    let write = try_sh(host, "web", &format!("echo '|/evil' >{CORE_PATTERN}"));
    assert!(refusals(&write) > 0, "{write}");
}

/// CVE-2025-31133: what is bound over masked paths is `/dev/null`, which the image replaced with a link.
#[test]
fn masked_paths_hide_links_of_image() {
    let before = fs::read_to_string(CORE_PATTERN).unwrap();
    let host = TestHost::start();
    import(&host, &[], |layer| {
        fs::create_dir(layer.join("dev")).unwrap();
        symlink(CORE_PATTERN, layer.join("dev/null")).unwrap();
    });
    host.write_manifest("web.yaml", &pod("web", HOSTILE, &[], &[Container::new("main", FOREVER, &[])]));
    host.wait_running("web");
    assert_masked(&host);
    assert_eq!(fs::read_to_string(CORE_PATTERN).unwrap(), before);
}

/// A pod whose init container plants links in a volume, which its main container has at `place`.
fn with_planted_volume(script: &str, place: &str, fields: &[&str]) -> String {
    let mount = format!("volumeMounts: [{{name: planted, mountPath: {place}}}]");
    let init = format!(
        "initContainers: [{{name: plant, image: '{BUSYBOX}', command: [/bin/sh, -c, '{script}'], volumeMounts: [{{name: planted, mountPath: /planted}}]}}]"
    );
    let spec = [init.as_str(), "volumes: [{name: planted, emptyDir: {}}]"];
    let fields: Vec<&str> = fields.iter().copied().chain([mount.as_str()]).collect();
    pod("web", BUSYBOX, &spec, &[Container::new("main", FOREVER, &fields)])
}

/// Waits until the pod runs or its main container is refused. Whether it runs.
fn runs(host: &TestHost) -> bool {
    let settled = host.wait_for_pod("web", "to run or to be refused", |pod| {
        pod.runs("main") || matches!(pod.waiting_reason("main"), "CreateContainerError" | "RunContainerError" | "CrashLoopBackOff")
    });
    settled.runs("main")
}

/// CVE-2025-31133 by a volume at `/dev`, which another container of the pod fills.
#[test]
fn masked_paths_hide_links_of_volume() {
    let before = fs::read_to_string(CORE_PATTERN).unwrap();
    let host = TestHost::start();
    let script = format!("ln -s {CORE_PATTERN} /planted/null; ln -s /proc /planted/pts; ln -s /proc /planted/shm");
    host.write_manifest("web.yaml", &with_planted_volume(&script, "/dev", &[]));
    if runs(&host) {
        let peek = "for file in /proc/kcore /proc/keys /proc/timer_list; do [ ! -e $file ] || head -c 1 $file; done";
        assert_eq!(sh(&host, "web", peek), "");
        let write = try_sh(&host, "web", &format!("echo '|/evil' >{CORE_PATTERN}"));
        assert!(refusals(&write) > 0, "{write}");
    }
    assert_eq!(fs::read_to_string(CORE_PATTERN).unwrap(), before);
}

/// CVE-2025-52565: the terminal is bound over `/dev/console`, which is a link of the image, from `/dev/pts/N`, which may be one.
#[test]
fn terminal_is_not_bound_over_image_links() {
    let before = fs::read_to_string(CORE_PATTERN).unwrap();
    let host = TestHost::start();
    let victim = Victim::new(&host);
    import(&host, &[], |layer| {
        fs::create_dir_all(layer.join("dev/pts")).unwrap();
        symlink(&victim.path, layer.join("dev/console")).unwrap();
        (0..4).for_each(|number| symlink(CORE_PATTERN, layer.join(format!("dev/pts/{number}"))).unwrap());
    });
    host.write_manifest("web.yaml", &pod("web", HOSTILE, &[], &[Container::new("main", FOREVER, &["tty: true"])]));
    host.wait_running("web");
    assert_masked(&host);
    assert_eq!(sh(&host, "web", "readlink /proc/1/fd/0; stat -c %F /dev/console"), "/dev/pts/0\ncharacter special file\n");
    victim.assert_unharmed();
    assert_eq!(fs::read_to_string(CORE_PATTERN).unwrap(), before);
}

/// CVE-2025-52565 by a volume at `/dev`.
#[test]
fn terminal_is_not_bound_over_volume_links() {
    let before = fs::read_to_string(CORE_PATTERN).unwrap();
    let host = TestHost::start();
    let script = format!("ln -s {CORE_PATTERN} /planted/console; mkdir /planted/pts; ln -s {CORE_PATTERN} /planted/pts/0");
    host.write_manifest("web.yaml", &with_planted_volume(&script, "/dev", &["tty: true"]));
    if runs(&host) {
        let write = try_sh(&host, "web", &format!("echo '|/evil' >{CORE_PATTERN}"));
        assert!(refusals(&write) > 0, "something is mounted over the kernel's file: {write}");
    }
    assert_eq!(fs::read_to_string(CORE_PATTERN).unwrap(), before);
}

/// CVE-2025-52881: what the runtime writes to `/proc` (AppArmor's label, sysctls, oom_score_adj) is redirected by a volume that lies there.
#[test]
fn runtime_writes_to_proc_stay_there() {
    let before = fs::read_to_string(CORE_PATTERN).unwrap();
    let host = TestHost::start();
    let plant = format!(
        "mkdir -p /planted/attr/apparmor /planted/kernel; for name in attr/exec attr/apparmor/exec attr/current oom_score_adj kernel/hostname; do \
         ln -s {CORE_PATTERN} /planted/$name; done"
    );
    let sysctl = "securityContext: {sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: \"77\"}]}";
    for place in ["/proc/1", "/proc/self", "/proc/thread-self", "/proc/self/attr", "/proc/sys", "/proc/sys/kernel"] {
        let manifest =
            with_planted_volume(&plant, place, &["tty: false"]).replace("  containers:\n", &format!("  {sysctl}\n  containers:\n"));
        host.write_manifest("web.yaml", &manifest);
        let refused = eventually("the pod to run or to be refused", || {
            if host.daemon_log().contains(place) && host.pod("web").is_none() {
                return Ok(true);
            }
            let settled = host.pod("web").is_some_and(|pod| {
                pod.runs("main")
                    || matches!(pod.waiting_reason("main"), "CreateContainerError" | "RunContainerError" | "CrashLoopBackOff")
            });
            if settled { Ok(false) } else { Err(host.daemon_log()) }
        });
        if !refused && host.pod("web").is_some_and(|pod| pod.runs("main")) {
            assert_confined(&host, place);
        }
        assert_eq!(fs::read_to_string(CORE_PATTERN).unwrap(), before, "{place}");
        host.remove_manifest("web.yaml");
        host.wait_gone("web");
    }
}

/// The container has the profile and the score that it would have without the volume.
fn assert_confined(host: &TestHost, place: &str) {
    let pid = host.container_pid(&host.pod("web").unwrap(), "main");
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    if fs::read_to_string("/sys/module/apparmor/parameters/enabled").is_ok_and(|enabled| enabled.trim() == "Y") {
        assert!(read("attr/current").starts_with("podstead-default"), "{place}: {}", read("attr/current"));
    }
    assert_eq!(read("oom_score_adj").trim(), "1000", "{place}: a pod without requests");
}
