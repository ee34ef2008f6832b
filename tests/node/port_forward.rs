//! `port-forward` into real pods, whose network is none but loopback.

use crate::support::{TestHost, binary, eventually};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A web server that answers 127.0.0.1 of the pod only, and a server that sends back what it gets.
fn manifest(text: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    - name: main\n      \
         image: localhost/busybox:1\n      ports: [{{name: http, containerPort: 80}}]\n      command: [/bin/sh, -c, 'mkdir -p /www && echo {text} > \
         /www/index.html; nc -ll -p 9000 -e cat & exec httpd -f -p 127.0.0.1:80 -h /www']\n"
    )
}

struct Forward {
    child: Child,
    address: SocketAddr,
}

impl Forward {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next().expect("a line that says where it listens").unwrap();
        let address = line.strip_prefix("Forwarding from ").unwrap().split(" -> ").next().unwrap().parse().unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    fn podstead(host: &TestHost, port: &str) -> Self {
        let mut command = Command::new(binary("podstead"));
        command.arg("--socket").arg(host.path("run/podstead.sock")).args(["port-forward", "pod/web", port]);
        Self::start(command)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// The answer of the web server.
    fn get(&self) -> Result<String, String> {
        let mut stream = self.connect();
        let mut answer = String::new();
        let asked = stream.write_all(b"GET / HTTP/1.0\r\n\r\n").and_then(|()| stream.shutdown(Shutdown::Write));
        let asked = asked.and_then(|()| stream.read_to_string(&mut answer));
        asked.map_err(|error| error.to_string())?;
        Ok(answer)
    }

    fn gets(&self, text: &str) {
        eventually(&format!("{text:?} through the forwarded port"), || match self.get() {
            Ok(answer) if answer.contains(text) => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn comes_back(forward: &Forward) {
    let sent: Vec<u8> = (0..30_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let stream = forward.connect();
    let mut received = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (&stream).write_all(&sent).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        (&stream).read_to_end(&mut received).unwrap();
    });
    assert!(received == sent, "{} bytes came back", received.len());
}

#[test]
fn loopback_server_of_pod_is_reached() {
    let mut host = TestHost::start();
    host.write_manifest("web.yaml", &manifest("one"));
    host.wait_running("web");
    let (web, echo) = (Forward::podstead(&host, ":http"), Forward::podstead(&host, ":9000"));
    web.gets("one");
    echo.gets("GET / HTTP");
    comes_back(&echo);
    // Another pod of that name.
    let before = host.pod("web").unwrap();
    host.remove_manifest("web.yaml");
    host.wait_gone("web");
    assert_eq!(web.get().unwrap_or_default(), "", "nobody is there");
    host.write_manifest("web.yaml", &manifest("two"));
    web.gets("two");
    assert_ne!(host.wait_running("web").uid(), before.uid());
    // Another daemon.
    host.kill_daemon();
    host.start_daemon();
    web.gets("two");
    // Another sandbox.
    let before = host.pod("web").unwrap();
    let shim = host.shim_pid(&before);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(shim as i32), nix::sys::signal::Signal::SIGKILL).unwrap();
    host.wait_for_pod("web", "another container", |pod| {
        pod.runs("main") && pod.container_id("main") != before.container_id("main")
    });
    web.gets("two");
}

/// Copies between a port and the daemon's socket, since kubectl cannot speak to a unix socket.
fn bridge(socket: &Path) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let socket = socket.to_owned();
    std::thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            let Ok(unix) = UnixStream::connect(&socket) else { continue };
            let (mut from_tcp, mut to_unix) = (tcp.try_clone().unwrap(), unix.try_clone().unwrap());
            std::thread::spawn(move || {
                std::io::copy(&mut from_tcp, &mut to_unix).ok();
                to_unix.shutdown(Shutdown::Write).ok();
            });
            let (mut from_unix, mut to_tcp) = (unix, tcp);
            std::thread::spawn(move || {
                std::io::copy(&mut from_unix, &mut to_tcp).ok();
                to_tcp.shutdown(Shutdown::Write).ok();
            });
        }
    });
    address
}

#[test]
fn kubectl_forwards_by_both_of_its_protocols() {
    let host = TestHost::start();
    host.write_manifest("web.yaml", &manifest("one"));
    host.wait_running("web");
    // kubectl gives up when nobody listens yet.
    Forward::podstead(&host, ":http").gets("one");
    Forward::podstead(&host, ":9000").gets("GET / HTTP");
    let server = bridge(&host.path("run/podstead.sock"));
    for websockets in ["true", "false"] {
        let forward = |port: &str| {
            let mut command = Command::new("kubectl");
            // A home of its own: kubectl caches what it discovered.
            command
                .env("HOME", host.path("manifests/.."))
                .env_remove("KUBECONFIG")
                .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets);
            command.arg(format!("--server=http://{server}")).args(["port-forward", "web-edge-1", port]);
            Forward::start(command)
        };
        forward(":http").gets("one");
        let echo = forward(":9000");
        echo.gets("GET / HTTP");
        comes_back(&echo);
    }
    let log = host.daemon_log();
    assert!(log.contains("protocol=\"SPDY/3.1\""), "{log}");
    // Those before 1.31 have the older protocol only.
    let version = Command::new("kubectl").args(["version", "--client", "-o", "json"]).output().unwrap().stdout;
    let version: serde_json::Value = serde_json::from_slice(&version).unwrap();
    let minor = version["clientVersion"]["minor"].as_str().unwrap().trim_end_matches('+').parse::<u32>().unwrap();
    assert_eq!(log.contains("SPDY/3.1+portforward.k8s.io"), minor >= 31, "{log}");
}
