//! A web server that does everything wrong: the last good set stays, and it is told once.

use crate::following::Following;
use crate::http_server::{Answer, Server, bytes, ok, options, pod};
use podstead::artifact::SourceReport;
use std::io::Write;
use std::time::Duration;

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn raw(text: &str) -> Answer {
    Answer::Bytes(text.as_bytes().to_vec())
}

/// Serves a good body, then `bad`, then the good one and another one.
async fn survives(name: &str, bad: Answer, word: &str) {
    let (server, state) = (Server::start(), tempfile::tempdir().unwrap());
    server.serve("/m.yaml", ok("", &pod("one")));
    server.serve("/loop", raw("HTTP/1.1 302 Found\r\nlocation: /loop\r\ncontent-length: 0\r\n\r\n"));
    server.serve("/login", ok("content-type: text/html\r\n", b"<html>"));
    let mut source = Following::start(crate::http_server::options(&server.url("/m.yaml"), state.path()));
    assert!(source.body().await.contains("one"));
    server.serve("/m.yaml", bad);
    let failure = source.failure().await;
    assert!(failure.contains(word), "{name}: {failure}");
    server.wait_for(4);
    source.silent();
    server.serve("/m.yaml", ok("", &pod("one")));
    source.recovered().await;
    server.serve("/m.yaml", ok("", &pod("two")));
    assert!(source.body().await.contains("two"), "{name}");
}

macro_rules! survives {
    ($($name:ident: $bad:expr, $word:expr;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            survives(stringify!($name), $bad, $word).await;
        }
    )*};
}

survives! {
    an_empty_body: ok("", b""), "is empty";
    a_body_of_blanks: ok("", b"\n \n"), "is empty";
    a_captive_portal: ok("content-type: text/html\r\n", b"<html><body>apiVersion kind</body></html>"), "captive portal";
    a_page_that_says_it_is_yaml: ok("content-type: application/yaml\r\n", b"<!doctype html>apiVersion kind"), "captive portal";
    a_redirect_to_a_login_page: raw("HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\n\r\n"), "captive portal";
    an_error_in_words: ok("content-type: text/plain\r\n", b"Error: backend is down\n"), "no Kubernetes objects";
    an_image: ok("content-type: image/png\r\n", &pod("two")), "\"image/png\"";
    half_a_body_by_its_length: Answer::Bytes([b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n".as_slice(), &pod("two")].concat()), "cut off";
    half_a_chunk: raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\napiVersion: v1\nkind: Pod\n"), "cut off";
    chunks_without_an_end: raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1a\r\napiVersion: v1\nkind: Pod\n \r\n"), "cut off";
    a_body_without_length_that_is_cut_now_and_then: Answer::Turns((0..200).map(|turn| raw(match turn % 2 {
        0 => "HTTP/1.1 200 OK\r\n\r\napiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Pod\n",
        _ => "HTTP/1.1 200 OK\r\n\r\napiVersion: v1\nkind: Pod\n",
    })).collect()), "two responses differ";
    a_server_error: Answer::Bytes(bytes("500 Internal Server Error", "", b"apiVersion kind")), "returned 500";
    a_gateway_error: Answer::Bytes(bytes("502 Bad Gateway", "content-type: text/html\r\n", b"<html>")), "returned 502";
    not_found: Answer::Bytes(bytes("404 Not Found", "", b"")), "returned 404";
    unauthorized: Answer::Bytes(bytes("401 Unauthorized", "", b"")), "credentials are missing";
    no_content: raw("HTTP/1.1 204 No Content\r\n\r\n"), "returned 204";
    a_part: Answer::Bytes(bytes("206 Partial Content", "content-range: bytes 0-3/9\r\n", &pod("two"))), "returned 206";
    not_modified_though_nobody_asked: raw("HTTP/1.1 304 Not Modified\r\n\r\n"), "returned 304";
    an_unknown_encoding: ok("content-encoding: br\r\n", &pod("two")), "\"br\"";
    gzip_that_is_none: ok("content-encoding: gzip\r\n", &pod("two")), "gzip";
    half_a_gzip_stream: ok("content-encoding: gzip\r\n", &gzip(&pod("two"))[..60]), "gzip";
    a_gzip_bomb: ok("content-encoding: gzip\r\n", &gzip(&vec![b'a'; 11 << 20])), "larger than 10485760";
    a_length_above_the_limit: raw("HTTP/1.1 200 OK\r\ncontent-length: 10485761\r\n\r\n"), "larger than 10485760";
    a_body_without_end: Answer::Endless(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(), [b"10000\r\n".as_slice(), &[b'a'; 65536], b"\r\n"].concat()), "larger than 10485760";
    a_redirect_loop: raw("HTTP/1.1 302 Found\r\nlocation: /loop\r\ncontent-length: 0\r\n\r\n"), "more than 10 redirects";
    a_redirect_to_nowhere: raw("HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n"), "redirect without a location";
    a_redirect_to_a_file: raw("HTTP/1.1 302 Found\r\nlocation: file:///etc/hostname\r\ncontent-length: 0\r\n\r\n"), "scheme \"file\"";
    a_closed_connection: raw(""), "cut off";
    something_that_is_not_http: raw("SSH-2.0-OpenSSH_9.2\r\n\r\n"), "cut off";
}

/// As [`survives`], with little time.
async fn stalls(bad: Answer) {
    let (server, state) = (Server::start(), tempfile::tempdir().unwrap());
    server.serve("/m.yaml", ok("", &pod("one")));
    let mut options = options(&server.url("/m.yaml"), state.path());
    options.timeout = Duration::from_millis(300);
    let mut source = Following::start(options);
    // A machine that is busy may not answer in so little time.
    while matches!(source.next().await, SourceReport::Failed(_)) {}
    server.serve("/m.yaml", bad);
    assert!(source.failure().await.contains("stopped responding"));
    server.wait_for(3);
    source.silent();
    server.serve("/m.yaml", ok("", &pod("one")));
    source.recovered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_accepts_and_says_nothing() {
    stalls(Answer::Stall(Vec::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_in_the_middle() {
    stalls(Answer::Stall(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\napiVersion: v1\nkind:".to_vec())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_server_at_all_and_then_one() {
    let (server, state) = (Server::start(), tempfile::tempdir().unwrap());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut source = Following::start(options(&format!("http://{address}/m.yaml"), state.path()));
    assert!(source.failure().await.contains("cannot connect to 127.0.0.1"));
    server.serve("/m.yaml", ok("", &pod("one")));
    let mut source = Following::start(options(&server.url("/m.yaml"), state.path()));
    assert!(source.body().await.contains("one"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_wants_to_be_left_alone_is_left_alone() {
    let (server, state) = (Server::start(), tempfile::tempdir().unwrap());
    server.serve("/m.yaml", Answer::Bytes(bytes("503 Service Unavailable", "retry-after: 1\r\n", b"")));
    let mut source = Following::start(options(&server.url("/m.yaml"), state.path()));
    assert!(source.failure().await.contains("503"));
    server.wait_for_all(2);
    let times = server.times();
    assert!(times[1] - times[0] >= Duration::from_secs(1), "asked again after {:?}", times[1] - times[0]);
}
