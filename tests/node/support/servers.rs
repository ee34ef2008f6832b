//! Servers in the test's own process that write down what they are asked.

use bytes::Bytes;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A request: when it came, and its head.
pub(crate) type Asked = (Instant, String);

/// The answer of a server to the n-th request (from 0) for a path: a status, after a pause.
pub(crate) type Answer = dyn Fn(&str, usize) -> (u16, Duration) + Send + Sync;

/// An HTTP server, with or without TLS; a TCP server for those that send nothing. Its threads end with it.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    is_over: Arc<AtomicBool>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Server {
    /// Listens on a port of `ip` that the kernel chooses.
    pub(crate) fn start(ip: &str, tls: bool, answer: Box<Answer>) -> Self {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (record, over, answer, tls) = (Arc::clone(&asked), Arc::clone(&is_over), Arc::<Answer>::from(answer), tls.then(config));
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let (record, answer, tls) = (Arc::clone(&record), Arc::clone(&answer), tls.clone());
                        thread::spawn(move || serve(stream, tls, &record, &*answer));
                    }
                    Err(_) => thread::park_timeout(Duration::from_millis(5)),
                }
            }
        });
        Self { address, asked, is_over }
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The requests for a path.
    pub(crate) fn asked_for(&self, path: &str) -> Vec<Asked> {
        let is_it = |(_, head): &Asked| head.split(' ').nth(1) == Some(path);
        self.asked().into_iter().filter(is_it).collect()
    }
}

fn config() -> Arc<ServerConfig> {
    let made = rcgen::generate_simple_self_signed(["nobody.example".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    Arc::new(builder.with_single_cert(vec![made.cert.der().clone()], key).unwrap())
}

fn serve(stream: TcpStream, tls: Option<Arc<ServerConfig>>, record: &Mutex<Vec<Asked>>, answer: &Answer) {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    match tls {
        None => talk(stream, record, answer),
        Some(config) => talk(StreamOwned::new(ServerConnection::new(config).unwrap(), stream), record, answer),
    }
}

fn talk(mut stream: impl Read + Write, record: &Mutex<Vec<Asked>>, answer: &Answer) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or("").to_owned();
    let count = {
        let mut asked = record.lock().unwrap();
        let count = asked.iter().filter(|(_, head)| head.split(' ').nth(1) == Some(path.as_str())).count();
        asked.push((Instant::now(), head));
        count
    };
    let (status, pause) = answer(&path, count);
    thread::sleep(pause);
    // Who asked may have gone.
    let _gone = stream.write_all(format!("HTTP/1.1 {status} X\r\nContent-Length: 4\r\n\r\nsaid").as_bytes());
    let _gone = stream.flush();
}

/// A gRPC health service that serves, and the services that it was asked for.
pub(crate) struct GrpcServer {
    pub(crate) port: u16,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    _runtime: tokio::runtime::Runtime,
}

impl GrpcServer {
    /// Listens on all addresses. `sick` does not serve.
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("0.0.0.0:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&asked);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer_health(stream, Arc::clone(&record)));
            }
        });
        Self { port, asked, _runtime: runtime }
    }
}

async fn answer_health(stream: tokio::net::TcpStream, record: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let mut connection = h2::server::handshake(stream).await.ok()?;
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let record = Arc::clone(&record);
        tokio::spawn(async move {
            let mut body = request.into_body();
            let mut message = Vec::new();
            while let Some(Ok(piece)) = body.data().await {
                message.extend_from_slice(&piece);
            }
            // Behind the frame's head, the field's key and its length.
            let service = String::from_utf8_lossy(message.get(7..).unwrap_or_default()).into_owned();
            let state = if service == "sick" { 2 } else { 1 };
            record.lock().unwrap().push(service);
            let response = hyper::http::Response::builder().header("content-type", "application/grpc").body(()).ok()?;
            let mut stream = respond.send_response(response, false).ok()?;
            stream.send_data(Bytes::from(vec![0, 0, 0, 0, 2, 8, state]), false).ok()?;
            let mut trailers = hyper::http::HeaderMap::new();
            trailers.insert("grpc-status", hyper::http::HeaderValue::from_static("0"));
            stream.send_trailers(trailers).ok()
        });
    }
    Some(())
}
