//! Interfaces of pods on the host that somebody meddles with.

use super::lan::{HOST_V4, Site};
use crate::support::eventually_within;
use std::time::Duration;

/// What needs a turn of the housekeeping.
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

#[test]
fn an_interface_that_is_removed_is_made_anew_and_the_pod_runs_on_with_its_addresses() {
    is_made_anew("");
}

#[test]
fn an_interface_on_the_bridge_that_is_removed_is_made_anew() {
    is_made_anew("network: {mode: bridge}\n");
}

fn is_made_anew(config: &str) {
    let mut site = Site::prepare(config);
    site.host.start_daemon();
    let one = site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    let before = site.host.pod("one").unwrap();
    let interface = site.interfaces().remove(0);
    site.machine.run(&format!("ip link delete {interface}"));
    is_mended(&site, &one, &["NetworkCheckFailed", &interface, "is gone; the pod is connected anew"]);
    assert_eq!(site.addresses("one"), one);
    let after = site.host.pod("one").unwrap();
    assert_eq!(after.container_id("main"), before.container_id("main"), "what runs keeps running");
}

#[test]
fn an_interface_that_is_switched_off_and_one_that_is_emptied_get_back_what_they_lack() {
    let site = Site::start();
    let one = site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    let interface = site.interfaces().remove(0);
    let words = ["NetworkCheckFailed", interface.as_str(), "it has them again"];
    // As systemd-networkd does with what is not in its configuration.
    site.machine.run(&format!("ip link set {interface} down"));
    site.machine.run(&format!("ip link set {interface} up"));
    site.machine.run(&format!("ip address flush dev {interface}"));
    is_mended(&site, &one, &words);
}
