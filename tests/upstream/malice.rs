//! Answers without end and without measure, as no server gives them that means well.

use crate::wire::Body;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::Response;
use hyper::body::Frame;
use serde_json::json;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Kinds of answers without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malice {
    /// The head of every answer.
    Head,
    /// The body of every answer.
    Body,
    /// The body of every refusal.
    Refusal,
    /// Not long as a text, but once it is read.
    Tree,
    /// Pages of the list.
    Pages,
    /// One line of the watch.
    Line,
    /// Pods that the watch tells of.
    Pods,
}

/// The malice of the moment. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mood {
    malice: Arc<Mutex<Option<Malice>>>,
    answers: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

impl Mood {
    /// From now on; what is being sent ends.
    pub(crate) fn set(&self, malice: Option<Malice>) {
        *self.malice.lock().unwrap() = malice;
        self.answers.store(0, Ordering::SeqCst);
        self.bytes.store(0, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> Option<Malice> {
        *self.malice.lock().unwrap()
    }

    /// Answers that were begun since it was set, and bytes that were sent for them.
    pub(crate) fn sent(&self) -> (u64, u64) {
        (self.answers.load(Ordering::SeqCst), self.bytes.load(Ordering::SeqCst))
    }

    fn begin(&self) {
        self.answers.fetch_add(1, Ordering::SeqCst);
    }

    fn count(&self, chunk: &str) {
        self.bytes.fetch_add(chunk.len() as u64, Ordering::SeqCst);
    }

    /// The answer to a request, if there is malice in it.
    pub(crate) fn answer(&self, path: &str, is_watch: bool) -> Option<Response<Body>> {
        let malice = self.get()?;
        let is_list = path == "/api/v1/pods" && !is_watch;
        let (code, begin, chunk): (u16, String, fn(u64) -> String) = match malice {
            // Of connections that are there already.
            Malice::Head => (503, String::new(), |_| String::new()),
            Malice::Body => (200, "{\"kind\": \"".into(), |_| "x".repeat(1 << 16)),
            Malice::Refusal => (403, "{\"kind\": \"Status\", \"message\": \"".into(), |_| "x".repeat(1 << 16)),
            // Just as long as is read.
            Malice::Tree => (200, "{\"items\": [".into(), |number| match number {
                0..64 => "{\"\":0},".repeat((1 << 16) / 7 - 64),
                64 => "0]}".to_owned(),
                _ => String::new(),
            }),
            Malice::Pages if is_list => {
                (200, "{\"metadata\": {\"continue\": \"more\"}, \"items\": [".into(), |number| match number {
                    0..50 => (0..2).fold(String::new(), |text, half| text + &pod(number * 2 + half, 60 << 10) + ","),
                    50 => "{}]}".to_owned(),
                    _ => String::new(),
                })
            }
            Malice::Line if is_watch => (200, "{\"type\": \"ADDED\", \"object\": \"".into(), |_| "x".repeat(1 << 16)),
            Malice::Pods if is_watch => (200, String::new(), |number| {
                (0..20).fold(String::new(), |mut text, part| {
                    let size = if number % 50 == 0 { 100 << 10 } else { 10 };
                    writeln!(text, "{{\"type\": \"ADDED\", \"object\": {}}}", pod(number * 20 + part, size)).unwrap();
                    text
                })
            }),
            Malice::Pages | Malice::Line | Malice::Pods => return None,
        };
        self.begin();
        let mood = self.clone();
        let chunks = stream::unfold((begin, 0), move |(begin, number)| {
            let mood = mood.clone();
            async move {
                let text = begin + &chunk(number);
                mood.count(&text);
                (mood.get() == Some(malice) && !text.is_empty())
                    .then(|| (Ok::<_, Infallible>(Frame::data(Bytes::from(text))), (String::new(), number + 1)))
            }
        });
        let body = StreamBody::new(chunks).boxed_unsync();
        Some(Response::builder().status(code).header("connection", "close").body(body).unwrap())
    }

    /// Answers whatever is asked by a head without end.
    pub(crate) async fn send_head(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        self.begin();
        let mut request = [0; 4096];
        if stream.read(&mut request).await.is_err() || stream.write_all(b"HTTP/1.1 200 OK\r\n").await.is_err() {
            return;
        }
        for number in 0_u64.. {
            let line = format!("x-{number}: {}\r\n", "y".repeat(1 << 10));
            self.count(&line);
            if self.get() != Some(Malice::Head) || stream.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// A pod of the node that nobody has.
fn pod(number: u64, size: usize) -> String {
    json!({
        "metadata": {"name": format!("invented-{number}"), "namespace": "default", "uid": format!("i-{number}"), "resourceVersion": "1"},
        "spec": {"nodeName": "edge-1", "containers": [{"name": "c", "args": ["y".repeat(size / 2)]}]},
        "status": {"phase": "Running", "message": "x".repeat(size / 2)},
    })
    .to_string()
}
