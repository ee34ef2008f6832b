//! Interfaces that pods ask for beside podstead's own network.

use super::super::lan::{HOST_V4, Machine, OUTSIDE_V4, WebServer, web};
use super::{CniSite, network_status};
use crate::support::{eventually, kernel_lacks};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// A plant's machine at 10.7.0.1, which the host reaches by the interface that is returned: VLAN 7 of `plant`, where the kernel has VLANs.
fn plant(cni: &CniSite) -> (Machine, String) {
    let plc = Machine::new("plc");
    cni.site.machine.join("plant", &plc, "port");
    let vlan = |machine: &Machine, trunk: &str, name: &str| {
        let words = ["ip", "link", "add", "link", trunk, "name", name, "type", "vlan", "id", "7"];
        let made = machine.command(&words).output().unwrap().status.success();
        if made {
            machine.run(&format!("ip link set {name} up"));
        }
        made
    };
    let has_vlans = vlan(&cni.site.machine, "plant", "plant.7");
    assert_eq!(vlan(&plc, "port", "port.7"), has_vlans);
    if !has_vlans {
        kernel_lacks("VLANs: the plant's network is without");
    }
    plc.address(if has_vlans { "port.7" } else { "port" }, "10.7.0.1/24");
    (plc, if has_vlans { "plant.7" } else { "plant" }.to_owned())
}

fn network(name: &str, kind: &str, master: &str, more: &str) -> String {
    format!(
        r#"{{"cniVersion": "1.0.0", "name": "{name}", "plugins": [{{"type": "{kind}", "master": "{master}", {more}
            "capabilities": {{"ips": true, "mac": true}}, "ipam": {{"type": "static"}}}}]}}"#
    )
}

fn plant_web(annotation: &str) -> String {
    web("one", &format!("k8s.v1.cni.cncf.io/networks: '{annotation}'"), "{containerPort: 80, hostPort: 8081}")
}

#[test]
fn pod_sits_on_vlan_and_own_network() {
    let mut cni = CniSite::prepare("builtin");
    let (plc, master) = plant(&cni);
    cni.write("plant.conflist", &network("plant", "macvlan", &master, r#""mode": "bridge","#));
    cni.site.host.start_daemon();
    let ask = r#"[{"name": "plant", "interface": "vlan7", "ips": ["10.7.0.9/24"], "mac": "02:00:00:00:07:09"}]"#;
    cni.site.host.write_manifest("one.yaml", &plant_web(ask));
    let first = cni.address("one");
    assert!(first.starts_with("10.201."), "podstead's own: {first}");
    plc.gets("http://10.7.0.9/", "I am one");
    cni.site.outside.gets(&format!("http://{HOST_V4}:8081/"), "I am one");
    let described = cni.site.host.cli_ok(&["describe", "pod", "one"]);
    assert!(described.contains("vlan7: default/plant, 10.7.0.9, 02:00:00:00:07:09"), "{described}");
    let yaml = cni.site.host.cli_ok(&["get", "pod", "one", "-o", "yaml"]);
    assert!(yaml.contains("k8s.v1.cni.cncf.io/network-status: "), "{yaml}");
    let status = network_status(&cni.site.host.pod("one").unwrap());
    assert_eq!((&status[0]["name"], &status[0]["default"]), (&"podstead".into(), &true.into()));
    assert_eq!(
        status[1],
        serde_json::json!({"name": "default/plant", "interface": "vlan7", "ips": ["10.7.0.9"], "mac": "02:00:00:00:07:09", "dns": {}})
    );

    // The daemon dies; then the interface goes and comes with the annotation, in the pod that runs.
    cni.site.host.kill_daemon();
    plc.gets("http://10.7.0.9/", "I am one");
    cni.site.host.start_daemon();
    let run = cni.site.host.wait_running("one").container_id("main");
    eventually("the status of its network", || {
        let now = network_status(&cni.site.host.pod("one").unwrap());
        (now == status).then_some(()).ok_or(now.to_string())
    });
    let interfaces = || cni.site.host.exec("one", "main", &["ls", "/sys/class/net"]);
    let links = || cni.site.host.exec("one", "main", &["cat", "/proc/net/dev"]);
    assert!(links().contains("vlan7"), "{} {}", links(), interfaces());
    cni.site.host.write_manifest("one.yaml", &plant_web(""));
    eventually("the interface to go", || (!links().contains("vlan7")).then_some(()).ok_or_else(links));
    eventually("its status to go", || {
        let now = network_status(&cni.site.host.pod("one").unwrap());
        now.is_null().then_some(()).ok_or(now.to_string())
    });
    cni.site.host.write_manifest("one.yaml", &plant_web(ask));
    plc.gets("http://10.7.0.9/", "I am one");
    assert_eq!(cni.site.host.pod("one").unwrap().container_id("main"), run, "no container was restarted");
    assert_eq!(cni.address("one"), first);

    // With the pod all of it goes, though its configuration went before.
    cni.remove("plant.conflist");
    cni.site.host.remove_manifest("one.yaml");
    cni.site.host.wait_gone("one");
    plc.get("http://10.7.0.9/").unwrap_err();
}

#[test]
fn impossible_network_request_is_told() {
    let mut cni = CniSite::prepare("builtin");
    let (_plc, master) = plant(&cni);
    cni.write("fixed.conflist", &network("fixed", "macvlan", &master, "").replace(r#""ips": true, "#, ""));
    cni.site.host.start_daemon();
    let says = |annotation: &str, words: &[&str]| {
        cni.site.host.write_manifest("one.yaml", &plant_web(annotation));
        cni.tells(SOON, &[&["FailedCreatePodSandBox"], words].concat());
    };
    says("plant", &["no network plant in ", "(available: fixed)"]);
    says(
        r#"[{"name": "fixed", "ips": ["10.7.0.9/24"]}]"#,
        &["cannot assign the address 10.7.0.9/24 to the pod: no plugin of network fixed supports the capability ips"],
    );
    let on_host = plant_web("plant").replace("spec:\n", "spec:\n  hostNetwork: true\n").replace("name: one", "name: two");
    cni.site.host.write_manifest("two.yaml", &on_host.replace(", hostPort: 8081", ""));
    cni.tells(SOON, &["NetworksIgnored", "two-edge-1", "annotation k8s.v1.cni.cncf.io/networks has no effect"]);
    // The network that is missing comes.
    cni.write("plant.conflist", &network("plant", "macvlan", &master, ""));
    cni.site.host.write_manifest("one.yaml", &plant_web(r#"[{"name": "plant", "ips": ["10.7.0.9/24"]}]"#));
    cni.address("one");
}

#[test]
fn ipvlan_works_or_says_why_not() {
    let mut cni = CniSite::prepare("builtin");
    let (plc, master) = plant(&cni);
    cni.write("plant.conflist", &network("plant", "ipvlan", &master, "").replace(r#", "mac": true"#, ""));
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("one.yaml", &plant_web(r#"[{"name": "plant", "ips": ["10.7.0.9/24"]}]"#));
    // The kernel of this machine may have none.
    let probe =
        cni.site.machine.command(&["ip", "link", "add", "link", &master, "name", "probe0", "type", "ipvlan"]).output().unwrap();
    if probe.status.success() {
        cni.site.machine.run("ip link delete probe0");
        cni.address("one");
        plc.gets("http://10.7.0.9/", "I am one");
    } else {
        kernel_lacks("ipvlan");
        cni.tells(
            SOON,
            &["FailedCreatePodSandBox", "plugin type=\"ipvlan\" name=\"plant\" failed (add)", "operation not supported"],
        );
    }
    cni.site.host.remove_manifest("one.yaml");
    cni.site.host.wait_gone("one");
}

#[test]
fn own_vlan_is_made_for_pod() {
    let mut cni = CniSite::prepare("builtin");
    let (plc, master) = plant(&cni);
    if !master.contains('.') {
        return;
    }
    // The plugin makes the VLAN, on the trunk.
    cni.site.machine.run(&format!("ip link delete {master}"));
    cni.write("plant.conflist", &network("plant", "vlan", "plant", r#""vlanId": 7,"#).replace(r#", "mac": true"#, ""));
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("one.yaml", &plant_web(r#"[{"name": "plant", "ips": ["10.7.0.9/24"]}]"#));
    cni.address("one");
    plc.gets("http://10.7.0.9/", "I am one");
    cni.site.host.remove_manifest("one.yaml");
    cni.site.host.wait_gone("one");
    plc.get("http://10.7.0.9/").unwrap_err();
}

#[test]
fn default_route_may_use_another_interface() {
    let mut cni = CniSite::prepare("builtin");
    let (plc, master) = plant(&cni);
    cni.write("plant.conflist", &network("plant", "macvlan", &master, ""));
    plc.address("lo", "203.0.113.7/32");
    let _far = WebServer::start(&plc, "203.0.113.7:80", "I am far");
    let _outside = WebServer::start(&cni.site.outside, "0.0.0.0:7000", "I am outside");
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("two.yaml", &web("two", "", ""));
    let two = cni.address("two");
    cni.site
        .host
        .write_manifest("one.yaml", &plant_web(r#"[{"name": "plant", "ips": ["10.7.0.9/24"], "default-route": ["10.7.0.1"]}]"#));
    let one = cni.site.addresses("one");
    let reaches_far = || cni.site.pod_gets("one", "http://203.0.113.7/", "I am far");
    reaches_far();
    let outside = format!("http://{OUTSIDE_V4}:7000/");
    cni.site.pod_get("one", &outside).unwrap_err();
    // Other pods and the host are where they were.
    cni.site.pod_gets("one", &format!("http://{two}/"), "I am two");
    cni.site.pod_gets("two", &format!("http://{}/", one[0]), "I am one");
    cni.site.machine.gets(&format!("http://[{}]/", one[1]), "I am one");
    let resolved = cni.site.host.exec("one", "main", &["nslookup", "two.default.svc.cluster.local"]);
    assert!(resolved.contains(&two), "{resolved}");

    // Somebody changes it; it is made anew.
    let pid = cni.site.host.container_pid(&cni.site.host.pod("one").unwrap(), "main").to_string();
    let changed = ["-t", &pid, "-n", "ip", "route", "replace", "default", "via", "169.254.0.1", "dev", "eth0"];
    assert!(std::process::Command::new("nsenter").args(changed).status().unwrap().success());
    cni.site.host.keep_house();
    cni.tells(super::HOUSEKEEPING, &["NetworkCheckFailed", "the default route through net1 is gone"]);
    reaches_far();

    // Without it, all is as it was before.
    let before = cni.site.host.pod("one").unwrap().container_id("main");
    cni.site.host.write_manifest("one.yaml", &plant_web(r#"[{"name": "plant", "ips": ["10.7.0.9/24"]}]"#));
    cni.site.pod_gets("one", &outside, "I am outside");
    cni.site.pod_get("one", "http://203.0.113.7/").unwrap_err();
    assert_eq!(cni.site.host.pod("one").unwrap().container_id("main"), before);

    // A router that the interface does not reach.
    cni.site
        .host
        .write_manifest("one.yaml", &plant_web(r#"[{"name": "plant", "ips": ["10.7.0.9/24"], "default-route": ["192.0.2.77"]}]"#));
    cni.tells(SOON, &["FailedCreatePodSandBox", "set the default route of interface net1"]);
}

#[test]
fn plugin_interface_gets_default_route_back() {
    let mut cni = CniSite::prepare("cni");
    let (plc, master) = plant(&cni);
    cni.write("10-lan.conflist", &cni.bridge(""));
    cni.write("20-plant.conflist", &network("plant", "macvlan", &master, ""));
    plc.address("lo", "203.0.113.7/32");
    let _far = WebServer::start(&plc, "203.0.113.7:80", "I am far");
    let _outside = WebServer::start(&cni.site.outside, "0.0.0.0:7000", "I am outside");
    cni.site.host.start_daemon();
    cni.site
        .host
        .write_manifest("one.yaml", &plant_web(r#"[{"name": "plant", "ips": ["10.7.0.9/24"], "default-route": ["10.7.0.1"]}]"#));
    cni.address("one");
    cni.site.pod_gets("one", "http://203.0.113.7/", "I am far");
    cni.site.host.write_manifest("one.yaml", &plant_web(""));
    cni.site.pod_gets("one", &format!("http://{OUTSIDE_V4}:7000/"), "I am outside");
}
