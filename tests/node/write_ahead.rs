//! Power cuts right after something was accepted: what counts is in the write-ahead log alone, and not yet in the files.

use crate::support::{Disk, Strace, TestHost, eventually, process_exists};
use std::collections::BTreeMap;
use std::fs;

const PODS: [&str; 3] = ["a", "b", "c"];
const CUTS: usize = 4;

fn pod(name: &str, value: usize) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    - name: main\n      \
         image: localhost/busybox:1\n      command: [sleep, '1000000']\n      env: [{{name: VALUE, value: '{value}'}}]\n"
    )
}

/// Waits until the pod runs with this value; returns its UID.
fn wait_value(host: &TestHost, name: &str, value: usize) -> String {
    let text = value.to_string();
    let running = host.wait_for_pod(name, &format!("a run with VALUE={value}"), |pod| {
        pod.0["spec"]["containers"][0]["env"][0]["value"].as_str() == Some(&text) && pod.runs("main")
    });
    running.uid()
}

/// Records of pods and sources, by path.
fn records(host: &TestHost) -> BTreeMap<String, Vec<u8>> {
    let mut paths = vec![host.path("state/sources/manifests/last-good.json")];
    paths.extend(fs::read_dir(host.path("state/pods")).unwrap().map(|pod| pod.unwrap().path().join("pod.json")));
    let read = |path: &std::path::PathBuf| Some((path.display().to_string(), fs::read(path).ok()?));
    paths.iter().filter_map(read).collect()
}

#[test]
fn what_was_accepted_is_there_after_a_power_cut() {
    let mut host = TestHost::prepare("");
    let Some(disk) = Disk::make(&host) else { return };
    host.start_daemon();
    PODS.iter().for_each(|name| host.write_manifest(&format!("{name}.yaml"), &pod(name, 0)));
    let mut uids: BTreeMap<&str, String> = PODS.iter().map(|name| (*name, wait_value(&host, name, 0))).collect();
    let mut lost = 0;
    for cut in 1..=CUTS {
        let edited = PODS[cut % PODS.len()];
        host.write_manifest(&format!("{edited}.yaml"), &pod(edited, cut));
        uids.insert(edited, wait_value(&host, edited, cut));
        let shims: Vec<u32> = host.pods().iter().map(|pod| host.shim_pid(pod)).collect();
        let before = records(&host);
        disk.stop();
        host.lose_power();
        assert!(shims.iter().all(|shim| !process_exists(*shim)), "{shims:?}");
        disk.start();
        let on_disk = records(&host);
        lost += before.iter().filter(|(path, content)| on_disk.get(*path) != Some(*content)).count();

        // Nothing else knows of them: as without a network.
        fs::rename(host.path("manifests"), host.path("away")).unwrap();
        host.start_daemon();
        for name in PODS {
            let value = (0..=cut).rev().find(|value| PODS[value % PODS.len()] == name && *value > 0).unwrap_or(0);
            assert_eq!(wait_value(&host, name, value), uids[name], "cut {cut}");
        }
        assert_eq!(host.pods().len(), PODS.len());
        fs::rename(host.path("away"), host.path("manifests")).unwrap();
        host.cli_ok(&["sync", "manifests", "--wait"]);
    }
    assert!(lost > 0, "all files had reached the disk");
}

#[test]
fn removed_pod_stays_away_after_a_power_cut() {
    let mut host = TestHost::prepare("");
    let Some(disk) = Disk::make(&host) else { return };
    host.start_daemon();
    for name in ["stays", "goes"] {
        host.write_manifest(&format!("{name}.yaml"), &pod(name, 0));
        wait_value(&host, name, 0);
    }
    host.remove_manifest("goes.yaml");
    host.wait_gone("goes");
    disk.stop();
    host.lose_power();
    disk.start();
    fs::rename(host.path("manifests"), host.path("away")).unwrap();
    host.start_daemon();
    host.wait_running("stays");
    host.wait_gone("goes");
}

#[test]
fn log_that_cannot_be_synced_is_given_up() {
    let mut host = TestHost::prepare("");
    host.mount_state();
    host.start_daemon();
    host.write_manifest("a.yaml", &pod("a", 0));
    wait_value(&host, "a", 0);
    let log = host.path("state/write-ahead.log");
    assert!(log.is_file());
    let strace =
        Strace::attach(host.daemon_pid(), &["-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO"], host.path("strace.log"));
    host.write_manifest("b.yaml", &pod("b", 1));
    let uid = wait_value(&host, "b", 1);
    assert!(strace.log().contains("INJECTED"));
    drop(strace);
    eventually("the log to be removed", || if log.try_exists().unwrap() { Err("it is there".to_owned()) } else { Ok(()) });
    assert!(host.daemon_log().contains("the write-ahead log failed"), "{}", host.daemon_log());
    host.write_manifest("a.yaml", &pod("a", 2));
    wait_value(&host, "a", 2);
    // The next daemon makes another one.
    host.kill_daemon();
    host.start_daemon();
    assert!(log.is_file());
    assert_eq!(wait_value(&host, "b", 1), uid);
    wait_value(&host, "a", 2);
}
