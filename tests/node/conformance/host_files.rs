//! `/etc/hosts` of pods, byte by byte (kubelet rule D21; `TestManagedHostsFileContent`, `TestNodeHostsFileContent`).

use crate::network::lan::Site;
use crate::support::eventually;
use std::fs;

const OWN: &str = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n\
                   fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";

/// Name of a pod, fields of its spec, the names of its addresses, its aliases as the file has them.
const TABLE: [(&str, &str, &str, &str); 5] = [
    ("plain", "", "plain-edge-1", ""),
    ("named", "  hostname: www\n", "www", ""),
    ("domain", "  hostname: www\n  subdomain: site\n", "www.site.default.svc.cluster.local\twww", ""),
    (
        "aliases",
        "  hostAliases: [{ip: 123.45.67.89, hostnames: [foo, bar, baz]}]\n",
        "aliases-edge-1",
        "\n# Entries added by HostAliases.\n123.45.67.89\tfoo\tbar\tbaz\n",
    ),
    (
        "both",
        "  hostname: www\n  subdomain: site\n  hostAliases: [{ip: 123.45.67.89, hostnames: [foo]}, {ip: '2001:db8::9', hostnames: [park, doo]}]\n",
        "www.site.default.svc.cluster.local\twww",
        "\n# Entries added by HostAliases.\n123.45.67.89\tfoo\n2001:db8::9\tpark\tdoo\n",
    ),
];

fn manifest(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{spec}  containers:\n    \
         - {{name: c, image: 'localhost/busybox:1', command: [/bin/sh, -c, \"trap 'exit 0' TERM; echo run; sleep 1000000 & wait\"]}}\n"
    )
}

#[test]
fn d21_hosts_files_follow_the_table() {
    let site = Site::start();
    let host = &site.host;
    for (name, spec, ..) in TABLE {
        host.write_manifest(&format!("{name}.yaml"), &manifest(name, spec));
    }
    host.write_manifest(
        "node.yaml",
        &manifest("node", "  hostNetwork: true\n  hostAliases: [{ip: 10.0.0.1, hostnames: [a, b]}]\n"),
    );
    let file = |name: &str| {
        let pid = host.container_pid(&host.pod(name).unwrap(), "c");
        fs::read_to_string(format!("/proc/{pid}/root/etc/hosts")).unwrap()
    };
    let expected = |name: &str, names: &str, aliases: &str| {
        let [v4, v6] = site.addresses(name);
        format!("{OWN}{v4}\t{names}\n{v6}\t{names}\n{aliases}")
    };
    for (name, _, names, aliases) in TABLE {
        assert_eq!(expected(name, names, aliases), file(name), "{name}");
    }
    host.wait_running("node");
    let of_the_node = fs::read_to_string("/etc/hosts").unwrap();
    let aliases = "\n# Entries added by HostAliases.\n10.0.0.1\ta\tb\n";
    assert_eq!(file("node"), format!("# Kubernetes-managed hosts file (host network).\n{of_the_node}{aliases}"));

    // A container may write to its file; the next run has a new one.
    host.exec("plain", "c", &["/bin/sh", "-c", "echo 192.0.2.9 mine >> /etc/hosts"]);
    assert!(file("plain").ends_with("192.0.2.9 mine\n"));
    let before = host.pod("plain").unwrap();
    host.wait_log("plain", "c", "run");
    // It ends with the container that it ends.
    let _killed = host.cli(&["exec", "plain", "-c", "c", "--", "kill", "-TERM", "1"]);
    let after = host.wait_for_pod("plain", "another run", |pod| pod.restarts("c") == 1 && pod.runs("c"));
    assert_ne!(after.container_id("c"), before.container_id("c"));
    eventually("the new file", || {
        let found = file("plain");
        (found == expected("plain", "plain-edge-1", "")).then_some(()).ok_or(found)
    });
}
