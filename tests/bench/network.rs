//! The network of pods: what it costs to connect one, to change ports among many, and what goes through; against the CNI plugins that containerd
//! calls, and against netavark, which podman calls; throughput against containers of podman.
//!
//! All of it happens in network namespaces of the bench's own, with the daemon as it is built: its log says how long its work took.
//! `PODSTEAD_BENCH_PODS` is the number of pods, 250 unless told otherwise.

use crate::figures::{Series, row};
use crate::peers::Podman;
use crate::support::{TestHost, eventually_within};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Number of measurements of what is slow.
const PEER_RUNS: usize = 20;
/// Duration of the data flow for one figure of throughput.
const FLOW_SECONDS: u32 = 4;

/// A network namespace; it goes with this.
#[derive(Debug)]
pub(crate) struct Netns(String);

impl Netns {
    fn new(name: &str) -> Self {
        let name = format!("psbn{}-{name}", std::process::id());
        ip(&format!("netns add {name}"));
        ip(&format!("-n {name} link set lo up"));
        Self(name)
    }

    pub(crate) fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.0)
    }

    fn command(&self, program: &str) -> Command {
        command_in(&self.path(), program)
    }
}

/// A command in the network namespace of this file.
pub(crate) fn command_in(netns: &Path, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", netns.display())).arg(program).stdin(Stdio::null());
    command
}

impl Drop for Netns {
    fn drop(&mut self) {
        Command::new("ip").args(["netns", "delete", &self.0]).status().unwrap();
    }
}

fn ip(words: &str) {
    assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success(), "ip {words}");
}

/// A host with an uplink to a machine outside.
pub(crate) struct Site {
    pub(crate) host: Netns,
    outside: Netns,
}

impl Site {
    pub(crate) fn new(name: &str) -> Self {
        let site = Self { host: Netns::new(&format!("{name}-h")), outside: Netns::new(&format!("{name}-o")) };
        ip(&format!("-n {} link add uplink type veth peer name lan0 netns {}", site.host.0, site.outside.0));
        for (netns, interface, address) in [(&site.host, "uplink", "192.0.2.2/24"), (&site.outside, "lan0", "192.0.2.1/24")] {
            ip(&format!("-n {} address add {address} dev {interface}", netns.0));
            ip(&format!("-n {} link set {interface} up", netns.0));
        }
        ip(&format!("-n {} route add default via 192.0.2.1", site.host.0));
        site
    }

    /// Does work in a thread whose network, and that of the threads and processes that it starts, is the host's.
    fn on_host<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let netns = std::fs::File::open(self.host.path()).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(rustix::thread::LinkNameSpaceType::Network);
                rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&netns), kind).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }
}

fn port(number: usize) -> u16 {
    20_000 + u16::try_from(number).unwrap()
}

/// A plugin of CNI, or netavark; what it prints.
fn call(program: &Path, arguments: &[&str], environment: &HashMap<&str, String>, input: &serde_json::Value) -> serde_json::Value {
    let mut command = Command::new(program);
    command.args(arguments).envs(environment).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{}: {said}{}", program.display(), String::from_utf8_lossy(&out.stderr));
    serde_json::from_str(&said).unwrap_or_default()
}

/// The plugins bridge and portmap with loopback, called as containerd and podman call them.
struct Cni {
    directory: PathBuf,
    state: tempfile::TempDir,
}

impl Cni {
    fn find() -> Option<Self> {
        let directory = PathBuf::from("/usr/lib/cni");
        directory.join("bridge").is_file().then(|| Self { directory, state: tempfile::tempdir().unwrap() })
    }

    fn run(&self, verb: &str, netns: &Netns, number: usize) {
        let environment = HashMap::from([
            ("CNI_COMMAND", verb.to_owned()),
            ("CNI_CONTAINERID", format!("psbench{number}")),
            ("CNI_NETNS", netns.path().display().to_string()),
            ("CNI_IFNAME", "eth0".to_owned()),
            ("CNI_PATH", self.directory.display().to_string()),
        ]);
        let loopback = HashMap::from([("CNI_IFNAME", "lo".to_owned())]);
        let loopback = environment.clone().into_iter().chain(loopback).collect();
        let call =
            |plugin: &str, environment, input: serde_json::Value| call(&self.directory.join(plugin), &[], environment, &input);
        call("loopback", &loopback, serde_json::json!({"cniVersion": "0.4.0", "name": "lo", "type": "loopback"}));
        let bridge = serde_json::json!({
            "cniVersion": "0.4.0", "name": "bench", "type": "bridge", "bridge": "cni-bench", "isGateway": true, "ipMasq": true, "hairpinMode": true,
            "ipam": {"type": "host-local", "dataDir": self.state.path(), "ranges": [[{"subnet": "10.99.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]},
        });
        let mappings = serde_json::json!([{"hostPort": port(number), "containerPort": 80, "protocol": "tcp"}]);
        let portmap = |result: &serde_json::Value| {
            serde_json::json!({
                "cniVersion": "0.4.0", "name": "bench", "type": "portmap", "runtimeConfig": {"portMappings": mappings}, "prevResult": result,
            })
        };
        if verb == "DEL" {
            call("portmap", &environment, portmap(&serde_json::Value::Null));
            call("bridge", &environment, bridge);
            return;
        }
        let result = call("bridge", &environment, bridge);
        call("portmap", &environment, portmap(&result));
    }
}

fn netavark_address(number: usize) -> String {
    format!("10.98.{}.{}", (number + 2) / 256, (number + 2) % 256)
}

/// Podman's own network program.
struct Netavark(PathBuf, tempfile::TempDir);

impl Netavark {
    fn find() -> Option<Self> {
        let program = PathBuf::from("/usr/lib/podman/netavark");
        program.is_file().then(|| Self(program, tempfile::tempdir().unwrap()))
    }

    fn run(&self, verb: &str, netns: &Netns, number: usize) {
        let address = netavark_address(number);
        let input = serde_json::json!({
            "container_id": format!("psbench{number}"), "container_name": format!("p{number}"),
            "port_mappings": [{"container_port": 80, "host_ip": "", "host_port": port(number), "protocol": "tcp", "range": 1}],
            "networks": {"bench": {"static_ips": [address], "interface_name": "eth0"}},
            "network_info": {"bench": {
                "dns_enabled": false, "driver": "bridge", "id": "0".repeat(64), "internal": false, "ipv6_enabled": false, "name": "bench",
                "network_interface": "nv-bench", "subnets": [{"gateway": "10.98.0.1", "subnet": "10.98.0.0/16"}],
                "ipam_options": {"driver": "host-local"},
            }},
        });
        let config = self.1.path().display().to_string();
        let path = netns.path().display().to_string();
        call(&self.0, &["--config", &config, verb, &path], &HashMap::new(), &input);
    }
}

/// Lines of the daemon's log about its network, of the level `debug`.
pub(crate) const SET_UP: &str = "network is set up";
const TAKEN_DOWN: &str = "network is taken down";
const RULES: &str = "packet rules lead to the pod";
/// The kernel takes a while for the last of many pods.
const PATIENCE: Duration = Duration::from_secs(120);

/// podstead with pods on a site.
pub(crate) struct Shipped(pub(crate) TestHost);

impl Shipped {
    pub(crate) fn start(site: &Site) -> Self {
        let mut host = TestHost::prepare_in(&site.host.0, "logging: {level: 'info,podstead::network=debug'}\n");
        host.start_daemon();
        Self(host)
    }

    /// Durations of the pieces of work of a kind so far.
    fn took(&self, what: &str) -> Vec<Duration> {
        let log = self.0.daemon_log();
        let of = |line: &str| line.split("took_us=").nth(1)?.split_ascii_whitespace().next()?.parse().ok();
        log.lines().filter(|line| line.contains(what)).filter_map(of).map(Duration::from_micros).collect()
    }

    /// Does something that leads to one more piece of work of a kind, and returns how long that took.
    pub(crate) fn one_more(&self, what: &str, begin: impl FnOnce()) -> Duration {
        let before = self.took(what).len();
        begin();
        eventually_within(PATIENCE, what, || self.took(what).get(before).copied().ok_or_else(|| format!("{before} times")))
    }

    pub(crate) fn write(&self, number: usize, ports: &[(u16, u16)]) {
        let ports: Vec<_> = ports.iter().map(|(host, pod)| serde_json::json!({"containerPort": pod, "hostPort": host})).collect();
        let manifest = serde_json::json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{number}")},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [
                {"name": "main", "image": "localhost/busybox:1", "command": ["/bin/sleep", "1000000"], "ports": ports},
            ]},
        });
        self.0.write_manifest(&format!("p{number}.yaml"), &manifest.to_string());
    }

    /// Runs a pod with a port of the host; how long its network took.
    pub(crate) fn run(&self, number: usize) -> Duration {
        let took = self.one_more(SET_UP, || self.write(number, &[(port(number), 80)]));
        self.0.wait_running(&format!("p{number}"));
        took
    }

    /// A command in the network of a pod.
    fn command(&self, number: usize, program: &str) -> Command {
        let pid = self.0.container_pid(&self.0.pod(&format!("p{number}")).unwrap(), "main");
        command_in(Path::new(&format!("/proc/{pid}/ns/net")), program)
    }

    pub(crate) fn address(&self, number: usize) -> String {
        self.0.pod(&format!("p{number}")).unwrap().0["status"]["podIP"].as_str().unwrap().to_owned()
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Number of rules of podstead's table in the namespace.
fn rules(site: &Site) -> usize {
    let out = site.host.command("nft").args(["-a", "list", "ruleset"]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines().filter(|line| line.contains("# handle") && !line.trim_start().starts_with("chain") && !line.contains('{')).count()
}

/// Setup, teardown, ports and throughput.
pub(crate) fn of_pods() {
    let count = std::env::var("PODSTEAD_BENCH_PODS").ok().and_then(|text| text.parse().ok()).unwrap_or(250);
    connecting(count);
    for (what, through_port) in [("pod to pod", false), ("outside to pod through hostPort", true)] {
        throughput(what, through_port);
    }
}

fn connecting(count: usize) {
    let (site, peers) = (Site::new("own"), Site::new("cni"));
    let mut own = [Series::default(), Series::default()];
    let mut changes = Vec::new();
    let mut all = Duration::ZERO;
    let mut rules_at = Vec::new();
    let podstead = Shipped::start(&site);
    for number in 0..count {
        let took = podstead.run(number);
        own[0].push(took);
        all += took;
        if [1, 10, 50, count].contains(&(number + 1)) {
            // The first pod gets one more port, and loses it.
            let mut series = Series::default();
            for round in 0..PEER_RUNS {
                let ports: &[(u16, u16)] = if round % 2 == 0 { &[(port(0), 80), (19_999, 81)] } else { &[(port(0), 80)] };
                series.push(podstead.one_more(RULES, || podstead.write(0, ports)));
            }
            changes.push(format!("{} pods {}", number + 1, series.text()));
            rules_at.push(format!("{} with {}", rules(&site), number + 1));
        }
    }
    for number in 0..count.min(PEER_RUNS) {
        let name = format!("p{number}");
        own[1].push(podstead.one_more(TAKEN_DOWN, || podstead.0.remove_manifest(&format!("{name}.yaml"))));
        podstead.0.wait_gone(&name);
    }
    drop(podstead);
    let runs = count.min(PEER_RUNS);
    let fresh = |name: &str| -> Vec<Netns> { (0..runs).map(|number| Netns::new(&format!("{name}{number}"))).collect() };
    let mut cni_series = [Series::default(), Series::default()];
    if let Some(cni) = Cni::find() {
        let namespaces = fresh("c");
        peers.on_host(|| {
            for (number, netns) in namespaces.iter().enumerate() {
                cni_series[0].push(timed(|| cni.run("ADD", netns, number)));
            }
            for (number, netns) in namespaces.iter().enumerate() {
                cni_series[1].push(timed(|| cni.run("DEL", netns, number)));
            }
        });
    }
    let mut netavark_series = [Series::default(), Series::default()];
    if let Some(netavark) = Netavark::find() {
        let (site, namespaces) = (Site::new("nv"), fresh("n"));
        site.on_host(|| {
            for (number, netns) in namespaces.iter().enumerate() {
                netavark_series[0].push(timed(|| netavark.run("setup", netns, number)));
            }
            for (number, netns) in namespaces.iter().enumerate() {
                netavark_series[1].push(timed(|| netavark.run("teardown", netns, number)));
            }
        });
    }
    for (index, what) in ["connect a pod with a hostPort", "disconnect it"].into_iter().enumerate() {
        for (peer, series) in [("CNI loopback, bridge, portmap", &cni_series), ("netavark", &netavark_series)] {
            row(&format!("{what}; {peer}"), &own[index].text(), &series[index].text(), &own[index].ratio_to(&series[index]));
        }
    }
    row(&format!("connect {count} pods with a hostPort each, all in all"), &format!("{:.2} s", all.as_secs_f64()), "-", "-");
    row("packet rules", &rules_at.join(", "), "-", "-");
    row("packet rules changed, a port more or less, while there are", &changes.join("; "), "-", "-");
}

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Gigabits per second that `client` sends to a server, which listens on port 80.
fn gigabits(mut server: Command, client: impl Fn() -> Command, address: &str, port: u16) -> Option<f64> {
    let listening = server.args(["-s", "-1", "-p", "80"]).stdout(Stdio::null()).spawn().ok()?;
    let _listening = Running(listening);
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let out = client().args(["-c", address, "-p", &port.to_string(), "-t", &FLOW_SECONDS.to_string(), "-J"]).output().ok()?;
        let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
        match report["end"]["sum_received"]["bits_per_second"].as_f64() {
            Some(bits) => return Some(bits / 1e9),
            // It does not listen yet.
            None if Instant::now() < end => std::thread::park_timeout(Duration::from_millis(100)),
            None => return None,
        }
    }
}

fn throughput(what: &str, through_port: bool) {
    const PROGRAM: &str = "iperf3";
    const HOST: &str = "192.0.2.2";
    let site = Site::new("own");
    let podstead = Shipped::start(&site);
    podstead.run(0);
    podstead.run(1);
    let own = match through_port {
        true => gigabits(podstead.command(0, PROGRAM), || site.outside.command(PROGRAM), HOST, port(0)),
        false => gigabits(podstead.command(0, PROGRAM), || podstead.command(1, PROGRAM), &podstead.address(0), 80),
    };
    drop(podstead);
    let site = Site::new("pm");
    let root = tempfile::tempdir().unwrap();
    let peer = Podman::prepare(&root.path().join("podman")).and_then(|podman| {
        let pods = site.on_host(|| podman.run_connected("one", Some(port(0))).zip(podman.run_connected("two", None)));
        let of = |pid: u32| command_in(Path::new(&format!("/proc/{pid}/ns/net")), PROGRAM);
        let flow = pods.and_then(|((one, address), (two, _))| match through_port {
            true => gigabits(of(one), || site.outside.command(PROGRAM), HOST, port(0)),
            false => gigabits(of(one), || of(two), &address, 80),
        });
        site.on_host(|| podman.disconnect(&["one", "two"]));
        flow
    });
    let text = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1} Gbit/s"));
    let ratio = own.zip(peer).map_or("-".to_owned(), |(own, peer)| format!("{:.2}", own / peer));
    row(&format!("{what}: throughput; podman"), &text(own), &text(peer), &ratio);
}
