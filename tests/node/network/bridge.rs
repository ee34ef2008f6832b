//! Pods on a bridge: what is as without one, and what only a bridge has.

use super::host_ports;
use super::lan::{HOST_V4, HOST_V6, OUTSIDE_V4, OUTSIDE_V6, Site, WebServer, web};
use super::policies::{labelled, policy};
use super::service_rows::both_families;
use crate::support::eventually;
use std::process::{Child, Stdio};

const BRIDGE: &str = "network: {mode: bridge}\n";
const PORT: &str = "{containerPort: 80, hostPort: 8080}";

fn start() -> Site {
    let mut site = Site::prepare(BRIDGE);
    site.host.start_daemon();
    site
}

/// A shell script in the network of a pod, by a hand that has all rights there: whether it succeeded, and what it said.
fn in_pod(site: &Site, pod: &str, script: &str) -> (bool, String) {
    let out = std::process::Command::new("nsenter").args(["-t", &pid(site, pod), "-n", "sh", "-c", script]).output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr))
}

fn pid(site: &Site, pod: &str) -> String {
    site.host.container_pid(&site.host.pod(pod).unwrap(), "main").to_string()
}

fn bridge(site: &Site) -> String {
    let links = site.machine.run("ip -o link show type bridge");
    links.lines().filter_map(|line| line.split(": ").nth(1)).find(|name| name.starts_with("ps")).unwrap_or_default().to_owned()
}

/// The rules of the bridge.
fn rules(site: &Site) -> String {
    let tables = site.machine.run("nft list tables");
    let Some(table) = tables.lines().find(|line| line.contains("bridge podstead") && !line.ends_with("_standby")) else {
        return String::new();
    };
    site.machine.run(&format!("nft list {table}"))
}

/// Packets that the rules of the bridge have dropped.
fn dropped(site: &Site) -> u64 {
    let packets = |line: &str| line.split("packets ").nth(1)?.split(' ').next()?.parse::<u64>().ok();
    rules(site).lines().filter_map(packets).sum()
}

/// Everybody reaches everybody: pod `one`, which has a port of the host, pod `two`, the host, a server outside.
fn all_is_well(site: &Site) {
    let one = site.addresses("one");
    for url in [
        format!("http://{}/", one[0]),
        format!("http://[{}]/", one[1]),
        format!("http://{HOST_V4}:8080/"),
        format!("http://[{HOST_V6}]:8080/"),
        "http://169.254.0.1:8080/".to_owned(),
        "http://one/".to_owned(),
    ] {
        site.pod_gets("two", &url, "I am one");
        site.pod_gets("one", &url, "I am one");
    }
    site.machine.gets(&format!("http://{}/", one[0]), "I am one");
    site.machine.gets(&format!("http://[{}]/", one[1]), "I am one");
    site.machine.gets("http://127.0.0.1:8080/", "I am one");
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am one");
    site.outside.gets(&format!("http://[{HOST_V6}]:8080/"), "I am one");
    site.pod_gets("two", &format!("http://{OUTSIDE_V4}:7000/"), "I am outside");
    site.pod_gets("two", &format!("http://[{OUTSIDE_V6}]:7000/"), "I am outside");
}

#[test]
fn pods_on_bridge_reach_the_same() {
    let mut site = start();
    let one = site.web("one", "", PORT);
    site.web("two", "", "");
    let _server = WebServer::start(&site.outside, "[::]:7000", "I am outside");
    // With and without rules for packets of bridges, which docker switches on for all of them.
    let switches = "/proc/sys/net/bridge";
    let has_switches = site.machine.command(&["test", "-d", switches]).status().unwrap().success();
    for value in if has_switches { &["1", "0"][..] } else { &["0"] } {
        for name in ["iptables", "ip6tables"].iter().filter(|_| has_switches) {
            site.machine.run(&format!("sysctl -q -w net.bridge.bridge-nf-call-{name}={value}"));
        }
        all_is_well(&site);
    }
    // From outside, nobody gets in but by a port of the host.
    site.outside.run(&format!("ip route add {}/32 via {HOST_V4}", one[0]));
    site.outside.get(&format!("http://{}/", one[0])).unwrap_err();
    // Somebody flushes the rules and takes the bridge away: both come back.
    site.machine.run("nft flush ruleset");
    eventually("the rules of the bridge", || rules(&site).contains("from_ports").then_some(()).ok_or_else(|| rules(&site)));
    site.host.kill_daemon();
    site.machine.run(&format!("ip link del {}", bridge(&site)));
    site.host.start_daemon();
    all_is_well(&site);
    assert_eq!(site.addresses("one"), one);
}

/// Waits for a datagram at a port, and prints it.
const LISTEN: &str = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 5000)); s.settimeout(60); \
                      print('ready', flush=True); print(s.recvfrom(100)[0].decode(), flush=True)";
const SHOUT: &str = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
                     s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); s.sendto(b'I am two', ('10.201.15.255', 5000))";

struct Listener(Child);

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn pods_on_bridge_hear_each_others_broadcasts() {
    let site = start();
    site.web("one", "", "");
    site.web("two", "", "");
    let mut command = std::process::Command::new("nsenter");
    command.args(["-t", &pid(&site, "one"), "-n", "python3", "-c", LISTEN]).stdout(Stdio::piped());
    let mut listener = Listener(command.spawn().unwrap());
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(listener.0.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let (sent, said) = in_pod(&site, "two", &format!("python3 -c \"{SHOUT}\""));
    assert!(sent, "{said}");
    assert_eq!(lines.next().unwrap().unwrap(), "I am two");
}

#[test]
fn pod_on_bridge_cannot_pose_as_another() {
    let site = start();
    let one = site.web("one", "", "");
    site.web("two", "", "");
    let three = site.web("three", "", "");
    let own = site.addresses("two");
    assert!(in_pod(&site, "two", &format!("busybox ping -c 1 -W 2 {}", three[0])).0);
    for (address, target) in [(&one[0], &three[0]), (&one[1], &three[1])] {
        let (bits, ping, nodad) = if address.contains(':') { (128, "ping6", " nodad") } else { (32, "ping", "") };
        let (added, said) = in_pod(&site, "two", &format!("ip address add {address}/{bits} dev eth0{nodad}"));
        assert!(added, "{said}");
        let before = dropped(&site);
        let (answered, said) = in_pod(&site, "two", &format!("busybox {ping} -c 1 -W 1 -I {address} {target}"));
        assert!(!answered, "{said}");
        eventually("the rules to have dropped it", || (dropped(&site) > before).then_some(()).ok_or_else(|| rules(&site)));
    }
    // It answers for an address of another pod, and says so unasked.
    in_pod(&site, "two", &format!("busybox arping -c 1 -w 1 -U -I eth0 -s {} {}", one[0], one[0]));
    site.pod_gets("three", &format!("http://{}/", one[0]), "I am one");
    site.pod_gets("three", &format!("http://[{}]/", one[1]), "I am one");
    // The hardware address of another pod.
    in_pod(&site, "two", &format!("ip address del {}/32 dev eth0; ip -6 address del {}/128 dev eth0", one[0], one[1]));
    let mac = in_pod(&site, "one", "ip -o link show eth0").1;
    let mac = mac.split("link/ether ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let before = dropped(&site);
    in_pod(&site, "two", &format!("ip link set eth0 address {}", mac.trim()));
    let (answered, said) = in_pod(&site, "two", &format!("busybox ping -c 1 -W 1 -I {} {}", own[0], three[0]));
    assert!(!answered, "{said}");
    assert!(dropped(&site) > before, "{}", rules(&site));
    site.pod_gets("three", &format!("http://{}/", one[0]), "I am one");
}

#[test]
fn isolated_pod_on_bridge_is_left_alone() {
    let site = start();
    let one = site.web("one", "", "");
    let alone = site.web("alone", "podstead.dev/isolated: 'true'", PORT);
    let _server = WebServer::start(&site.outside, "0.0.0.0:7000", "I am outside");
    site.machine.gets(&format!("http://{}/", alone[0]), "I am alone");
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am alone");
    site.pod_gets("alone", &format!("http://{OUTSIDE_V4}:7000/"), "I am outside");
    for (from, url) in [
        ("one", format!("http://{}/", alone[0])),
        ("one", format!("http://[{}]/", alone[1])),
        ("one", format!("http://{HOST_V4}:8080/")),
        ("alone", format!("http://{}/", one[0])),
    ] {
        site.pod_get(from, &url).unwrap_err();
    }
    site.host.write_manifest("alone.yaml", &web("alone", "", PORT));
    site.pod_gets("one", &format!("http://{}/", alone[0]), "I am alone");
}

#[test]
fn udp_ports_lead_to_bridge_and_back() {
    host_ports::datagrams_come_back(&start());
}

#[test]
fn udp_client_reaches_next_pod_on_bridge() {
    host_ports::datagrams_follow(&start());
}

/// shows: spec.containers[].ports[].protocol
#[test]
fn sctp_ports_lead_to_pods_on_bridge() {
    host_ports::associations_find(&start());
}

/// Neighbours on the bridge that the host, and the bridge itself, know: addresses and hardware addresses of pods.
fn known_neighbours(site: &Site) -> Vec<String> {
    let bridge = bridge(site);
    let neighbours =
        site.machine.run(&format!("ip neigh show dev {bridge}")) + &site.machine.run(&format!("ip -6 neigh show dev {bridge}"));
    let forwarding = site.machine.run(&format!("bridge fdb show br {bridge}"));
    // 02:70 begins the addresses of pods' ends. Of one that is down, nothing is known but that it was asked for.
    let lines = neighbours.lines().filter(|line| !line.contains("FAILED") && !line.starts_with("fe80")).chain(forwarding.lines());
    lines.filter(|line| line.contains("02:70:")).map(str::to_owned).collect()
}

#[test]
fn reused_bridge_address_is_reached_at_once() {
    // Room for six pods: addresses come back soon.
    let mut site = Site::prepare("network: {mode: bridge, ipv4Range: 10.201.7.0/29, ipv6Range: 'fd00:7::/125'}\n");
    site.host.start_daemon();
    let one = site.web("one", "", PORT);
    site.web("two", "", "");
    for url in [format!("http://{}/", one[0]), format!("http://[{}]/", one[1])] {
        site.pod_gets("two", &url, "I am one");
        site.machine.gets(&url, "I am one");
    }
    let knows = |address: &str| known_neighbours(&site).iter().any(|line| line.starts_with(&format!("{address} ")));
    assert!(knows(&one[0]) && knows(&one[1]), "{:?}", known_neighbours(&site));
    site.host.remove_manifest("one.yaml");
    site.host.wait_gone("one");
    eventually("the host to have forgotten it", || {
        (!knows(&one[0]) && !knows(&one[1])).then_some(()).ok_or_else(|| format!("{:?}", known_neighbours(&site)))
    });
    let again = (0..12).find_map(|number| {
        let name = format!("next{number}");
        let addresses = site.web(&name, "", "");
        if addresses == one {
            return Some(name);
        }
        site.host.remove_manifest(&format!("{name}.yaml"));
        site.host.wait_gone(&name);
        None
    });
    let again = again.expect("the addresses are given out again");
    // Two remembers who had them.
    site.pod_gets("two", &format!("http://{}/", one[0]), &format!("I am {again}"));
    site.pod_gets("two", &format!("http://[{}]/", one[1]), &format!("I am {again}"));
    site.machine.gets(&format!("http://{}/", one[0]), &format!("I am {again}"));
    for name in [again.as_str(), "two"] {
        site.host.remove_manifest(&format!("{name}.yaml"));
        site.host.wait_gone(name);
    }
    eventually("nobody to be remembered", || {
        let known = known_neighbours(&site);
        known.is_empty().then_some(()).ok_or(format!("{known:?}"))
    });
}

#[test]
fn other_mode_counts_without_connected_pods() {
    let mut site = Site::prepare("");
    site.host.start_daemon();
    let one = site.web("one", "", PORT);
    let config = std::fs::read_to_string(site.host.path("config.yaml")).unwrap();
    let restart = |site: &mut Site, more: &str| {
        site.host.kill_daemon();
        std::fs::write(site.host.path("config.yaml"), config.clone() + more).unwrap();
        site.host.start_daemon();
    };
    restart(&mut site, BRIDGE);
    eventually("that to be told", || {
        let events = site.host.cli_ok(&["get", "events"]);
        events.contains("NetworkModeKept").then_some(()).ok_or(events)
    });
    site.web("two", "", "");
    assert_eq!(bridge(&site), "");
    site.pod_gets("two", &format!("http://{}/", one[0]), "I am one");
    for name in ["one", "two"] {
        site.host.remove_manifest(&format!("{name}.yaml"));
        site.host.wait_gone(name);
    }
    eventually("the interfaces to be gone", || {
        site.interfaces().is_empty().then_some(()).ok_or(format!("{:?}", site.interfaces()))
    });
    restart(&mut site, BRIDGE);
    let one = site.web("one", "", PORT);
    site.web("two", "", "");
    assert_ne!(bridge(&site), "");
    site.pod_gets("two", &format!("http://{}/", one[0]), "I am one");
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am one");
    // And back: nothing of the bridge is left.
    for name in ["one", "two"] {
        site.host.remove_manifest(&format!("{name}.yaml"));
        site.host.wait_gone(name);
    }
    eventually("the interfaces to be gone", || {
        site.interfaces().is_empty().then_some(()).ok_or(format!("{:?}", site.interfaces()))
    });
    restart(&mut site, "");
    site.web("one", "", PORT);
    assert_eq!((bridge(&site), rules(&site)), (String::new(), String::new()));
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am one");
}

/// Q31: addresses of Services lead to pods on the bridge, from pods too, and from a pod to itself.
#[test]
fn services_answer_on_a_bridge() {
    both_families(&start());
}

/// Waits for the event of a pod that policies select.
fn tells_not_enforced(site: &Site, pod: &str, policy: &str) {
    eventually(&format!("the event of {pod} and {policy}"), || {
        let events = site.host.cli_ok(&["get", "events"]);
        let is_told = |line: &str| {
            ["NetworkPolicyNotEnforced", &format!("{pod}-edge-1"), &format!("{policy} selects this pod")]
                .iter()
                .all(|word| line.contains(*word))
        };
        events.lines().any(is_told).then_some(()).ok_or(events)
    });
}

/// Q31: a pod that runs goes on when a policy comes to select it, or when its labels change, and is told of.
#[test]
fn running_pod_on_a_bridge_goes_on_under_a_policy() {
    let site = start();
    site.host.write_manifest("one.yaml", &labelled("one", "closed").replace("ports: []", &format!("ports: [{PORT}]")));
    site.addresses("one");
    site.web("two", "", "");
    let containers = ["one", "two"].map(|name| site.host.pod(name).unwrap().container_id("main"));
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am one");
    site.host.write_manifest("deny.yaml", &policy("deny", "podSelector: {matchLabels: {app: closed}}"));
    tells_not_enforced(&site, "one", "deny");
    // What passes the host does meet the rules; what passes the bridge, only where the kernel has bridges ask for them (br_netfilter).
    site.is_dropped_outside(&format!("http://{HOST_V4}:8080/"));
    site.host.write_manifest("two.yaml", &labelled("two", "closed"));
    tells_not_enforced(&site, "two", "deny");
    assert_eq!(["one", "two"].map(|name| site.host.pod(name).unwrap().container_id("main")), containers);
}

/// Q31: packets between pods on a bridge need not meet the rules of policies.
#[test]
fn selected_pod_on_a_bridge_waits() {
    let site = start();
    site.host.write_manifest("deny.yaml", &policy("deny", "podSelector: {matchLabels: {app: closed}}"));
    site.host.write_manifest("closed.yaml", &labelled("closed", "closed"));
    site.web("open", "", "");
    tells_not_enforced(&site, "closed", "deny");
    assert_eq!(site.host.pod("closed").unwrap().waiting_reason("main"), "ContainerCreating");
    site.host.remove_manifest("deny.yaml");
    let closed = site.addresses("closed");
    site.pod_gets("open", &format!("http://{}/", closed[0]), "I am closed");
}
