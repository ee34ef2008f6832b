//! A daemon whose cgroup has 8 MiB: what belongs to no file, and what the kernel keeps for it, fits. The pages of its program are taken away when they
//! are needed, and read again. Without need, the daemon itself unmaps them when its work is done.

use crate::support::cgroup::MemoryGroup;
use crate::support::{TestHost, eventually, eventually_within};
use std::time::Duration;

const LIMIT: u64 = 8 << 20;
const PODS: usize = 5;

fn pod(number: usize, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{number}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    - name: main\n      \
         image: localhost/busybox:1\n      command: [sh, -c, 'echo started; exec sleep 1000000']\n      env: [{{name: VALUE, value: '{value}'}}]\n      \
         readinessProbe: {{exec: {{command: ['true']}}, periodSeconds: 1}}\n"
    )
}

fn wait_ready(host: &TestHost) {
    for number in 0..PODS {
        host.wait_for_pod(&format!("p{number}"), "ready", |pod| pod.container("main")["ready"] == true);
    }
}

#[test]
fn daemon_works_in_8_mib() {
    let group = MemoryGroup::make(&format!("podstead-test-small-{}", std::process::id()), LIMIT);
    let mut host = TestHost::prepare("");
    host.cgroup_procs = Some(group.procs());
    host.start_daemon();
    for number in 0..PODS {
        host.write_manifest(&format!("p{number}.yaml"), &pod(number, "1"));
    }
    wait_ready(&host);
    for number in 0..PODS {
        let name = format!("p{number}");
        assert_eq!(host.exec(&name, "main", &["echo", "hello"]), "hello\n");
        host.wait_log(&name, "main", "started");
    }
    host.write_manifest("p0.yaml", &pod(0, "2"));
    host.wait_for_pod("p0", "its edit", |pod| pod.container("main")["restartCount"] == 1);
    wait_ready(&host);

    host.kill_daemon();
    host.start_daemon();
    wait_ready(&host);
    host.remove_manifest("p1.yaml");
    host.wait_gone("p1");
    let members = std::fs::read_to_string(group.procs()).unwrap();
    assert!(members.lines().any(|pid| pid == host.daemon_pid().to_string()), "{members}");
    assert_eq!(group.kills(), 0, "{}", host.daemon_log());
    // Its group is removed when it has ended.
    host.kill_daemon();
    eventually("the group to be empty", || match std::fs::read_to_string(group.procs()).unwrap() {
        members if members.is_empty() => Ok(()),
        members => Err(members),
    });
}

/// Memory of a process in KiB, from a line of its status.
fn memory(pid: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn program_is_unmapped_after_burst() {
    let host = TestHost::start();
    for number in 0..PODS {
        host.write_manifest(&format!("p{number}.yaml"), &pod(number, "1"));
    }
    wait_ready(&host);
    // Most of the peak are pages of the program. Threads that block end when they had no work for ten seconds.
    let peak = memory(host.daemon_pid(), "VmHWM:");
    eventually_within(Duration::from_secs(90), "most of the program to be unmapped", || {
        match memory(host.daemon_pid(), "RssFile:") {
            mapped if mapped < peak / 2 => Ok(()),
            mapped => Err(format!("{mapped} KiB of {peak} KiB")),
        }
    });
}

#[test]
fn program_of_shim_is_unmapped_after_start() {
    let host = TestHost::start();
    let manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: quiet}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
                    - {name: main, image: 'localhost/busybox:1', command: [sleep, '1000000']}\n";
    host.write_manifest("quiet.yaml", manifest);
    let shim = host.shim_pid(&host.wait_running("quiet"));
    let peak = memory(shim, "VmHWM:");
    eventually_within(Duration::from_secs(90), "most of the shim's program to be unmapped", || match memory(shim, "RssFile:") {
        mapped if mapped < peak / 2 => Ok(()),
        mapped => Err(format!("{mapped} KiB of {peak} KiB")),
    });
    assert_eq!(host.exec("quiet", "main", &["echo", "hello"]), "hello\n");
}
