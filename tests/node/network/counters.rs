//! Counters of traffic for monitoring.

use super::lan::Site;
use crate::support::eventually;
use serde_json::Value;
use std::process::Command;

pub(super) fn page(site: &Site, path: &str) -> String {
    let socket = site.host.path("run/podstead.sock");
    let out = Command::new("curl")
        .args(["-sS", "--max-time", "30", "--unix-socket"])
        .arg(socket)
        .arg(format!("http://podstead{path}"))
        .output();
    String::from_utf8_lossy(&out.unwrap().stdout).into_owned()
}

/// The counter of this name for the interface of pod `one`.
fn counter(text: &str, name: &str) -> Option<f64> {
    let is_it = |line: &&str| {
        line.starts_with(&format!("{name}{{")) && line.contains("pod=\"one-edge-1\"") && line.contains("interface=\"eth0\"")
    };
    text.lines().find(is_it)?.rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn pod_traffic_is_counted_on_both_pages() {
    let site = Site::start();
    let one = site.web("one", "", "");
    let before = counter(&page(&site, "/metrics/cadvisor"), "container_network_transmit_bytes_total").unwrap();
    for _ in 0..20 {
        site.machine.gets(&format!("http://{}/", one[0]), "I am one");
    }
    eventually("the counter to grow", || {
        let text = page(&site, "/metrics/cadvisor");
        match counter(&text, "container_network_transmit_bytes_total") {
            // The answers alone have more.
            Some(after) if after - before > 2000.0 => Ok(()),
            _ => Err(text),
        }
    });
    let summary: Value = serde_json::from_str(&page(&site, "/stats/summary")).unwrap();
    let network = &summary["pods"][0]["network"];
    assert!(network["name"] == "eth0" && network["txBytes"].as_u64().unwrap() > 2000, "{network}");
    assert!(
        summary["node"]["network"]["interfaces"].as_array().unwrap().iter().any(|interface| interface["name"] == "uplink"),
        "{summary}"
    );
    assert!(summary["node"]["fs"]["capacityBytes"].as_u64().unwrap() > summary["node"]["fs"]["usedBytes"].as_u64().unwrap());
}
