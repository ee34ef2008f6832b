//! `port-forward` by `podstead`, by the real kubectl in both of its protocols, and by the channels of client libraries. The pods are on this
//! machine's own network: what they serve is in the test's process.

use crate::host::{Host, PATIENCE, eventually, text};
use crate::kubectl::Kubectl;
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// A server of the pod; each connection is served by `talk` in a thread. Returns the port.
fn serve(talk: fn(TcpStream)) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || talk(stream));
        }
    });
    port
}

/// Sends back what comes.
fn echo(stream: TcpStream) {
    let (mut from, mut to) = (stream.try_clone().unwrap(), stream);
    std::io::copy(&mut from, &mut to).ok();
    to.shutdown(Shutdown::Write).ok();
}

/// Says how much came, when all has come.
fn count(mut stream: TcpStream) {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    write!(stream, "{} bytes", all.len()).unwrap();
}

/// Client of a port-forward.
#[derive(Clone, Copy, Debug)]
enum Client {
    Podstead,
    KubectlWebSocket,
    KubectlSpdy,
}

const CLIENTS: [Client; 3] = [Client::Podstead, Client::KubectlWebSocket, Client::KubectlSpdy];

impl Client {
    fn command(self, host: &Host, arguments: &[&str]) -> Option<Command> {
        let mut all = vec!["port-forward"];
        all.extend(arguments);
        let with_websockets = |command: &mut Command, value| {
            // kubectl 1.31 and later obey it; older ones speak SPDY only.
            command.env("KUBECTL_PORT_FORWARD_WEBSOCKETS", value);
        };
        match self {
            Self::Podstead => Some(host.command(&all)),
            Self::KubectlWebSocket | Self::KubectlSpdy => {
                let mut command = Kubectl::find(host)?.command(&all);
                with_websockets(&mut command, if matches!(self, Self::KubectlSpdy) { "false" } else { "true" });
                Some(command)
            }
        }
    }
}

/// A command that forwards; it ends with this.
struct Forward {
    child: Child,
    /// Addresses that it listens on, in order.
    listens: Vec<SocketAddr>,
    said: Arc<Mutex<String>>,
}

impl Forward {
    /// Waits for `count` lines that say where it listens. `None` where the client is not there.
    fn start(client: Client, host: &Host, arguments: &[&str], count: usize) -> Option<Self> {
        let mut child = client.command(host, arguments)?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let (mut stderr, heard) = (child.stderr.take().unwrap(), Arc::clone(&said));
        std::thread::spawn(move || {
            let mut buffer = [0; 1024];
            while let Ok(length @ 1..) = stderr.read(&mut buffer) {
                heard.lock().unwrap().push_str(&text(&buffer[..length]));
            }
        });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut forward = Self { child, listens: Vec::new(), said };
        while forward.listens.len() < count {
            let line = lines.next().unwrap_or_else(|| panic!("{client:?}: {}", forward.said.lock().unwrap())).unwrap();
            let address = line.strip_prefix("Forwarding from ").and_then(|rest| rest.split(" -> ").next());
            forward.listens.extend(address.map(|address| address.parse::<SocketAddr>().unwrap()));
        }
        // kubectl says there what it does; a closed pipe would end it.
        std::thread::spawn(move || lines.for_each(drop));
        Some(forward)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.listens[0]).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn says(&self, expected: &str) {
        eventually(expected, || self.said.lock().unwrap().contains(expected).then_some(()));
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn web() -> Host {
    let host = Host::start();
    host.publish_on_host("web", json!({"containers": [{"name": "main", "image": "nginx:1.27"}]}));
    host
}

fn read_all(mut stream: &TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

#[test]
fn much_goes_both_ways_at_once() {
    let host = web();
    let port = serve(echo);
    // Larger than every buffer on the way.
    let sent: Vec<u8> = (0..20_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for client in CLIENTS {
        let Some(forward) = Forward::start(client, &host, &["web-edge", &format!(":{port}")], 1) else { continue };
        let stream = forward.connect();
        let received = std::thread::scope(|scope| {
            scope.spawn(|| {
                (&stream).write_all(&sent).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            });
            read_all(&stream)
        });
        assert!(received == sent, "{client:?}: {} bytes came back", received.len());
    }
}

#[test]
fn half_closed_client_gets_its_answer() {
    let host = web();
    let port = serve(count);
    for client in CLIENTS {
        let Some(forward) = Forward::start(client, &host, &["web-edge", &format!(":{port}")], 1) else { continue };
        let stream = forward.connect();
        (&stream).write_all(&vec![7; 300_000]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(text(&read_all(&stream)), "300000 bytes", "{client:?}");
    }
}

#[test]
fn half_closed_server_hears_its_client() {
    /// Ends its own direction first.
    fn deaf(mut stream: TcpStream) {
        stream.write_all(b"bye").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        let report = u16::from_le_bytes([all[0], all[1]]);
        TcpStream::connect(("127.0.0.1", report)).unwrap().write_all(&all[2..]).unwrap();
    }
    let host = web();
    let port = serve(deaf);
    let report = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    // kubectl ends both directions when the server has said all.
    let forward = Forward::start(Client::Podstead, &host, &["web", &format!(":{port}")], 1).unwrap();
    let mut stream = forward.connect();
    assert_eq!(text(&read_all(&stream)), "bye");
    stream.write_all(&report.local_addr().unwrap().port().to_le_bytes()).unwrap();
    stream.write_all(b"I go on").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(text(&read_all(&report.accept().unwrap().0)), "I go on");
}

#[test]
fn many_connections_go_on_at_once() {
    let host = web();
    let port = serve(echo);
    for client in CLIENTS {
        let Some(forward) = Forward::start(client, &host, &["web-edge", &format!(":{port}")], 1) else { continue };
        let streams: Vec<TcpStream> = (0..60).map(|_| forward.connect()).collect();
        for round in 0..3 {
            for (number, mut stream) in streams.iter().enumerate() {
                write!(stream, "{round}:{number:04}").unwrap();
            }
            for (number, mut stream) in streams.iter().enumerate().rev() {
                let mut answer = [0; 6];
                stream.read_exact(&mut answer).unwrap();
                assert_eq!(text(&answer), format!("{round}:{number:04}"), "{client:?}");
            }
        }
        // One after the other, too: ended ones make room.
        drop(streams);
        for number in 0..300 {
            let mut stream = forward.connect();
            write!(stream, "{number}").unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(text(&read_all(&stream)), number.to_string(), "{client:?}");
        }
    }
}

#[test]
fn port_on_which_nobody_listens_is_said() {
    let host = web();
    // Nobody listens on a port that has just been given back.
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    for client in CLIENTS {
        let Some(forward) = Forward::start(client, &host, &["web-edge", &format!(":{free}")], 1) else { continue };
        let mut end = Vec::new();
        // Either an end or a reset, as the client likes.
        forward.connect().read_to_end(&mut end).ok();
        assert!(end.is_empty());
        forward.says(&format!("error forwarding port {free} to pod web-edge"));
        forward.says("connection refused");
    }
    // podstead does not give up: the server may come.
    let forward = Forward::start(Client::Podstead, &host, &["web", &format!(":{free}")], 1).unwrap();
    forward.connect().read_to_end(&mut Vec::new()).ok();
    forward.says("connection refused");
    let listener = TcpListener::bind(("127.0.0.1", free)).unwrap();
    std::thread::spawn(move || echo(listener.accept().unwrap().0));
    let mut stream = forward.connect();
    stream.write_all(b"now").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(text(&read_all(&stream)), "now");
}

#[test]
fn ports_have_names_and_addresses() {
    let host = Host::start();
    let (one, two) = (serve(echo), serve(count));
    let ports = json!([{"name": "http", "containerPort": two}]);
    host.publish_on_host("web", json!({"containers": [{"name": "main", "image": "nginx:1.27", "ports": ports}]}));
    let arguments = ["--address", "127.0.0.1,127.0.0.2", "-n", "default", "pod/web-edge", &format!(":{one}"), "0:http"];
    for client in [Client::Podstead, Client::KubectlWebSocket] {
        let Some(forward) = Forward::start(client, &host, &arguments, 4) else { continue };
        let ips: Vec<String> = forward.listens.iter().map(|address| address.ip().to_string()).collect();
        assert_eq!(ips.iter().filter(|ip| *ip == "127.0.0.2").count(), 2, "{client:?}: {ips:?}");
        let answers = forward.listens.iter().map(|address| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(b"hello").unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            text(&read_all(&stream))
        });
        let mut answers: Vec<String> = answers.collect();
        answers.sort();
        assert_eq!(answers, ["5 bytes", "5 bytes", "hello", "hello"], "{client:?}");
    }
}

#[test]
fn impossible_forward_is_refused_at_once() {
    let host = web();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let taken = taken.local_addr().unwrap().port();
    let (code, message) = host.fail(&["port-forward", "wbe", "80"]);
    assert_eq!((code, message.as_str()), (1, "podstead: pod \"wbe\" not found, did you mean \"web\"?\n"));
    let (_, message) = host.fail(&["port-forward", "web", ":https"]);
    assert_eq!(message, "podstead: pod \"web-edge\" has no port named \"https\"\n");
    let (_, message) = host.fail(&["port-forward", "web", &format!("{taken}:80")]);
    assert!(message.contains(&format!("unable to listen on 127.0.0.1:{taken}: Address already in use")), "{message}");
    let (code, message) = host.fail(&["port-forward", "web", "x:80"]);
    assert!(code == 2 && message.contains("\"x\" is not a valid local port"), "{message}");
    let pending = crate::host::desired("default", "late", json!({}));
    host.published_status(&pending, json!({"phase": "Pending"}));
    let (_, message) = host.fail(&["port-forward", "late", "80"]);
    assert_eq!(message, "podstead: unable to forward port because pod late-edge is not running. Current status=Pending\n");
    // The API says so by itself.
    let forward = "/api/v1/namespaces/default/pods/late-edge/portforward";
    let (code, status) = host.send(hyper::Method::POST, forward, "");
    assert_eq!(code, 400);
    assert_eq!(status["message"], "unable to forward port because pod late-edge is not running");
    let (code, status) = host.send(hyper::Method::GET, "/api/v1/namespaces/default/pods/web-edge/portforward", "");
    assert!(code == 400 && status["message"].as_str().unwrap().contains("SPDY/3.1 or a WebSocket"), "{status}");
}

#[test]
fn client_libraries_have_channel_for_each_port() {
    let host = web();
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let ports = [serve(echo), free];
    // Some offer no subprotocol.
    for protocol in [Some("v4.channel.k8s.io"), None] {
        let messages = host.tokio.block_on(channel_messages(&host, ports, protocol));
        for (channel, port) in [(0, ports[0]), (1, ports[0]), (2, free), (3, free)] {
            let [low, high] = port.to_le_bytes();
            assert!(messages.contains(&vec![channel, low, high]), "{messages:?}");
        }
        assert!(messages.contains(&b"\0hello".to_vec()), "{messages:?}");
        let refused = messages.iter().find(|message| message[0] == 3 && message.len() > 3).unwrap();
        assert!(text(refused).contains("connection refused"), "{}", text(refused));
    }
}

/// The messages of the channels of two ports; the first one echoes.
async fn channel_messages(host: &Host, ports: [u16; 2], protocol: Option<&str>) -> Vec<Vec<u8>> {
    let uri = format!("ws://podstead/api/v1/namespaces/default/pods/web-edge/portforward?ports={}&ports={}", ports[0], ports[1]);
    let mut request = uri.into_client_request().unwrap();
    if let Some(protocol) = protocol {
        request.headers_mut().insert("sec-websocket-protocol", protocol.parse().unwrap());
    }
    let stream = tokio::net::UnixStream::connect(host.socket()).await.unwrap();
    let (mut socket, response) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    assert_eq!(response.headers().get("sec-websocket-protocol").map(|value| value.to_str().unwrap()), protocol);
    socket.send(Message::Binary(b"\0hello"[..].into())).await.unwrap();
    // A channel of nobody's is ignored.
    socket.send(Message::Binary(b"\x09hello"[..].into())).await.unwrap();
    let mut messages = Vec::new();
    while messages.len() < 6 {
        let message = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
        if let Message::Binary(bytes) = message {
            messages.push(bytes.to_vec());
        }
    }
    messages
}
