//! Pods find each other by name.

use super::lan::{HOST_V4, Site, web};
use crate::support::{TestHost, eventually};

/// Output of `dig` in short form for a question from a pod's network namespace, from its gateway unless `words` say otherwise.
fn dig(site: &Site, pod: &str, words: &str) -> String {
    dig_by(site.host.container_pid(&site.host.wait_running(pod), "main"), words)
}

/// The same from the network namespace of a process.
fn dig_by(pid: u32, words: &str) -> String {
    let at = if words.contains('@') { "" } else { "@169.254.0.1 " };
    let words = format!("nsenter -t {pid} -n dig +time=2 +tries=3 {at}{words}");
    let words: Vec<&str> = words.split(' ').collect();
    let out = std::process::Command::new(words[0]).args(&words[1..]).output().unwrap();
    String::from_utf8_lossy(&out.stdout).into_owned()
}

pub(super) fn digs(site: &Site, pod: &str, words: &str, what: &str) -> String {
    eventually(&format!("{what:?} from dig {words}"), || {
        let text = dig(site, pod, words);
        if text.contains(what) { Ok(text) } else { Err(text) }
    })
}

/// Waits until a program of the image finds a name, as programs do: with the search list of the pod.
pub(super) fn looks_up(host: &TestHost, pod: &str, namespace: &str, name: &str, address: &str) {
    eventually(&format!("pod {pod} to find {address} for {name}"), || {
        let out = host.cli(&["exec", "-n", namespace, pod, "-c", "main", "--", "ping", "-4", "-c", "1", "-W", "2", name]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        if text.contains(&format!("({address})")) { Ok(()) } else { Err(text + &String::from_utf8_lossy(&out.stderr)) }
    });
}

/// A member of a set, as a StatefulSet makes them; ready when the file `/tmp/ready` is there.
fn member(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n  hostname: {name}\n  subdomain: db\n  \
         terminationGracePeriodSeconds: 1\n  containers:\n  - name: main\n    image: localhost/busybox:1\n    command: [sleep, '1000000']\n    \
         readinessProbe: {{exec: {{command: [test, -e, /tmp/ready]}}, periodSeconds: 1}}\n"
    )
}

#[test]
fn d22_pods_find_names_across_namespaces() {
    let site = Site::start();
    let one = site.web("one", "", "");
    let two = site.web("two", "", "");
    let settings = site.host.exec("one", "main", &["cat", "/etc/resolv.conf"]);
    assert!(settings.starts_with("search default.svc.cluster.local svc.cluster.local cluster.local"), "{settings}");
    assert!(settings.contains("\nnameserver 169.254.0.1\n") && settings.contains("ndots:5"), "{settings}");
    assert_eq!(settings.matches("nameserver").count(), 1, "{settings}");
    for name in ["two", "two.default", "two-edge-1", "two.default.svc.cluster.local"] {
        looks_up(&site.host, "one", "default", name, &two[0]);
    }
    site.pod_gets("one", "http://two/", "I am two");
    digs(&site, "one", "+short AAAA two.default.svc.cluster.local", &two[1]);
    let dashed = one[0].replace('.', "-");
    digs(&site, "two", &format!("+short {dashed}.default.pod.cluster.local"), &one[0]);
    for ip in &one {
        digs(&site, "two", &format!("+short -x {ip}"), "one.default.svc.cluster.local.");
    }
    // By IPv6, by TCP, in odd letters.
    digs(&site, "two", "@fd70:6f64:7374::1 +short oNe.DEFAULT.svc.cluster.local", &one[0]);
    digs(&site, "two", "@fd70:6f64:7374::1 +tcp +short one.default.svc.cluster.local", &one[0]);
    digs(&site, "two", "+tcp one.default.svc.cluster.local", "flags: qr aa rd ra");
    let none = digs(&site, "two", "MX one.default.svc.cluster.local", "status: NOERROR");
    assert!(none.contains("ANSWER: 0") && none.contains("SOA"), "{none}");
    digs(&site, "two", "nobody.default.svc.cluster.local", "status: NXDOMAIN");
    // A pod that goes takes its names along; one of the same name has them again.
    site.host.remove_manifest("one.yaml");
    site.host.wait_gone("one");
    digs(&site, "two", "one.default.svc.cluster.local", "status: NXDOMAIN");
}

/// shows: spec.hostname, spec.subdomain
#[test]
fn members_and_set_have_stable_names() {
    let site = Site::start();
    site.web("client", "", "");
    let mut ips = Vec::new();
    for name in ["db-0", "db-1"] {
        site.host.write_manifest(&format!("{name}.yaml"), &member(name));
        ips.push(site.addresses(name)[0].clone());
    }
    // Before they are ready they find each other, or they would never be.
    for (name, ip) in ["db-0", "db-1"].iter().zip(&ips) {
        let full = format!("{name}.db.shop.svc.cluster.local");
        digs(&site, "client", &format!("+short {full}"), ip);
        digs(&site, "client", &format!("+short -x {ip}"), &format!("{full}."));
        looks_up(&site.host, "db-0", "shop", &format!("{name}.db"), ip);
    }
    let set = "db.shop.svc.cluster.local";
    let empty = digs(&site, "client", set, "status: NOERROR");
    assert!(empty.contains("ANSWER: 0"), "{empty}");
    for (name, ip) in ["db-0", "db-1"].iter().zip(&ips) {
        site.host.cli_ok(&["exec", "-n", "shop", name, "-c", "main", "--", "touch", "/tmp/ready"]);
        digs(&site, "client", &format!("+short {set}"), ip);
    }
    site.host.cli_ok(&["exec", "-n", "shop", "db-0", "-c", "main", "--", "rm", "/tmp/ready"]);
    eventually("db-0 to leave the set", || {
        let text = dig(&site, "client", &format!("+short {set}"));
        if text.trim() == ips[1] { Ok(()) } else { Err(text) }
    });
}

#[test]
fn names_return_with_daemon_for_pods_only() {
    let mut site = Site::start();
    let one = site.web("one", "", "");
    site.web("two", "", "");
    digs(&site, "two", "+short one.default.svc.cluster.local", &one[0]);
    site.outside.run(&format!("ip route add 169.254.0.1/32 via {HOST_V4}"));
    site.outside.run("ip -6 route add fd70:6f64:7374::1/128 via 2001:db8::2");
    for at in ["@169.254.0.1 -p 53", "@169.254.0.1 -p 10053", "@fd70:6f64:7374::1 -p 10053", &format!("@{HOST_V4} -p 10053")] {
        for transport in ["+notcp", "+tcp"] {
            let words = format!("dig +time=1 +tries=1 {transport} {at} one.default.svc.cluster.local");
            let out = site.outside.command(&words.split(' ').collect::<Vec<_>>()).output().unwrap();
            assert!(!out.status.success(), "{at}: {}", String::from_utf8_lossy(&out.stdout));
        }
    }
    let two = site.host.container_pid(&site.host.pod("two").unwrap(), "main");
    site.host.kill_daemon();
    let gone = dig_by(two, "+tries=1 one.default.svc.cluster.local");
    assert!(!gone.contains("status:"), "{gone}");
    site.host.start_daemon();
    digs(&site, "two", "+short one.default.svc.cluster.local", &one[0]);
}

#[test]
fn name_servers_of_others_keep_their_port() {
    let mut site = Site::prepare("");
    // All addresses of the host, as dnsmasq and unbound do.
    let mut taken = site.machine.command(&["python3", "-c", WILDCARD]).spawn().unwrap();
    eventually("the port to be taken", || {
        let sockets = site.machine.run("ss -Hlun");
        sockets.contains(":53 ").then_some(()).ok_or(sockets)
    });
    site.host.start_daemon();
    let one = site.web("one", "", "");
    digs(&site, "one", "+short one.default.svc.cluster.local", &one[0]);
    taken.kill().unwrap();
    taken.wait().unwrap();
    // Names for the site, from a pod.
    site.host.write_manifest("two.yaml", &web("two", "", "{containerPort: 53, hostPort: 53, protocol: UDP}"));
    site.host.wait_running("two");
    digs(&site, "one", "+short two.default.svc.cluster.local", &site.addresses("two")[0]);
}

/// A real name server on another machine; it ends with this.
pub(super) struct NameServer {
    child: std::process::Child,
    _root: tempfile::TempDir,
}

impl NameServer {
    /// One that knows some names.
    pub(super) fn start(site: &Site) -> Self {
        let mut zone = String::from("local-zone: \"site.test.\" static\n local-data: \"printer.site.test. A 198.51.100.9\"\n");
        for number in 0..100 {
            zone += &format!(" local-data: \"many.site.test. A 198.51.100.{number}\"\n");
        }
        Self::with(site, &zone)
    }

    /// One whose answer to everything is the same address.
    pub(super) fn captive(site: &Site, address: &str) -> Self {
        Self::with(site, &format!("local-zone: \".\" redirect\n local-data: \". A {address}\"\n"))
    }

    fn with(site: &Site, zone: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let config = format!(
            "server:\n do-daemonize: no\n username: \"\"\n chroot: \"\"\n pidfile: \"\"\n use-syslog: no\n interface: 0.0.0.0\n interface: ::0\n \
             access-control: 0.0.0.0/0 allow\n access-control: ::0/0 allow\n {zone}remote-control:\n control-enable: no\n"
        );
        let file = root.path().join("unbound.conf");
        std::fs::write(&file, config).unwrap();
        let mut command = site.outside.command(&["unbound", "-d", "-c"]);
        let child = command.arg(file).stderr(std::process::Stdio::null()).spawn().unwrap();
        let server = Self { child, _root: root };
        eventually("the name server to listen", || {
            let sockets = site.outside.run("ss -Hlun");
            sockets.contains(":53 ").then_some(()).ok_or(sockets)
        });
        server
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn other_names_come_from_hosts_servers() {
    let settings = tempfile::tempdir().unwrap();
    let file = settings.path().join("resolv.conf");
    let put = |text: &str| {
        std::fs::write(settings.path().join("new"), text).unwrap();
        std::fs::rename(settings.path().join("new"), &file).unwrap();
    };
    let mut site = Site::prepare(&format!("network: {{dns: {{resolvConf: {}}}}}\n", file.display()));
    let _server = NameServer::start(&site);
    site.host.start_daemon();
    let one = site.web("one", "", "");
    let answers_itself = || digs(&site, "one", "+short one.default.svc.cluster.local", &one[0]);
    // None at all: that is answered at once, before who asks gives up.
    digs(&site, "one", "+tries=1 printer.site.test", "status: SERVFAIL");
    answers_itself();
    // One that comes, and has a long answer.
    put("nameserver 192.0.2.1\n");
    digs(&site, "one", "+short printer.site.test", "198.51.100.9");
    digs(&site, "one", "nobody.site.test", "status: NXDOMAIN");
    digs(&site, "one", "+notcp +ignore +noedns many.site.test", " tc rd ra");
    let many = digs(&site, "one", "+short many.site.test", "198.51.100.99");
    assert_eq!(many.lines().filter(|line| line.starts_with("198.51.100.")).count(), 100, "{many}");
    // A dead one before it, another family, and a symlink.
    put("nameserver 192.0.2.77\nnameserver 192.0.2.1\n");
    digs(&site, "one", "+short printer.site.test", "198.51.100.9");
    std::fs::write(settings.path().join("other"), "nameserver 2001:db8::1\n").unwrap();
    std::os::unix::fs::symlink("other", settings.path().join("link")).unwrap();
    std::fs::rename(settings.path().join("link"), &file).unwrap();
    digs(&site, "one", "+short printer.site.test", "198.51.100.9");
    answers_itself();
    std::fs::remove_file(&file).unwrap();
    digs(&site, "one", "printer.site.test", "status: SERVFAIL");
    answers_itself();
}

const WILDCARD: &str = "import socket, time\nu = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\nu.bind(('::', 53))\n\
                        t = socket.socket(socket.AF_INET6)\nt.bind(('::', 53))\nt.listen()\ntime.sleep(100000)\n";

/// shows: spec.dnsPolicy
#[test]
fn host_network_pod_finds_pods_on_request() {
    let site = Site::start();
    let one = site.web("one", "", "");
    for (name, policy) in [("with", "ClusterFirstWithHostNet"), ("without", "ClusterFirst")] {
        let manifest = web(name, "", "")
            .replace("spec:\n", &format!("spec:\n  hostNetwork: true\n  dnsPolicy: {policy}\n"))
            .replace("exec httpd -f -h /www", "exec sleep 1000000");
        site.host.write_manifest(&format!("{name}.yaml"), &manifest);
        site.host.wait_running(name);
    }
    looks_up(&site.host, "with", "default", "one", &one[0]);
    let settings = |pod: &str| site.host.exec(pod, "main", &["cat", "/etc/resolv.conf"]);
    assert!(settings("with").contains("nameserver 127.112.115.53\n"));
    assert!(!settings("without").contains("cluster.local"));
    site.pod_gets("with", "http://one/", "I am one");
    // It has the name of a pod, and the host's addresses.
    digs(&site, "one", "+short with.default.svc.cluster.local", HOST_V4);
}
