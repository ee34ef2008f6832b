//! The webhook listener, asked as git hosts ask it and as others do.

use crate::follower::DEADLINE;
use podstead::artifact::Wakers;
use podstead::artifact::wake::{Waker, Wishes};
use podstead::pod::SourceId;
use podstead::source::webhook::{WebhookOptions, serve};
use ring::hmac;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const SECRET: &str = "open sesame";

/// A listener with the sources `web` (https) and `repository` (git over ssh).
struct Hook {
    address: SocketAddr,
    web: Wishes,
    repository: Wishes,
    secret: tempfile::NamedTempFile,
    task: JoinHandle<()>,
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hook {
    async fn start() -> Self {
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), format!("{SECRET}\n")).unwrap();
        let wakers = Wakers::default();
        let add = |name: &str, url: &str| {
            let (waker, wishes) = Waker::new();
            wakers.insert(SourceId::new(name), waker, Some(url.to_owned()));
            wishes
        };
        let (web, repository) = (add("web", "https://config.lan/edge.yaml"), add("repository", "git@git.lan:site/edge.git"));
        let options = WebhookOptions { listen: "127.0.0.1:0".parse().unwrap(), secret_file: secret.path().to_owned() };
        let (sender, address) = oneshot::channel();
        let task = tokio::spawn(async move { match serve(options, wakers, |address| sender.send(address).unwrap()).await {} });
        Self { address: address.await.unwrap(), web, repository, secret, task }
    }

    /// Sends bytes; the status line of the answer, empty for none.
    async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut answer = Vec::new();
        // The server may answer and close before it has read everything.
        stream.write_all(bytes).await.ok();
        let read = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await;
        read.expect("no answer in time").ok();
        String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
    }

    async fn post(&self, path: &str, header: &str, body: &str) -> String {
        let head = format!("POST {path} HTTP/1.1\r\nhost: h\r\n{header}\r\ncontent-length: {}\r\n\r\n", body.len());
        self.raw(format!("{head}{body}").as_bytes()).await
    }
}

fn signed(header: &str, body: &str) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), body.as_bytes());
    format!("{header}{}", hex::encode(tag.as_ref()))
}

async fn woken(wishes: &mut Wishes) -> bool {
    // A wish is there before the answer is.
    let woken = tokio::time::timeout(Duration::ZERO, wishes.next()).await.is_ok();
    wishes.gather(None);
    woken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_git_host_wakes_the_source_that_follows_its_repository() {
    let mut hook = Hook::start().await;
    let github = r#"{"ref":"refs/heads/main","repository":{"clone_url":"https://git.lan/site/edge.git"}}"#;
    let gitlab = r#"{"project":{"git_http_url":"http://git.lan:8080/site/edge.git"}}"#;
    for (header, body) in [
        (signed("x-hub-signature-256: sha256=", github), github),
        (signed("X-Gitea-Signature: ", github), github),
        (signed("x-forgejo-signature: ", github), github),
        (signed("x-podstead-signature: sha256=", github), github),
        (format!("x-gitlab-token: {SECRET}"), gitlab),
    ] {
        assert_eq!(hook.post("/", &header, body).await, "HTTP/1.1 202 Accepted", "{header}");
        assert!(woken(&mut hook.repository).await && !woken(&mut hook.web).await, "{header}");
    }
    let by_path = hook.post("/sources/web", &signed("x-podstead-signature: sha256=", ""), "").await;
    assert_eq!(by_path, "HTTP/1.1 202 Accepted");
    assert!(woken(&mut hook.web).await && !woken(&mut hook.repository).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_know_the_secret_wakes_nothing_and_learns_nothing() {
    let mut hook = Hook::start().await;
    let body = r#"{"repository":{"clone_url":"https://git.lan/site/edge.git"}}"#;
    let good = signed("x-hub-signature-256: sha256=", body);
    for (path, header, body) in [
        ("/", "x-a: b", body),
        ("/", "x-gitlab-token: guess", body),
        ("/", "x-hub-signature-256: sha256=00", body),
        ("/", "x-hub-signature-256: \u{7f}", body),
        ("/", good.as_str(), "{}"),
        ("/sources/web", good.as_str(), ""),
        ("/sources/nothing", "x-gitlab-token: guess", ""),
    ] {
        let status = hook.post(path, header, body).await;
        assert!(status.starts_with("HTTP/1.1 40"), "{header}: {status}");
        assert!(!status.contains("404"), "which sources there are is nobody's business: {status}");
    }
    assert!(!woken(&mut hook.repository).await && !woken(&mut hook.web).await);
    std::fs::write(hook.secret.path(), "rotated").unwrap();
    assert_eq!(hook.post("/", &good, body).await, "HTTP/1.1 401 Unauthorized");
    std::fs::write(hook.secret.path(), "").unwrap();
    assert_eq!(hook.post("/", &good, body).await, "HTTP/1.1 500 Internal Server Error", "an empty secret is none");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_make_no_sense_are_refused() {
    let mut hook = Hook::start().await;
    let other = r#"{"repository":{"clone_url":"https://git.lan/other.git"}}"#;
    assert_eq!(hook.post("/", &signed("x-hub-signature-256: sha256=", other), other).await, "HTTP/1.1 404 Not Found");
    assert_eq!(hook.post("/sources/x", &format!("x-gitlab-token: {SECRET}"), "").await, "HTTP/1.1 404 Not Found");
    assert_eq!(hook.post("/x", &format!("x-gitlab-token: {SECRET}"), "").await, "HTTP/1.1 404 Not Found");
    let ping = format!("x-github-event: ping\r\nx-gitlab-token: {SECRET}");
    assert_eq!(hook.post("/", &ping, "{}").await, "HTTP/1.1 202 Accepted");
    assert_eq!(hook.raw(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n").await, "HTTP/1.1 405 Method Not Allowed");
    assert!(hook.raw(b"\x16\x03\x01\x02\x00\x01\xfc").await.starts_with("HTTP/1.1 400"));
    let large = "x".repeat(3 << 20);
    let status = hook.post("/", &format!("x-gitlab-token: {SECRET}"), &large).await;
    assert!(status.is_empty() || status.contains("413"), "{status}");
    assert!(!woken(&mut hook.repository).await && !woken(&mut hook.web).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_say_nothing_do_not_keep_others_out_for_long() {
    let mut hook = Hook::start().await;
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(TcpStream::connect(hook.address).await.unwrap());
    }
    drop(silent.drain(8..));
    let began = Instant::now();
    let token = format!("x-gitlab-token: {SECRET}");
    assert_eq!(hook.post("/sources/web", &token, "").await, "HTTP/1.1 202 Accepted");
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    assert!(woken(&mut hook.web).await);
}
