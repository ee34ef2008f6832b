//! The daemon dies at any moment of plugins' work: bridge, host-local, portmap.

use super::super::crash::{Random, known_pods};
use super::super::lan::{HOST_V4, prompt_web};
use super::CniSite;
use crate::support::{eventually_within, leftovers};
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

pub(super) const PODS: [&str; 4] = ["a", "b", "c", "d"];
/// Kills without `PODSTEAD_KILLS`, which `make kills` sets to 200.
const KILLS: u32 = 20;
/// Time for work that was cut short and is tried again; plugins take their time.
const PATIENCE: Duration = Duration::from_secs(180);

pub(super) fn port(name: &str) -> u16 {
    8080 + u16::from(name.as_bytes()[0] - b'a')
}

pub(super) fn write(cni: &CniSite, name: &str) {
    let ports = format!("{{containerPort: 80, hostPort: {}}}", port(name));
    cni.site.host.write_manifest(&format!("{name}.yaml"), &prompt_web(name, &ports));
}

/// Things that plugins made on the host: chains of iptables by what they begin with.
pub(super) fn chains(cni: &CniSite) -> (usize, usize) {
    let rules = cni.site.machine.run("iptables -t nat -S");
    let chains: Vec<&str> = rules.lines().filter_map(|line| line.strip_prefix("-N CNI-")).collect();
    let ports = chains.iter().filter(|chain| chain.starts_with("DN-")).count();
    let masquerades = chains.iter().filter(|chain| !chain.starts_with("DN-") && !chain.starts_with("HOSTPORT-")).count();
    (ports, masquerades)
}

/// Namespaces of pods that are pinned.
fn pins(cni: &CniSite) -> usize {
    let mark = cni.site.host.path("run").display().to_string();
    leftovers(&mark).into_iter().filter(|line| line.contains("ns/net")).count()
}

#[test]
fn random_kills_leak_nothing_of_plugins() {
    let kills = std::env::var("PODSTEAD_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let mut cni = CniSite::bridged();
    let mut random = Random::new();
    let mut wanted = BTreeSet::new();
    for name in PODS {
        write(&cni, name);
        wanted.insert(name);
    }
    cni.site.host.wait_running("a");
    let (mut broken_off, mut seen) = (0, BTreeSet::new());
    for _ in 0..kills {
        let name = PODS[random.below(4) as usize];
        if wanted.remove(name) {
            cni.site.host.remove_manifest(&format!("{name}.yaml"));
        } else {
            write(&cni, name);
            wanted.insert(name);
        }
        std::thread::park_timeout(Duration::from_millis(random.below(600)));
        cni.site.host.kill_daemon();
        // Records of what was begun and not ended tell that the kill hit a plugin's work.
        let records = fs::read_dir(cni.site.host.path("state/pods")).unwrap().flatten();
        let is_open = |text: &String| text.contains("\"stage\":\"adding\"") || text.contains("\"stage\":\"deleting\"");
        let open = records.filter_map(|entry| fs::read_to_string(entry.path().join("cni.json")).ok()).filter(is_open).count();
        broken_off += u32::from(open > 0);
        seen.extend(known_pods(&cni.site.host));
        cni.site.host.spawn_daemon();
        std::thread::park_timeout(Duration::from_millis(random.below(600)));
    }
    eprintln!("{broken_off} of {kills} kills hit the work of a plugin; {} pods came and went", seen.len());
    assert!(broken_off > 0, "no kill hit the work of a plugin");
    cni.site.host.kill_daemon();
    cni.site.host.start_daemon();
    for name in PODS {
        if wanted.insert(name) {
            write(&cni, name);
        }
    }
    let mut addresses = BTreeSet::new();
    for name in PODS {
        eventually_within(PATIENCE, &format!("pod {name}"), || {
            cni.site.host.pod(name).filter(|pod| pod.runs("main")).map(drop).ok_or_else(|| cni.site.host.daemon_log())
        });
        cni.site.outside.gets(&format!("http://{HOST_V4}:{}/", port(name)), &format!("I am {name}"));
        addresses.insert(cni.address(name));
    }
    assert_eq!(addresses.len(), PODS.len(), "each has its own: {addresses:?}");
    eventually_within(PATIENCE, "nothing but what belongs to the four pods", || {
        let leases: BTreeSet<String> = cni.leases("lan").into_iter().collect();
        let is_all = leases == addresses && cni.bridge_ports().len() == 4 && chains(&cni) == (4, 4) && pins(&cni) == 4;
        is_all
            .then_some(())
            .ok_or_else(|| format!("{leases:?}, {:?}, chains {:?}, pins {}", cni.bridge_ports(), chains(&cni), pins(&cni)))
    });

    for name in PODS {
        cni.site.host.remove_manifest(&format!("{name}.yaml"));
    }
    PODS.iter().for_each(|name| cni.site.host.wait_gone(name));
    cni.wait_clean();
    eventually_within(PATIENCE, "no chain and no namespace", || {
        let left = (chains(&cni), pins(&cni));
        (left == ((0, 0), 0)).then_some(()).ok_or(format!("{left:?}"))
    });
    let left: Vec<_> = fs::read_dir(cni.site.host.path("state/pods")).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.iter().all(|path| fs::symlink_metadata(path.join("cni.json")).is_err()), "{left:?}");
}
