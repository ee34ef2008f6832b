//! Name servers of pods that plugins connect: podstead's, those of their network, those of the host.

use super::super::lan::{HOST_V4, OUTSIDE_V4, WebServer, web};
use super::super::names;
use super::{CniSite, HOUSEKEEPING};
use crate::support::PodView;
use std::fs;

/// A bridge whose configuration names a resolver, which plugins pass on in their result.
fn with_resolver(cni: &CniSite) -> String {
    let dns = r#""dns": {"nameservers": ["10.77.0.53"], "domain": "plant.example", "search": ["a.plant.example", "plant.example"], "options": ["ndots:2"]}, "#;
    cni.bridge("").replace(r#""type": "bridge", "#, &format!(r#""type": "bridge", {dns}"#))
}

fn pod(name: &str, policy: &str) -> String {
    web(name, "", "").replace("spec:\n", &format!("spec:\n  dnsPolicy: {policy}\n"))
}

const OF_THE_NETWORK: &str = "search a.plant.example plant.example\nnameserver 10.77.0.53\noptions ndots:2\n";

#[test]
fn d22_cluster_first_means_first_networks_servers() {
    let mut cni = CniSite::prepare("cni");
    cni.write("10-lan.conflist", &with_resolver(&cni));
    cni.site.host.start_daemon();
    let read = |name: &str| {
        cni.site.host.wait_running(name);
        cni.site.host.exec(name, "main", &["cat", "/etc/resolv.conf"])
    };
    let host = &cni.site.host;
    host.write_manifest("one.yaml", &pod("one", "ClusterFirst"));
    assert_eq!(read("one"), OF_THE_NETWORK);
    let of_the_host = fs::read_to_string("/etc/resolv.conf").unwrap();
    host.write_manifest("two.yaml", &pod("two", "Default"));
    let two = read("two");
    assert!(!two.contains("10.77.0.53"), "{two}");
    let servers =
        |text: &str| text.lines().filter(|line| line.starts_with("nameserver ")).take(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(servers(&two), servers(&of_the_host));
    host.write_manifest("three.yaml", &pod("three", "None\n  dnsConfig: {nameservers: [192.0.2.9]}"));
    assert_eq!(read("three"), "nameserver 192.0.2.9\n");
    // A container that another daemon starts has the same.
    let mut cni = cni;
    cni.site.host.kill_daemon();
    cni.site.host.start_daemon();
    let one = cni.site.host.wait_running("one");
    let pid = cni.site.host.container_pid(&one, "main");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL).unwrap();
    cni.site
        .host
        .wait_for_pod("one", "another run", |now| now.runs("main") && now.container_id("main") != one.container_id("main"));
    assert_eq!(cni.site.host.exec("one", "main", &["cat", "/etc/resolv.conf"]), OF_THE_NETWORK);
}

#[test]
fn pod_of_other_network_avoids_own_resolver() {
    let mut cni = CniSite::prepare("builtin");
    cni.write("lan.conflist", &with_resolver(&cni));
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("one.yaml", &web("one", "v1.multus-cni.io/default-network: lan", ""));
    assert!(cni.address("one").starts_with("10.77.0."));
    assert_eq!(cni.site.host.exec("one", "main", &["cat", "/etc/resolv.conf"]), OF_THE_NETWORK);
    cni.site.host.write_manifest("two.yaml", &web("two", "", ""));
    cni.site.host.wait_running("two");
    let two = cni.site.host.exec("two", "main", &["cat", "/etc/resolv.conf"]);
    assert!(two.contains("nameserver 169.254.0.1\n"), "{two}");
}

const OF_PODSTEAD: &str = "search default.svc.cluster.local svc.cluster.local cluster.local";

fn settings(cni: &CniSite, pod: &str) -> String {
    cni.site.host.wait_running(pod);
    cni.site.host.exec(pod, "main", &["cat", "/etc/resolv.conf"])
}

/// A question of a pod to the resolver at the bridge's address.
fn dig(cni: &CniSite, pod: &str, words: &str, what: &str) {
    names::digs(&cni.site, pod, &format!("@10.77.0.1 {words}"), what);
}

#[test]
fn d22_pods_routed_by_host_find_names() {
    let mut cni = CniSite::prepare(&format!("cni, dns: {{forwarders: ['{OUTSIDE_V4}']}}"));
    cni.write("10-lan.conflist", &cni.bridge(""));
    let _server = names::NameServer::start(&cni.site);
    cni.site.host.start_daemon();
    for name in ["one", "two"] {
        cni.site.host.write_manifest(&format!("{name}.yaml"), &pod(name, "ClusterFirst"));
    }
    let file = settings(&cni, "one");
    assert!(file.starts_with(OF_PODSTEAD) && file.contains("\nnameserver 10.77.0.1\n") && file.contains("ndots:5"), "{file}");
    assert_eq!(file.matches("nameserver").count(), 1, "{file}");
    let (one, two) = (cni.address("one"), cni.address("two"));
    for name in ["two", "two.default", "two-edge-1.default.svc.cluster.local"] {
        names::looks_up(&cni.site.host, "one", "default", name, &two);
    }
    cni.site.pod_gets("one", "http://two/", "I am two");
    dig(&cni, "one", &format!("+short -x {one}"), "one.default.svc.cluster.local.");
    dig(&cni, "one", "+tcp +short two.default.svc.cluster.local", &two);
    dig(&cni, "one", "+short printer.site.test", "198.51.100.9");
    // Nobody but pods is answered: neither the host nor who is beside it.
    cni.site.outside.run(&format!("ip route add 10.77.0.0/24 via {HOST_V4}"));
    for machine in [&cni.site.machine, &cni.site.outside] {
        let out = machine.command(&["dig", "+time=1", "+tries=1", "@10.77.0.1", "two.default.svc.cluster.local"]).output().unwrap();
        assert!(!out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    }
    // Another daemon answers pods that run.
    cni.site.host.kill_daemon();
    cni.site.host.start_daemon();
    dig(&cni, "one", "+short two.default.svc.cluster.local", &two);
    cni.site.host.remove_manifest("two.yaml");
    cni.site.host.wait_gone("two");
    dig(&cni, "one", "two.default.svc.cluster.local", "status: NXDOMAIN");
}

#[test]
fn d22_pods_find_the_resolver_by_ipv6() {
    let mut cni = CniSite::prepare("cni");
    cni.write("10-lan.conflist", &cni.bridge("").replace("10.77.0.0/24", "fd77::/64").replace("0.0.0.0/0", "::/0"));
    cni.site.host.start_daemon();
    for name in ["one", "two"] {
        cni.site.host.write_manifest(&format!("{name}.yaml"), &pod(name, "ClusterFirst"));
    }
    let file = settings(&cni, "one");
    assert!(file.contains("\nnameserver fd77::1\n"), "{file}");
    let two = cni.address("two");
    names::digs(&cni.site, "one", "@fd77::1 +short AAAA two.default.svc.cluster.local", &two);
}

/// A pair of interfaces for each pod, all with the same router.
#[test]
fn d22_point_to_point_pods_find_names() {
    let mut cni = CniSite::prepare("cni");
    let ipam = cni.path("ipam").display().to_string();
    cni.write(
        "10-links.conflist",
        &format!(
            r#"{{"cniVersion": "1.0.0", "name": "links", "plugins": [{{"type": "ptp", "ipam": {{"type": "host-local", "dataDir": "{ipam}",
                "ranges": [[{{"subnet": "10.78.0.0/24"}}]], "routes": [{{"dst": "0.0.0.0/0"}}]}}}}]}}"#
        ),
    );
    cni.site.host.start_daemon();
    for name in ["one", "two"] {
        cni.site.host.write_manifest(&format!("{name}.yaml"), &pod(name, "ClusterFirst"));
    }
    let file = settings(&cni, "one");
    assert!(file.contains("\nnameserver 10.78.0.1\n"), "{file}");
    let two = cni.address("two");
    names::looks_up(&cni.site.host, "one", "default", "two", &two);
}

/// A pod on podstead's own network and one of a plugin's ask the same resolver, each where it finds it.
#[test]
fn d22_both_networks_know_each_others_names() {
    let mut cni = CniSite::prepare("builtin");
    cni.write("lan.conflist", &cni.bridge(""));
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("one.yaml", &web("one", "v1.multus-cni.io/default-network: lan", ""));
    cni.site.host.write_manifest("two.yaml", &web("two", "", ""));
    let (one, two) = (settings(&cni, "one"), settings(&cni, "two"));
    assert!(one.contains("\nnameserver 10.77.0.1\n") && two.contains("\nnameserver 169.254.0.1\n"), "{one}{two}");
    let (one, two) = (cni.address("one"), cni.address("two"));
    dig(&cni, "one", "+short two.default.svc.cluster.local", &two);
    names::digs(&cni.site, "two", "+short one.default.svc.cluster.local", &one);
}

/// No way to the host is known of a pod whose router is another machine, and where the resolver is switched off, it is nobody's.
#[test]
fn d22_pods_without_resolver_use_hosts_servers() {
    let servers = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("nameserver ")).take(3).map(str::to_owned).collect()
    };
    let of_the_host = servers(&fs::read_to_string("/etc/resolv.conf").unwrap());
    let expect_of_the_host = |cni: &CniSite| {
        for (name, policy) in [("one", "ClusterFirst"), ("two", "Default")] {
            cni.site.host.write_manifest(&format!("{name}.yaml"), &pod(name, policy));
            let file = settings(cni, name);
            assert_eq!(servers(&file), of_the_host, "{file}");
            assert!(!file.contains("svc.cluster.local"), "{file}");
        }
    };
    let mut elsewhere = CniSite::prepare("cni");
    elsewhere.write("10-lan.conflist", &elsewhere.bridge("").replace(r#""isGateway": true, "#, ""));
    elsewhere.site.host.start_daemon();
    expect_of_the_host(&elsewhere);
    let mut off = CniSite::prepare("cni, dns: {enabled: false}");
    off.write("10-lan.conflist", &off.bridge(""));
    off.site.host.start_daemon();
    expect_of_the_host(&off);
    let listening = off.site.machine.run("ss -Hlntu");
    assert!(!listening.contains(":53 "), "{listening}");
}

/// Whoever has port 53 of the bridge's address keeps it; a pod that wants it has it, whatever the resolver does.
#[test]
fn port_53_belongs_to_whoever_wants_it() {
    let mut cni = CniSite::prepare("cni");
    cni.write("10-lan.conflist", &cni.bridge(""));
    let taken = WebServer::start(&cni.site.machine, "0.0.0.0:53", "other");
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("one.yaml", &pod("one", "ClusterFirst"));
    let file = settings(&cni, "one");
    assert!(!file.contains("10.77.0.1"), "{file}");
    cni.tells(HOUSEKEEPING, &["DnsUnavailable", "10.77.0.1:53"]);
    drop(taken);
    cni.site.host.write_manifest("two.yaml", &pod("two", "ClusterFirst"));
    let file = settings(&cni, "two");
    assert!(file.contains("\nnameserver 10.77.0.1\n"), "{file}");
    let served = web("three", "", "{containerPort: 80, hostPort: 53}");
    cni.site.host.write_manifest("three.yaml", &served);
    cni.site.host.wait_running("three");
    cni.site.outside.gets(&format!("http://{HOST_V4}:53/"), "I am three");
}

/// Rules of the host that drop what they do not know are its owner's to change: pods are not sent to a resolver that they do not reach.
#[test]
fn d22_pods_behind_firewall_use_hosts_servers() {
    let mut cni = CniSite::prepare("cni");
    cni.write("10-lan.conflist", &cni.bridge(""));
    cni.site.machine.run("iptables-nft -P INPUT DROP");
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("one.yaml", &pod("one", "ClusterFirst"));
    let file = settings(&cni, "one");
    assert!(!file.contains("10.77.0.1"), "{file}");
    cni.tells(HOUSEKEEPING, &["DnsBlocked", "port 53 of 10.77.0.1"]);
    for protocol in ["udp", "tcp"] {
        cni.site.machine.run(&format!("iptables-nft -A INPUT -i lan0 -p {protocol} --dport 53 -j ACCEPT"));
    }
    cni.site.host.write_manifest("two.yaml", &pod("two", "ClusterFirst"));
    let file = settings(&cni, "two");
    assert!(file.contains("\nnameserver 10.77.0.1\n"), "{file}");
    // Another daemon asks again: what containers find is what counts when they start.
    cni.site.host.kill_daemon();
    cni.site.host.start_daemon();
    for name in ["one", "two"] {
        let before = cni.site.host.wait_running(name);
        let pid = cni.site.host.container_pid(&before, "main");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL).unwrap();
        let is_another = |now: &PodView| now.runs("main") && now.container_id("main") != before.container_id("main");
        cni.site.host.wait_for_pod(name, "another run", is_another);
        let file = settings(&cni, name);
        assert!(file.contains("\nnameserver 10.77.0.1\n"), "{file}");
    }
}
