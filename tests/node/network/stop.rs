//! Remains of the network after `podstead stop --all`: nothing that leads to a pod, whatever made it.

use super::cni::CniSite;
use super::lan::{HOST_V4, Site};
use crate::support::binary;

/// Stops all pods of the site's host, without its daemon; what the command said.
fn stop_all(site: &mut Site) -> String {
    site.host.stop_daemon();
    let mut command = site.machine.command(&[binary("podstead").to_str().unwrap(), "--config"]);
    let out = command.arg(site.host.path("config.yaml")).args(["stop", "--all"]).output().unwrap();
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(out.status.success(), "{said}");
    said
}

#[test]
fn stopped_pods_leave_no_path_to_them() {
    for was_a_router in [true, false] {
        let mut site = Site::prepare("");
        if was_a_router {
            site.machine.run("sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
        }
        site.machine.run("iptables-nft -P FORWARD DROP");
        site.host.start_daemon();
        let addresses = site.web("one", "", "{containerPort: 80, hostPort: 8080}");
        let url = format!("http://{HOST_V4}:8080/");
        site.outside.gets(&url, "I am one");
        assert!(site.machine.run("iptables-nft -S FORWARD").contains("ACCEPT"), "pods are accepted there");

        assert_eq!(stop_all(&mut site), "stopped one-edge-1_default\n");
        assert!(site.interfaces().is_empty());
        let rules = site.rules();
        assert!(!rules.contains("8080") && !rules.contains(&addresses[0]), "{rules}");
        // Who opened the host guards it until it is restarted.
        assert_eq!(rules.contains("chain passing"), !was_a_router, "{rules}");
        assert_eq!(site.machine.run("iptables-nft -S FORWARD"), "-P FORWARD DROP\n");
        let _server = super::lan::WebServer::start(&site.machine, "0.0.0.0:8080", "I am the host");
        site.outside.gets(&url, "I am the host");
        drop(_server);

        site.host.start_daemon();
        assert_eq!(site.addresses("one"), addresses, "they were its own all the time");
        site.outside.gets(&url, "I am one");
    }
}

#[test]
fn plugins_take_back_networks_of_stopped_pods() {
    let mut cni = CniSite::bridged();
    cni.site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    assert_eq!(cni.leases("lan").len(), 1);
    assert!(cni.site.machine.run("iptables-nft -t nat -S").contains("8080"));
    assert_eq!(stop_all(&mut cni.site), "stopped one-edge-1_default\n");
    assert!(cni.leases("lan").is_empty(), "{:?}", cni.leases("lan"));
    let rules = cni.site.machine.run("iptables-nft -t nat -S");
    assert!(!rules.contains("8080"), "{rules}");
    cni.site.host.start_daemon();
    cni.site.host.wait_running("one");
    cni.site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am one");
}
