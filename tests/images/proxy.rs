//! A proxy on loopback before a real registry that spoils answers as a script says, and counts what it sends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Treatment of one request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Pass,
    /// So many bytes of the body, then the end of the connection.
    Cut(u64),
    /// The body at so many bytes per second.
    Drip(u64),
    /// As if no range had been asked for, and so many bytes of that.
    IgnoreRange(u64),
    /// This header of the answer has another value, which `None` removes.
    Header(&'static str, Option<String>),
    /// A status of the proxy's own, with these headers.
    Status(u16, String),
    /// A document of the proxy's own.
    Document(String),
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// Value of `Authorization`; empty without one.
    pub(crate) authorization: String,
    pub(crate) offset: u64,
    /// Of the requests for this path, from 0 on.
    pub(crate) number: usize,
}

type Script = dyn Fn(&Request) -> Act + Send + Sync;

struct Shared {
    upstream: String,
    script: Box<Script>,
    seen: Mutex<Vec<Request>>,
    /// Bytes of bodies of blobs.
    sent: AtomicU64,
}

/// A running proxy.
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    pub(crate) async fn before(upstream: &str, script: impl Fn(&Request) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            upstream: upstream.to_owned(),
            script: Box::new(script),
            seen: Mutex::default(),
            sent: AtomicU64::new(0),
        });
        let serving = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&serving);
                connections.spawn(async move { drop(connection(stream, &shared).await) });
            }
        });
        Self { port, shared, task }
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Requests whose path contains `text`.
    pub(crate) fn seen(&self, text: &str) -> Vec<Request> {
        self.shared.seen.lock().unwrap().iter().filter(|request| request.path.contains(text)).cloned().collect()
    }
}

async fn head_of(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8(head).unwrap())
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| line.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()))
}

fn without(head: &str, name: &str) -> String {
    let is_named = |line: &str| line.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case(name));
    head.lines().filter(|line| !line.is_empty() && !is_named(line)).map(|line| format!("{line}\r\n")).collect()
}

/// One request, answered and closed.
async fn connection(mut client: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut head = head_of(&mut client).await?;
    let path = head.split_whitespace().nth(1).unwrap().to_owned();
    let offset =
        header(&head, "range").map_or(0, |range| range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap());
    let request = {
        let mut seen = shared.seen.lock().unwrap();
        let number = seen.iter().filter(|request| request.path == path).count();
        let authorization = header(&head, "authorization").unwrap_or_default().to_owned();
        let request = Request { path: path.clone(), authorization, offset, number };
        seen.push(request.clone());
        request
    };
    let act = (shared.script)(&request);
    if let Act::Status(status, headers) = &act {
        let answer = format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n");
        return client.write_all(answer.as_bytes()).await;
    }
    if let Act::Document(text) = &act {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len());
        return client.write_all(answer.as_bytes()).await;
    }
    if matches!(act, Act::IgnoreRange(_)) {
        head = without(&head, "range") + "\r\n";
    }
    head = without(&head, "connection") + "Connection: close\r\n\r\n";
    let mut upstream = TcpStream::connect(&shared.upstream).await?;
    upstream.write_all(head.as_bytes()).await?;
    let mut answer = without(&head_of(&mut upstream).await?, "connection") + "Connection: close\r\n";
    if let Act::Header(name, value) = &act {
        answer = without(&answer, name);
        answer += &value.as_ref().map_or(String::new(), |value| format!("{name}: {value}\r\n"));
    }
    client.write_all((answer + "\r\n").as_bytes()).await?;
    let mut left = match act {
        Act::Cut(bytes) | Act::IgnoreRange(bytes) => bytes,
        Act::Pass | Act::Drip(_) | Act::Header(..) | Act::Status(..) | Act::Document(_) => u64::MAX,
    };
    let mut buffer = vec![0; 64 << 10];
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let count = upstream.read(&mut buffer[..most]).await?;
        if count == 0 {
            break;
        }
        client.write_all(&buffer[..count]).await?;
        left -= count as u64;
        if path.contains("/blobs/") {
            shared.sent.fetch_add(count as u64, Ordering::Relaxed);
        }
        if let Act::Drip(rate) = act {
            tokio::time::sleep(Duration::from_secs_f64(count as f64 / rate as f64)).await;
        }
    }
    Ok(())
}
