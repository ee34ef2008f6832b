//! HTTP servers on loopback addresses that do what a case tells them, and write down what they are asked.

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

/// A private certificate authority, and one certificate of it for every server of these cases.
pub(super) struct Authority {
    pub(super) ca: String,
    config: Arc<ServerConfig>,
}

/// Addresses that the servers have.
const NAMES: [&str; 6] = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.9", "localhost"];

pub(super) fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let ca_key = rcgen::KeyPair::generate().unwrap();
        let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = ca.self_signed(&ca_key).unwrap();
        let issuer = rcgen::Issuer::new(ca, ca_key);
        let key = rcgen::KeyPair::generate().unwrap();
        let leaf = rcgen::CertificateParams::new(NAMES.map(str::to_owned)).unwrap().signed_by(&key, &issuer).unwrap();
        let private = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = builder.with_single_cert(vec![CertificateDer::from(leaf.der().to_vec())], private).unwrap();
        Authority { ca: certificate.pem(), config: Arc::new(config) }
    })
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) target: String,
    /// All of its head, in lower case.
    head: String,
    /// The value of `Authorization` as it was sent.
    pub(super) authorization: Option<String>,
}

impl Asked {
    fn parse(head: &str) -> Self {
        let mut words = head.split_whitespace();
        let (method, target) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
        let authorization = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("authorization").then(|| value.trim().to_owned())
        });
        Self { method, target, head: head.to_lowercase(), authorization }
    }

    /// The value of a header, in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
    }

    /// Offset of the requested part of the body.
    pub(super) fn offset(&self) -> usize {
        self.header("range").map_or(0, |range| range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap())
    }
}

/// An answer.
pub(super) enum Reply {
    /// Status, headers without line ends, body.
    Whole(u16, Vec<String>, Vec<u8>),
    /// A body of this length: its first bytes at once, then one byte at a time with a pause before each.
    Drip { body: Vec<u8>, offset: usize, first: usize, pause: Duration },
    /// Headers without an end.
    EndlessHeaders,
}

impl Reply {
    pub(super) fn status(status: u16) -> Self {
        Self::Whole(status, Vec::new(), Vec::new())
    }

    pub(super) fn redirect(to: impl Into<String>) -> Self {
        Self::Whole(307, vec![format!("Location: {}", to.into())], Vec::new())
    }

    pub(super) fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::Whole(200, vec!["Content-Type: application/json".to_owned()], body.into())
    }

    /// 401 with this challenge.
    pub(super) fn challenge(challenge: impl Into<String>) -> Self {
        Self::Whole(401, vec![format!("WWW-Authenticate: {}", challenge.into())], b"{}".to_vec())
    }
}

type Answer = dyn Fn(&Asked) -> Reply + Send + Sync;

/// A server whose threads end with it.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    tls: bool,
    asked: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Server {
    pub(super) fn https(ip: &str, answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(ip, true, Arc::new(answer))
    }

    pub(super) fn http(ip: &str, answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(ip, false, Arc::new(answer))
    }

    fn start(ip: &str, tls: bool, answer: Arc<Answer>) -> Self {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, connections, is_over) =
            (Arc::<Mutex<Vec<Asked>>>::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (record, count, over) = (Arc::clone(&asked), Arc::clone(&connections), Arc::clone(&is_over));
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        count.fetch_add(1, Ordering::Relaxed);
                        let (record, answer, over) = (Arc::clone(&record), Arc::clone(&answer), Arc::clone(&over));
                        // Whoever asked may have gone.
                        thread::spawn(move || drop(serve(stream, tls, &record, &*answer, &over)));
                    }
                    Err(_) => thread::park_timeout(Duration::from_millis(5)),
                }
            }
        });
        Self { address, tls, asked, connections, is_over }
    }

    /// Address and port, as image references name it.
    pub(super) fn host(&self) -> String {
        self.address.to_string()
    }

    /// A URL of this server.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", if self.tls { "https" } else { "http" }, self.address)
    }

    /// All requests so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Requests so far whose target contains `text`.
    pub(super) fn asked_for(&self, text: &str) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.target.contains(text)).collect()
    }

    /// Connections so far, with or without a request.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Values of `Authorization` so far.
    pub(super) fn authorizations(&self) -> Vec<String> {
        self.asked().into_iter().filter_map(|asked| asked.authorization).collect()
    }
}

fn serve(stream: TcpStream, tls: bool, record: &Mutex<Vec<Asked>>, answer: &Answer, over: &AtomicBool) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    match tls {
        false => talk(stream, record, answer, over),
        true => {
            let connection = ServerConnection::new(Arc::clone(&authority().config)).unwrap();
            talk(StreamOwned::new(connection, stream), record, answer, over)
        }
    }
}

fn talk(mut stream: impl Read + Write, record: &Mutex<Vec<Asked>>, answer: &Answer, over: &AtomicBool) -> std::io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let asked = Asked::parse(&String::from_utf8_lossy(&head));
    record.lock().unwrap().push(asked.clone());
    match answer(&asked) {
        Reply::Whole(status, headers, body) => {
            let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
            let length = body.len();
            write!(stream, "HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n")?;
            if asked.method != "HEAD" {
                stream.write_all(&body)?;
            }
        }
        Reply::Drip { body, offset, first, pause } => {
            let rest = &body[offset..];
            let (status, range) = match offset {
                0 => (200, String::new()),
                _ => (206, format!("Content-Range: bytes {offset}-{}/{}\r\n", body.len() - 1, body.len())),
            };
            write!(stream, "HTTP/1.1 {status} X\r\n{range}Content-Length: {}\r\nConnection: close\r\n\r\n", rest.len())?;
            let first = first.min(rest.len());
            stream.write_all(&rest[..first])?;
            stream.flush()?;
            for byte in &rest[first..] {
                thread::sleep(pause);
                if over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                stream.write_all(&[*byte])?;
                stream.flush()?;
            }
        }
        Reply::EndlessHeaders => {
            stream.write_all(b"HTTP/1.1 200 X\r\n")?;
            while !over.load(Ordering::Relaxed) {
                stream.write_all(format!("X-Padding: {}\r\n", "x".repeat(1000)).as_bytes())?;
            }
        }
    }
    stream.flush()
}
