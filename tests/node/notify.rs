//! Hooks that hear of failures of real pods, revisions and sources: over HTTPS and as commands, through kills of the daemon and servers that
//! do not answer.

use crate::support::{TestHost, eventually};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// An HTTPS server that records heads and bodies of POSTs.
pub(crate) struct Receiver {
    pub(crate) port: u16,
    certificate: String,
    got: Arc<Mutex<Vec<(String, String)>>>,
}

/// The answer of the receiver to the n-th request.
pub(crate) type Behaviour = dyn Fn(usize) -> Reply + Send + Sync;

pub(crate) enum Reply {
    /// Answers with a status.
    Status(u16),
    /// Sends headers until the client gives up.
    EndlessHeaders,
    /// Says nothing until the client gives up.
    Silence,
}

impl Receiver {
    fn start(ca_file: &Path, behaviour: Box<Behaviour>) -> Self {
        let receiver = Self::new(behaviour);
        fs::write(ca_file, receiver.certificate()).unwrap();
        receiver
    }

    pub(crate) fn new(behaviour: Box<Behaviour>) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = made.cert.pem();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let tls = Arc::new(builder.with_single_cert(vec![made.cert.der().clone()], key).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let got: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let (record, behaviour, count) = (Arc::clone(&got), Arc::<Behaviour>::from(behaviour), Arc::new(AtomicUsize::new(0)));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (tls, record) = (Arc::clone(&tls), Arc::clone(&record));
                let (behaviour, count) = (Arc::clone(&behaviour), Arc::clone(&count));
                thread::spawn(move || serve(stream, tls, &record, &*behaviour, &count));
            }
        });
        Self { port, certificate, got }
    }

    /// The certificate, which is its own authority.
    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    pub(crate) fn got(&self) -> Vec<(String, String)> {
        self.got.lock().unwrap().clone()
    }
}

/// A client that gives up is no error.
fn serve(
    stream: TcpStream,
    tls: Arc<ServerConfig>,
    record: &Mutex<Vec<(String, String)>>,
    behaviour: &Behaviour,
    count: &AtomicUsize,
) -> Option<()> {
    let mut stream = StreamOwned::new(ServerConnection::new(tls).ok()?, stream);
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    match behaviour(count.fetch_add(1, Ordering::SeqCst)) {
        Reply::Status(status) => {
            record.lock().unwrap().push((format!("{status} {head}"), String::from_utf8(body).unwrap()));
            stream.write_all(format!("HTTP/1.1 {status} X\r\nContent-Length: 4\r\n\r\nsaid").as_bytes()).ok()?;
            stream.flush().ok()?;
        }
        Reply::EndlessHeaders => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n").ok()?;
            loop {
                stream.write_all(b"X-More: more and more and more\r\n").ok()?;
            }
        }
        Reply::Silence => {
            stream.read_exact(&mut byte).ok()?;
        }
    }
    Some(())
}

pub(crate) fn pod(command: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    - name: main\n      \
         image: localhost/busybox:1\n      command: [sh, -c, '{command}']\n"
    )
}

/// A host with hooks; `hooks` are the items of the list.
fn host_with(hooks: &str) -> TestHost {
    let host = TestHost::prepare("");
    let file = host.path("config.yaml");
    let config = fs::read_to_string(&file).unwrap();
    let notify = format!("notify: {{failingAfterSeconds: 1, recoveredAfterSeconds: 1, hooks: [{hooks}]}}\n");
    fs::write(file, config + &notify).unwrap();
    host
}

/// Waits for so many accepted notifications. One that a killed daemon was sending comes again with its ID, and counts once.
fn wait_accepted(receiver: &Receiver, number: usize) -> Vec<Value> {
    eventually(&format!("{number} notifications"), || {
        let got = receiver.got();
        let mut accepted: Vec<Value> =
            got.iter().filter(|(head, _)| head.starts_with("200 ")).map(|(_, body)| serde_json::from_str(body).unwrap()).collect();
        accepted.dedup_by(|second, first| second["id"] == first["id"]);
        if accepted.len() >= number { Ok(accepted) } else { Err(format!("{got:#?}")) }
    })
}

#[test]
fn failing_pod_and_recovery_are_notified_once() {
    let mut host = host_with("");
    let ca = host.path("ca.pem");
    let receiver = Receiver::start(&ca, Box::new(|_| Reply::Status(200)));
    fs::write(host.path("token"), "s3cret\n").unwrap();
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    let hook = format!(
        "{{name: chat, on: [pod], http: {{url: 'https://localhost:{}/hook', caFile: {}, tokenFile: {}}}}}",
        receiver.port,
        ca.display(),
        host.path("token").display()
    );
    // The first body is the default one.
    fs::write(host.path("config.yaml"), config.replace("hooks: []", &format!("hooks: [{hook}]"))).unwrap();
    host.start_daemon();
    host.write_manifest("web.yaml", &pod("exit 3"));
    let notices = wait_accepted(&receiver, 1);
    assert_eq!((&notices[0]["state"], &notices[0]["object"]), (&"failing".into(), &"pod default/web-edge-1".into()), "{notices:?}");
    assert_eq!(notices[0]["source"], "manifests");
    assert!(receiver.got()[0].0.contains("\r\nauthorization: bearer s3cret\r\n"));
    host.kill_daemon();
    host.start_daemon();
    host.write_manifest("web.yaml", &pod("exec sleep 1000000"));
    let notices = wait_accepted(&receiver, 2);
    assert_eq!(notices[1]["state"], "recovered");
    host.kill_daemon();
    host.start_daemon();
    host.write_manifest("web.yaml", &pod("exit 4"));
    let notices = wait_accepted(&receiver, 3);
    let states: Vec<&str> = notices.iter().map(|notice| notice["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["failing", "recovered", "failing"]);
}

#[test]
fn hostile_receivers_delay_and_lose_nothing() {
    let mut host = host_with("");
    let ca = host.path("ca.pem");
    let behaviour = |count| match count {
        0 => Reply::EndlessHeaders,
        1 => Reply::Silence,
        2 => Reply::Status(503),
        _ => Reply::Status(200),
    };
    let receiver = Receiver::start(&ca, Box::new(behaviour));
    fs::write(host.path("url"), format!("https://localhost:{}/secret\n", receiver.port)).unwrap();
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    let body = r#"{"text": "{summary}", "id": "{id}", "state": "{state}"}"#;
    let hook = format!(
        "{{name: chat, on: [revision], timeoutSeconds: 1, http: {{urlFile: {}, caFile: {}, body: '{body}'}}}}",
        host.path("url").display(),
        ca.display()
    );
    fs::write(host.path("config.yaml"), config.replace("hooks: []", &format!("hooks: [{hook}]"))).unwrap();
    host.start_daemon();
    host.write_manifest("web.yaml", &pod("exec sleep 1000000").replace("containers:", "hostNetwrok: true\n  containers:"));
    eventually("a refused attempt", || match receiver.got().first() {
        Some((head, _)) if head.starts_with("503 ") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    // What was not delivered outlives the daemon, which tries at once when it comes back.
    host.kill_daemon();
    host.start_daemon();
    let notices = wait_accepted(&receiver, 1);
    assert!(notices[0]["text"].as_str().unwrap().contains("hostNetwrok"), "{notices:?}");
    let refused: Value = serde_json::from_str(&receiver.got()[0].1).unwrap();
    assert_eq!(refused["id"], notices[0]["id"], "it is the same notification");
    assert!(!host.daemon_log().contains("/secret"), "the URL is a secret");
}

#[test]
fn command_hears_of_rejected_revision() {
    let mut host = host_with("");
    let (program, out) = (host.path("tell"), host.path("out"));
    fs::write(&program, format!("#!/bin/sh\necho \"$@\" >>{0}\ncat >>{0}\n", out.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    let hook = format!("{{name: ops, command: [{}, '{{state}}', '$(id) {{object}}']}}", program.display());
    host.start_daemon();
    host.write_manifest("web.yaml", &pod("exec sleep 1000000").replace("containers:", "hostNetwrok: true\n  containers:"));
    // It counts without a restart.
    fs::write(host.path("config.yaml"), config.replace("hooks: []", &format!("hooks: [{hook}]"))).unwrap();
    let told = |words: &str| {
        eventually(words, || {
            let text = fs::read_to_string(&out).unwrap_or_default();
            if text.contains(words) { Ok(text) } else { Err(format!("{text}\n{}", host.daemon_log())) }
        })
    };
    told("failing $(id) revision manifests\n{");
    host.write_manifest("web.yaml", &pod("exec sleep 1000000"));
    let text = told("recovered $(id) revision manifests\n{");
    assert_eq!(text.matches("failing $(id)").count(), 1, "{text}");
}
