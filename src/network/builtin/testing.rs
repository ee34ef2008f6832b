//! Hosts, pods and neighbours of tests: network namespaces with real connections between them.

use super::names::Names;
use super::sets::{PodRules, PodsRules};
use nix::sched::{CloneFlags, setns, unshare};
use podstead_pod::PodUid;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

/// Time within which connections end one way or the other.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A network namespace.
pub(super) struct Machine(pub(super) File);

impl Machine {
    /// A new one, with lo.
    pub(super) fn new() -> Self {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            run("ip link set lo up");
            File::open("/proc/thread-self/ns/net").unwrap()
        };
        Self(std::thread::spawn(make).join().unwrap())
    }

    /// A file that `ip` finds the namespace by.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Runs something in the namespace. Sockets that it opens stay there.
    pub(super) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let enter = || {
            setns(&self.0, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        };
        std::thread::scope(|scope| scope.spawn(enter).join().unwrap())
    }

    /// Runs a script in the namespace.
    pub(super) fn run(&self, script: &str) -> String {
        self.within(|| run(script))
    }

    /// A host of the network that this one is in, 192.0.2.9; this one is 192.0.2.1.
    pub(super) fn neighbour(&self) -> Self {
        let lan = Self::new();
        self.run("ip link add lan0 type veth peer name lan1; ip addr add 192.0.2.1/24 dev lan0; ip link set lan0 up");
        self.run(&format!("ip link set lan1 netns {}", lan.path()));
        lan.run("ip addr add 192.0.2.9/24 dev lan1; ip link set lan1 up; ip route add 10.202.0.0/20 via 192.0.2.1");
        lan
    }

    /// The server's answer, or the error.
    pub(super) fn get(&self, to: &str) -> Result<String, ErrorKind> {
        let to: SocketAddr = to.parse().unwrap();
        self.within(|| {
            let mut stream = TcpStream::connect_timeout(&to, PATIENCE).map_err(|error| error.kind())?;
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut said = String::new();
            stream.read_to_string(&mut said).map_err(|error| error.kind())?;
            Ok(said)
        })
    }
}

fn run(script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Address of a pod.
pub(super) fn address(pod: usize) -> IpAddr {
    IpAddr::from([10, 201, 0, u8::try_from(pod).unwrap()])
}

/// Address of a pod.
pub(super) fn address6(pod: usize) -> IpAddr {
    format!("fd70:6f64:7374:1::{pod}").parse().unwrap()
}

/// A host with pods 1 to n, connected as podstead does, and the rules that they need.
pub(super) fn host_with_pods(count: usize) -> (Machine, Vec<Machine>, PodsRules) {
    let (machine, names) = (Machine::new(), Names::new(None));
    machine.run("echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding");
    let pods: Vec<Machine> = (1..=count).map(|_| Machine::new()).collect();
    let mut rules_of = PodsRules::new();
    for (number, pod) in (1..).zip(&pods) {
        let (interface, group) = (names.interface(number as u32), names.group);
        machine.run(&format!("ip link add {interface} type veth peer name eth0"));
        machine.run(&format!("ip link set eth0 netns {}", pod.path()));
        machine.run(&format!(
            "ip link set {interface} group {group} up; ip addr add 169.254.0.1/32 dev {interface}; \
             ip -6 addr add fd70:6f64:7374::1/128 dev {interface} nodad; ip -6 addr add fe80::1/64 dev {interface} nodad; \
             ip route add {}/32 dev {interface}; ip -6 route add {}/128 dev {interface}",
            address(number),
            address6(number)
        ));
        pod.run(&format!(
            "ip link set eth0 up; ip addr add {}/32 dev eth0; ip -6 addr add {}/128 dev eth0 nodad; \
             ip route add 169.254.0.1 dev eth0; ip route add default via 169.254.0.1; ip -6 route add default via fe80::1 dev eth0",
            address(number),
            address6(number)
        ));
        let of_pod = PodRules {
            interface,
            addresses: vec![address(number), address6(number)],
            ports: Vec::new(),
            is_isolated: false,
            port: None,
        };
        rules_of.insert(PodUid::random(), of_pod);
    }
    (machine, pods, rules_of)
}
