//! Real connections under policies, between network namespaces of a test.

use super::super::names::Names;
use super::super::rules::Rules;
use super::super::sets::Switches;
use super::super::testing::{Machine, PATIENCE, address, address6, host_with_pods};
use super::super::tracked::own_addresses;
use super::{cut, denied};
use podstead_pod::PodUid;
use podstead_pod::host_ports::{HostPort, Protocol};
use podstead_policy::compile::{PolicedPod, Policies};
use podstead_policy::definition::{Direction, Policy};
use podstead_policy::selector::Labels;
use podstead_service::name::ObjectName;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const REFUSED: Result<(), ErrorKind> = Err(ErrorKind::ConnectionRefused);
/// Port of the resolver.
const DNS: u16 = 10053;

/// A host with pods 1 to n and its packet rules: pod 1 is `web`, the others `client` of the namespace `shop`, unless a test says something else.
struct Host {
    machine: Machine,
    pods: Vec<Machine>,
    rules: Rules,
    facts: Vec<PolicedPod>,
    uids: Vec<PodUid>,
}

fn facts(number: usize) -> PolicedPod {
    let app = if number == 1 { "web" } else { "client" };
    PolicedPod {
        name: ObjectName { namespace: "shop".into(), name: format!("p{number}").into() },
        source: None,
        labels: Labels::from([("app".to_owned(), app.to_owned())]),
        addresses: vec![address(number), address6(number)],
        ports: BTreeMap::new(),
    }
}

fn policy(name: &str, spec: &str) -> Policy {
    let text = format!("{{metadata: {{name: {name}, namespace: shop}}, spec: {{{spec}}}}}");
    Policy::of(&serde_yaml::from_str(&text).unwrap()).unwrap()
}

impl Host {
    fn with_pods(count: usize) -> Self {
        let (machine, pods, mut rules_of) = host_with_pods(count);
        // Reached from outside at a port of the host, too.
        let first = rules_of.values_mut().find(|rules| rules.addresses.contains(&address(1))).unwrap();
        first.ports = vec![HostPort { protocol: Protocol::Tcp, host_ip: None, host_port: 30080, container_port: 8080 }];
        let uid_of =
            |number: usize| rules_of.iter().find(|(_, rules)| rules.addresses.contains(&address(number))).unwrap().0.clone();
        let uids = (1..=count).map(uid_of).collect();
        let mut rules = Rules::new(Names::new(None));
        machine.within(|| rules.begin(Switches { dns_port: Some(DNS), ..Switches::default() }, rules_of).unwrap());
        Self { machine, pods, rules, facts: (1..=count).map(facts).collect(), uids }
    }

    fn pod(&self, number: usize) -> &Machine {
        &self.pods[number - 1]
    }

    fn facts(&mut self, number: usize) -> &mut PolicedPod {
        &mut self.facts[number - 1]
    }

    /// Puts these policies into force; the namespace `prod` has the label `purpose: production`.
    fn police(&mut self, policies: &[Policy]) {
        let production = Labels::from([("purpose".to_owned(), "production".to_owned())]);
        let policies = Policies::new(policies.iter().cloned(), BTreeMap::from([("prod".to_owned(), production)]));
        let resolver = PolicedPod::resolver(&[super::super::GATEWAY_V4.into(), super::super::GATEWAY_V6.into()]);
        let classes = policies.compile(self.facts.iter().map(|pod| (pod.name.name.as_str(), pod)), &resolver);
        let Self { machine, rules, .. } = self;
        machine.within(|| {
            rules.police(classes.clone()).unwrap();
            cut::end_denied(&classes, &own_addresses()).unwrap();
        });
    }

    /// Has a pod say its number to who connects to the port.
    fn answer(&self, number: usize, port: u16) {
        answer(self.pod(number), port, number.to_string());
    }

    /// A connection between two pods, over IPv4 and IPv6, which have to end in the same way.
    #[track_caller]
    fn connect(&self, from: usize, to: usize, port: u16) -> Result<(), ErrorKind> {
        let over = |address: IpAddr| {
            self.pod(from).get(&SocketAddr::new(address, port).to_string()).map(|said| assert_eq!(said, to.to_string()))
        };
        let (v4, v6) = (over(address(to)), over(address6(to)));
        assert_eq!(v4, v6, "{from} to {to}");
        v4
    }
}

fn answer(machine: &Machine, port: u16, text: String) {
    let listener = machine.within(|| TcpListener::bind(("::", port)).unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            stream.write_all(text.as_bytes()).ok();
        }
    });
}

const WEB: &str = "podSelector: {matchLabels: {app: web}}";

/// Ends probers when it goes, also when a test fails: otherwise it would wait for them.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// N2, N7, N8, N13: recipes 01, 02, 02a.
#[test]
fn policies_deny_and_allow_by_label() {
    let mut host = Host::with_pods(3);
    for number in 1..=3 {
        host.answer(number, 8080);
    }
    assert_eq!(host.connect(2, 1, 8080), Ok(()), "no policy");
    let deny = policy("deny", WEB);
    host.police(std::slice::from_ref(&deny));
    assert_eq!(host.connect(2, 1, 8080), REFUSED);
    assert_eq!(host.connect(1, 2, 8080), Ok(()), "replies pass");
    assert_eq!(host.connect(2, 3, 8080), Ok(()));
    assert_eq!(host.connect(1, 1, 8080), Ok(()), "itself");
    assert!(host.machine.get(&format!("{}:8080", address(1))).is_ok(), "the host");
    host.facts(3).labels = Labels::from([("app".to_owned(), "bookstore".to_owned())]);
    let allow = policy("allow", &format!("{WEB}, ingress: [{{from: [{{podSelector: {{matchLabels: {{app: bookstore}}}}}}]}}]"));
    host.police(&[allow.clone(), deny.clone()]);
    assert_eq!((host.connect(3, 1, 8080), host.connect(2, 1, 8080)), (Ok(()), REFUSED));
    host.facts(3).name.namespace = "other".into();
    host.police(&[deny.clone(), allow]);
    assert_eq!(host.connect(3, 1, 8080), REFUSED, "a label of another namespace");
    host.police(&[policy("all", &format!("{WEB}, ingress: [{{}}]")), deny]);
    assert_eq!((host.connect(3, 1, 8080), host.connect(2, 1, 8080)), (Ok(()), Ok(())));
    host.police(&[]);
    assert_eq!(host.connect(2, 1, 8080), Ok(()));
}

/// N3, N4: recipes 04 to 07.
#[test]
fn namespaces_are_peers_by_label() {
    let mut host = Host::with_pods(3);
    host.answer(1, 8080);
    let lan = host.machine.neighbour();
    host.facts(2).name.namespace = "prod".into();
    host.facts(3).name.namespace = "dev".into();
    let from = |peers: &str| policy("p", &format!("{WEB}, ingress: [{{from: [{peers}]}}]"));
    let production = "namespaceSelector: {matchLabels: {purpose: production}}";
    let of_client = "podSelector: {matchLabels: {app: client}}";
    for (peers, prod, dev) in [
        ("{podSelector: {}}".to_owned(), REFUSED, REFUSED),
        ("{namespaceSelector: {}}".to_owned(), Ok(()), Ok(())),
        (format!("{{{production}}}"), Ok(()), REFUSED),
        ("{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: dev}}}".to_owned(), REFUSED, Ok(())),
        (format!("{{{production}, {of_client}}}"), Ok(()), REFUSED),
        (format!("{{{production}, podSelector: {{matchLabels: {{app: x}}}}}}"), REFUSED, REFUSED),
        (format!("{{{production}}}, {{{of_client}}}"), Ok(()), REFUSED),
    ] {
        host.police(&[from(&peers)]);
        assert_eq!((host.connect(2, 1, 8080), host.connect(3, 1, 8080)), (prod, dev), "{peers}");
        let outside = lan.within(|| TcpStream::connect_timeout(&"192.0.2.1:30080".parse().unwrap(), Duration::from_millis(300)));
        assert_eq!(outside.unwrap_err().kind(), ErrorKind::TimedOut, "outside is dropped: {peers}");
    }
}

/// N5: blocks compare the client's own address.
#[test]
fn blocks_are_clients_addresses() {
    let mut host = Host::with_pods(3);
    host.answer(1, 8080);
    let lan = host.machine.neighbour();
    let from = |blocks: &str| policy("p", &format!("{WEB}, ingress: [{{from: [{blocks}]}}]"));
    let v6 = "{ipBlock: {cidr: 'fd70:6f64:7374:1::/64', except: ['fd70:6f64:7374:1::2/128']}}";
    let v4 = "{ipBlock: {cidr: 10.201.0.0/24, except: [10.201.0.2/32]}}";
    host.police(&[from(&format!("{v4}, {v6}, {{ipBlock: {{cidr: 192.0.2.0/24, except: [192.0.2.77/32]}}}}"))]);
    assert_eq!((host.connect(2, 1, 8080), host.connect(3, 1, 8080)), (REFUSED, Ok(())));
    assert_eq!(lan.get("192.0.2.1:30080").as_deref(), Ok("1"));
    lan.run("ip addr del 192.0.2.9/24 dev lan1; ip addr add 192.0.2.77/24 dev lan1");
    let outside = lan.within(|| TcpStream::connect_timeout(&"192.0.2.1:30080".parse().unwrap(), Duration::from_millis(300)));
    assert_eq!(outside.unwrap_err().kind(), ErrorKind::TimedOut);
    host.police(&[from("{ipBlock: {cidr: 0.0.0.0/0}}, {ipBlock: {cidr: '::/0'}}")]);
    assert_eq!((host.connect(2, 1, 8080), lan.get("192.0.2.1:30080").is_ok()), (Ok(()), true));
}

/// N6: numbers, ranges, names, protocols.
#[test]
fn ports_are_those_of_the_receiver() {
    let mut host = Host::with_pods(3);
    for (number, port) in [(1, 8080), (1, 80), (3, 80), (3, 8080), (1, 81)] {
        host.answer(number, port);
    }
    let http = |number: u16| BTreeMap::from([(("http".to_owned(), Protocol::Tcp), number)]);
    host.facts(1).ports = http(80);
    host.facts(3).ports = http(8080);
    let rules = |port: &str| policy("p", &format!("podSelector: {{}}, ingress: [{{ports: [{port}]}}]"));
    host.police(&[rules("{port: http}")]);
    assert_eq!((host.connect(2, 1, 80), host.connect(2, 1, 8080)), (Ok(()), REFUSED));
    assert_eq!((host.connect(2, 3, 80), host.connect(2, 3, 8080)), (REFUSED, Ok(())));
    host.police(&[rules("{port: 80, endPort: 81}, {port: 80, protocol: SCTP}")]);
    assert_eq!((host.connect(2, 1, 80), host.connect(2, 1, 81), host.connect(2, 1, 8080)), (Ok(()), Ok(()), REFUSED));
    host.police(&[rules("{port: 80, protocol: UDP}, {port: 81, protocol: SCTP}")]);
    assert_eq!((host.connect(2, 1, 80), host.connect(2, 1, 81)), (REFUSED, REFUSED));
    host.police(&[policy("out", "podSelector: {matchLabels: {app: client}}, policyTypes: [Egress], egress: [{to: [{podSelector: {}}], ports: [{port: http}]}]")]);
    assert_eq!((host.connect(2, 1, 80), host.connect(2, 1, 8080)), (Ok(()), REFUSED));
    assert_eq!((host.connect(2, 3, 80), host.connect(2, 3, 8080)), (REFUSED, Ok(())));
}

/// N7: recipes 11, 12, 14.
#[test]
fn egress_is_denied_where_not_allowed() {
    let mut host = Host::with_pods(3);
    host.answer(1, 8080);
    host.answer(3, 8080);
    let lan = host.machine.neighbour();
    answer(&lan, 99, "lan".to_owned());
    let client = "podSelector: {matchLabels: {app: client}}, policyTypes: [Egress]";
    host.police(&[policy("p", client)]);
    assert_eq!((host.connect(2, 1, 8080), host.pod(2).get("192.0.2.9:99").map(drop)), (REFUSED, REFUSED));
    assert_eq!(host.connect(1, 3, 8080), Ok(()), "in from elsewhere");
    host.police(&[policy("p", &format!("{client}, egress: [{{to: [{{ipBlock: {{cidr: 0.0.0.0/0, except: [10.0.0.0/8]}}}}]}}]"))]);
    assert_eq!(host.pod(2).get("192.0.2.9:99").as_deref(), Ok("lan"));
    assert_eq!(host.connect(2, 1, 8080), REFUSED);
    let both = [policy("out", &format!("{client}, egress: [{{}}]")), policy("in", WEB)];
    host.police(&both);
    assert_eq!((host.connect(2, 1, 8080), host.connect(2, 3, 8080)), (REFUSED, Ok(())), "both ends must allow");
}

/// N9.
#[test]
fn resolver_is_asked_as_cluster_dns() {
    let mut host = Host::with_pods(2);
    let socket = host.machine.within(|| UdpSocket::bind(("169.254.0.1", DNS)).unwrap());
    std::thread::spawn(move || {
        let mut buffer = [0; 8];
        while let Ok((_, client)) = socket.recv_from(&mut buffer) {
            socket.send_to(b"!", client).ok();
        }
    });
    answer(&host.machine, DNS, "dns".to_owned());
    let ask = |host: &Host, port: u16| -> Result<(), ErrorKind> {
        host.pod(2).within(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.connect(("169.254.0.1", port)).unwrap();
            socket.send(b"?").and_then(|_| socket.recv(&mut [0; 1])).map(drop).map_err(|error| error.kind())
        })
    };
    let tcp = |host: &Host| host.pod(2).get("169.254.0.1:53").map(drop);
    assert_eq!((ask(&host, 53), tcp(&host)), (Ok(()), Ok(())));
    let deny = policy("deny", "podSelector: {}, policyTypes: [Egress]");
    host.police(std::slice::from_ref(&deny));
    let denied = ask(&host, 53);
    assert!(denied.is_err() && denied != Err(ErrorKind::WouldBlock), "{denied:?}: at once");
    assert!(ask(&host, DNS).is_err(), "its own port");
    assert_eq!(tcp(&host), REFUSED);
    let dns = policy(
        "dns",
        "podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {}, podSelector: {matchLabels: {k8s-app: kube-dns}}}], \
         ports: [{port: 53, protocol: UDP}]}]",
    );
    host.police(&[deny, dns]);
    assert_eq!((ask(&host, 53), tcp(&host)), (Ok(()), REFUSED));
}

/// A connection whose server speaks first, and goes on.
fn open(host: &Host) -> (TcpStream, TcpStream) {
    let listener = host.pod(1).within(|| TcpListener::bind("0.0.0.0:9000").unwrap());
    let client = host.pod(2).within(|| TcpStream::connect((address(1), 9000)).unwrap());
    let (server, _) = listener.accept().unwrap();
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    (client, server)
}

/// N12.
#[test]
fn open_connections_end_with_their_right() {
    let mut host = Host::with_pods(3);
    let (mut client, mut server) = open(&host);
    host.police(&[policy("p", &format!("{WEB}, ingress: [{{from: [{{podSelector: {{}}}}]}}]"))]);
    server.write_all(b"a").unwrap();
    client.read_exact(&mut [0]).unwrap();
    host.police(&[policy("p", WEB)]);
    server.write_all(b"b").unwrap();
    let ended = server.read(&mut [0]).map_err(|error| error.kind());
    assert!(matches!(ended, Ok(0) | Err(ErrorKind::ConnectionReset)), "{ended:?}");
    client.write_all(b"c").ok();
    let ended = client.read(&mut [0]).map_err(|error| error.kind());
    assert!(matches!(ended, Ok(0) | Err(ErrorKind::ConnectionReset)), "{ended:?}");
}

/// N13: by direction, pod and family; the number goes with the pod.
#[test]
fn denied_packets_are_counted_for_each_pod() {
    let mut host = Host::with_pods(3);
    (1..=3).for_each(|number| host.answer(number, 8080));
    let closed = policy("closed", "podSelector: {matchLabels: {app: client}}, policyTypes: [Egress]");
    host.police(&[policy("deny", WEB), closed.clone()]);
    let count = |host: &Host| host.machine.within(|| denied::read(&Names::new(None)).unwrap());
    assert_eq!(count(&host), []);
    for (from, to) in [(2, 1), (2, 1), (3, 1), (2, 3)] {
        assert_eq!(host.connect(from, to, 8080), REFUSED);
    }
    // Egress is looked at first.
    let own = |number: usize, packets: u64| {
        [(Direction::Egress, address(number), packets), (Direction::Egress, address6(number), packets)]
    };
    let sorted = |mut found: Vec<(Direction, IpAddr, u64)>| {
        found.sort();
        found
    };
    assert_eq!(sorted(count(&host)), sorted([own(2, 3), own(3, 1)].concat()));
    host.police(&[policy("deny", WEB)]);
    assert_eq!(host.connect(2, 1, 8080), REFUSED);
    let web = [(Direction::Ingress, address(1), 1), (Direction::Ingress, address6(1), 1)];
    assert_eq!(sorted(count(&host)), sorted([own(2, 3), own(3, 1), web].concat()));
    let Host { machine, rules, uids, .. } = &mut host;
    machine.within(|| rules.withdraw(&uids[1]).unwrap());
    assert_eq!(sorted(count(&host)), sorted([own(3, 1), web].concat()));
}

/// R4: what `nft` lists can be loaded again.
#[test]
fn listing_of_policies_loads() {
    let mut host = Host::with_pods(2);
    host.facts(1).ports = BTreeMap::from([(("http".to_owned(), Protocol::Tcp), 80)]);
    let block =
        "{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8]}}, {ipBlock: {cidr: '::/0', except: ['fd00::/8']}}, {podSelector: {}}";
    host.police(&[policy(
        "p",
        &format!("podSelector: {{}}, policyTypes: [Ingress, Egress], ingress: [{{from: [{block}], ports: [{{port: 80}}, {{port: 90, endPort: 99, protocol: UDP}}]}}], egress: [{{to: [{block}], ports: [{{port: http}}]}}]"),
    )]);
    assert_eq!(host.connect(2, 1, 8080), REFUSED);
    let listed = host.machine.run("nft list table inet podstead");
    assert!(listed.contains("counter packets 1 bytes"), "{listed}");
    let other = Machine::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &listed).unwrap();
    other.run(&format!("nft -f {}", file.path().display()));
    assert_eq!(other.run("nft list table inet podstead"), listed);
    host.police(&[]);
    let listed = host.machine.run("nft list table inet podstead");
    assert!(!listed.contains("peer4_") && !listed.contains("in_") && !listed.contains("port_"), "{listed}");
}

/// A daemon that is killed while it replaces the table leaves the one that stood in.
#[test]
fn table_that_stood_in_goes_with_the_next() {
    let mut host = Host::with_pods(1);
    let tables = |host: &Host| host.machine.run("nft list tables");
    let Host { machine, rules, .. } = &mut host;
    machine.run("nft add table inet podstead_standby");
    machine.within(|| rules.make().unwrap());
    assert!(!tables(&host).contains("podstead_standby") && tables(&host).contains("inet podstead"));
    host.machine.run("nft delete table inet podstead; nft add table inet podstead_standby");
    host.machine.run("nft 'add chain inet podstead_standby passing { type filter hook forward priority 0; }'");
    let Host { machine, rules, .. } = &mut host;
    machine.within(|| rules.end(Switches::default()).unwrap());
    assert!(!tables(&host).contains("podstead"), "{}", tables(&host));
}

/// A daemon that was killed between the two steps of a new table has left the second one alone in force.
#[test]
fn table_that_stands_in_alone_denies_until_the_next() {
    let mut host = Host::with_pods(2);
    host.answer(1, 8080);
    host.police(&[policy("p", &format!("{WEB}, ingress: [{{ports: [{{port: 9000, endPort: 9010}}]}}]"))]);
    let rename = "nft list table inet podstead | sed 's/^table inet podstead /table inet podstead_standby /' > standby.nft";
    let directory = tempfile::tempdir().unwrap();
    host.machine
        .run(&format!("cd {} && {rename} && nft -f standby.nft && nft delete table inet podstead", directory.path().display()));
    let (is_over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let client = Machine(host.pod(2).0.try_clone().unwrap());
    std::thread::scope(|scope| {
        let _end = End(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let met = client.get(&format!("{}:8080", address(1))).map(drop);
                if met != REFUSED {
                    is_over.store(true, Ordering::Relaxed);
                    panic!("{met:?}");
                }
                asked.fetch_add(1, Ordering::Relaxed);
            }
        });
        let is_met = |count: usize| {
            let before = asked.load(Ordering::Relaxed);
            while !is_over.load(Ordering::Relaxed) && asked.load(Ordering::Relaxed) < before + count {
                std::thread::yield_now();
            }
        };
        is_met(5);
        let Host { machine, rules, .. } = &mut host;
        machine.within(|| rules.make().unwrap());
        is_met(5);
    });
    let tables = host.machine.run("nft list tables");
    assert!(!tables.contains("podstead_standby") && tables.contains("inet podstead"), "{tables}");
}

/// N11, N12: no connection that policies deny before and after a change passes during it, and none that they allow is refused.
#[test]
fn changes_open_and_close_nothing_else() {
    let mut host = Host::with_pods(4);
    host.answer(1, 8080);
    let allow =
        |label: &str| policy("p", &format!("{WEB}, ingress: [{{from: [{{podSelector: {{matchLabels: {{app: {label}}}}}}}]}}]"));
    host.facts(3).labels = Labels::from([("app".to_owned(), "friend".to_owned())]);
    host.police(&[allow("friend")]);
    let (is_over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let others = [Machine(host.pod(2).0.try_clone().unwrap()), Machine(host.pod(3).0.try_clone().unwrap())];
    std::thread::scope(|scope| {
        let _end = End(&is_over);
        for (prober, wanted) in others.iter().zip([REFUSED, Ok(())]) {
            let (is_over, asked) = (&is_over, &asked);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let met = prober.get(&format!("{}:8080", address(1))).map(drop);
                    if met != wanted {
                        is_over.store(true, Ordering::Relaxed);
                        panic!("{met:?} instead of {wanted:?}");
                    }
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Other policies, other members, and the whole table anew, as a daemon that starts makes it.
        for round in 0.. {
            let extra = policy(
                "extra",
                &format!("podSelector: {{}}, ingress: [{{from: [{{podSelector: {{matchLabels: {{round: r{round}}}}}}}]}}]"),
            );
            let more = policy("more", &format!("{WEB}, ingress: [{{ports: [{{port: {}}}]}}]", 100 + round));
            let open = policy("open", "podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: friend}}}]}]");
            match round % 4 {
                0 => host.police(&[allow("friend"), extra, open]),
                1 => host.police(&[allow("friend"), more]),
                2 => {
                    let Host { machine, rules, .. } = &mut host;
                    machine.within(|| rules.make().unwrap());
                }
                _ => host.police(&[allow("friend")]),
            }
            if is_over.load(Ordering::Relaxed) || (round > 40 && asked.load(Ordering::Relaxed) > 100) {
                break;
            }
        }
    });
}

/// N11: nor while a new table is made.
#[test]
fn new_table_refuses_nothing_that_ports_allow() {
    refuses_nothing_of_a_new_table("ports: [{port: 8080}]");
}

/// N11: the kernel keeps sets of ranges in another form.
#[test]
fn new_table_refuses_nothing_that_ranges_allow() {
    refuses_nothing_of_a_new_table("ports: [{port: 8000, endPort: 8080}, {port: 9000, endPort: 9010}]");
}

/// N11: and sets of addresses in a third.
#[test]
fn new_table_refuses_nothing_that_blocks_allow() {
    refuses_nothing_of_a_new_table("from: [{ipBlock: {cidr: 10.201.0.0/16, except: [10.201.0.77/32]}}]");
}

/// Makes the table anew under connections that the ingress rule allows.
fn refuses_nothing_of_a_new_table(rule: &str) {
    let mut host = Host::with_pods(2);
    host.answer(1, 8080);
    // More to do for the kernel: the moment is longer.
    let number_of = |number: u8| IpAddr::from([10, 201, 9, number]);
    host.facts.extend((1..200).map(|number| PolicedPod { addresses: vec![number_of(number)], ..facts(usize::from(number) + 2) }));
    let many = (1..100).map(|number| {
        let peers = format!("{{from: [{{podSelector: {{matchLabels: {{app: client}}}}}}], ports: [{{port: {number}}}]}}");
        policy(&format!("p{number}"), &format!("podSelector: {{matchLabels: {{app: client}}}}, ingress: [{peers}]"))
    });
    let web = policy("web", &format!("{WEB}, ingress: [{{{rule}}}]"));
    host.police(&many.chain([web]).collect::<Vec<_>>());
    let (is_over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let client = Machine(host.pod(2).0.try_clone().unwrap());
    std::thread::scope(|scope| {
        let _end = End(&is_over);
        let (over, count) = (&is_over, &asked);
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let met = client.get(&format!("{}:8080", address(1))).map(drop);
                if met != Ok(()) {
                    over.store(true, Ordering::Relaxed);
                    panic!("{met:?}");
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        for round in 0.. {
            let Host { machine, rules, .. } = &mut host;
            machine.within(|| rules.make().unwrap());
            if is_over.load(Ordering::Relaxed) || (round > 40 && asked.load(Ordering::Relaxed) > 100) {
                break;
            }
        }
    });
}
