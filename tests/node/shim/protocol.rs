//! The socket as strangers use it: later versions, slow writers, garbage.

use super::harness::{Host, PATIENCE};
use podstead::container::protocol::frame::{self, FrameDecoder, FrameKind, MAX_PAYLOAD};
use podstead::container::protocol::{Answer, Refusal, ToClient};
use podstead::pod::ContainerId;
use podstead::runtime::Runtime;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

struct RawClient {
    stream: UnixStream,
    decoder: FrameDecoder,
}

impl RawClient {
    fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Self { stream, decoder: FrameDecoder::default() };
        assert!(matches!(client.receive(), Some(ToClient::Hello(_))));
        client
    }

    fn greeted(socket: &Path) -> Self {
        let mut client = Self::connect(socket);
        client.send(r#"{"protocol":99,"version":"99.0.0","wishes":["later"]}"#);
        client
    }

    fn send(&mut self, text: &str) {
        let mut bytes = Vec::new();
        frame::encode(FrameKind::Message, text.as_bytes(), &mut bytes).unwrap();
        self.stream.write_all(&bytes).unwrap();
    }

    /// `None` when the shim has closed the connection.
    fn receive(&mut self) -> Option<ToClient> {
        loop {
            // Other frames have times of steps.
            if let Some((kind, payload)) = self.decoder.next_frame().unwrap() {
                match kind {
                    FrameKind::Message => return Some(serde_json::from_slice(payload).unwrap()),
                    _ => continue,
                }
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.decoder.push(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_request_gets_an_error() {
    let host = Host::new();
    let node = host.node();
    let (pod, _) = node.run(&host, "protocol", "sleep 1000").await;
    let socket = host.paths().shim_socket(&pod.uid);
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = RawClient::greeted(&socket);
    client.send(r#"{"id":5,"operation":{"checkpoint":{"container":"c"}},"priority":1}"#);
    match client.receive() {
        Some(ToClient::Response { id: 5, result: Err(Refusal::UnknownOperation(reason)) }) => {
            assert!(reason.contains("checkpoint"))
        }
        other => panic!("{other:?}"),
    }
    client.send(r#"{"id":6,"operation":{"kill":{"container":"no-such","reason":"later"}}}"#);
    let expected = Err(Refusal::NotFound(ContainerId::new("no-such")));
    assert_eq!(client.receive(), Some(ToClient::Response { id: 6, result: expected }));
    client.send("not json");
    client.send(r#"{"id":7,"operation":"status"}"#);
    assert!(matches!(client.receive(), Some(ToClient::Response { id: 7, result: Ok(Answer::Status(_)) })));
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_costs_only_its_own_connection() {
    let host = Host::new();
    let node = host.node();
    let (pod, container) = node.run(&host, "garbage", "sleep 1000").await;
    let socket = host.paths().shim_socket(&pod.uid);

    let mut slow = RawClient::greeted(&socket);
    let mut bytes = Vec::new();
    frame::encode(FrameKind::Message, br#"{"id":1,"operation":"status"}"#, &mut bytes).unwrap();
    let (last, head) = bytes.split_last().unwrap();
    for byte in head {
        slow.stream.write_all(&[*byte]).unwrap();
    }

    let mut no_hello = RawClient::connect(&socket);
    no_hello.send("garbage");
    assert_eq!(no_hello.receive(), None);
    let mut too_long = RawClient::greeted(&socket);
    let length = u32::try_from(MAX_PAYLOAD + 1).unwrap().to_be_bytes();
    too_long.stream.write_all(&[&[FrameKind::Message as u8], &length[..]].concat()).unwrap();
    assert_eq!(too_long.receive(), None);
    let mut half = RawClient::greeted(&socket);
    half.stream.write_all(&[0, 0, 0]).unwrap();
    drop(half);

    slow.stream.write_all(&[*last]).unwrap();
    assert!(matches!(slow.receive(), Some(ToClient::Response { id: 1, result: Ok(Answer::Status(_)) })));
    let (output, _, _) = node.exec(&container, &["echo", "served"]).await;
    assert_eq!(output, "served\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_never_reads_stops_nobody() {
    let host = Host::new();
    let mut node = host.node();
    let pod = host.pod("unread");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut deaf = RawClient::greeted(&host.paths().shim_socket(&pod.uid));
    deaf.send(r#"{"id":1,"operation":"subscribe"}"#);
    for attempt in 0..20 {
        let mut container = host.container(&pod, "main", "true");
        container.attempt = attempt;
        node.runtime.start_container(&container).await.unwrap();
        node.exited(&container).await;
    }
    let mut events = 0;
    while events < 20 {
        match deaf.receive() {
            Some(ToClient::Event(event)) => events += usize::from(event.kind == podstead::container::protocol::ShimEventKind::Died),
            Some(_) => {}
            None => panic!("it was cut off after {events} events"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shim_belongs_to_nobody() {
    let host = Host::new();
    let node = host.node();
    let pod = host.pod("alone");
    let shim = node.runtime.create_sandbox(&pod).await.unwrap().shim_pid.unwrap();
    let stat = fs::read_to_string(format!("/proc/{shim}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let (parent, session) = (fields[1], fields[3]);
    assert_ne!(parent, std::process::id().to_string());
    assert_eq!(session, shim.to_string(), "its own session");
    let own = host.cgroups().shim(&pod.uid);
    let groups = fs::read_to_string(format!("/proc/{shim}/cgroup")).unwrap();
    for line in groups.lines() {
        assert!(line.ends_with(own.to_str().unwrap()), "its own cgroup in every hierarchy: {line}");
    }
    let descriptors: Vec<_> = fs::read_dir(format!("/proc/{shim}/fd"))
        .unwrap()
        .map(|entry| fs::read_link(entry.unwrap().path()).unwrap().to_string_lossy().into_owned())
        .collect();
    let log = host.paths().pod_run(&pod.uid).join("shim.log");
    let hosts_mounts = fs::read_link("/proc/self/ns/mnt").unwrap().to_string_lossy().into_owned();
    let foreign = |name: &&String| {
        !["/dev/null", log.to_str().unwrap()].contains(&name.as_str())
            // The empty one, for helpers.
            && (!name.starts_with("mnt:[") || **name == hosts_mounts)
            && !name.starts_with("socket:")
            && !name.starts_with("anon_inode:")
    };
    assert_eq!(descriptors.iter().find(foreign), None, "nothing of the daemon's is held: {descriptors:?}");
    assert_eq!(fs::read_link(format!("/proc/{shim}/cwd")).unwrap(), Path::new("/"));
}
