//! The conditions of the Node of a real daemon when there is too little of something, and when there is enough again.

use crate::daemon::{NODE, host};
use crate::server::Server;
use crate::support::{TestHost, eventually};
use crate::wire::Wire;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n  containers:\n  \
                   - name: c\n    image: localhost/busybox:1\n    imagePullPolicy: Never\n    command: [/bin/sh, -c, exec sleep 1000000]\n";

/// A host whose durable state is on a small file system of its own.
struct Small {
    // Dropped first: its pods use the disk.
    host: TestHost,
    disk: Disk,
}

/// The file system; dropping it takes it away, and what was left of the host.
struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        let _gone = umount2(&self.0, MntFlags::MNT_DETACH);
        drop(fs::remove_dir_all(self.0.parent().unwrap()));
    }
}

impl Disk {
    fn fill(&self) {
        let stat = nix::sys::statvfs::statvfs(&self.0).unwrap();
        let free = stat.blocks_available() * stat.fragment_size();
        fs::write(self.0.join("filling"), vec![0; free as usize * 9 / 10]).unwrap();
    }

    fn fill_inodes(&self) {
        fs::create_dir(self.0.join("filling")).unwrap();
        let free = nix::sys::statvfs::statvfs(&self.0).unwrap().files_available();
        (0..free * 9 / 10).for_each(|number| fs::write(self.0.join(format!("filling/{number}")), "").unwrap());
    }
}

/// `host` is prepared and knows its cluster; its daemon does not run yet.
fn small(host: TestHost) -> Small {
    let path = host.path("state");
    fs::create_dir_all(&path).unwrap();
    mount(Some("tmpfs"), &path, Some("tmpfs"), MsFlags::empty(), Some("size=96m,nr_inodes=8k,mode=755")).unwrap();
    Small { host, disk: Disk(path) }
}

/// Says in the configuration of a host, below what there is too little; it counts from the next start on.
pub(crate) fn set_thresholds(host: &TestHost, thresholds: &str) {
    let path = host.path("config.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.lines().map(|line| match line.starts_with("upstream:") {
        true => {
            let (rest, _) = line.split_once(", pressure:").unwrap_or_else(|| line.rsplit_once('}').unwrap());
            format!("{rest}, pressure: {{{thresholds}}}}}\n")
        }
        false => format!("{line}\n"),
    });
    let text: String = lines.collect();
    fs::write(path, text).unwrap();
}

/// Waits until the clock says another second than `since`: times of conditions have no fractions.
fn let_a_second_pass(since: &str) {
    let since: jiff::Timestamp = since.parse().unwrap();
    eventually("another second", || {
        let now = jiff::Timestamp::now();
        (now.as_second() > since.as_second()).then_some(()).ok_or(now.to_string())
    });
}

/// Takes a host through all kinds of pressure; `node` asks the cluster for its Node.
pub(crate) fn comes_and_goes(host: TestHost, node: impl Fn() -> Option<Value>) {
    let mut small = small(host);
    let condition = |kind: &str| -> Option<(bool, String, String)> {
        let node = node()?;
        let found = node["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)?.clone();
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        Some((text("status") == "True", text("reason"), text("lastTransitionTime")))
    };
    // Since when it is so.
    let wait_for = |kind: &str, is: bool, reason: &str| {
        eventually(&format!("{kind} to be {is}"), || match condition(kind) {
            Some((found, why, since)) if found == is && why == reason => Ok(since),
            other => Err(format!("{other:?}")),
        })
    };
    let spoken = |host: &TestHost| {
        eventually("this life of the daemon to speak for the Node", || match host.cli_ok(&["status"]) {
            status if status.contains("node registered") => Ok(()),
            status => Err(status),
        });
    };
    // Other work on this machine must not count, the small disk alone.
    set_thresholds(&small.host, "memoryAvailable: '0', pidsAvailable: '0', storageAvailable: 20%, inodesAvailable: 20%");
    small.host.start_daemon();
    small.host.write_manifest("web.yaml", POD);
    let pid = small.host.container_pid(&small.host.wait_running("web"), "c");
    let memory = wait_for("MemoryPressure", false, "KubeletHasSufficientMemory");
    let pids = wait_for("PIDPressure", false, "KubeletHasSufficientPID");
    let mut disk = wait_for("DiskPressure", false, "KubeletHasNoDiskPressure");
    for fill in [Disk::fill, Disk::fill_inodes] {
        let_a_second_pass(&disk);
        fill(&small.disk);
        let short = wait_for("DiskPressure", true, "KubeletHasDiskPressure");
        assert!(short > disk, "{short} after {disk}");
        let_a_second_pass(&short);
        let path = small.disk.0.join("filling");
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap()
        } else {
            fs::remove_file(path).unwrap()
        }
        disk = wait_for("DiskPressure", false, "KubeletHasNoDiskPressure");
        assert!(disk > short, "{disk} after {short}");
    }
    // Nobody is evicted, and what is not the disk's stays as it is.
    assert_eq!(small.host.container_pid(&small.host.wait_running("web"), "c"), pid);
    assert_eq!(condition("Ready").map(|(is, ..)| is), Some(true));
    assert_eq!(condition("MemoryPressure").unwrap().2, memory);
    assert_eq!(condition("PIDPressure").unwrap().2, pids);

    small.host.stop_daemon();
    let_a_second_pass(&memory.clone().max(pids.clone()));
    set_thresholds(&small.host, "memoryAvailable: 100%, pidsAvailable: 100%, storageAvailable: '0', inodesAvailable: '0'");
    small.host.start_daemon();
    let short_of_memory = wait_for("MemoryPressure", true, "KubeletHasInsufficientMemory");
    let short_of_pids = wait_for("PIDPressure", true, "KubeletHasInsufficientPID");
    assert!(short_of_memory > memory && short_of_pids > pids);
    // A daemon that starts again finds the same, and the time of the change stays.
    small.host.stop_daemon();
    small.host.start_daemon();
    spoken(&small.host);
    let shown = ["MemoryPressure", "PIDPressure", "DiskPressure"].map(|kind| condition(kind).unwrap());
    assert_eq!(shown.each_ref().map(|(is, ..)| *is), [true, true, false]);
    assert_eq!(shown.map(|(.., since)| since), [short_of_memory.clone(), short_of_pids.clone(), disk]);

    small.host.stop_daemon();
    let_a_second_pass(&short_of_memory.clone().max(short_of_pids.clone()));
    set_thresholds(&small.host, "memoryAvailable: '0', pidsAvailable: '0'");
    small.host.start_daemon();
    assert!(wait_for("MemoryPressure", false, "KubeletHasSufficientMemory") > short_of_memory);
    assert!(wait_for("PIDPressure", false, "KubeletHasSufficientPID") > short_of_pids);
    assert_eq!(small.host.container_pid(&small.host.wait_running("web"), "c"), pid);
    small.host.remove_manifest("web.yaml");
    small.host.wait_gone("web");
}

#[test]
fn node_reports_pressure_while_it_lasts() {
    let server = Server::new(NODE);
    let wire = Wire::start(server.clone());
    wire.known.lock().unwrap().token = Some("t".into());
    let host = host(&wire, &json!({"token": "t"}));
    comes_and_goes(host, || server.store().get("nodes", "", NODE));
}
