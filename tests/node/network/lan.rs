//! Networks for a test: namespaces that are hosts, routers and other machines, joined by veths. This machine's own network is not touched.

use crate::support::{TestHost, eventually};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A namespace that stands for a machine; it goes with this.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Name of the namespace.
    pub(crate) netns: String,
}

impl Machine {
    /// A machine with nothing but `lo`, which is up.
    pub(crate) fn new(role: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let netns = format!("psnt{}-{}-{role}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        ok(&["ip", "netns", "add", &netns]);
        let machine = Self { netns };
        machine.run("ip link set lo up");
        machine
    }

    /// A command in its namespace, without a shell.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.netns)).args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs words of a command that has to succeed; its standard output.
    pub(crate) fn run(&self, words: &str) -> String {
        let words: Vec<&str> = words.split(' ').collect();
        let out = self.command(&words).output().unwrap();
        assert!(out.status.success(), "{words:?} in {}: {}", self.netns, String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// The answer of a web server, within two seconds.
    pub(crate) fn get(&self, url: &str) -> Result<String, String> {
        let out = self.command(&["curl", "-gsS", "--noproxy", "*", "-m", "2", url]).output().unwrap();
        if out.status.success() {
            Ok(String::from_utf8_lossy(&out.stdout).into_owned())
        } else {
            Err(String::from_utf8_lossy(&out.stderr).into_owned())
        }
    }

    /// Waits for this answer of a web server.
    pub(crate) fn gets(&self, url: &str, answer: &str) {
        eventually(&format!("{answer:?} from {url}"), || match self.get(url) {
            Ok(text) if text.contains(answer) => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }

    /// Joins two machines by a cable: an interface of each, up, without addresses.
    pub(crate) fn join(&self, interface: &str, other: &Machine, other_interface: &str) {
        let there = ["netns", other.netns.as_str()];
        let mut command = self.command(&["ip", "link", "add", interface, "type", "veth", "peer", "name", other_interface]);
        assert!(command.args(there).status().unwrap().success());
        self.run(&format!("ip link set {interface} up"));
        other.run(&format!("ip link set {other_interface} up"));
    }

    /// Gives an interface an address.
    pub(crate) fn address(&self, interface: &str, address: &str) {
        let nodad = if address.contains(':') { " nodad" } else { "" };
        self.run(&format!("ip address add {address} dev {interface}{nodad}"));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(Command::new("ip").args(["netns", "delete", &self.netns]).status());
    }
}

fn ok(words: &[&str]) {
    assert!(Command::new(words[0]).args(&words[1..]).status().unwrap().success(), "{words:?}");
}

/// A host with an uplink, and a machine on its other end that is also its router.
#[derive(Debug)]
pub(crate) struct Site {
    // Dropped first: the pods go before the namespace.
    /// The host under test.
    pub(crate) host: TestHost,
    /// Its namespace.
    pub(crate) machine: Machine,
    /// The other machine.
    pub(crate) outside: Machine,
}

/// Addresses of host and outside.
pub(crate) const HOST_V4: &str = "192.0.2.2";
pub(crate) const OUTSIDE_V4: &str = "192.0.2.1";
pub(crate) const HOST_V6: &str = "2001:db8::2";
pub(crate) const OUTSIDE_V6: &str = "2001:db8::1";

impl Site {
    /// With both families and default routes; the daemon does not run yet.
    pub(crate) fn prepare(more_config: &str) -> Self {
        let (machine, outside) = (Machine::new("host"), Machine::new("outside"));
        machine.join("uplink", &outside, "lan0");
        for (one, interface, addresses) in [(&machine, "uplink", [HOST_V4, HOST_V6]), (&outside, "lan0", [OUTSIDE_V4, OUTSIDE_V6])]
        {
            one.address(interface, &format!("{}/24", addresses[0]));
            one.address(interface, &format!("{}/64", addresses[1]));
        }
        machine.run(&format!("ip route add default via {OUTSIDE_V4}"));
        machine.run(&format!("ip -6 route add default via {OUTSIDE_V6}"));
        let host = TestHost::prepare_in(&machine.netns, more_config);
        Self { host, machine, outside }
    }

    /// As above, with the daemon up.
    pub(crate) fn start() -> Self {
        let mut site = Self::prepare("");
        site.host.start_daemon();
        site
    }

    /// Runs a pod whose web server answers with its name, and waits for it; its addresses, IPv4 first.
    pub(crate) fn web(&self, name: &str, annotations: &str, ports: &str) -> [String; 2] {
        self.host.write_manifest(&format!("{name}.yaml"), &web(name, annotations, ports));
        self.addresses(name)
    }

    /// The addresses of a pod that runs.
    pub(crate) fn addresses(&self, name: &str) -> [String; 2] {
        // Whoever sees it running sees its addresses, also when the daemon has just started.
        let pod = self.host.wait_running(name);
        let ip = |index: usize| pod.0["status"]["podIPs"][index]["ip"].as_str().unwrap_or_default().to_owned();
        [ip(0), ip(1)]
    }

    /// The answer of a web server to a pod, within two seconds.
    pub(crate) fn pod_get(&self, pod: &str, url: &str) -> Result<String, String> {
        pod_get(&self.host, pod, url)
    }

    /// Waits for this answer of a web server to a pod.
    pub(crate) fn pod_gets(&self, pod: &str, url: &str, answer: &str) {
        pod_gets(&self.host, pod, url, answer);
    }

    /// Interfaces of pods on the host.
    pub(crate) fn interfaces(&self) -> Vec<String> {
        let links = self.machine.run("ip -o link show type veth");
        let names = links.lines().filter_map(|line| line.split(": ").nth(1)).map(|name| name.split('@').next().unwrap().to_owned());
        names.filter(|name| name.starts_with("ps")).collect()
    }

    /// The packet rules of podstead, as `nft` prints them.
    pub(crate) fn rules(&self) -> String {
        let tables = self.machine.run("nft list tables");
        let Some(table) = tables.lines().find(|line| line.contains("inet podstead") && !line.ends_with("_standby")) else {
            return String::new();
        };
        self.machine.run(&format!("nft list {table}"))
    }
}

fn pod_get(host: &TestHost, pod: &str, url: &str) -> Result<String, String> {
    let out = host.cli(&["exec", pod, "-c", "main", "--", "timeout", "2", "wget", "-q", "-O", "-", url]);
    if out.status.success() {
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&out.stderr).into_owned())
    }
}

/// Waits for this answer of a web server to a pod of a host.
pub(crate) fn pod_gets(host: &TestHost, pod: &str, url: &str, answer: &str) {
    eventually(&format!("{answer:?} from {url} for pod {pod}"), || match pod_get(host, pod, url) {
        Ok(text) if text.contains(answer) => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

/// A pod whose web server answers with its name on port 80.
pub(crate) fn web(name: &str, annotations: &str, ports: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  annotations: {{{annotations}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
         - name: main\n      image: localhost/busybox:1\n      ports: [{ports}]\n      command: [/bin/sh, -c, 'mkdir /www && echo I am {name} > /www/index.html && exec httpd -f -h /www']\n"
    )
}

/// As [`web`], of a pod that ends as soon as it is asked to.
pub(crate) fn prompt_web(name: &str, ports: &str) -> String {
    web(name, "", ports).replace("exec httpd -f -h /www", "trap \"exit 0\" TERM; httpd -f -h /www & wait")
}

/// A web server on a machine; it ends with this.
#[derive(Debug)]
pub(crate) struct WebServer {
    child: std::process::Child,
    _root: tempfile::TempDir,
}

impl WebServer {
    /// Answers with `text`. `address` is of the form `0.0.0.0:80`.
    pub(crate) fn start(machine: &Machine, address: &str, text: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("index.html"), text).unwrap();
        let mut command = machine.command(&["busybox", "httpd", "-f", "-p", address, "-h"]);
        let child = command.arg(root.path()).spawn().unwrap();
        let server = Self { child, _root: root };
        let port = address.rsplit(':').next().unwrap();
        eventually("the server to listen", || {
            let sockets = machine.run("ss -Hltn");
            sockets.contains(&format!(":{port} ")).then_some(()).ok_or(sockets)
        });
        server
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
