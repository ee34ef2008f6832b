//! `podstead doctor network` on hosts whose network is not as it should be.

use super::lan::{Site, WebServer, web};
use crate::support::{binary, eventually};
use serde_json::Value;
use std::process::Child;

/// The findings of some checks, as `check severity: what; why; remedy`.
fn findings(site: &Site, checks: &[&str]) -> Vec<String> {
    let mut command = site.machine.command(&[binary("podstead").to_str().unwrap(), "--config"]);
    let out = command.arg(site.host.path("config.yaml")).args(["doctor", "-o", "json"]).args(checks).output().unwrap();
    let report: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out:?}"));
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap_or_default().to_owned();
    let line = |finding: &Value| {
        let [check, severity, what, why, remedy] = ["check", "severity", "what", "why", "remedy"].map(|field| text(finding, field));
        format!("{check} {severity}: {what}; {why}; {remedy}")
    };
    report["findings"].as_array().unwrap().iter().map(line).collect()
}

/// Waits for a finding that has all of these words.
pub(super) fn finds(site: &Site, checks: &[&str], words: &[&str]) {
    eventually(&format!("{words:?}"), || {
        let findings = findings(site, checks);
        let has = findings.iter().any(|line| words.iter().all(|word| line.contains(word)));
        has.then_some(()).ok_or(format!("{findings:#?}"))
    });
}

struct Taker(Child);

impl Drop for Taker {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn ports_that_two_have_are_named() {
    let mut site = Site::prepare("");
    let bind = "use Socket; socket(S, AF_INET, SOCK_DGRAM, 0) or die; bind(S, pack_sockaddr_in(53, inet_aton('127.112.115.53'))) or die; sleep 600";
    let _taker = Taker(site.machine.command(&["perl", "-e", bind]).spawn().unwrap());
    eventually("the port to be taken", || {
        let sockets = site.machine.run("ss -Hlun");
        sockets.contains("127.112.115.53:53").then_some(()).ok_or(sockets)
    });
    site.host.start_daemon();
    site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    finds(&site, &["network"], &["network warning: port 53 on 127.112.115.53 is in use by perl (process "]);
    // A service that comes later, and a pod.
    let server = WebServer::start(&site.machine, "0.0.0.0:8080", "I am the host");
    finds(&site, &["network"], &["network warning: hostPort 8080/TCP of pod default/one-edge-1 is also used by busybox (process "]);
    drop(server);
    site.host.write_manifest("two.yaml", &web("two", "", "{containerPort: 80, hostPort: 8080}"));
    finds(
        &site,
        &["pods"],
        &["pods problem: pod two-edge-1 is HostPortConflict", "hostPort 8080/TCP is in use by pod one-edge-1_default"],
    );
}

#[test]
fn obstacles_to_packets_are_named_with_remedy() {
    let mut site = Site::start();
    site.web("one", "", "");
    let network = ["network"];
    finds(&site, &network, &["network ok: the network of 1 pods is complete"]);
    site.machine.run("ip link set uplink mtu 1400");
    finds(&site, &network, &["network note: the uplink has an MTU of 1400, the interfaces of pods have 1500 to 1500"]);
    site.machine.run("ip link set uplink mtu 1500");
    site.machine.address("uplink", "10.201.3.4/24");
    finds(&site, &network, &["network problem: ", "10.201.0.0/20", "network.ipv4Range"]);
    site.machine.run("ip address del 10.201.3.4/24 dev uplink");
    // Nobody heals anything while the daemon is away.
    site.host.kill_daemon();
    for setting in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
        site.machine.run(&format!("sysctl -q -w {setting}=0"));
        finds(&site, &network, &[&format!("network problem: {setting} is 0"), &format!("sysctl -w {setting}=1")]);
        site.machine.run(&format!("sysctl -q -w {setting}=1"));
    }
    let interface = site.interfaces().remove(0);
    site.machine.run(&format!("ip link delete {interface}"));
    finds(&site, &network, &[&format!("network problem: the interface {interface} of pod default/one-edge-1 is missing")]);
    site.machine.run("iptables -P INPUT DROP");
    finds(
        &site,
        &network,
        &[
            "network note: chain INPUT of table ip filter drops all packets to this host that no rule accepts",
            "iptables -I INPUT -i 'ps-+' -p udp",
        ],
    );
    site.machine.run("iptables -P INPUT ACCEPT");
    let tables = site.machine.run("nft list tables");
    let table = tables.lines().find(|line| line.contains("podstead") && !line.ends_with("_standby")).unwrap();
    site.machine.run(&format!("nft delete {table}"));
    finds(&site, &network, &["network problem: the packet rules of pods are missing"]);
    site.host.start_daemon();
    finds(&site, &network, &["network ok: the network of 1 pods is complete"]);
}
