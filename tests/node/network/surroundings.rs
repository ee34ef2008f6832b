//! Hosts as they are: without uplink, with one that comes later or has the pods' range, beside other people's rules.

use super::lan::{HOST_V4, Machine, OUTSIDE_V4, Site, WebServer, web};
use crate::support::{TestHost, eventually};

#[test]
fn pods_are_connected_on_a_host_without_any_network() {
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
    let answer = host.exec("one", "main", &["timeout", "5", "wget", "-q", "-O", "-", &url]);
    assert!(answer.contains("I am outside"));
}

#[test]
fn a_range_that_the_host_uses_is_not_taken_and_one_that_it_comes_to_use_is_told() {
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
fn a_firewall_of_nftables_that_drops_what_passes_is_told_and_left_alone() {
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
    let interface = site.interfaces().pop().unwrap();
    let prefix = interface.split('-').next().unwrap();
    for direction in ["iifname", "oifname"] {
        site.machine.run(&format!("nft add rule inet mine gate {direction} {prefix}-* accept"));
    }
    site.outside.gets(&url, "I am one");
}

#[test]
fn iptables_is_left_alone_where_the_configuration_says_so() {
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
