//! Ports of the host that lead to pods.

use super::lan::{HOST_V4, HOST_V6, Site, WebServer};
use crate::support::eventually;
use std::time::{Duration, Instant};

/// shows: spec.containers[].ports[].hostPort, spec.containers[].ports[].containerPort
#[test]
fn host_port_leads_to_pod_from_everywhere() {
    let site = Site::start();
    site.web("two", "", "");
    let one = site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    let v4 = format!("http://{HOST_V4}:8080/");
    let v6 = format!("http://[{HOST_V6}]:8080/");
    for url in [&v4, &v6] {
        site.outside.gets(url, "I am one");
        site.machine.gets(url, "I am one");
        site.pod_gets("two", url, "I am one");
        site.pod_gets("one", url, "I am one");
    }
    site.machine.gets("http://127.0.0.1:8080/", "I am one");
    site.pod_gets("two", "http://169.254.0.1:8080/", "I am one");
    // An edit moves it, without another container.
    let before = site.host.pod("one").unwrap();
    site.host.write_manifest("one.yaml", &super::lan::web("one", "", "{containerPort: 80, hostPort: 8081}"));
    site.outside.gets(&format!("http://{HOST_V4}:8081/"), "I am one");
    eventually("the old port to be closed", || match site.outside.get(&v4) {
        Err(_) => Ok(()),
        Ok(text) => Err(text),
    });
    let after = site.host.wait_running("one");
    assert_eq!(site.addresses("one"), one);
    assert_eq!(after.uid(), before.uid());
    site.host.remove_manifest("one.yaml");
    site.host.wait_gone("one");
    site.outside.get(&format!("http://{HOST_V4}:8081/")).unwrap_err();
}

/// shows: spec.containers[].ports[].hostIP
#[test]
fn port_of_one_address_is_only_there() {
    let site = Site::start();
    site.web(
        "one",
        "",
        &format!(
            "{{containerPort: 80, hostPort: 8001, hostIP: 127.0.0.1}}, {{containerPort: 80, hostPort: 8002, hostIP: {HOST_V4}}}, \
             {{containerPort: 80, hostPort: 8003, hostIP: '{HOST_V6}'}}"
        ),
    );
    site.web("two", "", "{containerPort: 80, hostPort: 8002, hostIP: 127.0.0.1}");
    site.machine.gets("http://127.0.0.1:8001/", "I am one");
    site.machine.gets("http://127.0.0.1:8002/", "I am two");
    site.outside.gets(&format!("http://{HOST_V4}:8002/"), "I am one");
    site.outside.gets(&format!("http://[{HOST_V6}]:8003/"), "I am one");
    for url in [format!("http://{HOST_V4}:8001/"), format!("http://[{HOST_V6}]:8002/"), format!("http://{HOST_V4}:8003/")] {
        site.outside.get(&url).unwrap_err();
    }
}

/// shows: spec.containers[].ports[].protocol
#[test]
fn datagrams_find_the_pod_and_back() {
    datagrams_come_back(&Site::start());
}

/// Through a port of UDP of a pod, over both families.
pub(super) fn datagrams_come_back(site: &Site) {
    site.web("one", "", "{containerPort: 53, hostPort: 5353, protocol: UDP}");
    let pid = site.host.container_pid(&site.host.pod("one").unwrap(), "main").to_string();
    let server = "import socket\ns = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\ns.bind(('::', 53))\n\
                  while True: s.sendto(b'I am one', s.recvfrom(100)[1])\n";
    let mut server = std::process::Command::new("nsenter").args(["-t", &pid, "-n", "python3", "-c", server]).spawn().unwrap();
    let client = "import socket,sys\ns = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)\n\
                  s.settimeout(1)\ns.sendto(b'hello', (sys.argv[1], 5353))\nprint(s.recvfrom(100))\n";
    for address in [HOST_V4, HOST_V6] {
        eventually(&format!("an answer from {address}"), || {
            let out = site.outside.command(&["python3", "-c", client, address]).output().unwrap();
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            // The answer comes from the address that was asked.
            (text.contains("I am one") && text.contains(address)).then_some(()).ok_or(text + &String::from_utf8_lossy(&out.stderr))
        });
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn taken_port_is_refused_until_free() {
    let site = Site::start();
    site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    site.host.write_manifest("two.yaml", &super::lan::web("two", "", "{containerPort: 80, hostPort: 8080}"));
    let two = site.host.wait_for_pod("two", "a conflict", |pod| pod.waiting_reason("main") == "HostPortConflict");
    let message = two.container("main")["state"]["waiting"]["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "hostPort 8080/TCP is in use by pod one-edge-1_default");
    assert_eq!(two.phase(), "Pending");
    let events = site.host.cli_ok(&["get", "events"]);
    assert!(events.contains("HostPortConflict"), "{events}");
    // A restart of the daemon does not turn the tables.
    let mut site = site;
    site.host.kill_daemon();
    site.host.start_daemon();
    site.host.wait_running("one");
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am one");
    site.host.wait_for_pod("two", "a conflict", |pod| pod.waiting_reason("main") == "HostPortConflict");
    site.host.remove_manifest("one.yaml");
    site.host.wait_running("two");
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am two");
}

#[test]
fn port_of_host_service_stays_with_it() {
    let site = Site::start();
    let server = WebServer::start(&site.machine, "0.0.0.0:22", "I am the host");
    let manifest = super::lan::web("one", "", "{containerPort: 80, hostPort: 22}");
    site.host.write_manifest("one.yaml", &manifest);
    let one = site.host.wait_for_pod("one", "a conflict", |pod| pod.waiting_reason("main") == "HostPortConflict");
    let message = one.container("main")["state"]["waiting"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("hostPort 22/TCP is in use by busybox (process "), "{message}");
    site.outside.gets(&format!("http://{HOST_V4}:22/"), "I am the host");
    drop(server);
    site.host.wait_running("one");
    site.outside.gets(&format!("http://{HOST_V4}:22/"), "I am one");
    // One of root's that comes later has its port, too.
    let _server = WebServer::start(&site.machine, "0.0.0.0:22", "I am the host");
    site.outside.gets(&format!("http://{HOST_V4}:22/"), "I am the host");
}

#[test]
fn host_network_pod_has_its_ports() {
    let site = Site::start();
    let on_host = super::lan::web("one", "", "{containerPort: 8080, hostPort: 8080}")
        .replace("spec:\n", "spec:\n  hostNetwork: true\n")
        .replace("httpd -f", "httpd -f -p 8080");
    site.host.write_manifest("one.yaml", &on_host);
    let one = site.host.wait_running("one");
    assert_eq!(one.0["status"]["podIP"], HOST_V4);
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am one");
    site.host.write_manifest("two.yaml", &super::lan::web("two", "", "{containerPort: 80, hostPort: 8080}"));
    site.host.wait_for_pod("two", "a conflict", |pod| pod.waiting_reason("main") == "HostPortConflict");
    site.host.remove_manifest("one.yaml");
    site.host.wait_running("two");
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am two");
}

/// A client of UDP that keeps its port, and prints the answers.
const CHATTER: &str = "import socket,sys,time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('', 4242))\ns.settimeout(0.2)\n\
                       while True:\n  s.sendto(b'hello', (sys.argv[1], 5353))\n  try: print(s.recvfrom(100)[0].decode(), flush=True); time.sleep(0.02)\n  \
                       except OSError: pass\n";

#[test]
fn datagrams_reach_the_pod_that_follows() {
    datagrams_follow(&Site::start());
}

/// One client, and pods that come and go behind one port of UDP.
pub(super) fn datagrams_follow(site: &Site) {
    use std::io::{BufRead, BufReader};
    let mut client =
        site.outside.command(&["python3", "-c", CHATTER, HOST_V4]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (sender, answers) = std::sync::mpsc::channel();
    let lines = BufReader::new(client.stdout.take().unwrap()).lines();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    // It began before there was a pod, and there is always another one.
    for name in ["one", "two", "three"] {
        site.web(name, "", "{containerPort: 53, hostPort: 5353, protocol: UDP}");
        let pid = site.host.container_pid(&site.host.pod(name).unwrap(), "main").to_string();
        let server = format!(
            "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('', 53))\nwhile True: s.sendto(b'I am {name}', s.recvfrom(100)[1])\n"
        );
        let mut server = std::process::Command::new("nsenter").args(["-t", &pid, "-n", "python3", "-c", &server]).spawn().unwrap();
        // Answers of the pod before may wait to be read.
        let end = Instant::now() + Duration::from_secs(60);
        let mut heard = std::iter::from_fn(|| answers.recv_timeout(end.saturating_duration_since(Instant::now())).ok());
        let answered = heard.any(|answer| answer == format!("I am {name}"));
        drop(server.kill());
        drop(server.wait());
        if !answered {
            drop(client.kill());
        }
        assert!(answered, "{name} was never heard");
        site.host.remove_manifest(&format!("{name}.yaml"));
        site.host.wait_gone(name);
    }
    client.kill().unwrap();
    client.wait().unwrap();
}

#[test]
fn early_datagrams_reach_the_pod_later() {
    use std::io::{BufRead, BufReader};
    const OTHER_V4: &str = "192.0.2.9";
    let mut site = Site::start();
    site.machine.address("uplink", &format!("{OTHER_V4}/24"));
    // Somebody's firewall has connections tracked also while podstead's rules are away.
    site.machine.run("nft add table inet mine");
    site.machine.run("nft add chain inet mine door { type filter hook input priority 0 ; }");
    site.machine.run("nft add rule inet mine door ct state new udp dport 5353 counter");
    site.web("one", "", "{containerPort: 53, hostPort: 5353, protocol: UDP}");
    let pid = site.host.container_pid(&site.host.pod("one").unwrap(), "main").to_string();
    let server = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('', 53))\nwhile True: s.sendto(b'I am one', s.recvfrom(100)[1])\n";
    let mut server = std::process::Command::new("nsenter").args(["-t", &pid, "-n", "python3", "-c", server]).spawn().unwrap();
    site.host.kill_daemon();
    let tables = site.machine.run("nft list tables");
    site.machine.run(&format!(
        "nft delete {}",
        tables.lines().find(|line| line.contains("podstead") && !line.ends_with("_standby")).unwrap()
    ));
    let mut client =
        site.outside.command(&["python3", "-c", CHATTER, OTHER_V4]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    eventually("datagrams to go to the host", || {
        let rules = site.machine.run("nft list table inet mine");
        (!rules.contains("packets 0 ")).then_some(()).ok_or(rules)
    });
    site.host.start_daemon();
    let (sender, answers) = std::sync::mpsc::channel();
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    std::thread::spawn(move || lines.next().map(|line| sender.send(line)));
    let answer = answers.recv_timeout(Duration::from_secs(20));
    for child in [&mut client, &mut server] {
        drop(child.kill());
        drop(child.wait());
    }
    assert_eq!(answer.unwrap().unwrap(), "I am one");
}

/// A server and a client of SCTP, in perl, which every Debian has: sockets of protocol 132.
const SCTP_SERVER: &str = "use Socket; socket(my $s, AF_INET, SOCK_STREAM, 132) or die $!; setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1); \
                           bind($s, pack_sockaddr_in(9899, INADDR_ANY)) or die $!; listen($s, 5) or die $!; \
                           while (my $peer = accept(my $c, $s)) { my ($port, $ip) = unpack_sockaddr_in($peer); \
                           syswrite($c, 'I am one, you are ' . inet_ntoa($ip)); sysread($c, my $x, 1); close($c) }";
const SCTP_CLIENT: &str = "use Socket; alarm 3; socket(my $s, AF_INET, SOCK_STREAM, 132) or die $!; \
                           connect($s, pack_sockaddr_in($ARGV[1], inet_aton($ARGV[0]))) or die $!; sysread($s, my $t, 100); print $t; syswrite($s, 'x')";

/// shows: spec.containers[].ports[].protocol
#[test]
fn an_association_of_sctp_finds_the_pod() {
    associations_find(&Site::start());
}

/// Through a port of SCTP of a pod, from outside and from the host.
pub(super) fn associations_find(site: &Site) {
    site.web("one", "", "{containerPort: 9899, hostPort: 9900, protocol: SCTP}");
    let probe =
        site.outside.command(&["perl", "-MSocket", "-e", "socket(S, AF_INET, SOCK_STREAM, 132) or exit 1"]).status().unwrap();
    if !probe.success() {
        return crate::support::kernel_lacks("SCTP");
    }
    let pid = site.host.container_pid(&site.host.pod("one").unwrap(), "main").to_string();
    let mut server = std::process::Command::new("nsenter").args(["-t", &pid, "-n", "perl", "-e", SCTP_SERVER]).spawn().unwrap();
    let answers = |machine: &super::lan::Machine, address: &str, answer: &str| {
        eventually(&format!("{answer:?} from {address}"), || {
            let out = machine.command(&["perl", "-e", SCTP_CLIENT, address, "9900"]).output().unwrap();
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            if text == answer { Ok(()) } else { Err(text + &String::from_utf8_lossy(&out.stderr)) }
        });
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        answers(&site.outside, HOST_V4, &format!("I am one, you are {}", super::lan::OUTSIDE_V4));
        answers(&site.machine, HOST_V4, &format!("I am one, you are {HOST_V4}"));
        site.host.remove_manifest("one.yaml");
        site.host.wait_gone("one");
        let out = site.outside.command(&["perl", "-e", SCTP_CLIENT, HOST_V4, "9900"]).output().unwrap();
        assert!(!String::from_utf8_lossy(&out.stdout).contains("I am one"), "the port is not the pod's any more");
    }));
    drop(server.kill());
    drop(server.wait());
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}
