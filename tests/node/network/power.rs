//! The power goes: what was not flushed to the disk is gone, and so is all that was in memory.
//!
//! The state directory is an ext4 of its own, which is stopped at one instant as a power cut stops it: what has not reached the disk by then, its journal
//! included, never does. The rest is killed, and the host starts again with what that disk has.

use super::crash::Random;
use super::lan::{HOST_V4, Site, prompt_web, web};
use crate::support::{Disk, eventually, eventually_within, process_exists};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const CUTS: u32 = 6;
const PODS: [&str; 4] = ["a", "b", "c", "d"];
/// All pods start again at once.
pub(super) const PATIENCE: Duration = Duration::from_secs(180);

/// Cuts the power, and switches the host on again; the daemon does not run yet.
pub(super) fn cut(site: &mut Site, disk: &Disk) {
    // A pod that is being removed may have lost its shim.
    let shims: Vec<u32> = site.host.pods().iter().filter_map(|pod| site.host.find_shim(pod)).collect();
    disk.stop();
    site.host.lose_power();
    assert!(shims.iter().all(|shim| !process_exists(*shim)), "all is dead: {shims:?}");
    site.machine.run("nft flush ruleset");
    eventually("the interfaces of pods to be gone", || {
        let interfaces = site.interfaces();
        interfaces.is_empty().then_some(()).ok_or(format!("{interfaces:?}"))
    });
    disk.start();
}

/// The next pods have other addresses than the first ones, with which a host that has forgotten everything would begin.
fn use_up_addresses(site: &Site) {
    for name in ["first", "second", "third"] {
        site.web(name, "", "");
        site.host.remove_manifest(&format!("{name}.yaml"));
        site.host.wait_gone(name);
    }
}

fn port(name: &str) -> u16 {
    8080 + u16::from(name.as_bytes()[0] - b'a')
}

fn ips(pod: &crate::support::PodView) -> Vec<String> {
    let ips = pod.0["status"]["podIPs"].as_array().cloned().unwrap_or_default();
    ips.iter().filter_map(|entry| entry["ip"].as_str()).map(str::to_owned).collect()
}

#[test]
fn running_pod_keeps_addresses_after_power_cut() {
    let mut site = Site::prepare("");
    let Some(disk) = Disk::make(&site.host) else { return };
    site.host.start_daemon();
    use_up_addresses(&site);
    let mut random = Random::new();
    let mut wanted = BTreeSet::new();
    let mut known: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut seen = 0;
    for _ in 0..CUTS {
        let first = random.below(PODS.len() as u64) as usize;
        for name in [PODS[first], PODS[(first + 1) % PODS.len()]] {
            known.remove(name);
            if wanted.remove(name) {
                site.host.remove_manifest(&format!("{name}.yaml"));
            } else {
                let ports = format!("{{containerPort: 80, hostPort: {}}}", port(name));
                site.host.write_manifest(&format!("{name}.yaml"), &prompt_web(name, &ports));
                wanted.insert(name);
            }
        }
        std::thread::park_timeout(Duration::from_millis(random.below(2500)));
        for name in &wanted {
            if let Some(pod) = site.host.pod(name).filter(|pod| pod.runs("main")) {
                known.insert(name, ips(&pod));
            }
        }
        seen += known.len();
        cut(&mut site, &disk);
        site.host.start_daemon();
        let mut addresses = BTreeSet::new();
        for name in &wanted {
            let pod = eventually_within(PATIENCE, &format!("pod {name}"), || {
                let running = site.host.pod(name).filter(|pod| pod.runs("main"));
                running.ok_or_else(|| site.host.daemon_log())
            });
            let now = ips(&pod);
            assert_eq!(known.entry(name).or_insert_with(|| now.clone()), &now, "{name} has the addresses that it had");
            addresses.extend(now);
            site.outside.gets(&format!("http://{HOST_V4}:{}/", port(name)), &format!("I am {name}"));
        }
        assert_eq!(addresses.len(), 2 * wanted.len(), "each has its own: {addresses:?}");
        eventually("the interfaces of these pods, and no other", || {
            let interfaces = site.interfaces();
            (interfaces.len() == wanted.len()).then_some(()).ok_or(format!("{interfaces:?}"))
        });
    }
    assert!(seen > 0, "no pod ran when the power went");
}

#[test]
fn lease_emptied_by_power_cut_is_renewed() {
    let mut site = Site::prepare("");
    let Some(disk) = Disk::make(&site.host) else { return };
    site.host.start_daemon();
    use_up_addresses(&site);
    let before = ["a", "b", "c"].map(|name| site.web(name, "", ""));
    let records =
        ["a", "b", "c"].map(|name| site.host.path("state/pods").join(site.host.pod(name).unwrap().uid()).join("network.json"));
    // Until then, the log has them as well.
    eventually("the write-ahead log to be emptied", || {
        let log = std::fs::read(site.host.path("state/write-ahead.log")).unwrap();
        let (first, second) = log.split_at(log.len() / 2);
        if first[0] == 0 && second[0] == 0 { Ok(()) } else { Err("it has batches".to_owned()) }
    });
    cut(&mut site, &disk);
    // As ext4 leaves files of which only the name reached the disk, and one of a block that was never written.
    std::fs::write(&records[1], "").unwrap();
    let whole = std::fs::metadata(&records[2]).unwrap().len();
    std::fs::write(&records[2], vec![0; whole as usize]).unwrap();
    std::fs::write(records[0].with_file_name(".network.json.tmp"), "{\"version\":1,").unwrap();
    site.host.start_daemon();
    let after = ["a", "b", "c"].map(|name| site.addresses(name));
    assert_eq!(after[0], before[0]);
    let all: BTreeSet<&String> = after.iter().flatten().collect();
    assert_eq!(all.len(), 6, "each has its own: {after:?}");
    assert!(
        site.host.daemon_log().contains("cannot use the record of the addresses of pod ")
            && site.host.daemon_log().contains("the pod gets new addresses"),
        "{}",
        site.host.daemon_log()
    );
    for (pod, other) in [("a", "b"), ("b", "c"), ("c", "a")] {
        site.pod_gets(pod, &format!("http://{other}/"), &format!("I am {other}"));
    }
    site.host.write_manifest("a.yaml", &web("a", "podstead.dev/isolated: 'true'", ""));
    eventually("an edit to be recorded where the torso of a record is", || {
        let record = std::fs::read_to_string(&records[0]).unwrap();
        record.contains("\"isIsolated\":true").then_some(()).ok_or(record)
    });
}
