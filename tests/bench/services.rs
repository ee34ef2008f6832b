//! Services: what goes through an address of one with 1 and with 1,000 of them, a change of one endpoint among 5,000, the connection of a pod beside them,
//! and their memory; against the chains of kube-proxy's nftables mode for the same pods, and against a proxy in user space.
//!
//! Senders and receivers are threads of the bench in the network namespaces of real pods. How long changes took is in the daemon's log.

use super::network::{Netns, SET_UP, Shipped, Site, command_in};
use crate::figures::{Series, row};
use crate::memory::{REST, anonymous_kib};
use crate::support::eventually_within;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SERVICES: usize = 1000;
/// Endpoints of each, but for the one that answers.
const ENDPOINTS: usize = 5;
/// Pairs of measurements of each figure and of what it is compared to.
const ROUNDS: usize = 15;
/// Duration of the flow of packets for one of them.
const FLOW: Duration = Duration::from_millis(250);
/// Processors of senders and receivers, if there are two: the scheduler's choice would be most of the difference of two measurements.
const SENDERS: usize = 0;
const RECEIVERS: usize = 1;
/// Changes of one endpoint.
const CHANGES: usize = 20;
/// For a thousand Services to be accepted, recorded and served.
const PATIENCE: Duration = Duration::from_secs(180);

/// The line of the daemon's log about a change of Services.
const SERVED: &str = "packet rules of Services are changed";
/// Address of the Service that answers.
const ANSWERING: Ipv4Addr = Ipv4Addr::new(10, 202, 0, 9);
/// Address of the peer's Service.
const PEER: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 9);
/// Address of the proxy in user space: the host, as pods see it.
const PROXY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(169, 254, 0, 1), 7000);
/// Port of all of them, and of the pod behind the Service.
const PORT: u16 = 7000;
/// Ports of the pod that others lead to: a tracked connection of one may not stand in the way of another's, from the same port of the client.
const PEER_PORT: u16 = 7001;
const PROXIED_PORT: u16 = 7002;
const DIRECT_PORT: u16 = 7003;

/// Does work in a thread of a network namespace.
pub(crate) fn within<T: Send>(netns: &Path, work: impl FnOnce() -> T + Send) -> T {
    let netns = std::fs::File::open(netns).unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let kind = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&netns), kind).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

/// Keeps this thread on one processor.
fn pin(processor: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(processor);
    // A host with one processor has no choice.
    rustix::thread::sched_setaffinity(None, &set).ok();
}

/// Receives datagrams, and accepts connections, in the background until it is dropped.
struct Receiver {
    datagrams: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Receiver {
    fn start(netns: &Path) -> Self {
        let (datagrams, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        for port in [PORT, PEER_PORT, PROXIED_PORT, DIRECT_PORT] {
            let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
            let (udp, tcp) = within(netns, || (UdpSocket::bind(any).unwrap(), TcpListener::bind(any).unwrap()));
            udp.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            let (count, over) = (Arc::clone(&datagrams), Arc::clone(&is_over));
            std::thread::spawn(move || {
                pin(RECEIVERS);
                let mut buffer = [0; 64];
                while !over.load(Ordering::Relaxed) {
                    if udp.recv(&mut buffer).is_ok() {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            std::thread::spawn(move || {
                pin(RECEIVERS);
                for stream in tcp.incoming() {
                    let Ok(mut stream) = stream else { return };
                    stream.write_all(b"x").ok();
                }
            });
        }
        Self { datagrams, is_over }
    }

    /// Datagrams a second that come here while one sender sends to this address as fast as it can.
    fn rate(&self, sender: &Path, to: SocketAddrV4) -> f64 {
        within(sender, || {
            pin(SENDERS);
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect(to).unwrap();
            let begin = Instant::now();
            let before = self.datagrams.load(Ordering::Relaxed);
            while begin.elapsed() < FLOW {
                for _ in 0..100 {
                    // A full queue, or nobody who listens yet, is no failure: what arrives counts.
                    socket.send(&[0; 16]).ok();
                }
            }
            (self.datagrams.load(Ordering::Relaxed) - before) as f64 / begin.elapsed().as_secs_f64()
        })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Connections a second, one after the other, that an address answers.
fn connections(sender: &Path, to: SocketAddrV4) -> f64 {
    within(sender, || {
        pin(SENDERS);
        let begin = Instant::now();
        let mut count = 0_u32;
        while begin.elapsed() < FLOW {
            let answered = TcpStream::connect(to).and_then(|mut stream| stream.read_exact(&mut [0]));
            count += u32::from(answered.is_ok());
        }
        f64::from(count) / begin.elapsed().as_secs_f64()
    })
}

/// Copies what comes to the host to a pod.
struct Proxy(Arc<AtomicBool>);

impl Proxy {
    fn start(host: &Netns, to: SocketAddr) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (udp, out, tcp) = within(&host.path(), || {
            (UdpSocket::bind(PROXY).unwrap(), UdpSocket::bind("0.0.0.0:0").unwrap(), TcpListener::bind(PROXY).unwrap())
        });
        udp.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        out.connect(to).unwrap();
        let over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            let mut buffer = [0; 64];
            while !over.load(Ordering::Relaxed) {
                if let Ok(length) = udp.recv(&mut buffer) {
                    out.send(&buffer[..length]).ok();
                }
            }
        });
        let host = host.path();
        std::thread::spawn(move || {
            within(&host, || {
                for stream in tcp.incoming() {
                    let Ok(mut client) = stream else { return };
                    let Ok(mut server) = TcpStream::connect(to) else { continue };
                    std::io::copy(&mut server, &mut client).ok();
                }
            });
        });
        Self(is_over)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A Service without selector, and its endpoints outside of the host.
fn service(number: usize, changed: usize) -> String {
    let address = |endpoint: usize| {
        let last = if endpoint == 0 { 100 + changed % 100 } else { endpoint };
        format!("198.18.{}.{last}", number % 250)
    };
    let endpoints: Vec<String> = (0..ENDPOINTS).map(|endpoint| format!("{{addresses: [{}]}}", address(endpoint))).collect();
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: s{number}}}\nspec: {{ports: [{{port: 80}}]}}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: s{number}, labels: {{kubernetes.io/service-name: s{number}}}}}\n\
         addressType: IPv4\nports: [{{port: 8080}}]\nendpoints: [{}]\n",
        endpoints.join(", ")
    )
}

/// Writes all but one that is there beside them, the first one in a file of its own; or takes them away.
pub(crate) fn write(podstead: &Shipped, is_there: bool) {
    const FILES: usize = 10;
    let one = if is_there { service(1, 0) } else { "# none\n".to_owned() };
    podstead.0.write_manifest("s1.yaml", &one);
    for file in 0..FILES {
        let numbers = (2..SERVICES).filter(|number| number % FILES == file);
        let text: Vec<String> = numbers.map(|number| service(number, 0)).collect();
        podstead.0.write_manifest(&format!("many{file}.yaml"), &if is_there { text.join("---\n") } else { "# none\n".to_owned() });
    }
    let wanted = if is_there { SERVICES } else { 1 };
    eventually_within(PATIENCE, "all Services to be served", || {
        let out = podstead.0.cli_ok(&["get", "services", "-o", "name"]);
        let count = out.lines().count();
        if count == wanted { Ok(()) } else { Err(format!("{count} of {wanted}")) }
    });
}

/// Memory of the daemon that belongs to no file, in KiB, after it has given back what its last work left.
fn memory(podstead: &Shipped) -> u64 {
    std::thread::sleep(REST);
    anonymous_kib(podstead.0.daemon_pid())
}

/// The chains that kube-proxy's nftables mode makes: one for each Service, which chooses among one for each endpoint.
fn kube_proxy(services: usize, pod: &str) -> String {
    let mut chains = String::new();
    let mut elements = Vec::new();
    for number in 0..services {
        let address = if number == 0 { PEER } else { Ipv4Addr::new(10, 96, 1 + (number / 250) as u8, (number % 250) as u8) };
        for (protocol, name) in [("tcp", format!("s{number}-tcp")), ("udp", format!("s{number}-udp"))] {
            let targets: Vec<String> = match number {
                0 => vec![format!("{pod}:{PEER_PORT}")],
                _ => (0..ENDPOINTS).map(|endpoint| format!("198.18.{}.{endpoint}:8080", number % 250)).collect(),
            };
            let choices: Vec<String> = (0..targets.len()).map(|index| format!("{index} : goto endpoint-{name}-{index}")).collect();
            for (index, target) in targets.iter().enumerate() {
                let own = target.split(':').next().unwrap();
                chains.push_str(&format!(
                    "  chain endpoint-{name}-{index} {{ ip saddr {own} jump mark-for-masquerade; meta l4proto {protocol} dnat to {target}; }}\n"
                ));
            }
            chains.push_str(&format!(
                "  chain service-{name} {{ ip daddr {address} {protocol} dport {PORT} ip saddr != 10.201.0.0/20 jump mark-for-masquerade; \
                 numgen random mod {} vmap {{ {} }}; }}\n",
                targets.len(),
                choices.join(", ")
            ));
            elements.push(format!("{address} . {protocol} . {PORT} : goto service-{name}"));
        }
    }
    format!(
        "table ip kube-proxy {{\n  chain mark-for-masquerade {{ mark set mark or 0x4000; }}\n{chains}\
         \n  map service-ips {{ type ipv4_addr . inet_proto . inet_service : verdict; elements = {{ {} }}; }}\n\
         \n  chain services {{ ip daddr . meta l4proto . th dport vmap @service-ips; }}\n\
         \n  chain nat-prerouting {{ type nat hook prerouting priority -100; jump services; }}\n\
         \n  chain nat-postrouting {{ type nat hook postrouting priority 100; mark and 0x4000 != 0 masquerade; }}\n}}\n",
        elements.join(", ")
    )
}

/// Loads rules with `nft`, as kube-proxy does.
fn load(site: &Site, rules: &str) -> Duration {
    let mut command = command_in(&site.host.path(), "nft");
    let mut child = command.args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    child.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    begin.elapsed()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Packets or connections a second, in pairs.
#[derive(Default)]
struct Pairs {
    own: Vec<f64>,
    peer: Vec<f64>,
}

impl Pairs {
    fn push(&mut self, is_own_first: bool, measure: impl Fn(bool) -> f64) {
        let first = measure(is_own_first);
        let second = measure(!is_own_first);
        let (own, peer) = if is_own_first { (first, second) } else { (second, first) };
        self.own.push(own);
        self.peer.push(peer);
    }

    /// The median of the ratios of each pair.
    fn ratio(&self) -> f64 {
        median(&mut self.own.iter().zip(&self.peer).map(|(own, peer)| own / peer).collect::<Vec<f64>>())
    }

    fn print(&mut self, what: &str) -> f64 {
        let ratio = self.ratio();
        row(what, &format!("{:.0}", median(&mut self.own)), &format!("{:.0}", median(&mut self.peer)), &format!("{ratio:.3}"));
        ratio
    }
}

/// Measures through two addresses in turn, and prints one row for packets and one for connections. Returns their ratios.
fn compare(what: &str, receiver: &Receiver, sender: &Path, own: SocketAddrV4, peer: SocketAddrV4) -> [f64; 2] {
    let (mut packets, mut connected) = (Pairs::default(), Pairs::default());
    let to = |is_own| if is_own { own } else { peer };
    for round in 0..ROUNDS {
        packets.push(round % 2 == 0, |is_own| receiver.rate(sender, to(is_own)));
        connected.push(round % 2 == 0, |is_own| connections(sender, to(is_own)));
    }
    [("packets", packets), ("connections", connected)]
        .map(|(unit, mut pairs)| pairs.print(&format!("{unit} a second through a Service; {what}")))
}

/// Packets, changes, pods and memory.
pub(crate) fn of_pods() {
    let site = Site::new("svc");
    let podstead = Shipped::start(&site);
    podstead.run(0);
    podstead.run(1);
    let netns = |number: usize| -> PathBuf {
        let pid = podstead.0.container_pid(&podstead.0.pod(&format!("p{number}")).unwrap(), "main");
        format!("/proc/{pid}/ns/net").into()
    };
    let (sender, pod) = (netns(0), podstead.address(1));
    let receiver = Receiver::start(&netns(1));
    let manifest = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: answering}}\nspec: {{clusterIP: {ANSWERING}, ports: [{{name: t, port: {PORT}}}, {{name: u, port: {PORT}, protocol: UDP}}]}}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: answering, labels: {{kubernetes.io/service-name: answering}}}}\n\
         addressType: IPv4\nports: [{{name: t, port: {PORT}}}, {{name: u, port: {PORT}, protocol: UDP}}]\nendpoints: [{{addresses: [{pod}]}}]\n"
    );
    podstead.0.write_manifest("answering.yaml", &manifest);
    eventually_within(PATIENCE, "the Service to answer", || {
        let rate = connections(&sender, SocketAddrV4::new(ANSWERING, PORT));
        if rate > 0.0 { Ok(()) } else { Err("nobody answers".to_owned()) }
    });
    let direct = SocketAddrV4::new(pod.parse().unwrap(), DIRECT_PORT);
    let answering = SocketAddrV4::new(ANSWERING, PORT);
    let one = compare("the only one, to none", &receiver, &sender, answering, direct);
    let empty = memory(&podstead);
    write(&podstead, true);
    let full = memory(&podstead);
    let many = compare("one of 1,000, to none", &receiver, &sender, answering, direct);
    for (unit, many, one) in [("packets", many[0], one[0]), ("connections", many[1], one[1])] {
        row(&format!("{unit} a second: the second of these ratios, to the first"), "-", "-", &format!("{:.3}", many / one));
    }
    row(
        &format!("memory of {SERVICES} Services with {ENDPOINTS} endpoints each"),
        &format!("{} KiB", full.saturating_sub(empty)),
        "-",
        "-",
    );
    let mut pods = Series::default();
    for _ in 0..CHANGES {
        pods.push(podstead.one_more(SET_UP, || podstead.write(2, &[])));
        podstead.0.wait_running("p2");
        podstead.0.remove_manifest("p2.yaml");
        podstead.0.wait_gone("p2");
    }
    row(&format!("connect a pod beside {SERVICES} Services"), &pods.text(), "-", "-");
    let mut changes = Series::default();
    for change in 1..=CHANGES {
        changes.push(podstead.one_more(SERVED, || podstead.0.write_manifest("s1.yaml", &service(1, change))));
    }
    load(&site, &kube_proxy(SERVICES, &pod));
    compare("rules of kube-proxy's nftables mode", &receiver, &sender, answering, SocketAddrV4::new(PEER, PORT));
    let mut reloads = Series::default();
    for change in 0..CHANGES {
        let name = "s1-tcp";
        let target = format!("198.18.1.{}:8080", 100 + change);
        let rules = format!(
            "flush chain ip kube-proxy endpoint-{name}-0\nflush chain ip kube-proxy service-{name}\n\
             add rule ip kube-proxy endpoint-{name}-0 meta l4proto tcp dnat to {target}\n\
             add rule ip kube-proxy service-{name} numgen random mod 2 vmap {{ 0 : goto endpoint-{name}-0, 1 : goto endpoint-{name}-1 }}\n"
        );
        reloads.push(load(&site, &rules));
    }
    let what = format!("one endpoint of {} is another; nft with rules of kube-proxy's nftables mode", SERVICES * ENDPOINTS);
    row(&what, &changes.text(), &reloads.text(), &changes.ratio_to(&reloads));
    load(&site, "delete table ip kube-proxy\n");
    let _proxy = Proxy::start(&site.host, SocketAddr::new((*direct.ip()).into(), PROXIED_PORT));
    compare("a proxy in user space", &receiver, &sender, answering, PROXY);
}
