//! HTTP requests against a server that writes down what it was asked.

use super::OUTPUT_LIMIT;
use super::connect::PodAddress;
use super::http::{Asker, HttpAnswer, get};
use super::request::HttpGet;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Answers each connection with what `answer` says for its request.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(tls: bool, answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((LOCAL, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let acceptor = tls.then(acceptor);
        let record = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                match &acceptor {
                    Some(acceptor) => serve(acceptor.accept(stream).await.unwrap(), &record, &answer).await,
                    None => serve(stream, &record, &answer).await,
                }
            }
        });
        Self { port, asked, task }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn request(&self) -> HttpGet {
        HttpGet { is_tls: false, host: None, port: self.port, path: "/healthz?full=1".to_owned(), headers: Vec::new() }
    }
}

fn acceptor() -> tokio_rustls::TlsAcceptor {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["nobody.example".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    Arc::new(config).into()
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, asked: &Mutex<Vec<String>>, answer: &impl Fn(&str) -> Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let answer = answer(&head);
    asked.lock().unwrap().push(head);
    // The asker may have heard enough.
    let _gone = stream.write_all(&answer).await;
    let _gone = stream.shutdown().await;
}

fn answer(status: u16, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

async fn ask(request: &HttpGet) -> Result<HttpAnswer, String> {
    let pod = PodAddress::new(&[LOCAL], None);
    let asking = get(&pod, request, Asker::Probe);
    tokio::time::timeout(Duration::from_secs(30), asking).await.unwrap()
}

#[tokio::test]
async fn a_request_has_the_kubelets_headers() {
    let server = Server::start(false, |_| answer(200, "", "fine")).await;
    assert_eq!(ask(&server.request()).await, Ok(HttpAnswer { status: 200, body: "fine".to_owned() }));
    let asked = server.asked().remove(0);
    assert!(asked.starts_with("GET /healthz?full=1 HTTP/1.1\r\n"), "{asked}");
    for line in [format!("host: 127.0.0.1:{}", server.port), "user-agent: kube-probe/1.36".to_owned(), "accept: */*".to_owned()] {
        assert!(asked.to_lowercase().contains(&format!("{line}\r\n")), "{line} in {asked}");
    }
    assert!(asked.contains("connection: close\r\n"), "{asked}");
}

#[tokio::test]
async fn headers_of_the_spec_replace_those_and_empty_ones_take_them_away() {
    let server = Server::start(false, |_| answer(200, "", "")).await;
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = vec![
        header("Host", "shop.example"),
        header("User-Agent", ""),
        header("Accept", "text/plain"),
        header("X-A", "1"),
        header("X-A", "2"),
    ];
    ask(&HttpGet { headers, ..server.request() }).await.unwrap();
    let asked = server.asked().remove(0);
    assert!(asked.contains("host: shop.example\r\n") && asked.contains("accept: text/plain\r\n"), "{asked}");
    assert!(asked.contains("x-a: 1\r\n") && asked.contains("x-a: 2\r\n") && !asked.contains("user-agent"), "{asked}");
    let bad = ask(&HttpGet { headers: vec![header("a b", "")], ..server.request() }).await.unwrap_err();
    assert_eq!(bad, "header \"a b\" has an invalid name");
}

#[tokio::test]
async fn any_certificate_will_do() {
    let server = Server::start(true, |_| answer(204, "", "")).await;
    assert_eq!(ask(&HttpGet { is_tls: true, ..server.request() }).await.unwrap().status, 204);
    let plain = Server::start(false, |_| answer(200, "", "")).await;
    // The server reads until the end of a head, which does not come in a greeting of TLS: the deadline of the asker has to end that.
    let request = HttpGet { is_tls: true, ..plain.request() };
    let pod = PodAddress::new(&[LOCAL], None);
    assert_eq!(super::within(Duration::from_millis(300), get(&pod, &request, Asker::Probe)).await, None);
}

#[tokio::test]
async fn redirects_are_followed_within_the_host_only() {
    let server = Server::start(false, |head| match head.split(' ').nth(1).unwrap() {
        "/healthz?full=1" => answer(302, "Location: /b\r\n", ""),
        "/b" => answer(307, "Location: c?d\r\n", ""),
        "/c?d" => answer(200, "", "arrived"),
        "/out" => answer(301, "Location: http://elsewhere.example/\r\n", "moved"),
        "/none" => answer(302, "", "nowhere"),
        _ => answer(302, "Location: /round\r\n", ""),
    })
    .await;
    let to = |path: &str| HttpGet { path: path.to_owned(), ..server.request() };
    assert_eq!(ask(&server.request()).await.unwrap().body, "arrived");
    assert_eq!(server.asked().len(), 3);
    assert_eq!(ask(&to("/out")).await, Ok(HttpAnswer { status: 301, body: "moved".to_owned() }));
    assert_eq!(ask(&to("none")).await, Ok(HttpAnswer { status: 302, body: "nowhere".to_owned() }));
    assert!(ask(&to("/round")).await.unwrap_err().ends_with("stopped after 10 redirects"));
    assert_eq!(server.asked().len(), 3 + 2 + 11);
}

#[tokio::test]
async fn a_body_is_cut_and_a_status_is_an_answer() {
    let server = Server::start(false, |_| answer(500, "", &"x".repeat(3 * OUTPUT_LIMIT))).await;
    let said = ask(&server.request()).await.unwrap();
    assert_eq!((said.status, said.body.len()), (500, OUTPUT_LIMIT));
}

#[tokio::test]
async fn no_answer_says_why() {
    let server = Server::start(false, |_| Vec::new()).await;
    let port = server.port;
    let url = format!("http://127.0.0.1:{port}/healthz?full=1");
    assert_eq!(ask(&server.request()).await, Err(format!("Get \"{url}\": EOF")));
    let request = server.request();
    drop(server);
    // The task that held the port ends when it is next polled.
    tokio::task::yield_now().await;
    let expected = format!("Get \"{url}\": dial tcp 127.0.0.1:{port}: connect: connection refused");
    assert_eq!(ask(&request).await, Err(expected));
    let garbled = Server::start(false, |_| b"SSH-2.0-x\r\n\r\n".to_vec()).await;
    let error = ask(&garbled.request()).await.unwrap_err();
    assert!(error.contains("invalid HTTP version"), "{error}");
}
