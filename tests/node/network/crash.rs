//! The daemon dies at any moment of making and removing networks of pods.

use super::lan::{HOST_V4, Site, prompt_web};
use crate::support::{TestHost, eventually, eventually_within};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const KILLS: u32 = 200;
const PODS: [&str; 4] = ["a", "b", "c", "d"];

/// xorshift: which pods, and when.
pub(super) struct Random(u64);

impl Random {
    /// Prints its seed.
    pub(super) fn new() -> Self {
        let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
        eprintln!("seed {seed}");
        Self(seed)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// UIDs of pods that have a record: a pod that comes back has another one.
pub(super) fn known_pods(host: &TestHost) -> Vec<std::ffi::OsString> {
    std::fs::read_dir(host.path("state/pods")).unwrap().flatten().map(|entry| entry.file_name()).collect()
}

fn port(name: &str) -> u16 {
    8080 + u16::from(name.as_bytes()[0] - b'a')
}

fn write(site: &Site, name: &str) {
    let ports = format!("{{containerPort: 80, hostPort: {}}}", port(name));
    site.host.write_manifest(&format!("{name}.yaml"), &prompt_web(name, &ports));
}

#[test]
fn two_hundred_kills_leak_nothing() {
    survives("", PODS.len());
}

#[test]
fn two_hundred_kills_leak_nothing_on_bridge() {
    survives("network: {mode: bridge}\n", 1);
}

/// With this configuration, and so many routes of IPv4 for all pods.
fn survives(config: &str, routes_of_pods: usize) {
    let mut site = Site::prepare(config);
    site.host.start_daemon();
    let mut random = Random::new();
    let mut wanted = BTreeSet::new();
    for name in PODS {
        write(&site, name);
        wanted.insert(name);
    }
    site.host.wait_running("a");
    let mut seen = BTreeSet::new();
    for _ in 0..KILLS {
        let name = PODS[random.below(4) as usize];
        if wanted.remove(name) {
            site.host.remove_manifest(&format!("{name}.yaml"));
        } else {
            write(&site, name);
            wanted.insert(name);
        }
        // Half of them hit a start.
        std::thread::park_timeout(Duration::from_millis(random.below(120)));
        site.host.kill_daemon();
        seen.extend(known_pods(&site.host));
        site.host.spawn_daemon();
        std::thread::park_timeout(Duration::from_millis(random.below(240)));
    }
    eprintln!("{} pods came and went", seen.len());
    assert!(seen.len() > 2 * PODS.len(), "pods came and went: {seen:?}");
    site.host.kill_daemon();
    site.host.start_daemon();
    for name in PODS {
        if wanted.insert(name) {
            write(&site, name);
        }
    }
    for name in PODS {
        eventually_within(Duration::from_secs(120), &format!("pod {name}"), || {
            site.host.pod(name).filter(|pod| pod.runs("main")).map(drop).ok_or_else(|| site.host.daemon_log())
        });
        site.outside.gets(&format!("http://{HOST_V4}:{}/", port(name)), &format!("I am {name}"));
    }
    let addresses: BTreeSet<String> = PODS.iter().flat_map(|name| site.addresses(name)).collect();
    assert_eq!(addresses.len(), 2 * PODS.len(), "each has its own: {addresses:?}");
    eventually("no interface but those of the pods", || {
        let interfaces = site.interfaces();
        (interfaces.len() == PODS.len()).then_some(()).ok_or(format!("{interfaces:?}"))
    });
    let routes = site.machine.run("ip route show proto 112");
    assert_eq!(routes.lines().count(), routes_of_pods, "{routes}");
    let rules = site.rules();
    let elements = rules.split("set pods4").nth(1).unwrap().split('}').next().unwrap();
    assert_eq!(elements.matches("10.").count(), PODS.len(), "{rules}");

    for name in PODS {
        site.host.remove_manifest(&format!("{name}.yaml"));
    }
    PODS.iter().for_each(|name| site.host.wait_gone(name));
    eventually("the last interface to go", || {
        let interfaces = site.interfaces();
        interfaces.is_empty().then_some(()).ok_or(format!("{interfaces:?}"))
    });
    let rules = site.rules();
    assert!(!rules.contains("elements = { 10.") && !rules.contains("\"ps"), "{rules}");
    eventually("no namespace of a pod", || {
        let mark = site.host.path("run").display().to_string();
        let left = crate::support::leftovers(&mark);
        let pins: Vec<_> = left.into_iter().filter(|line| line.contains("ns/net")).collect();
        pins.is_empty().then_some(()).ok_or(format!("{pins:?}"))
    });
    let left: Vec<_> = std::fs::read_dir(site.host.path("state/pods")).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.iter().all(|path| std::fs::symlink_metadata(path.join("network.json")).is_err()), "{left:?}");
}
