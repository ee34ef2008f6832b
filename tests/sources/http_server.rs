//! A web server whose every byte a test decides, and a source that follows it.

use crate::follower::DEADLINE;
use crate::following::Followed;
use crate::support::requester;
use podstead::pod::SourceId;
use podstead::source::PodSource;
use podstead::source::http::{HttpOptions, HttpSource};
use podstead::source::http_client::HttpAccess;
use podstead::sys::machine_key::MachineKey;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Answers to a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// These bytes, then the connection is closed.
    Bytes(Vec<u8>),
    /// These bytes, then nothing for as long as the client waits.
    Stall(Vec<u8>),
    /// These bytes, then more of the others without end.
    Endless(Vec<u8>, Vec<u8>),
    /// One after the other, the last one for ever.
    Turns(Vec<Answer>),
    /// 304 if the request's `If-None-Match` is this tag, else the bytes.
    Tagged(String, Vec<u8>),
}

/// A whole answer with status 200.
pub(crate) fn ok(headers: &str, body: &[u8]) -> Answer {
    Answer::Bytes(bytes("200 OK", headers, body))
}

/// An answer with its length and `headers`, each ended by CRLF.
pub(crate) fn bytes(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// A pod as a body.
pub(crate) fn pod(name: &str) -> Vec<u8> {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, image: i}}]}}\n").into_bytes()
}

#[derive(Debug, Default)]
struct State {
    answers: HashMap<String, Answer>,
    /// Heads of all requests, in lower case.
    requests: Vec<String>,
    /// The times of the requests.
    times: Vec<Instant>,
    stopped: bool,
}

/// Listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<(Mutex<State>, Condvar)>::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                if lock(&shared.0).stopped {
                    return;
                }
                let shared = Arc::clone(&shared);
                // An error means that the client left, as some tests want it.
                std::thread::spawn(move || connection.and_then(|connection| answer(&connection, &shared)).ok());
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn serve(&self, path: &str, answer: Answer) {
        lock(&self.state.0).answers.insert(path.to_owned(), answer);
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        lock(&self.state.0).requests.clone()
    }

    /// The times of all requests.
    pub(crate) fn times(&self) -> Vec<Instant> {
        lock(&self.state.0).times.clone()
    }

    /// Waits until so many requests have come since the server's start.
    pub(crate) fn wait_for_all(&self, wanted: usize) {
        let (mutex, news) = &*self.state;
        let state = lock(mutex);
        let (state, timeout) = news.wait_timeout_while(state, DEADLINE, |state| state.requests.len() < wanted).unwrap();
        let (found, in_time) = (state.requests.len(), !timeout.timed_out());
        drop(state);
        assert!(in_time, "{found} requests, not {wanted}");
    }

    /// Waits until so many more requests have come.
    pub(crate) fn wait_for(&self, more: usize) {
        let wanted = lock(&self.state.0).requests.len() + more;
        self.wait_for_all(wanted);
    }
}

/// Also after a test has failed.
fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Drop for Server {
    fn drop(&mut self) {
        lock(&self.state.0).stopped = true;
        self.state.1.notify_all();
        // Lets the thread that accepts see it.
        TcpStream::connect(self.address).ok();
    }
}

fn answer(mut connection: &TcpStream, shared: &(Mutex<State>, Condvar)) -> std::io::Result<()> {
    let mut head = String::new();
    let mut reader = BufReader::new(connection);
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let answer = {
        let mut state = lock(&shared.0);
        state.requests.push(head.to_lowercase());
        state.times.push(Instant::now());
        let answer = match state.answers.get_mut(&path) {
            Some(Answer::Turns(turns)) if turns.len() > 1 => turns.remove(0),
            Some(Answer::Turns(turns)) => turns[0].clone(),
            Some(answer) => answer.clone(),
            None => Answer::Bytes(bytes("404 Not Found", "", b"")),
        };
        shared.1.notify_all();
        answer
    };
    match answer {
        Answer::Bytes(bytes) => connection.write_all(&bytes),
        Answer::Tagged(tag, body) => {
            let matches = head.to_lowercase().contains(&format!("if-none-match: {tag}\r\n"));
            let header = format!("etag: {tag}\r\n");
            connection.write_all(&match matches {
                true => format!("HTTP/1.1 304 Not Modified\r\n{header}connection: close\r\n\r\n").into_bytes(),
                false => bytes("200 OK", &header, &body),
            })
        }
        Answer::Stall(bytes) => {
            connection.write_all(&bytes)?;
            let state = lock(&shared.0);
            drop(shared.1.wait_timeout_while(state, DEADLINE, |state| !state.stopped).unwrap());
            Ok(())
        }
        Answer::Endless(first, more) => {
            connection.write_all(&first)?;
            loop {
                connection.write_all(&more)?;
            }
        }
        Answer::Turns(_) => panic!("turns within turns"),
    }
}

/// Options that poll quickly.
pub(crate) fn options(url: &str, state: &Path) -> HttpOptions {
    HttpOptions {
        url: url.parse().unwrap(),
        interval: Duration::from_millis(30),
        timeout: Duration::from_secs(10),
        access: HttpAccess::default(),
        signature: None,
        allow_rollback: false,
        state: state.to_owned(),
        machine_key: MachineKey::new([7; 32]),
        requester: requester(),
    }
}

impl Followed for HttpOptions {
    fn source(self) -> impl PodSource {
        HttpSource::new(SourceId::new("web"), self)
    }
}
