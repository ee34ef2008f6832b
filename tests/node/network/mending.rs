//! Interfaces of pods on the host that somebody meddles with.

use super::lan::{HOST_V4, Site};
use crate::support::{TestHost, eventually_within};
use std::time::Duration;

/// Time for what needs a turn of the housekeeping.
const HOUSEKEEPING: Duration = Duration::from_secs(180);

/// Waits until the pod is reached from everywhere, and the daemon has told of it in these words.
fn is_mended(site: &Site, addresses: &[String; 2], words: &[&str]) {
    eventually_within(HOUSEKEEPING, &format!("{words:?}"), || {
        let events = site.host.cli_ok(&["get", "events"]);
        let is_told = events.lines().any(|line| words.iter().all(|word| line.contains(word)));
        is_told.then_some(()).ok_or_else(|| format!("{events}\n{}", site.host.daemon_log()))
    });
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am one");
    site.machine.gets(&format!("http://{}/", addresses[0]), "I am one");
    site.machine.gets(&format!("http://[{}]/", addresses[1]), "I am one");
}

/// By the turn that comes once a minute.
#[test]
fn removed_interface_is_made_anew() {
    is_made_anew("", |_| {});
}

#[test]
fn removed_bridge_interface_is_made_anew() {
    is_made_anew("network: {mode: bridge}\n", TestHost::keep_house);
}

fn is_made_anew(config: &str, ask: impl FnOnce(&TestHost)) {
    let mut site = Site::prepare(config);
    site.host.start_daemon();
    let one = site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    let before = site.host.pod("one").unwrap();
    let interface = site.interfaces().remove(0);
    site.machine.run(&format!("ip link delete {interface}"));
    ask(&site.host);
    is_mended(&site, &one, &["NetworkCheckFailed", &interface, "is gone; reconnecting the pod"]);
    assert_eq!(site.addresses("one"), one);
    let after = site.host.pod("one").unwrap();
    assert_eq!(after.container_id("main"), before.container_id("main"), "what runs keeps running");
}

#[test]
fn emptied_or_down_interface_is_mended() {
    let site = Site::start();
    let one = site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    let interface = site.interfaces().remove(0);
    let words = ["NetworkCheckFailed", interface.as_str(), "restored it"];
    // As systemd-networkd does with what is not in its configuration.
    site.machine.run(&format!("ip link set {interface} down"));
    site.machine.run(&format!("ip link set {interface} up"));
    site.machine.run(&format!("ip address flush dev {interface}"));
    site.host.keep_house();
    is_mended(&site, &one, &words);
}

/// Facts of a pod that must not change.
fn standing(site: &Site) -> (String, String) {
    let interface = site.interfaces().remove(0);
    let index = site.machine.run(&format!("ip -o link show {interface}"));
    (site.host.pod("one").unwrap().container_id("main").to_owned(), index.split(':').next().unwrap().to_owned())
}

fn record_of_one(site: &Site) -> std::path::PathBuf {
    site.host.path("state/pods").join(site.host.pod("one").unwrap().uid()).join("network.json")
}

#[test]
fn broken_record_keeps_interface_and_ports() {
    for config in ["", "network: {mode: bridge}\n"] {
        let mut site = Site::prepare(config);
        site.host.start_daemon();
        let one = site.web("one", "", "{containerPort: 80, hostPort: 8080}");
        let before = standing(&site);
        let record = record_of_one(&site);
        site.host.kill_daemon();
        std::fs::write(&record, "{\"version\": 1, \"pod\"").unwrap();
        site.host.start_daemon();
        assert_eq!(site.addresses("one"), one);
        site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am one");
        assert_eq!(standing(&site), before);
        assert!(std::fs::symlink_metadata(record.with_extension("json.bad")).is_ok());
        // What it has is on record again.
        site.host.kill_daemon();
        site.host.start_daemon();
        assert_eq!(site.addresses("one"), one);
        let two = site.web("two", "", "");
        assert_ne!(two, one);
        site.pod_gets("two", &format!("http://{}/", one[0]), "I am one");
    }
}

#[test]
fn unreadable_record_costs_no_interface() {
    let mut site = Site::start();
    let one = site.web("one", "", "");
    let before = standing(&site);
    let record = record_of_one(&site);
    site.host.kill_daemon();
    let away = site.host.path("away.json");
    std::fs::rename(&record, &away).unwrap();
    std::fs::create_dir(&record).unwrap();
    site.host.start_daemon();
    assert_ne!(site.web("two", "", ""), one);
    site.machine.gets(&format!("http://{}/", one[0]), "I am one");
    assert!(std::fs::symlink_metadata(&record).unwrap().is_dir(), "it is left alone");
    site.host.kill_daemon();
    std::fs::remove_dir(&record).unwrap();
    std::fs::rename(&away, &record).unwrap();
    site.host.start_daemon();
    assert_eq!(site.addresses("one"), one);
    let interfaces = site.interfaces();
    assert_eq!(interfaces.len(), 2, "{interfaces:?}");
    assert_eq!(standing(&site), before);
}
