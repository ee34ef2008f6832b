//! Name servers that a network of plugins tells.

use super::super::lan::web;
use super::CniSite;
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
fn d22_name_servers_of_the_first_network_are_what_cluster_first_means() {
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
fn a_pod_that_chose_another_first_network_is_not_sent_to_podsteads_resolver() {
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

/// What the reference says of names with `type: cni`: podstead's resolver is not theirs.
#[test]
fn d22_pods_of_a_network_that_names_no_server_have_those_of_the_host() {
    let cni = CniSite::bridged();
    let servers = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("nameserver ")).take(3).map(str::to_owned).collect()
    };
    let of_the_host = servers(&fs::read_to_string("/etc/resolv.conf").unwrap());
    for (name, policy) in [("one", "ClusterFirst"), ("two", "Default")] {
        cni.site.host.write_manifest(&format!("{name}.yaml"), &pod(name, policy));
        cni.site.host.wait_running(name);
        let file = cni.site.host.exec(name, "main", &["cat", "/etc/resolv.conf"]);
        assert_eq!(servers(&file), of_the_host, "{file}");
        assert!(!file.contains("svc.cluster.local"), "{file}");
    }
}
