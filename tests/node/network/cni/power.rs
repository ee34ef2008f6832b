//! The power goes in the middle of plugins' work, which write what they know without flushing it.

use super::super::crash::Random;
use super::super::lan::HOST_V4;
use super::super::power::{PATIENCE, cut};
use super::CniSite;
use super::kills::{PODS, chains, port, write};
use crate::support::{Disk, eventually_within};
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

const CUTS: u32 = 3;

#[test]
fn random_power_cuts_leak_nothing_of_plugins() {
    let mut cni = CniSite::prepare("cni");
    let Some(disk) = Disk::make(&cni.site.host) else { return };
    // What host-local knows is on the disk that is cut off, too.
    fs::remove_dir(cni.path("ipam")).unwrap();
    fs::create_dir(cni.site.host.path("state/ipam")).unwrap();
    std::os::unix::fs::symlink(cni.site.host.path("state/ipam"), cni.path("ipam")).unwrap();
    assert!(std::process::Command::new("sync").arg("-f").arg(cni.path("ipam")).status().unwrap().success());
    cni.write("10-lan.conflist", &cni.bridge(""));
    cni.site.host.start_daemon();
    let mut random = Random::new();
    let mut wanted = BTreeSet::new();
    for _ in 0..CUTS {
        let first = random.below(PODS.len() as u64) as usize;
        for name in [PODS[first], PODS[(first + 1) % PODS.len()]] {
            if wanted.remove(name) {
                cni.site.host.remove_manifest(&format!("{name}.yaml"));
            } else {
                write(&cni, name);
                wanted.insert(name);
            }
        }
        std::thread::park_timeout(Duration::from_millis(random.below(3000)));
        cut(&mut cni.site, &disk);
        drop(cni.site.machine.command(&["ip", "link", "delete", "lan0"]).status());
        cni.site.host.start_daemon();
        let mut addresses = BTreeSet::new();
        for name in &wanted {
            eventually_within(PATIENCE, &format!("pod {name}"), || {
                let running = cni.site.host.pod(name).filter(|pod| pod.runs("main"));
                running.map(drop).ok_or_else(|| cni.site.host.daemon_log())
            });
            cni.site.outside.gets(&format!("http://{HOST_V4}:{}/", port(name)), &format!("I am {name}"));
            addresses.insert(cni.address(name));
        }
        let count = wanted.len();
        assert_eq!(addresses.len(), count, "each has its own: {addresses:?}");
        eventually_within(PATIENCE, "nothing but what belongs to these pods", || {
            let leases: BTreeSet<String> = cni.leases("lan").into_iter().collect();
            let is_all = leases == addresses && cni.bridge_ports().len() == count && chains(&cni) == (count, count);
            is_all.then_some(()).ok_or_else(|| {
                format!(
                    "{leases:?} for {addresses:?}, {:?}, chains {:?}\n{}",
                    cni.bridge_ports(),
                    chains(&cni),
                    cni.site.host.daemon_log()
                )
            })
        });
    }
}
