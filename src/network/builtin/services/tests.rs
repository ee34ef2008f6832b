//! Real connections through Services, between network namespaces of a test.

use super::super::names::Names;
use super::super::rules::Rules;
use super::super::sets::{PodsRules, Switches};
use super::super::testing::{Machine, PATIENCE, address, address6, host_with_pods};
use super::{ServiceRanges, datagrams, route};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use podstead_service::allocate::{Grants, Pool, allocate};
use podstead_service::definition::Definition;
use podstead_service::endpoints::{Backend, Backends, ServiceEndpoints, Slice};
use podstead_service::frontends::Frontends;
use podstead_service::name::ObjectName;
use podstead_service::range::PortRange;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

const WEB: &str = "10.202.0.9";
const WEB6: &str = "fd70:6f64:7374:5001::9";

/// A host with pods 1 to n and its packet rules.
struct Host {
    machine: Machine,
    pods: Vec<Machine>,
    rules: Rules,
    pod_rules: PodsRules,
    frontends: Frontends,
}

fn ranges() -> ServiceRanges {
    ServiceRanges { ipv4: Some("10.202.0.0/20".parse().unwrap()), ipv6: Some("fd70:6f64:7374:5001::/112".parse().unwrap()) }
}

impl Host {
    fn with_pods(count: usize) -> Self {
        let (machine, pods, pod_rules) = host_with_pods(count);
        let mut rules = Rules::new(Names::new(None));
        machine.within(|| rules.begin(Switches::default(), pod_rules.clone()).unwrap());
        Self { machine, pods, rules, pod_rules, frontends: Frontends::default() }
    }

    /// Makes these Services served by pods of these numbers, each with a label `pod`.
    fn serve(&mut self, services: &[Definition], pods: &[usize]) {
        self.serve_with(services, pods, &[]);
    }

    /// The same with EndpointSlices of a source.
    fn serve_with(&mut self, services: &[Definition], pods: &[usize], slices: &[EndpointSlice]) {
        let host = self.machine.within(crate::host_addresses::assigned_ips).unwrap().into_iter().collect();
        let pool =
            Pool { ipv4: ranges().ipv4, ipv6: ranges().ipv6, node_ports: PortRange::NODE_PORTS, host, taken: BTreeMap::new() };
        let grants: Grants = allocate(&services.iter().collect::<Vec<_>>(), &Grants::new(), &pool).grants;
        let backends: Vec<Backend> = pods.iter().map(|number| backend(*number)).collect();
        let slices: Vec<Slice> = slices.iter().filter_map(Slice::of).collect();
        let backends = Backends::new(&backends, &slices);
        let endpoints: Vec<ServiceEndpoints> = services.iter().map(|service| backends.endpoints(service)).collect();
        self.frontends = self.frontends.next(services.iter().zip(&endpoints), &grants).0;
        let Self { machine, rules, frontends, .. } = self;
        machine.within(|| {
            let moved = rules.serve(ranges(), frontends.clone()).unwrap();
            datagrams::forget(&moved, frontends).unwrap();
            route::keep(ranges()).unwrap();
        });
    }

    /// Has each pod answer connections to a port with its number and the client's address.
    fn answer(&self, port: u16) {
        for (number, pod) in (1..).zip(&self.pods) {
            let listener = pod.within(|| TcpListener::bind(("::", port)).unwrap());
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let Ok(mut stream) = stream else { return };
                    let client = stream.peer_addr().map(|peer| peer.ip().to_canonical().to_string()).unwrap_or_default();
                    stream.write_all(format!("{number} {client}").as_bytes()).ok();
                }
            });
        }
    }

    fn neighbour(&self) -> Machine {
        self.machine.neighbour()
    }

    fn pod(&self, number: usize) -> &Machine {
        &self.pods[number - 1]
    }
}

fn backend(number: usize) -> Backend {
    Backend {
        name: ObjectName { namespace: "shop".into(), name: format!("p{number}").into() },
        uid: format!("pod-{number}"),
        labels: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
        addresses: vec![address(number), address6(number)],
        has_ended: false,
        is_ready: true,
        is_terminating: false,
        hostname: None,
        ports: BTreeMap::new(),
    }
}

fn service(spec: &str) -> Definition {
    let text = format!("{{metadata: {{name: web, namespace: shop}}, spec: {{selector: {{app: web}}, {spec}}}}}");
    Definition::of(&serde_yaml::from_str(&text).unwrap()).unwrap()
}

fn web() -> Definition {
    service(&format!("clusterIPs: [{WEB}, '{WEB6}'], ports: [{{port: 80, targetPort: 8080}}]"))
}

fn number(said: &str) -> usize {
    said.split(' ').next().unwrap().parse().unwrap()
}

/// S18, S21.
#[test]
fn pods_reach_every_endpoint_and_themselves() {
    let mut host = Host::with_pods(4);
    host.answer(8080);
    host.serve(&[web()], &[1, 2, 3]);
    for (service, client) in [(format!("{WEB}:80"), address(4)), (format!("[{WEB6}]:80"), address6(4))] {
        let mut counts = [0_u32; 4];
        for _ in 0..90 {
            let said = host.pod(4).get(&service).unwrap();
            assert!(said.ends_with(&format!(" {client}")), "{said}");
            counts[number(&said)] += 1;
        }
        // Each has 30 on average; that one has fewer than 8 happens once in 100 million runs.
        assert!(counts[1..].iter().all(|count| *count >= 8), "{counts:?}");
        let met: BTreeSet<usize> = (0..60).map(|_| number(&host.pod(1).get(&service).unwrap())).collect();
        assert_eq!(met, BTreeSet::from([1, 2, 3]), "itself, too");
    }
}

/// S21, R5.
#[test]
fn host_reaches_services_without_default_route() {
    let mut host = Host::with_pods(2);
    host.answer(8080);
    host.serve(&[web()], &[1, 2]);
    assert_eq!(host.machine.run("ip route show default"), "");
    let said = host.machine.get(&format!("{WEB}:80")).unwrap();
    assert!(said.ends_with(" 169.254.0.1"), "{said}");
    let said = host.machine.get(&format!("[{WEB6}]:80")).unwrap();
    assert!(said.ends_with(" fd70:6f64:7374::1"), "{said}");
}

/// S19.
#[test]
fn what_nobody_serves_is_refused_at_once() {
    let mut host = Host::with_pods(2);
    host.answer(8080);
    host.serve(&[web()], &[1]);
    for to in [format!("{WEB}:81"), "10.202.7.7:80".to_owned(), format!("[{WEB6}]:81")] {
        for _ in 0..40 {
            assert_eq!(host.pod(2).get(&to), Err(ErrorKind::ConnectionRefused), "{to}");
        }
    }
    assert_eq!(host.machine.get("10.202.7.7:80"), Err(ErrorKind::ConnectionRefused));
    host.serve(&[web()], &[]);
    assert_eq!(host.pod(2).get(&format!("{WEB}:80")), Err(ErrorKind::ConnectionRefused));
    let refused = host.pod(2).within(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.connect((WEB, 53)).unwrap();
        socket.send(b"?").unwrap();
        socket.recv(&mut [0; 1]).unwrap_err().kind()
    });
    assert_eq!(refused, ErrorKind::ConnectionRefused);
}

/// R1.
#[test]
fn ports_lead_to_their_targets_after_an_edit() {
    let mut host = Host::with_pods(2);
    host.answer(8080);
    host.answer(9090);
    let two = |port: u16| {
        service(&format!(
            "clusterIP: {WEB}, ports: [{{name: a, port: {port}, targetPort: 8080}}, {{name: b, port: 90, targetPort: 9090}}]"
        ))
    };
    host.serve(&[two(80)], &[1]);
    for port in [80, 90] {
        assert_eq!(number(&host.pod(2).get(&format!("{WEB}:{port}")).unwrap()), 1);
    }
    host.serve(&[two(81)], &[1]);
    assert_eq!(number(&host.pod(2).get(&format!("{WEB}:81")).unwrap()), 1);
    assert_eq!(host.pod(2).get(&format!("{WEB}:80")), Err(ErrorKind::ConnectionRefused));
}

/// R2, with as many changes as the time of some connections allows.
#[test]
fn no_connection_is_lost_while_endpoints_change() {
    let mut host = Host::with_pods(4);
    host.answer(8080);
    host.serve(&[web()], &[1]);
    let client = Machine(host.pod(4).0.try_clone().unwrap());
    let asking = std::thread::spawn(move || {
        for _ in 0..500 {
            client.get(&format!("{WEB}:80")).unwrap();
        }
    });
    let (mut changes, sets) = (0_usize, [&[1, 2][..], &[1, 2, 3], &[3, 2], &[3, 1], &[1]]);
    while !asking.is_finished() {
        host.serve(&[web()], sets[changes % sets.len()]);
        changes += 1;
    }
    asking.join().unwrap();
    assert!(changes > sets.len(), "{changes} changes");
}

/// S20.
#[test]
fn client_stays_with_its_endpoint() {
    let mut host = Host::with_pods(4);
    host.answer(8080);
    let sticky = [service(&format!(
        "clusterIP: {WEB}, type: NodePort, sessionAffinity: ClientIP, ports: [{{port: 80, targetPort: 8080, nodePort: 30080}}]"
    ))];
    host.serve(&sticky, &[1, 2, 3]);
    for to in [format!("{WEB}:80"), "169.254.0.1:30080".to_owned()] {
        let met: BTreeSet<usize> = (0..50).map(|_| number(&host.pod(4).get(&to).unwrap())).collect();
        assert_eq!(met.len(), 1, "{to}");
        let bound = *met.first().unwrap();
        let others: Vec<usize> = [1, 2, 3].into_iter().filter(|number| *number != bound).collect();
        host.serve(&sticky, &others);
        assert!(others.contains(&number(&host.pod(4).get(&to).unwrap())), "the bond ended with its endpoint");
        host.serve(&sticky, &[1, 2, 3]);
    }
}

/// S20: bonds to endpoints that stay go on.
#[test]
fn other_clients_keep_their_endpoint() {
    let mut host = Host::with_pods(5);
    host.answer(8080);
    let sticky = [service(&format!("clusterIP: {WEB}, sessionAffinity: ClientIP, ports: [{{port: 80, targetPort: 8080}}]"))];
    let to = format!("{WEB}:80");
    host.serve(&sticky, &[1]);
    assert_eq!(number(&host.pod(4).get(&to).unwrap()), 1);
    host.serve(&sticky, &[1, 2, 3]);
    host.serve(&sticky, &[1, 2]);
    for _ in 0..30 {
        assert_eq!(number(&host.pod(4).get(&to).unwrap()), 1);
    }
}

/// S20: a bond lasts from the last connection on, and the next choice is a new one.
#[test]
fn bond_ends_some_time_after_the_last_connection() {
    const TIMEOUT: Duration = Duration::from_secs(2);
    let mut host = Host::with_pods(4);
    host.answer(8080);
    let timeout = "sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 2}}";
    host.serve(&[service(&format!("clusterIP: {WEB}, {timeout}, ports: [{{port: 80, targetPort: 8080}}]"))], &[1, 2, 3]);
    let ask = |host: &Host| number(&host.pod(4).get(&format!("{WEB}:80")).unwrap());
    let bound = ask(&host);
    let begin = std::time::Instant::now();
    while begin.elapsed() < TIMEOUT * 2 {
        assert_eq!(ask(&host), bound, "each connection renews it");
    }
    let expires = |host: &Host| {
        let begin = std::time::Instant::now();
        while host.machine.run("nft list map inet podstead affinity4").contains("expires") {
            assert!(begin.elapsed() < PATIENCE, "the bond does not end");
        }
    };
    // Another one of three: that 30 choices are the same happens once in 100 million million runs.
    let another = (0..30).any(|_| {
        expires(&host);
        ask(&host) != bound
    });
    assert!(another, "always {bound}");
}

/// S10, S21.
#[test]
fn node_port_answers_on_addresses_of_the_host() {
    let mut host = Host::with_pods(2);
    host.answer(8080);
    let lan = host.neighbour();
    host.serve(
        &[service(&format!("clusterIP: {WEB}, type: NodePort, ports: [{{port: 80, targetPort: 8080, nodePort: 30080}}]"))],
        &[1],
    );
    assert_eq!(lan.get("192.0.2.1:30080").as_deref(), Ok("1 192.0.2.9"));
    assert_eq!(host.pod(2).get("169.254.0.1:30080").map(|said| number(&said)), Ok(1));
    assert_eq!(host.machine.get("192.0.2.1:30080").map(|said| number(&said)), Ok(1));
    assert_eq!(host.rules.behind_node_ports(), BTreeSet::from([address(1)]));
    host.machine.within(|| route::reach_from_loopback(&Names::new(None).interface(1)).unwrap());
    assert_eq!(host.machine.get("127.0.0.1:30080").map(|said| number(&said)), Ok(1));
    // From outside, addresses of Services lead nowhere.
    lan.within(|| TcpStream::connect_timeout(&format!("{WEB}:80").parse().unwrap(), Duration::from_millis(300))).unwrap_err();
    host.serve(&[], &[1]);
    assert_eq!(lan.get("192.0.2.1:30080"), Err(ErrorKind::ConnectionRefused));
}

/// R8: another daemon finds them in the kernel, and its table has them from the first.
#[test]
fn services_are_found_in_the_kernel() {
    let mut host = Host::with_pods(3);
    host.answer(8080);
    let spec =
        "type: LoadBalancer, loadBalancerSourceRanges: [192.0.2.8/31], ipFamilyPolicy: PreferDualStack, sessionAffinity: ClientIP";
    let balancer = service(&format!("clusterIPs: [{WEB}, '{WEB6}'], ports: [{{port: 8888, targetPort: 8080}}], {spec}"));
    host.serve(&[balancer], &[1, 2]);
    let served = host.rules.frontends().clone();
    let mut later = Rules::new(Names::new(None));
    host.machine.within(|| {
        later.recover(ranges());
        later.begin(Switches::default(), host.pod_rules.clone()).unwrap();
    });
    assert_eq!(later.recovered(), Some((ranges(), served)));
    assert!([1, 2].contains(&number(&host.pod(3).get(&format!("{WEB}:8888")).unwrap())));
    // A host without a table.
    let mut first = Rules::new(Names::new(None));
    Machine::new().within(|| first.recover(ranges()));
    assert_eq!(first.recovered(), None);
}

/// S3, S11.
#[test]
fn service_answers_at_one_address_of_the_host() {
    let mut host = Host::with_pods(2);
    host.answer(8080);
    let lan = host.neighbour();
    host.serve(&[service("externalIPs: [192.0.2.1], ports: [{port: 8888, targetPort: 8080}]")], &[1]);
    assert_eq!(lan.get("192.0.2.1:8888").as_deref(), Ok("1 192.0.2.9"));
    assert_eq!(host.pod(2).get("192.0.2.1:8888").map(|said| number(&said)), Ok(1));
    assert_eq!(host.machine.get("192.0.2.1:8888").map(|said| number(&said)), Ok(1));
    assert_eq!(host.pod(2).get("169.254.0.1:8888"), Err(ErrorKind::ConnectionRefused));
    host.serve(&[service("externalIPs: [192.0.2.77], ports: [{port: 8888, targetPort: 8080}]")], &[1]);
    assert_eq!(lan.get("192.0.2.1:8888"), Err(ErrorKind::ConnectionRefused));
}

/// S11, S12.
#[test]
fn load_balancer_answers_clients_in_its_ranges() {
    let mut host = Host::with_pods(2);
    host.answer(8080);
    let lan = host.neighbour();
    let balancer = |range: &str| {
        service(&format!(
            "type: LoadBalancer, loadBalancerSourceRanges: [{range}], ports: [{{port: 8888, targetPort: 8080, nodePort: 30080}}]"
        ))
    };
    host.serve(&[balancer("192.0.2.8/31")], &[1]);
    assert_eq!(lan.get("192.0.2.1:8888").as_deref(), Ok("1 192.0.2.9"));
    assert_eq!(host.machine.get("192.0.2.1:8888").map(|said| number(&said)), Ok(1), "the host passes always");
    host.serve(&[balancer("198.51.100.0/24")], &[1]);
    let dropped = |machine: &Machine, to: &str| {
        machine.within(|| TcpStream::connect_timeout(&to.parse().unwrap(), Duration::from_millis(300))).unwrap_err().kind()
    };
    assert_eq!(dropped(&lan, "192.0.2.1:8888"), ErrorKind::TimedOut);
    assert_eq!(dropped(host.pod(2), "169.254.0.1:8888"), ErrorKind::TimedOut, "pods too");
    assert_eq!(lan.get("192.0.2.1:30080").as_deref(), Ok("1 192.0.2.9"), "NodePorts are not limited");
}

/// S16.
#[test]
fn endpoints_elsewhere_see_the_host() {
    let mut host = Host::with_pods(1);
    let lan = host.neighbour();
    let listener = lan.within(|| TcpListener::bind("0.0.0.0:99").unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let client = stream.peer_addr().map(|peer| peer.ip().to_string()).unwrap_or_default();
            stream.write_all(client.as_bytes()).ok();
        }
    });
    let text = "{metadata: {name: x, namespace: shop, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, \
                ports: [{port: 99}], endpoints: [{addresses: [192.0.2.9]}]}";
    let slice: EndpointSlice = serde_yaml::from_str(text).unwrap();
    let mut web = service(&format!("clusterIP: {WEB}, type: NodePort, ports: [{{port: 80, nodePort: 30080}}]"));
    web.selector.clear();
    host.serve_with(&[web], &[1], &[slice]);
    assert_eq!(host.pod(1).get(&format!("{WEB}:80")).as_deref(), Ok("192.0.2.1"));
    assert_eq!(host.machine.get(&format!("{WEB}:80")).as_deref(), Ok("192.0.2.1"));
    assert_eq!(lan.get("192.0.2.1:30080").as_deref(), Ok("192.0.2.1"));
}

/// S22.
#[test]
fn datagrams_go_to_the_next_endpoint() {
    let mut host = Host::with_pods(3);
    for number in [1, 2] {
        let socket = host.pod(number).within(|| UdpSocket::bind("[::]:5353").unwrap());
        std::thread::spawn(move || {
            let mut buffer = [0; 8];
            while let Ok((_, client)) = socket.recv_from(&mut buffer) {
                socket.send_to(number.to_string().as_bytes(), client).ok();
            }
        });
    }
    let dns = [service(&format!("clusterIP: {WEB}, ports: [{{port: 53, targetPort: 5353, protocol: UDP}}]"))];
    let client = host.pod(3).within(|| UdpSocket::bind("0.0.0.0:0").unwrap());
    let client = host.pod(3).within(move || {
        client.connect((WEB, 53)).unwrap();
        client
    });
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    for number in [1_usize, 2] {
        host.serve(&dns, &[number]);
        client.send(b"?").unwrap();
        let mut buffer = [0; 8];
        let length = client.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..length], number.to_string().into_bytes());
    }
}

/// R4, R7.
#[test]
fn listing_loads_and_flushed_table_comes_back() {
    let mut host = Host::with_pods(2);
    host.answer(8080);
    let all = service(
        "type: LoadBalancer, sessionAffinity: ClientIP, ipFamilyPolicy: PreferDualStack, loadBalancerSourceRanges: [10.0.0.0/8, 'fd00::/8'], \
         ports: [{port: 80, targetPort: 8080}]",
    );
    host.serve(&[web(), Definition { name: ObjectName { namespace: "shop".into(), name: "all".into() }, ..all }], &[1, 2]);
    let listed = host.machine.run("nft list table inet podstead");
    let other = Machine::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &listed).unwrap();
    other.run(&format!("nft -f {}", file.path().display()));
    assert_eq!(other.run("nft list table inet podstead").lines().count(), listed.lines().count());
    host.machine.run("nft flush ruleset");
    host.serve(&[web()], &[1]);
    assert_eq!(host.pod(2).get(&format!("{WEB}:80")).map(|said| number(&said)), Ok(1));
}

/// R1.
#[test]
fn thousand_services_have_the_rules_of_one() {
    let named = |number: usize| {
        let name = ObjectName { namespace: "shop".into(), name: format!("s{number}").into() };
        Definition { name, ..service("ports: [{port: 80}]") }
    };
    let services: Vec<Definition> = (0..1000).map(named).collect();
    let mut host = Host::with_pods(1);
    let lines = |host: &Host| -> usize {
        let listed = host.machine.run("nft -j list table inet podstead");
        listed.matches("\"rule\"").count()
    };
    host.serve(&services[..1], &[1, 2, 3, 4, 5]);
    let rules = lines(&host);
    assert!(rules > 20, "{rules}");
    host.serve(&services, &[1, 2, 3, 4, 5]);
    assert_eq!(lines(&host), rules);
    let elements = host.machine.run("nft -j list map inet podstead endpoints4 | grep -o '\"10.201.0.' | wc -l");
    assert_eq!(elements.trim(), "5000");
}
