//! The resolver among firewalls, with other settings, in bad company, and where it is not to be had.

use super::lan::{HOST_V4, OUTSIDE_V4, Site, WebServer, web};
use super::names::{NameServer, digs};
use crate::support::eventually;

const ON_HOST: &str = "spec:\n  hostNetwork: true\n  dnsPolicy: ClusterFirstWithHostNet\n";

fn told(site: &Site, words: &[&str]) {
    eventually(&format!("{words:?} to be told"), || {
        let events = site.host.cli_ok(&["get", "events"]);
        words.iter().all(|word| events.contains(word)).then_some(()).ok_or(events)
    });
}

#[test]
fn dropping_input_chain_accepts_only_questions() {
    let mut site = Site::prepare("");
    for iptables in ["iptables-nft", "ip6tables-nft"] {
        site.machine.run(&format!("{iptables} -P INPUT DROP"));
        site.machine.run(&format!("{iptables} -A INPUT -i lo -j ACCEPT"));
        site.machine.run(&format!("{iptables} -A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT"));
    }
    site.machine.run("ip6tables-nft -A INPUT -p icmpv6 -j ACCEPT");
    site.host.start_daemon();
    let one = site.web("one", "", "");
    site.web("two", "", "");
    let asks = |site: &Site| {
        for transport in ["+notcp", "+tcp"] {
            digs(site, "two", &format!("{transport} +short one.default.svc.cluster.local"), &one[0]);
            digs(site, "two", &format!("@fd70:6f64:7374::1 {transport} +short one.default.svc.cluster.local"), &one[0]);
        }
    };
    asks(&site);
    let listed = |site: &Site| site.machine.run("iptables-nft -S INPUT");
    let own = |text: &str| {
        text.lines().filter(|line| line.contains("--dport 10053") && line.contains("-i ps") && line.contains("-j ACCEPT")).count()
    };
    assert_eq!(own(&listed(&site)), 2, "{}", listed(&site));
    let _server = WebServer::start(&site.machine, "[::]:7001", "I am the host");
    site.pod_get("two", "http://169.254.0.1:7001/").unwrap_err();
    site.machine.gets("http://127.0.0.1:7001/", "I am the host");
    // Flushed by their owner, and after a restart: there once.
    site.machine.run("iptables-nft -F INPUT");
    eventually("the rules to come back", || (own(&listed(&site)) == 2).then_some(()).ok_or_else(|| listed(&site)));
    site.host.kill_daemon();
    site.host.start_daemon();
    asks(&site);
    assert_eq!(own(&listed(&site)), 2, "{}", listed(&site));
}

#[test]
fn foreign_chain_before_resolver_is_reported() {
    let mut site = Site::prepare("");
    site.machine.run("nft add table inet mine");
    site.machine.run("nft add chain inet mine door { type filter hook input priority 0 ; policy drop ; }");
    site.machine.run("nft add rule inet mine door iifname lo accept");
    let before = site.machine.run("nft list table inet mine");
    site.host.start_daemon();
    site.web("one", "", "");
    told(&site, &["DnsBlocked", "chain door of table inet mine", "port 10053"]);
    assert_eq!(site.machine.run("nft list table inet mine"), before);
    let mut command = site.machine.command(&[crate::support::binary("podstead").to_str().unwrap(), "--config"]);
    let out = command.arg(site.host.path("config.yaml")).args(["doctor", "network"]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains("chain door of table inet mine drops all packets to this host"), "{said}");
    // What it says helps.
    let prefix = site.interfaces().pop().unwrap().split('-').next().unwrap().to_owned();
    site.machine.run(&format!("nft add rule inet mine door iifname {prefix}-* meta l4proto {{ tcp, udp }} th dport 10053 accept"));
    digs(&site, "one", "+short one.default.svc.cluster.local", &site.addresses("one")[0]);
}

#[test]
fn taken_resolver_port_falls_back_to_host() {
    const TAKE: &str = "import socket, time\nu = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nu.bind(('127.112.115.53', 53))\ntime.sleep(100000)\n";
    let settings = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(settings.path(), "nameserver 192.0.2.53\n").unwrap();
    let mut site = Site::prepare(&format!("network: {{dns: {{resolvConf: {}}}}}\n", settings.path().display()));
    let mut taken = site.machine.command(&["python3", "-c", TAKE]).spawn().unwrap();
    eventually("the port to be taken", || {
        let sockets = site.machine.run("ss -Hlun");
        sockets.contains("127.112.115.53:53 ").then_some(()).ok_or(sockets)
    });
    site.host.start_daemon();
    told(&site, &["DnsUnavailable", "127.112.115.53:53"]);
    let manifest = web("there", "", "").replace("spec:\n", ON_HOST).replace("exec httpd -f -h /www", "exec sleep 1000000");
    site.host.write_manifest("there.yaml", &manifest);
    site.host.wait_running("there");
    assert_eq!(site.host.exec("there", "main", &["cat", "/etc/resolv.conf"]).trim(), "nameserver 192.0.2.53");
    let one = site.web("one", "", "");
    digs(&site, "one", "+short one.default.svc.cluster.local", &one[0]);
    taken.kill().unwrap();
    taken.wait().unwrap();
}

#[test]
fn own_domain_and_servers_replace_hosts() {
    let settings = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(settings.path(), "nameserver 192.0.2.77\nsearch plant.test\n").unwrap();
    let dns = format!("{{domain: edge.site, forwarders: ['{OUTSIDE_V4}'], resolvConf: {}}}", settings.path().display());
    let mut site = Site::prepare(&format!("network: {{dns: {dns}}}\n"));
    let _server = NameServer::start(&site);
    site.host.start_daemon();
    let one = site.web("one", "", "");
    let seen = site.host.exec("one", "main", &["cat", "/etc/resolv.conf"]);
    assert!(seen.starts_with("search default.svc.edge.site svc.edge.site edge.site plant.test\n"), "{seen}");
    digs(&site, "one", "+short one.default.svc.edge.site", &one[0]);
    digs(&site, "one", "+short printer.site.test", "198.51.100.9");
    // The usual domain is nobody's here: the name server is asked, which does not know it.
    let other = digs(&site, "one", "one.default.svc.cluster.local", "status: ");
    assert!(!other.contains(&one[0]), "{other}");
}

#[test]
fn greedy_pod_is_limited_without_effect_elsewhere() {
    // The header, one question for A one.default.svc.cluster.local: 20,000 of them as fast as they can be sent.
    const FLOOD: &str = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('169.254.0.1', 53)); \
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24); \
        q = b'\\\\0\\\\1\\\\1\\\\0\\\\0\\\\1\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\3one\\\\7default\\\\3svc\\\\7cluster\\\\5local\\\\0\\\\0\\\\1\\\\0\\\\1'; \
        [s.send(q) for _ in range(20000)]; s.settimeout(2); n = 0\ntry:\n while True:\n  s.recv(600); n += 1\nexcept OSError: print(n)";
    let site = Site::start();
    let one = site.web("one", "", "");
    site.web("two", "", "");
    let pid = site.host.container_pid(&site.host.pod("two").unwrap(), "main").to_string();
    let mut command = std::process::Command::new("nsenter");
    command.args(["-t", &pid, "-n", "python3", "-c", &FLOOD.replace("\\\\", "\\")]);
    let out = command.output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let answered: u32 = text.trim().parse().unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&out.stderr)));
    assert!((100..15_000).contains(&answered), "{answered} answers");
    digs(&site, "one", "+short one.default.svc.cluster.local", &one[0]);
    digs(&site, "two", "+short one.default.svc.cluster.local", &one[0]);
}

#[test]
fn pods_work_on_a_captive_lan() {
    // A hotel's router: every name is the portal's, every connection to the world ends at it.
    let settings = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(settings.path(), format!("nameserver {OUTSIDE_V4}\n")).unwrap();
    let mut site = Site::prepare(&format!("network: {{dns: {{resolvConf: {}}}}}\n", settings.path().display()));
    let _names = NameServer::captive(&site, OUTSIDE_V4);
    let _portal = WebServer::start(&site.outside, "0.0.0.0:8000", "please log in");
    site.outside.run("nft add table ip portal");
    site.outside.run("nft add chain ip portal catch { type nat hook prerouting priority -100 ; }");
    site.outside.run("nft add rule ip portal catch iifname lan0 tcp dport 80 redirect to :8000");
    site.host.start_daemon();
    let one = site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    site.web("two", "", "");
    // The world is the portal, under every name and address.
    digs(&site, "two", "+short registry.example.org", OUTSIDE_V4);
    site.pod_gets("two", "http://registry.example.org/", "please log in");
    site.pod_gets("two", "http://203.0.113.9/", "please log in");
    // Pods are not.
    digs(&site, "two", "+short one.default.svc.cluster.local", &one[0]);
    digs(&site, "two", "nobody.default.svc.cluster.local", "status: NXDOMAIN");
    site.pod_gets("two", "http://one/", "I am one");
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am one");
    site.host.kill_daemon();
    site.host.start_daemon();
    assert_eq!(site.addresses("one"), one);
    site.pod_gets("two", "http://one/", "I am one");
}
