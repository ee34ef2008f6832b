//! Isolation of pods from each other and from the host, and of the network from others.

use super::lan::{HOST_V4, OUTSIDE_V4, Site, WebServer, web};
use super::policies::policy;
use super::services::{cluster_ip, service};
use crate::support::eventually;

#[test]
fn a_pod_cannot_send_with_another_source() {
    let site = Site::start();
    let one = site.web("one", "", "");
    let two = site.web("two", "", "");
    let _server = WebServer::start(&site.outside, "0.0.0.0:7000", "I am outside");
    site.pod_gets("two", &format!("http://{OUTSIDE_V4}:7000/"), "I am outside");
    // The pod's own network, changed by a hand that has all rights there: the address of the other pod, and one of nobody.
    let pid = site.host.container_pid(&site.host.pod("two").unwrap(), "main").to_string();
    let in_pod = |script: &str| {
        let out = std::process::Command::new("nsenter").args(["-t", &pid, "-n", "sh", "-c", script]).output().unwrap();
        (out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr))
    };
    for (address, family) in
        [(one[0].as_str(), "-4"), ("10.201.9.9", "-4"), (one[1].as_str(), "-6"), ("fd70:6f64:7374:1::999", "-6")]
    {
        let (target, bits) = if family == "-4" { ("169.254.0.1", 32) } else { ("fd70:6f64:7374::1", 128) };
        let ping = if family == "-4" { "ping" } else { "ping6" };
        let own = if family == "-4" { &two[0] } else { &two[1] };
        let nodad = if family == "-6" { "nodad" } else { "" };
        assert!(in_pod(&format!("ip address add {address}/{bits} dev eth0 {nodad}")).0);
        let counted = || {
            let rules = site.rules();
            let packets = |line: &str| line.split("packets ").nth(1)?.split(' ').next()?.parse::<u64>().ok();
            let chain = rules.split("chain from_pods").nth(1).unwrap().split('}').next().unwrap().to_owned();
            chain.lines().filter_map(packets).sum::<u64>()
        };
        let before = counted();
        assert!(in_pod(&format!("busybox {ping} -c 1 -W 2 -I {own} {target}")).0, "its own address works");
        let (answered, said) = in_pod(&format!("busybox {ping} -c 1 -W 1 -I {address} {target}"));
        assert!(!answered, "{said}");
        assert!(counted() > before, "the packet rules dropped it: {}", site.rules());
    }
    // Loopback of the host is not to be had either.
    let _local = WebServer::start(&site.machine, "127.0.0.1:6000", "I am private");
    site.machine.gets("http://127.0.0.1:6000/", "I am private");
    let script = "ip address del 127.0.0.1/8 dev lo; ip route add 127.0.0.1/32 via 169.254.0.1 src 10.201.0.2; \
                  echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet; curl -sS -m 2 http://127.0.0.1:6000/";
    let (answered, said) = in_pod(script);
    assert!(!answered, "{said}");
}

/// shows: metadata.annotations
#[test]
fn isolated_pod_is_left_alone() {
    let site = Site::start();
    site.web("one", "", "");
    let ports = "{containerPort: 80, hostPort: 8080}";
    let labels = |manifest: String| manifest.replace("  name: alone\n", "  name: alone\n  labels: {app: alone}\n");
    // Neither a policy that allows it nor a Service lets another pod in.
    site.host.write_manifest("open.yaml", &policy("open", "podSelector: {matchLabels: {app: alone}}, ingress: [{}]"));
    site.host.write_manifest("alone.yaml", &labels(web("alone", "podstead.dev/isolated: 'true'", ports)));
    let (alone, one) = (site.addresses("alone"), site.addresses("one"));
    site.host.write_manifest(
        "service.yaml",
        &service("alone", "type: NodePort, selector: {app: alone}, ports: [{port: 80, nodePort: 30080}]"),
    );
    let by_service = format!("http://{}/", cluster_ip(&site.host, "alone"));
    site.machine.gets(&by_service, "I am alone");
    site.outside.gets(&format!("http://{HOST_V4}:30080/"), "I am alone");
    let _server = WebServer::start(&site.outside, "0.0.0.0:7000", "I am outside");
    site.machine.gets(&format!("http://{}/", alone[0]), "I am alone");
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am alone");
    site.pod_gets("alone", &format!("http://{OUTSIDE_V4}:7000/"), "I am outside");
    site.pod_gets("alone", &format!("http://{HOST_V4}:8080/"), "I am alone");
    for (from, url) in [
        ("one", format!("http://{}/", alone[0])),
        ("one", format!("http://[{}]/", alone[1])),
        ("one", format!("http://{HOST_V4}:8080/")),
        ("one", format!("http://{HOST_V4}:30080/")),
        ("one", by_service.clone()),
        ("alone", format!("http://{}/", one[0])),
    ] {
        site.pod_get(from, &url).unwrap_err();
    }
    // Taking the annotation away takes effect at once, and on the running pod.
    let before = site.host.pod("alone").unwrap().container_id("main");
    site.host.write_manifest("alone.yaml", &labels(web("alone", "", ports)));
    site.pod_gets("one", &format!("http://{}/", alone[0]), "I am alone");
    site.pod_gets("one", &by_service, "I am alone");
    assert_eq!(site.host.pod("alone").unwrap().container_id("main"), before);
}

#[test]
fn flushed_rules_are_back_at_once() {
    let site = Site::start();
    site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    let url = format!("http://{HOST_V4}:8080/");
    site.outside.gets(&url, "I am one");
    // Before any harm: while the table is made again, a second one stands in for it.
    let tables = site.machine.run("nft list tables");
    let table = tables
        .lines()
        .find(|line| line.contains("podstead") && !line.ends_with("_standby"))
        .unwrap()
        .split(' ')
        .nth(2)
        .unwrap()
        .to_owned();
    let whole = site.rules();
    for harm in
        ["nft flush ruleset", "nft flush chain inet {} host_ports", "nft delete table inet {}", "nft flush set inet {} pods4"]
    {
        site.machine.run(&harm.replace("{}", &table));
        eventually("the rules to be there again", || {
            let rules = site.rules();
            let same = rules.lines().count() == whole.lines().count();
            same.then_some(()).ok_or(format!("after {harm}: {rules}"))
        });
        site.outside.gets(&url, "I am one");
    }
}

#[test]
fn host_without_forwarding_forwards_only_for_pods() {
    let site = Site::start();
    // Another network behind the host.
    let inside = super::lan::Machine::new("inside");
    site.machine.join("second", &inside, "lan0");
    site.machine.address("second", "198.51.100.1/24");
    inside.address("lan0", "198.51.100.2/24");
    inside.run("ip route add default via 198.51.100.1");
    site.outside.run(&format!("ip route add 198.51.100.0/24 via {HOST_V4}"));
    let _server = WebServer::start(&inside, "0.0.0.0:7000", "I am inside");
    site.machine.gets("http://198.51.100.2:7000/", "I am inside");
    // Veths stand for cables here, and are what other people's containers have elsewhere: to be asked as a cable, the uplink is one
    // of another kind.
    site.machine.run("ip link add link uplink name wan type macvlan mode bridge");
    site.outside.run("ip link add link lan0 name wan type macvlan mode bridge");
    for (machine, address) in [(&site.machine, "203.0.113.2"), (&site.outside, "203.0.113.1")] {
        // Else the interface below answers for it, too, and packets come in there.
        machine.run("sysctl -qw net.ipv4.conf.all.arp_ignore=1");
        machine.run("ip link set wan up");
        machine.address("wan", &format!("{address}/24"));
    }
    site.outside.run("ip route replace 198.51.100.0/24 via 203.0.113.2");
    inside.run("ip route replace default via 198.51.100.1");
    assert_eq!(site.machine.run("cat /proc/sys/net/ipv4/ip_forward").trim(), "0", "no pod needs it yet");
    site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    assert_eq!(site.machine.run("cat /proc/sys/net/ipv4/ip_forward").trim(), "1");
    site.outside.gets("http://203.0.113.2:8080/", "I am one");
    site.outside.get("http://198.51.100.2:7000/").unwrap_err();
    // An administrator who wants a router says so before podstead does.
    site.pod_gets("one", "http://198.51.100.2:7000/", "I am inside");
}
