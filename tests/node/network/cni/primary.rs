//! Plugins make the first interface of all pods.

use super::super::lan::{HOST_V4, web};
use super::{CniSite, HOUSEKEEPING, network_status};
use crate::support::eventually;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// shows: spec.containers[].ports[].hostPort
#[test]
fn bridge_host_local_and_portmap_connect_pods() {
    let cni = CniSite::bridged();
    let host = &cni.site.host;
    host.write_manifest("one.yaml", &web("one", "", "{containerPort: 80, hostPort: 8081}"));
    host.write_manifest("two.yaml", &web("two", "", ""));
    let (one, two) = (cni.address("one"), cni.address("two"));
    assert!(one.starts_with("10.77.0.") && two.starts_with("10.77.0.") && one != two, "{one} {two}");
    cni.site.pod_gets("one", &format!("http://{two}/"), "I am two");
    cni.site.pod_gets("two", &format!("http://{one}/"), "I am one");
    cni.site.outside.gets(&format!("http://{HOST_V4}:8081/"), "I am one");
    let pod = host.pod("one").unwrap();
    let status = network_status(&pod);
    assert_eq!(
        (&status[0]["name"], &status[0]["interface"], &status[0]["ips"][0]),
        (&"lan".into(), &"eth0".into(), &one.as_str().into())
    );
    assert_eq!(status[0]["default"], true);

    // Another port, the same container and address; and a port that has an owner.
    let before = pod.container_id("main");
    host.write_manifest("one.yaml", &web("one", "", "{containerPort: 80, hostPort: 8082}"));
    cni.site.outside.gets(&format!("http://{HOST_V4}:8082/"), "I am one");
    cni.site.outside.get(&format!("http://{HOST_V4}:8081/")).unwrap_err();
    assert_eq!((cni.address("one"), host.pod("one").unwrap().container_id("main")), (one, before));
    host.write_manifest("three.yaml", &web("three", "", "{containerPort: 80, hostPort: 8082}"));
    cni.tells(SOON, &["HostPortConflict", "hostPort 8082/TCP is in use by pod one-edge-1_default"]);

    // The daemon dies and comes back: nothing changes.
    let mut cni = cni;
    cni.site.host.kill_daemon();
    cni.site.host.start_daemon();
    cni.site.outside.gets(&format!("http://{HOST_V4}:8082/"), "I am one");
    assert_eq!(cni.address("two"), two);
    for name in ["one", "two", "three"] {
        cni.site.host.remove_manifest(&format!("{name}.yaml"));
        cni.site.host.wait_gone(name);
    }
    cni.wait_clean();
}

#[test]
fn limits_of_bandwidth_become_queueing_disciplines() {
    let mut cni = CniSite::prepare("cni");
    let bandwidth = r#", {"type": "bandwidth", "capabilities": {"bandwidth": true}}, {"type": "tuning", "sysctl": {"net.ipv4.conf.eth0.rp_filter": "2"}}, {"type": "firewall"}"#;
    cni.write("10-lan.conflist", &cni.bridge(bandwidth));
    cni.site.host.start_daemon();
    let limits = "kubernetes.io/ingress-bandwidth: 8M, kubernetes.io/egress-bandwidth: 16M";
    cni.site.host.write_manifest("one.yaml", &web("one", limits, ""));
    cni.address("one");
    let disciplines = cni.site.machine.run("tc qdisc show");
    assert!(
        disciplines.contains("tbf") && disciplines.contains("rate 8Mbit") && disciplines.contains("rate 16Mbit"),
        "{disciplines}"
    );
    let tuned = cni.site.host.exec("one", "main", &["cat", "/proc/sys/net/ipv4/conf/eth0/rp_filter"]);
    assert_eq!(tuned.trim(), "2");
    // The plugin `firewall` accepts what passes to and from the pod.
    let rules = cni.site.machine.run("iptables -S CNI-FORWARD");
    assert!(rules.contains(&format!("{}/32", cni.address("one"))), "{rules}");
    cni.site.host.remove_manifest("one.yaml");
    cni.site.host.wait_gone("one");
    cni.wait_clean();
    let disciplines = cni.site.machine.run("tc qdisc show");
    assert!(!disciplines.contains("tbf"), "{disciplines}");
}

#[test]
fn removed_interface_is_found_and_made_anew() {
    let cni = CniSite::bridged();
    cni.site.host.write_manifest("one.yaml", &web("one", "", "{containerPort: 80, hostPort: 8081}"));
    cni.address("one");
    let pod = cni.site.host.pod("one").unwrap();
    let pid = cni.site.host.container_pid(&pod, "main").to_string();
    let removed = std::process::Command::new("nsenter").args(["-t", &pid, "-n", "ip", "link", "delete", "eth0"]).status().unwrap();
    assert!(removed.success());
    cni.site.host.keep_house();
    cni.tells(HOUSEKEEPING, &["NetworkCheckFailed", "plugin type=\"bridge\" name=\"lan\" failed (check)", "reconnecting the pod"]);
    cni.site.outside.gets(&format!("http://{HOST_V4}:8081/"), "I am one");
    let after = cni.site.host.pod("one").unwrap();
    assert_eq!(after.container_id("main"), pod.container_id("main"), "what runs keeps running");
    assert_eq!(cni.leases("lan").len(), 1, "the old address was given back: {:?}", cni.leases("lan"));
}

#[test]
fn pods_wait_for_their_network() {
    let mut cni = CniSite::prepare("cni");
    std::fs::remove_dir(cni.path("net.d")).unwrap();
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("one.yaml", &web("one", "", ""));
    let words = "network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady";
    cni.tells(SOON, &["NetworkNotReady", words, "no CNI configuration file in"]);
    assert_eq!(cni.site.host.pod("one").unwrap().waiting_reason("main"), "ContainerCreating");
    std::fs::create_dir(cni.path("net.d")).unwrap();
    cni.write("10-lan.conflist", "{\"cniVersion\": \"1.0.0\",\n \"name\": \"lan\",,}");
    cni.tells(SOON, &["NetworkNotReady", "10-lan.conflist: line 2, column 16: key must be a string"]);
    cni.write("10-lan.conflist", &cni.bridge(""));
    cni.address("one");
}

#[test]
fn pods_outlive_their_network_configuration() {
    let mut cni = CniSite::bridged();
    cni.site.host.write_manifest("one.yaml", &web("one", "", "{containerPort: 80, hostPort: 8081}"));
    let one = cni.address("one");
    // Another network for new pods; the first one's configuration is gone.
    cni.remove("10-lan.conflist");
    cni.write(
        "20-other.conflist",
        &cni.bridge("").replace("\"lan\"", "\"other\"").replace("lan0", "other0").replace("10.77", "10.78"),
    );
    cni.site.host.kill_daemon();
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("two.yaml", &web("two", "", ""));
    assert!(cni.address("two").starts_with("10.78.0."));
    assert_eq!(cni.address("one"), one);
    cni.site.outside.gets(&format!("http://{HOST_V4}:8081/"), "I am one");
    cni.site.host.remove_manifest("one.yaml");
    cni.site.host.wait_gone("one");
    cni.wait_clean();
}

#[test]
fn port_without_port_plugin_is_refused() {
    let mut cni = CniSite::prepare("cni");
    let without = cni.bridge("").replace(r#""capabilities": {"portMappings": true}"#, r#""x": 1"#);
    cni.write("10-lan.conflist", &without);
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("one.yaml", &web("one", "", "{containerPort: 80, hostPort: 8081}"));
    let words = "cannot forward hostPort 8081/TCP to the pod: no plugin of network lan supports the capability portMappings";
    cni.tells(SOON, &["HostPortConflict", words]);
    cni.write("10-lan.conflist", &cni.bridge(""));
    cni.address("one");
    eventually("the port", || cni.site.outside.get(&format!("http://{HOST_V4}:8081/")).map(drop));
}
