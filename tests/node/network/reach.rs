//! Connections between pods, hosts and others.

use super::lan::{HOST_V4, HOST_V6, OUTSIDE_V4, OUTSIDE_V6, Site, WebServer};
use crate::support::eventually;

#[test]
fn pods_and_host_connect_by_both_families() {
    let site = Site::start();
    let one = site.web("one", "", "");
    let two = site.web("two", "", "");
    assert!(one[0].starts_with("10.201.") && one[1].starts_with("fd70:6f64:7374:1:"), "{one:?}");
    assert_ne!(one, two);
    for url in [format!("http://{}/", one[0]), format!("http://[{}]/", one[1])] {
        site.pod_gets("two", &url, "I am one");
        site.pod_gets("one", &url, "I am one");
        site.machine.gets(&url, "I am one");
    }
    // Whatever the host's addresses are, pods reach it by these.
    let _server = WebServer::start(&site.machine, "[::]:8000", "I am the host");
    for url in [
        "http://169.254.0.1:8000/",
        "http://[fd70:6f64:7374::1]:8000/",
        &format!("http://{HOST_V4}:8000/"),
        &format!("http://[{HOST_V6}]:8000/"),
    ] {
        site.pod_gets("one", url, "I am the host");
    }
    let table = site.host.cli_ok(&["get", "pods", "-o", "wide"]);
    assert!(table.contains(&one[0]) && table.contains(&two[0]), "{table}");
    let hosts = site.host.exec("one", "main", &["cat", "/etc/hosts"]);
    for ip in &one {
        assert!(hosts.contains(&format!("{ip}\tone-edge-1")), "{hosts}");
    }
}

#[test]
fn pods_reach_world_but_not_vice_versa() {
    let site = Site::start();
    let pod = site.web("one", "", "");
    let _server = WebServer::start(&site.outside, "[::]:7000", "I am outside");
    site.pod_gets("one", &format!("http://{OUTSIDE_V4}:7000/"), "I am outside");
    site.pod_gets("one", &format!("http://[{OUTSIDE_V6}]:7000/"), "I am outside");
    // Even who knows the way does not get in.
    site.outside.run(&format!("ip route add {}/32 via {HOST_V4}", pod[0]));
    site.outside.run(&format!("ip -6 route add {}/128 via {HOST_V6}", pod[1]));
    for url in [format!("http://{}/", pod[0]), format!("http://[{}]/", pod[1])] {
        site.outside.get(&url).unwrap_err();
        site.machine.gets(&url, "I am one");
    }
}

#[test]
fn containers_can_read_their_pods_addresses() {
    let site = Site::start();
    let manifest = super::lan::web("one", "", "").replace(
        "      ports: []\n",
        "      env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, {name: IPS, valueFrom: {fieldRef: {fieldPath: status.podIPs}}}]\n",
    );
    site.host.write_manifest("one.yaml", &manifest);
    let ips = site.addresses("one");
    let seen = site.host.exec("one", "main", &["sh", "-c", "echo $IP $IPS"]);
    assert_eq!(seen.trim(), format!("{} {},{}", ips[0], ips[0], ips[1]));
}

#[test]
fn connections_outlive_daemon_and_end_with_pod() {
    let mut site = Site::start();
    let before = site.web("one", "", "");
    let index = |site: &Site| site.machine.run("ip -o link show group 0").lines().count();
    site.host.kill_daemon();
    site.machine.gets(&format!("http://{}/", before[0]), "I am one");
    let interfaces = site.interfaces();
    assert_eq!(interfaces.len(), 1);
    site.host.start_daemon();
    assert_eq!(site.addresses("one"), before);
    assert_eq!(site.interfaces(), interfaces, "the same interface");
    let two = site.web("two", "", "");
    assert_ne!(two, before);
    assert!(index(&site) >= 2);
    site.host.remove_manifest("one.yaml");
    site.host.wait_gone("one");
    eventually("the interface to be gone", || {
        let interfaces = site.interfaces();
        (interfaces.len() == 1).then_some(()).ok_or(format!("{interfaces:?}"))
    });
    let rules = site.rules();
    assert!(!rules.contains(&format!("{} ", before[0])) && rules.contains(&two[0]), "{rules}");
}
