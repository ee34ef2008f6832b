//! Beside docker, podman, ufw, firewalld and people who write rules of their own: nobody harms anybody, in whatever order they come.
//!
//! The neighbours are Debian's packages, in the network namespace of the host under test and in a mount namespace of their own.

use super::doctor::finds;
use super::lan::{HOST_V4, Machine, OUTSIDE_V4, Site, WebServer};
use crate::support::{eventually, eventually_within};
use std::process::{Child, Command, Output, Stdio};

/// The room of a neighbour: the machine's network, its own `/run`, `/etc` and `/var/lib`. All of its processes end with it.
struct Room {
    first: Child,
    netns: String,
}

impl Room {
    fn new(machine: &Machine) -> Self {
        const SCRIPT: &str = "set -e; mount --make-rprivate /; mount -t tmpfs run /run; mkdir -p /run/lock /run/etc /run/lib /run/upper /run/work; \
             mkdir /run/etc/u /run/etc/w /run/lib/u /run/lib/w; \
             mount -t overlay etc -o lowerdir=/etc,upperdir=/run/etc/u,workdir=/run/etc/w /etc; \
             mount -t overlay lib -o lowerdir=/var/lib,upperdir=/run/lib/u,workdir=/run/lib/w /var/lib; \
             mkdir -p /var/lib/docker /var/lib/containers; echo ready; exec sleep infinity";
        let mut command = machine.command(&["unshare", "-mpf", "--kill-child", "--mount-proc", "sh", "-c", SCRIPT]);
        let mut first = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = [0; 6];
        std::io::Read::read_exact(first.stdout.as_mut().unwrap(), &mut line).unwrap();
        Self { first, netns: machine.netns.clone() }
    }

    fn command(&self, script: &str) -> Command {
        // The namespaces are those of the child of unshare.
        let children = format!("/proc/{0}/task/{0}/children", self.first.id());
        let inside = std::fs::read_to_string(children).unwrap().trim().to_owned();
        let mut command = Command::new("nsenter");
        command.args(["-t", &inside, "-m", "-p", &format!("--net=/run/netns/{}", self.netns), "sh", "-c", script]);
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").stdin(Stdio::null());
        command
    }

    fn output(&self, script: &str) -> Output {
        self.command(script).output().unwrap()
    }

    fn run(&self, script: &str) -> String {
        let out = self.output(script);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{script}: {said}{}", String::from_utf8_lossy(&out.stdout));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    fn succeeds(&self, script: &str) {
        eventually(script, || {
            let out = self.output(script);
            out.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&out.stderr).into_owned())
        });
    }

    /// A runtime that does not raise rlimits, which not every machine of tests allows.
    fn with_runtime(self) -> Self {
        let script = "#!/bin/sh\nfor a; do [ \"$p\" = --bundle ] && b=$a; p=$a; done\n\
                      [ -n \"$b\" ] && sed -i 's/\"rlimits\":\\[[^]]*\\]/\"rlimits\":[]/' \"$b/config.json\"\nexec runc \"$@\"\n";
        let mut child = self.command("cat >/run/light-runc && chmod 755 /run/light-runc").stdin(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), script.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        self
    }

    /// An image of busybox for docker or podman.
    fn import_image(&self, engine: &str) {
        self.run(
            "mkdir -p /run/root/bin /run/root/tmp; cp /bin/busybox /run/root/bin/; for name in $(busybox --list); do ln -sf busybox /run/root/bin/$name; done; \
             cp /bin/busybox /run/root/bin/busybox.new; mv /run/root/bin/busybox.new /run/root/bin/busybox",
        );
        self.run(&format!("tar -C /run/root -c . | {engine} import - localhost/neighbour:1"));
    }

    fn start_docker(&self) {
        self.run(
            "setsid dockerd --data-root /run/docker-data --exec-root /run/docker --pidfile /run/docker.pid --host unix:///run/docker.sock \
             --storage-driver vfs --exec-opt native.cgroupdriver=cgroupfs --add-runtime light=/run/light-runc --default-runtime light >/run/docker.log 2>&1 &",
        );
        self.succeeds("docker -H unix:///run/docker.sock version");
    }

    fn stop_docker(&self) {
        self.run("kill $(cat /run/docker.pid)");
        self.succeeds("! test -e /run/docker.pid");
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // Its child is killed with it, and all processes of that one's PID namespace.
        drop(self.first.kill());
        drop(self.first.wait());
    }
}

/// Pod `one` with a port of the host, pod `two`, and a server outside.
fn pods(site: &Site) -> WebServer {
    site.web("one", "", "{containerPort: 80, hostPort: 8080}");
    site.web("two", "", "");
    WebServer::start(&site.outside, "[::]:7000", "I am outside")
}

/// A container asks a web server and gets its answer. Its wget needs files that the image does not have.
fn asks(engine: &str, container: &str, host: &str, port: u16) -> String {
    let ask = format!("printf \"GET / HTTP/1.0\\r\\n\\r\\n\" | nc -w 3 {host} {port} | grep -q \"I am\"");
    format!("{engine} exec {container} timeout 5 sh -c '{ask}'")
}

/// Everybody reaches everybody.
fn all_is_well(site: &Site) {
    let one = site.addresses("one");
    site.outside.gets(&format!("http://{HOST_V4}:8080/"), "I am one");
    site.machine.gets("http://127.0.0.1:8080/", "I am one");
    for url in [format!("http://{}/", one[0]), format!("http://[{}]/", one[1]), format!("http://{HOST_V4}:8080/")] {
        site.pod_gets("two", &url, "I am one");
    }
    site.pod_gets("two", &format!("http://{OUTSIDE_V4}:7000/"), "I am outside");
    site.pod_gets("two", &format!("http://[{}]:7000/", super::lan::OUTSIDE_V6), "I am outside");
    site.pod_gets("two", "http://one/", "I am one");
}

fn prefix(site: &Site) -> String {
    site.interfaces().pop().unwrap().split('-').next().unwrap().to_owned() + "-"
}

#[test]
fn dropping_iptables_chain_accepts_pods() {
    let mut site = Site::prepare("");
    site.machine.run("iptables-nft -P FORWARD DROP");
    site.machine.run("iptables-nft -A FORWARD -i nobody -j DROP");
    site.host.start_daemon();
    let _server = pods(&site);
    all_is_well(&site);
    // As iptables writes them, after the rules of others, once.
    let prefix = prefix(&site);
    let own = [format!("-A FORWARD -i {prefix}+"), format!("-A FORWARD -o {prefix}+")];
    let listed = |site: &Site| site.machine.run("iptables-nft -S FORWARD");
    let lines: Vec<String> = listed(&site).lines().map(str::to_owned).collect();
    assert!(lines[1].contains("nobody") && lines[2].starts_with(&own[0]) && lines[3].starts_with(&own[1]), "{lines:?}");
    assert_eq!(lines.len(), 4, "{lines:?}");
    // Flushed, by its owner.
    site.machine.run("iptables-nft -F FORWARD");
    eventually("the rules to come back", || {
        let rules = listed(&site);
        own.iter().all(|rule| rules.contains(rule.as_str())).then_some(()).ok_or(rules)
    });
    // All of it, by a script that begins with nothing, and comes back with the policy.
    site.machine.run("nft flush ruleset");
    site.machine.run("iptables-nft -P FORWARD DROP");
    site.machine.run("ip6tables-nft -P FORWARD DROP");
    all_is_well(&site);
    // The owner's rules go before.
    site.machine.run(&format!("iptables-nft -I FORWARD -d {OUTSIDE_V4} -j DROP"));
    site.pod_get("two", &format!("http://{OUTSIDE_V4}:7000/")).unwrap_err();
    site.machine.run(&format!("iptables-nft -D FORWARD -d {OUTSIDE_V4} -j DROP"));
    site.host.kill_daemon();
    site.host.start_daemon();
    all_is_well(&site);
    assert_eq!(listed(&site).lines().count(), 3, "{}", listed(&site));
}

#[test]
fn docker_and_its_containers_go_on() {
    let mut site = Site::prepare("");
    let room = Room::new(&site.machine).with_runtime();
    // Passing on is off: docker switches it on, and has everything dropped that is not its own.
    room.start_docker();
    assert!(site.machine.run("iptables-nft -S FORWARD").contains("-P FORWARD DROP"));
    let docker = "docker -H unix:///run/docker.sock";
    room.import_image(docker);
    room.run(&format!("{docker} run -d --name web --restart=no -p 9090:80 localhost/neighbour:1 sh -c 'echo I am docker > /index.html; exec httpd -f -h /'"));
    let their_port = format!("http://{HOST_V4}:9090/");
    site.outside.gets(&their_port, "I am docker");
    site.host.start_daemon();
    let _server = pods(&site);
    all_is_well(&site);
    site.outside.gets(&their_port, "I am docker");
    site.pod_gets("two", &their_port, "I am docker");
    room.succeeds(&asks(docker, "web", OUTSIDE_V4, 7000));
    room.succeeds(&asks(docker, "web", HOST_V4, 8080));
    // A container does not get at a pod but by a port of the host.
    let pod = site.addresses("one");
    assert!(!room.output(&asks(docker, "web", &pod[0], 80)).status.success());
    room.stop_docker();
    all_is_well(&site);
    room.start_docker();
    all_is_well(&site);
    room.run(&format!("{docker} start web"));
    site.outside.gets(&their_port, "I am docker");
    all_is_well(&site);
    room.run(&format!("{docker} rm -f web"));
    room.stop_docker();
}

#[test]
fn docker_that_comes_later_finds_its_place() {
    let site = Site::start();
    let _server = pods(&site);
    all_is_well(&site);
    let room = Room::new(&site.machine).with_runtime();
    room.start_docker();
    let docker = "docker -H unix:///run/docker.sock";
    room.import_image(docker);
    // As docker has it where it finds that nothing is passed on.
    site.machine.run("iptables-nft -P FORWARD DROP");
    room.run(&format!(
        "{docker} run -d --name web -p 9090:80 localhost/neighbour:1 sh -c 'echo I am docker > /index.html; exec httpd -f -h /'"
    ));
    site.outside.gets(&format!("http://{HOST_V4}:9090/"), "I am docker");
    room.succeeds(&asks(docker, "web", OUTSIDE_V4, 7000));
    all_is_well(&site);
    room.run(&format!("{docker} rm -f web"));
    room.stop_docker();
    all_is_well(&site);
}

#[test]
fn podman_and_podstead_coexist() {
    let mut site = Site::prepare("");
    let room = Room::new(&site.machine).with_runtime();
    let podman = "podman --root /run/podman-data --runroot /run/podman --storage-driver vfs --cgroup-manager cgroupfs --runtime /run/light-runc";
    room.import_image(podman);
    let start = |name: &str, port: u16| {
        room.run(&format!(
            "{podman} run -d --name {name} -p {port}:80 localhost/neighbour:1 sh -c 'echo I am {name} > /index.html; exec httpd -f -h /'"
        ));
    };
    start("first", 9090);
    site.host.start_daemon();
    let _server = pods(&site);
    start("second", 9091);
    for (port, name) in [(9090, "first"), (9091, "second")] {
        site.outside.gets(&format!("http://{HOST_V4}:{port}/"), &format!("I am {name}"));
        site.pod_gets("two", &format!("http://{HOST_V4}:{port}/"), &format!("I am {name}"));
        room.succeeds(&asks(podman, name, HOST_V4, 8080));
    }
    all_is_well(&site);
    room.run(&format!("{podman} rm -f -t 0 first"));
    all_is_well(&site);
    site.outside.gets(&format!("http://{HOST_V4}:9091/"), "I am second");
    room.run(&format!("{podman} rm -f -t 0 second"));
}

#[test]
fn ufw_changes_keep_pods_connected() {
    let mut site = Site::prepare("");
    let room = Room::new(&site.machine);
    room.run("ufw --force enable");
    assert!(site.machine.run("iptables-nft -S").contains("-P FORWARD DROP"));
    site.host.start_daemon();
    let _server = pods(&site);
    let server = WebServer::start(&site.machine, "0.0.0.0:7001", "I am the host");
    let closed = format!("http://{HOST_V4}:7001/");
    let outside_is_kept_out = || site.outside.get(&closed).map_or((), |answer| panic!("ufw let it in: {answer}"));
    all_is_well(&site);
    outside_is_kept_out();
    room.run("ufw reload");
    all_is_well(&site);
    outside_is_kept_out();
    room.run("ufw allow 7001/tcp");
    site.outside.gets(&closed, "I am the host");
    room.run("ufw disable");
    all_is_well(&site);
    // The other order.
    room.run("ufw --force enable");
    all_is_well(&site);
    drop(server);
}

#[test]
fn firewalld_admits_pods_once_told() {
    let mut site = Site::prepare("");
    let room = Room::new(&site.machine);
    room.run("mkdir -p /run/dbus && dbus-daemon --system --fork --nopidfile");
    room.run("setsid firewalld --nofork --nopid >/run/firewalld.log 2>&1 &");
    room.succeeds("firewall-cmd --state");
    site.host.start_daemon();
    let _server = pods(&site);
    // To it, pods are a part of the zone that all interfaces are in by default, which nothing is passed on from.
    site.pod_get("two", &format!("http://{OUTSIDE_V4}:7000/")).unwrap_err();
    let rejects = "firewalld rejects packets between pods (10.201.0.0/20, fd70:6f64:7374:1::/64) and other hosts";
    finds(&site, &["network"], &["network problem: ", rejects, "--zone=trusted --add-source=10.201.0.0/20; "]);
    site.host.keep_house();
    eventually_within(std::time::Duration::from_secs(180), "that to be told", || {
        let events = site.host.cli_ok(&["get", "events"]);
        let is_told = events.lines().any(|line| line.contains("ForwardingBlocked") && line.contains(rejects));
        is_told.then_some(()).ok_or(events)
    });
    // What the documentation says, at first for one family.
    let trust = |range: &str| {
        room.run(&format!("firewall-cmd -q --permanent --zone=trusted --add-source={range} && firewall-cmd -q --reload"));
    };
    trust("10.201.0.0/20");
    finds(
        &site,
        &["network"],
        &["network problem: firewalld rejects packets between pods (fd70:6f64:7374:1::/64) and other hosts"],
    );
    trust("fd70:6f64:7374:1::/64");
    all_is_well(&site);
    finds(&site, &["network"], &["network ok: the network of 2 pods is complete"]);
    // Its reload, and its restart, do not take podstead's rules along.
    room.run("firewall-cmd -q --complete-reload");
    all_is_well(&site);
}
