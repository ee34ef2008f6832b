//! The daemon dies at any moment of changes of Services and NetworkPolicies, while pods connect without pause.

use super::crash::Random;
use super::lan::Site;
use super::restarts::{Probe, probes};
use super::services::{answers, cluster_ip, service};
use crate::support::eventually;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Kills without `PODSTEAD_KILLS`, which `make kills` sets to 200.
const KILLS: u64 = 12;
/// Services that come, go and change.
const SERVICES: [&str; 4] = ["a", "b", "c", "d"];

/// Elements of a map as `nft` lists them: the parts of each key, and those of its value.
fn elements(site: &Site, map: &str) -> BTreeMap<String, String> {
    let rules = site.rules();
    let of_map = rules.split(&format!("map {map} {{")).nth(1).unwrap_or_default();
    let list = of_map.split('}').next().unwrap_or_default().split("elements = {").nth(1).unwrap_or_default();
    let pairs = list.split(',').filter_map(|element| element.split_once(" : "));
    pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect()
}

/// The endpoints of frontends in the kernel: `10.202.0.9 . tcp . 80` to `10.201.0.3 . 8080`.
fn endpoints(site: &Site) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (key, value) in elements(site, "endpoints4") {
        let (frontend, _index) = key.rsplit_once(" . ").unwrap();
        found.entry(frontend.to_owned()).or_default().insert(value);
    }
    found
}

/// Touches or removes the file that makes pod `one` ready, also while no daemon runs.
fn set_ready(root: &str, is_ready: bool) {
    let file = format!("{root}/tmp/ready");
    if is_ready {
        std::fs::write(file, "").unwrap();
    } else {
        // It may be gone.
        std::fs::remove_file(file).ok();
    }
}

#[test]
fn random_kills_keep_rules_of_objects() {
    let kills = std::env::var("PODSTEAD_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let mut site = Site::start();
    let Probe { allowed, denied, steady } = probes(&site);
    let root = format!("/proc/{}/root", site.host.container_pid(&site.host.wait_running("one"), "main"));
    let other = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: other}\n\
                 spec: {podSelector: {matchLabels: {app: web}}, ingress: [{ports: [{port: 8080}]}]}\n";
    let mut random = Random::new();
    let mut wanted: BTreeMap<&str, u64> = BTreeMap::new();
    for _ in 0..kills {
        match random.below(8) {
            0 => set_ready(&root, false),
            1 => set_ready(&root, true),
            2 => site.host.write_manifest("other.yaml", other),
            3 => site.host.write_manifest("other.yaml", &other.replace("{port: 8080}", "{port: 8080}, {port: 8000}")),
            _ => {
                let name = SERVICES[random.below(4) as usize];
                let file = format!("{name}.yaml");
                if wanted.contains_key(name) && random.below(2) == 0 {
                    wanted.remove(name);
                    site.host.remove_manifest(&file);
                } else {
                    let port = 80 + random.below(3);
                    wanted.insert(name, port);
                    site.host.write_manifest(
                        &file,
                        &service(name, &format!("selector: {{app: web}}, ports: [{{port: {port}, targetPort: 8080}}]")),
                    );
                }
            }
        }
        std::thread::park_timeout(Duration::from_millis(random.below(80)));
        site.host.kill_daemon();
        site.host.spawn_daemon();
        std::thread::park_timeout(Duration::from_millis(random.below(240)));
    }
    site.host.kill_daemon();
    site.host.start_daemon();
    set_ready(&root, true);
    let backends: BTreeSet<String> = ["one", "two"].map(|name| format!("{} . 8080", site.addresses(name)[0])).into();
    let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let [shut, _] = site.addresses("shut");
    expected.insert("10.202.0.9 . tcp . 80".to_owned(), backends.clone());
    expected.insert("10.202.0.10 . tcp . 80".to_owned(), [format!("{shut} . 8080")].into());
    for (name, port) in &wanted {
        expected.insert(format!("{} . tcp . {port}", cluster_ip(&site.host, name)), backends.clone());
    }
    eventually("the rules of the objects", || {
        let found = endpoints(&site);
        let verdicts: BTreeSet<String> = elements(&site, "services4").into_keys().collect();
        let is_right = found == expected && verdicts == expected.keys().cloned().collect();
        if is_right { Ok(()) } else { Err(format!("{found:#?}, {verdicts:?} instead of {expected:#?}")) }
    });
    let tables = site.machine.run("nft list tables");
    assert!(!tables.contains("_standby"), "{tables}");
    let listed: Value = serde_json::from_str(&site.host.cli_ok(&["get", "services", "-o", "json"])).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), expected.len(), "{listed}");
    eventually("no record but those of the Services", || {
        let records = std::fs::read_dir(site.host.path("state/services")).unwrap().flatten();
        let names: Vec<_> = records.map(|entry| entry.file_name()).collect();
        if names.len() == expected.len() { Ok(()) } else { Err(format!("{names:?}")) }
    });
    eventually("connections", || if denied().lines().count() > 20 { Ok(()) } else { Err(denied()) });
    for (lines, wrong) in [(allowed(), "failed"), (denied(), "answered")] {
        let bad: Vec<&str> = lines.lines().filter(|line| line.contains(wrong)).collect();
        assert!(bad.is_empty(), "{} of {} connections: {bad:?}", bad.len(), lines.lines().count());
    }
    answers(&site, "client", &format!("http://{steady}/"), &["one", "two"]);
}
