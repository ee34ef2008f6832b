//! Containers that use up what they share with others, or lie about their end.

use super::{Container, FOREVER, HOSTILE, SECRET, Victim, import, pod, sh, try_sh};
use crate::support::{TestHost, cgroup, eventually};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Command;

const BUSYBOX: &str = "localhost/busybox:1";

/// A fork bomb: bounded by `podPidsLimit`, and no other pod, nor the daemon, notices.
#[test]
fn fork_bomb_ends_at_limit_of_pod() {
    let host = TestHost::start_with("podPidsLimit: 50\n");
    host.write_manifest("other.yaml", &pod("other", BUSYBOX, &[], &[Container::new("main", FOREVER, &[])]));
    host.wait_running("other");
    // A shell ends when it cannot fork: the container's process is another one.
    let bomb = "bomb() { bomb | bomb & }; trap '' TERM; (while :; do bomb; sleep 1000000 & done) 2>/dev/null & exec sleep 1000000";
    host.write_manifest("web.yaml", &pod("web", BUSYBOX, &["restartPolicy: Never"], &[Container::new("main", bomb, &[])]));
    let running = host.wait_running("web");
    let pid = host.container_pid(&running, "main");
    // The limit is that of the pod's group, one above the container's.
    assert_eq!(cgroup::pids_limit(pid, 1), Some(50));
    eventually("the bomb to reach its limit", || {
        // Kernels differ in whether the group that forks counts it, or the one whose limit it is.
        let events = cgroup::pids_refused(pid, 0) + cgroup::pids_refused(pid, 1);
        if events > 0 { Ok(()) } else { Err(format!("{events} refusals")) }
    });
    assert_eq!(sh(&host, "other", "sleep 0 & wait; echo works"), "works\n");
    host.remove_manifest("web.yaml");
    host.wait_gone("web");
}

/// Output without an end: what is kept of it is bounded, and the container is not held up.
#[test]
fn flood_of_output_takes_bounded_space() {
    const MEBIBYTE: u64 = 1 << 20;
    let host = TestHost::start_with("containerLogMaxSize: 1Mi\ncontainerLogMaxFiles: 3\n");
    let flood = "yes 'a line of a flood that never ends and says nothing' | head -c 12000000; echo flooded >&2; exec sleep 1000000";
    host.write_manifest("web.yaml", &pod("web", BUSYBOX, &[], &[Container::new("main", flood, &[])]));
    host.wait_log("web", "main", "flooded");
    let mut kept = 0;
    let mut folders = vec![host.path("log/pods")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let facts = entry.metadata().unwrap();
            if facts.is_dir() { folders.push(entry.path()) } else { kept += facts.blocks() * 512 }
        }
    }
    assert!((1..=4 * MEBIBYTE).contains(&kept), "{kept} bytes of 12 MB are kept");
}

/// One line without an end, and bytes that are no text: memory of the shim stays small, and what is shown does not steer a terminal.
#[test]
fn endless_line_takes_no_shim_memory() {
    let host = TestHost::start();
    let endless = "head -c 40000000 /dev/zero | tr '\\0' '\\033'; echo; echo said; exec sleep 1000000";
    host.write_manifest("web.yaml", &pod("web", BUSYBOX, &[], &[Container::new("main", endless, &[])]));
    let running = host.wait_running("web");
    eventually("the end of the flood", || {
        let said = host.cli(&["logs", "web", "--tail", "1"]);
        if said.stdout.ends_with(b"said\n") { Ok(()) } else { Err(format!("{} bytes", said.stdout.len())) }
    });
    let status = fs::read_to_string(format!("/proc/{}/status", host.shim_pid(&running))).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().trim_end_matches(" kB");
    assert!(peak.parse::<u64>().unwrap() < 32 << 10, "the shim had {peak} kB, for a line of 40 MB");
}

/// A termination message of 20 MB, of control characters: its last 4096 bytes are taken.
#[test]
fn huge_termination_message_is_cut() {
    let host = TestHost::start();
    let script =
        "head -c 20000000 /dev/zero | tr '\\0' x >/dev/termination-log; printf 'the end\\033[2J' >>/dev/termination-log; exit 3";
    host.write_manifest("web.yaml", &pod("web", BUSYBOX, &["restartPolicy: Never"], &[Container::new("main", script, &[])]));
    let ended = host.wait_for_pod("web", "its end", |pod| pod.phase() == "Failed");
    let message = ended.container("main")["state"]["terminated"]["message"].as_str().unwrap();
    assert!(message.len() <= 4096 && message.contains("xthe end"), "{} bytes", message.len());
    let shown = host.cli_ok(&["describe", "pod", "web"]);
    assert!(!shown.contains('\u{1b}'), "it steers the terminal");
}

/// The place of the termination message is a link to a file of the host, a FIFO, or a device in the image.
#[test]
fn termination_message_does_not_pass_image_links() {
    let host = TestHost::start();
    let victim = Victim::new(&host);
    import(&host, &[], |layer| {
        symlink(&victim.path, layer.join("link")).unwrap();
        let node =
            |name: &str, kind: &[&str]| assert!(Command::new("mknod").arg(layer.join(name)).args(kind).status().unwrap().success());
        node("fifo", &["p"]);
        node("device", &["c", "1", "5"]);
    });
    for name in ["link", "fifo", "device"] {
        let script = format!("echo said >/{name}; exit 3");
        let fields = format!("terminationMessagePath: /{name}");
        host.write_manifest(
            "web.yaml",
            &pod("web", HOSTILE, &["restartPolicy: Never"], &[Container::new("main", &script, &[&fields])]),
        );
        let ended =
            host.wait_for_pod("web", "its end", |pod| pod.phase() == "Failed" || pod.waiting_reason("main").ends_with("Error"));
        assert!(!ended.0.to_string().contains(SECRET), "{}", ended.0["status"]);
        let message = &ended.container("main")["state"]["terminated"]["message"];
        assert!(*message == json!("said\n") || message.as_str().is_none_or(|text| text.contains(name)), "{name}: {message}");
        victim.assert_unharmed();
        host.remove_manifest("web.yaml");
        host.wait_gone("web");
    }
}

/// A session in a container that has ended: its process id may be another program's by now, on the host.
#[test]
fn dead_container_cannot_be_entered() {
    let host = TestHost::start();
    let quick = Container::new("quick", "exit 0", &[]);
    host.write_manifest(
        "web.yaml",
        &pod("web", BUSYBOX, &["restartPolicy: Never"], &[quick, Container::new("main", FOREVER, &[])]),
    );
    host.wait_for_pod("web", "the end of one container", |pod| pod.container("quick")["state"]["terminated"].is_object());
    let mark = host.path("entered");
    let entered =
        host.cli(&["exec", "web", "-c", "quick", "--", "/bin/sh", "-c", &format!("echo >{}; echo inside", mark.display())]);
    assert!(!entered.status.success() && entered.stdout.is_empty(), "{entered:?}");
    assert!(!mark.try_exists().unwrap());
}

/// A session that outlives its container: its processes end with it.
#[test]
fn session_does_not_outlive_its_container() {
    let host = TestHost::start();
    let short = "while [ ! -e /tmp/end ]; do usleep 50000; done";
    host.write_manifest("web.yaml", &pod("web", BUSYBOX, &["restartPolicy: Never"], &[Container::new("main", short, &[])]));
    host.wait_running("web");
    let left = "trap '' TERM HUP; setsid sleep 434343 </dev/null >/dev/null 2>&1 & touch /tmp/end; exec sleep 434343";
    try_sh(&host, "web", left);
    host.wait_for_pod("web", "its end", |pod| pod.phase() == "Succeeded");
    eventually("the session's processes to be gone", || {
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let is_left = |path: std::path::PathBuf| fs::read(path.join("cmdline")).is_ok_and(|line| line == b"sleep\x00434343\0");
        let left: Vec<_> = pids.map(|entry| entry.path()).filter(|path| is_left(path.clone())).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

/// Variables of a container that programs of the host obey: loaders, systemd's sockets, runtimes' own.
#[test]
fn environment_of_container_does_not_steer_runtime() {
    const NAMES: [&str; 9] = [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LISTEN_FDS",
        "LISTEN_PID",
        "NOTIFY_SOCKET",
        "RUST_LOG",
        "YOUKI_LOG_LEVEL",
        "_LIBCONTAINER_INITPIPE",
        "PODSTEAD_SOCKET",
    ];
    let host = TestHost::start();
    let victim = Victim::new(&host);
    let value = |name: &&str| if name.starts_with("LISTEN") { "7".to_owned() } else { victim.path.display().to_string() };
    let variables: Vec<String> = NAMES.iter().map(|name| format!("{{name: {name}, value: \"{}\"}}", value(name))).collect();
    // A name and a value that would be more variables, or lines of a file, where they are not kept apart.
    let forged = "{name: FORGED, value: \"a\\nPATH=/evil\\nLD_PRELOAD=/evil.so\"}";
    let fields = format!("env: [{}, {forged}]", variables.join(", "));
    let list = "ls /proc/self/fd | wc -l";
    let script = format!("env | sort >/tmp/env; echo descriptors $({list}); exec sleep 1000000");
    host.write_manifest("web.yaml", &pod("web", BUSYBOX, &[], &[Container::new("main", &script, &[&fields])]));
    // Three, and the directory that `ls` reads.
    host.wait_log("web", "main", "descriptors 4");
    assert_eq!(sh(&host, "web", list), "4\n");
    assert_eq!(sh(&host, "web", "echo $PATH").trim(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    for name in NAMES {
        assert_eq!(sh(&host, "web", &format!("echo ${name}")).trim(), value(&name), "{name} is the container's own");
    }
    victim.assert_unharmed();
}

/// Names of variables that are more than names are refused before anything runs.
#[test]
fn names_of_variables_cannot_carry_more() {
    let host = TestHost::start();
    for name in ["A=B", "", "A\\nB", "A\\0B"] {
        let fields = format!("env: [{{name: \"{name}\", value: x}}]");
        host.write_manifest("web.yaml", &pod("web", BUSYBOX, &[], &[Container::new("main", FOREVER, &[&fields])]));
        eventually("the refusal", || {
            let status = host.cli_ok(&["get", "sources", "-o", "json"]);
            if status.contains("env[0].name") { Ok(()) } else { Err(status) }
        });
        assert!(host.pod("web").is_none(), "{name:?}");
        host.remove_manifest("web.yaml");
        eventually("the source to be well again", || {
            let status = host.cli_ok(&["get", "sources", "-o", "json"]);
            if status.contains("env[0].name") { Err(status) } else { Ok(()) }
        });
    }
}
