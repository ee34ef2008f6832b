//! Hosts as they are: without uplink, with one that comes later or has the pods' range, beside other people's rules.

use super::lan::{HOST_V4, Machine, OUTSIDE_V4, Site, WebServer, pod_gets, web};
use crate::support::{TestHost, eventually, eventually_within};
use std::time::Duration;

/// Time for what needs a turn of the housekeeping.
const HOUSEKEEPING: Duration = Duration::from_secs(180);

#[test]
fn pods_are_connected_without_host_network() {
    let machine = Machine::new("alone");
    let mut host = TestHost::prepare_in(&machine.netns, "");
    host.start_daemon();
    host.write_manifest("one.yaml", &web("one", "", "{containerPort: 80, hostPort: 8080}"));
    let one = host.wait_running("one");
    machine.gets("http://127.0.0.1:8080/", "I am one");
    machine.gets(&format!("http://{}/", one.0["status"]["podIP"].as_str().unwrap()), "I am one");
    // The uplink comes later.
    let outside = Machine::new("outside");
    machine.join("uplink", &outside, "lan0");
    machine.address("uplink", &format!("{HOST_V4}/24"));
    outside.address("lan0", &format!("{OUTSIDE_V4}/24"));
    outside.gets(&format!("http://{HOST_V4}:8080/"), "I am one");
    let _server = WebServer::start(&outside, "0.0.0.0:7000", "I am outside");
    let url = format!("http://{OUTSIDE_V4}:7000/");
    pod_gets(&host, "one", &url, "I am outside");
}

#[test]
fn range_used_by_host_is_avoided() {
    let mut site = Site::prepare("");
    site.machine.address("uplink", "10.201.3.4/24");
    site.host.start_daemon();
    let one = site.web("one", "", "");
    assert!(one[0].starts_with("10.213."), "{one:?}");
    site.machine.address("uplink", "10.213.7.1/24");
    site.host.kill_daemon();
    site.host.start_daemon();
    assert_eq!(site.addresses("one"), one, "what has an address keeps it");
    eventually("the collision to be told", || {
        let events = site.host.cli_ok(&["get", "events"]);
        (events.contains("PodRangeCollides") && events.contains("10.213.0.0/20")).then_some(()).ok_or(events)
    });
    site.machine.gets(&format!("http://{}/", one[0]), "I am one");
}

#[test]
fn vpn_for_everything_leaves_pods_their_range() {
    let mut site = Site::prepare("");
    for half in ["0.0.0.0/1", "128.0.0.0/1"] {
        site.machine.run(&format!("ip route add {half} via {OUTSIDE_V4}"));
    }
    site.machine.run(&format!("ip -6 route add fc00::/7 via {}", super::lan::OUTSIDE_V6));
    site.host.start_daemon();
    let one = site.web("one", "", "");
    assert!(one[0].starts_with("10.201.") && one[1].starts_with("fd70:6f64:7374:1:"), "{one:?}");
    assert!(!site.host.cli_ok(&["get", "events"]).contains("PodRangeCollides"));
}

#[test]
fn routes_to_all_private_networks_are_reported() {
    let mut site = Site::prepare("");
    for network in ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"] {
        site.machine.run(&format!("ip route add {network} via {OUTSIDE_V4}"));
    }
    site.machine.address("uplink", "fd70:6f64:7374::5/48");
    site.host.start_daemon();
    let one = site.web("one", "", "");
    assert!(one[0].starts_with("10.201.") && one[1].is_empty(), "{one:?}");
    site.machine.gets(&format!("http://{}/", one[0]), "I am one");
    eventually("both to be told", || {
        let events = site.host.cli_ok(&["get", "events"]);
        (events.contains("PodRangeCollides") && events.contains("PodRangeMissing")).then_some(()).ok_or(events)
    });
}

#[test]
fn dropping_nftables_firewall_is_reported_only() {
    let mut site = Site::prepare("");
    site.machine.run("nft add table inet mine");
    site.machine.run("nft add chain inet mine gate { type filter hook forward priority 0 ; policy drop ; }");
    let before = site.machine.run("nft list table inet mine");
    site.host.start_daemon();
    let one = site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    site.machine.gets(&format!("http://{}/", one[0]), "I am one");
    site.machine.gets("http://127.0.0.1:8080/", "I am one");
    let url = format!("http://{HOST_V4}:8080/");
    site.outside.get(&url).unwrap_err();
    eventually("the chain to be named", || {
        let events = site.host.cli_ok(&["get", "events"]);
        (events.contains("ForwardingBlocked") && events.contains("chain gate of table inet mine")).then_some(()).ok_or(events)
    });
    assert_eq!(site.machine.run("nft list table inet mine"), before, "rules of others are not podstead's to change");
    let doctor = |site: &Site| {
        let mut command = site.machine.command(&[crate::support::binary("podstead").to_str().unwrap(), "--config"]);
        let out = command.arg(site.host.path("config.yaml")).args(["doctor", "network"]).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    assert!(doctor(&site).contains("chain gate of table inet mine drops forwarded packets of pods"), "{}", doctor(&site));
    let interface = site.interfaces().pop().unwrap();
    let prefix = interface.split('-').next().unwrap();
    for direction in ["iifname", "oifname"] {
        site.machine.run(&format!("nft add rule inet mine gate {direction} {prefix}-* accept"));
    }
    site.outside.gets(&url, "I am one");
}

#[test]
fn iptables_is_left_alone_if_configured() {
    let mut site = Site::prepare("network: {acceptInIptables: false}\n");
    site.machine.run("iptables-nft -P FORWARD DROP");
    let before = site.machine.run("nft list table ip filter");
    site.host.start_daemon();
    site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    eventually("the chain to be named", || {
        let events = site.host.cli_ok(&["get", "events"]);
        (events.contains("ForwardingBlocked") && events.contains("chain FORWARD of table ip filter")).then_some(()).ok_or(events)
    });
    site.outside.get(&format!("http://{HOST_V4}:8080/")).unwrap_err();
    assert_eq!(site.machine.run("nft list table ip filter"), before);
}

#[test]
fn forwarding_switched_off_is_restored() {
    let mut site = Site::prepare("");
    let settings = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];
    // The host was a router before.
    settings.iter().for_each(|setting| drop(site.machine.run(&format!("sysctl -q -w {setting}=1"))));
    site.host.start_daemon();
    site.web("one", "", "");
    let _server = WebServer::start(&site.outside, "0.0.0.0:7000", "I am outside");
    let url = format!("http://{OUTSIDE_V4}:7000/");
    site.pod_gets("one", &url, "I am outside");
    let unguarded = site.rules();
    settings.iter().for_each(|setting| drop(site.machine.run(&format!("sysctl -q -w {setting}=0"))));
    site.pod_get("one", &url).unwrap_err();
    site.host.keep_house();
    eventually_within(HOUSEKEEPING, "both switches to be thrown", || {
        let values = settings.map(|setting| site.machine.run(&format!("sysctl -n {setting}")));
        values.iter().all(|value| value.trim() == "1").then_some(()).ok_or(format!("{values:?}"))
    });
    site.pod_gets("one", &url, "I am outside");
    eventually("it to be told", || {
        let events = site.host.cli_ok(&["get", "events"]);
        (events.contains("ForwardingSwitchedOff") && events.contains(settings[0])).then_some(()).ok_or(events)
    });
    let rules = |text: &str| text.lines().count();
    assert!(rules(&site.rules()) > rules(&unguarded), "others' packets are not podstead's to pass on: {}", site.rules());
}

/// The largest packet of a pod's interface and of its other end.
fn mtus(site: &Site, name: &str) -> Vec<String> {
    let pid = site.host.container_pid(&site.host.pod(name).unwrap(), "main").to_string();
    let out = std::process::Command::new("nsenter").args(["-t", &pid, "-n", "ip", "-o", "link", "show", "eth0"]).output().unwrap();
    let mtu = |line: &str| line.split("mtu ").nth(1)?.split(' ').next().map(str::to_owned);
    let mut found: Vec<String> = mtu(&String::from_utf8_lossy(&out.stdout)).into_iter().collect();
    let here = site.machine.run("ip -o link show type veth");
    let ours = here.lines().filter(|line| line.contains(": ps"));
    found.extend(ours.filter_map(mtu));
    found
}

#[test]
fn pod_packets_fit_the_uplink() {
    let mut site = Site::prepare("");
    site.machine.run("ip link set uplink mtu 1380");
    site.host.start_daemon();
    site.web("one", "", "");
    assert_eq!(mtus(&site, "one"), ["1380", "1380"]);
}

#[test]
fn one_family_of_the_uplink_is_enough() {
    for (gone, kept) in [("-6", OUTSIDE_V4.to_owned()), ("-4", format!("[{}]", super::lan::OUTSIDE_V6))] {
        let mut site = Site::prepare("");
        site.machine.run(&format!("ip {gone} address flush dev uplink scope global"));
        site.host.start_daemon();
        let one = site.web("one", "", "{containerPort: 80, hostPort: 8080}");
        assert!(one.iter().all(|ip| !ip.is_empty()), "both families inside: {one:?}");
        let _server = WebServer::start(&site.outside, "[::]:7000", "I am outside");
        site.pod_gets("one", &format!("http://{kept}:7000/"), "I am outside");
        let host = if gone == "-6" { HOST_V4.to_owned() } else { format!("[{}]", super::lan::HOST_V6) };
        site.outside.gets(&format!("http://{host}:8080/"), "I am one");
    }
}

#[test]
fn returning_uplink_with_new_address_is_used() {
    let site = Site::start();
    let one = site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    let _server = WebServer::start(&site.outside, "0.0.0.0:7000", "I am outside");
    let outside = format!("http://{OUTSIDE_V4}:7000/");
    site.pod_gets("one", &outside, "I am outside");
    site.machine.run("ip link set uplink down");
    site.pod_get("one", &outside).unwrap_err();
    site.machine.gets(&format!("http://{}/", one[0]), "I am one");
    site.machine.gets("http://127.0.0.1:8080/", "I am one");
    site.machine.run("ip link set uplink up");
    site.machine.run(&format!("ip address del {HOST_V4}/24 dev uplink"));
    site.machine.address("uplink", "192.0.2.77/24");
    site.outside.gets("http://192.0.2.77:8080/", "I am one");
    site.pod_gets("one", &outside, "I am outside");
    // The interface itself goes, as that of a modem does, and another one comes.
    site.machine.run("ip link del uplink");
    let modem = Machine::new("modem");
    site.machine.join("wwan0", &modem, "lan0");
    site.machine.address("wwan0", "198.51.100.2/24");
    modem.address("lan0", "198.51.100.1/24");
    let _server = WebServer::start(&modem, "0.0.0.0:7000", "I am another");
    site.pod_gets("one", "http://198.51.100.1:7000/", "I am another");
    modem.gets("http://198.51.100.2:8080/", "I am one");
}

#[test]
fn router_between_hosts_keeps_pods_apart() {
    // Both have the same range of pods.
    let (router, other) = (Machine::new("router"), Machine::new("other"));
    let site = Site::start();
    site.machine.join("side", &router, "left");
    other.join("uplink", &router, "right");
    site.machine.address("side", "198.51.100.2/24");
    router.address("left", "198.51.100.1/24");
    router.address("right", "203.0.113.1/24");
    other.address("uplink", "203.0.113.2/24");
    router.run("sysctl -q -w net.ipv4.ip_forward=1");
    site.machine.run("ip route add 203.0.113.0/24 via 198.51.100.1");
    other.run("ip route add default via 203.0.113.1");
    let mut second = TestHost::prepare_in(&other.netns, "");
    second.start_daemon();
    second.write_manifest("two.yaml", &web("two", "", "{containerPort: 80, hostPort: 8080}"));
    let two = second.wait_running("two").0["status"]["podIP"].as_str().unwrap().to_owned();
    let one = site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    assert_eq!(one[0], two, "what the address of a pod is matters on its host alone");
    site.pod_gets("one", "http://203.0.113.2:8080/", "I am two");
    site.pod_gets("one", &format!("http://{two}/"), "I am one");
    pod_gets(&second, "two", "http://198.51.100.2:8080/", "I am one");
}
