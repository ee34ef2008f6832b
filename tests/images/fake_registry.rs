//! A registry on loopback that misbehaves on command.

use crate::support::run;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Faults in place of the right answer to a request for a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The connection ends after so many bytes.
    Cut(usize),
    /// The connection stays open and silent after so many bytes.
    Stall(usize),
    /// One byte is another.
    Flip(usize),
    /// The body goes on behind its end.
    TooLong,
    /// A status without a body.
    Status(u16),
    /// Somebody else answers everything with a page of his own.
    Portal,
    /// The whole layer, whatever part was asked for, and then a cut.
    IgnoreRange(usize),
}

/// Ways in which it wants to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    /// User name and password.
    Password,
    /// A token from its token server, which wants user name and password.
    Token,
}

pub(crate) const USER: &str = "me";
pub(crate) const PASSWORD: &str = "open sesame";
const TOKEN: &str = "a-token";

#[derive(Debug)]
struct State {
    port: u16,
    door: Door,
    /// By digest.
    blobs: BTreeMap<String, Vec<u8>>,
    /// Digests of manifests by tag.
    tags: Mutex<BTreeMap<String, String>>,
    config: String,
    faults: Mutex<VecDeque<Fault>>,
    /// Every fault is answered with instead of anything else while this is set.
    broken: Mutex<Option<Fault>>,
    /// Digest of a layer whose requests wait.
    held: watch::Sender<Option<String>>,
    seen: Mutex<Vec<String>>,
    /// Answers to paths, before all others.
    answers: Mutex<BTreeMap<String, Canned>>,
}

/// A prepared answer.
#[derive(Clone, Debug)]
pub(crate) enum Canned {
    /// A status and a body.
    Whole(u16, Vec<u8>),
    /// A body without end.
    Endless,
}

/// A running registry with one image, `app:1`.
pub(crate) struct FakeRegistry {
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

impl FakeRegistry {
    /// Serves the image of an OCI archive.
    pub(crate) async fn serve(archive: &Path, door: Door) -> Self {
        Self::serve_at("127.0.0.1", archive, door).await
    }

    /// As [`FakeRegistry::serve`], at another address than [`FakeRegistry::host`] says.
    pub(crate) async fn serve_at(address: &str, archive: &Path, door: Door) -> Self {
        let directory = tempfile::tempdir().unwrap();
        run(Command::new("tar").arg("-C").arg(directory.path()).arg("-xf").arg(archive));
        let blobs: BTreeMap<String, Vec<u8>> = std::fs::read_dir(directory.path().join("blobs/sha256"))
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (format!("sha256:{}", entry.file_name().to_str().unwrap()), std::fs::read(entry.path()).unwrap()))
            .collect();
        let index: serde_json::Value =
            serde_json::from_slice(&std::fs::read(directory.path().join("index.json")).unwrap()).unwrap();
        let manifest = index["manifests"][0]["digest"].as_str().unwrap().to_owned();
        let parsed: serde_json::Value = serde_json::from_slice(&blobs[&manifest]).unwrap();
        let config = parsed["config"]["digest"].as_str().unwrap().to_owned();
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let state = Arc::new(State {
            port: listener.local_addr().unwrap().port(),
            door,
            blobs,
            tags: Mutex::new([("1".to_owned(), manifest)].into()),
            config,
            faults: Mutex::default(),
            broken: Mutex::default(),
            held: watch::Sender::default(),
            seen: Mutex::default(),
            answers: Mutex::default(),
        });
        let serving = Arc::clone(&state);
        let task = tokio::spawn(async move {
            // Dropped with the task, and then all connections end.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&serving);
                connections.spawn(async move { drop(connection(stream, &state).await) });
            }
        });
        Self { state, task }
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    pub(crate) fn port(&self) -> u16 {
        self.state.port
    }

    pub(crate) fn image(&self) -> String {
        format!("{}/app:1", self.host())
    }

    pub(crate) fn manifest_digest(&self) -> String {
        self.state.tags.lock().unwrap()["1"].clone()
    }

    pub(crate) fn config_digest(&self) -> String {
        self.state.config.clone()
    }

    /// Content by digest.
    pub(crate) fn blob(&self, digest: &str) -> Vec<u8> {
        self.state.blobs[digest].clone()
    }

    /// Digest of a layer, counted from the lowest.
    pub(crate) fn layer_digest(&self, layer: usize) -> String {
        let manifest: serde_json::Value = serde_json::from_slice(&self.state.blobs[&self.manifest_digest()]).unwrap();
        manifest["layers"][layer]["digest"].as_str().unwrap().to_owned()
    }

    /// Requests for this layer wait until they are let through.
    pub(crate) fn hold(&self, digest: &str) {
        self.state.held.send_replace(Some(digest.to_owned()));
    }

    /// No request waits any more.
    pub(crate) fn let_through(&self) {
        self.state.held.send_replace(None);
    }

    /// The next requests for layers go wrong in this way.
    pub(crate) fn faults(&self, faults: &[Fault]) {
        self.state.faults.lock().unwrap().extend(faults);
    }

    /// Nothing goes wrong any more.
    pub(crate) fn no_faults(&self) {
        self.state.faults.lock().unwrap().clear();
    }

    /// Everything goes wrong from now on, or nothing.
    pub(crate) fn broken(&self, fault: Option<Fault>) {
        *self.state.broken.lock().unwrap() = fault;
    }

    /// From now on this path, in lower case, has this answer.
    pub(crate) fn answer(&self, path: &str, answer: Canned) {
        self.state.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// The tag names something that does not fit its digest.
    pub(crate) fn lie_about_manifest(&mut self) {
        let mut tags = self.state.tags.lock().unwrap();
        tags.insert("1".into(), self.state.config.clone());
    }

    /// Requests so far that contain `text`, as `METHOD path` or `METHOD path with credentials`.
    pub(crate) fn seen(&self, text: &str) -> usize {
        self.state.seen.lock().unwrap().iter().filter(|request| request.contains(text)).count()
    }

    /// Nobody listens any more.
    pub(crate) async fn stop(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

async fn connection(mut stream: TcpStream, state: &State) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
            if head == [0x16] {
                // A TLS handshake: answered as HTTP servers do.
                return whole(&mut stream, 400, "", b"", true).await;
            }
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let mut words = head.split_whitespace();
        let (method, path) = (words.next().unwrap().to_uppercase(), words.next().unwrap().to_owned());
        let header = |name: &str| head.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()));
        let with = if header("authorization").is_some() { " with credentials" } else { "" };
        state.seen.lock().unwrap().push(format!("{method} {path}{with}"));
        // Whom a mirror stands in for.
        let path = path.split("?ns=").next().unwrap().to_owned();
        let broken = *state.broken.lock().unwrap();
        match broken {
            Some(Fault::Status(status)) => {
                whole(&mut stream, status, "", b"", true).await?;
                continue;
            }
            Some(Fault::Portal) => {
                whole(&mut stream, 200, "", b"<html>Please log in to the train's network</html>", method != "HEAD").await?;
                continue;
            }
            Some(Fault::Stall(_)) => tokio::time::sleep(Duration::from_secs(3600)).await,
            Some(_) => return Ok(()),
            None => {}
        }
        let authorization = header("authorization");
        if let Some(token) = path.strip_prefix("/token?") {
            assert!(token.contains("scope=repository%3aapp%3apull") && token.contains("service=fake"), "{token}");
            match authorization.as_deref() == Some(&basic()) {
                true => whole(&mut stream, 200, "", format!(r#"{{"token":"{TOKEN}","expires_in":300}}"#).as_bytes(), true).await?,
                false => whole(&mut stream, 401, "", b"", true).await?,
            }
            continue;
        }
        let wanted = match state.door {
            Door::Open => None,
            Door::Password => Some((basic(), "Basic realm=\"fake\"".to_owned())),
            Door::Token => Some((
                format!("bearer {TOKEN}"),
                format!("Bearer realm=\"http://127.0.0.1:{}/token\",service=\"fake\",scope=\"repository:app:pull\"", state.port),
            )),
        };
        if let Some((secret, challenge)) = wanted
            && authorization.map(|value| value.to_lowercase()) != Some(secret.to_lowercase())
        {
            whole(&mut stream, 401, &format!("www-authenticate: {challenge}\r\n"), b"{}", method != "HEAD").await?;
            continue;
        }
        let canned = state.answers.lock().unwrap().get(&path).cloned();
        match canned {
            Some(Canned::Whole(status, body)) => {
                whole(&mut stream, status, "", &body, method != "HEAD").await?;
                continue;
            }
            Some(Canned::Endless) => {
                self::head(&mut stream, 200, "", usize::MAX / 2).await?;
                loop {
                    stream.write_all(&[b' '; 65536]).await?;
                }
            }
            None => {}
        }
        if let Some(name) = path.strip_prefix("/v2/app/manifests/") {
            let tagged = state.tags.lock().unwrap().get(name).cloned();
            let digest = tagged.unwrap_or_else(|| name.to_owned());
            match state.blobs.get(&digest) {
                Some(content) => {
                    let promised = if state.config == digest { format!("sha256:{}", "0".repeat(64)) } else { digest };
                    whole(&mut stream, 200, &format!("docker-content-digest: {promised}\r\n"), content, method != "HEAD").await?;
                }
                None => {
                    let body = br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#;
                    whole(&mut stream, 404, "", body, method != "HEAD").await?;
                }
            }
            continue;
        }
        let content = path.strip_prefix("/v2/app/blobs/").and_then(|digest| Some((digest, state.blobs.get(digest)?)));
        let Some((digest, content)) = content else {
            whole(&mut stream, 404, "", b"{}", true).await?;
            continue;
        };
        let mut held = state.held.subscribe();
        // The sender lives as long as the registry.
        drop(held.wait_for(|held| held.as_deref() != Some(digest)).await.map(drop));
        let offset: usize =
            header("range").map_or(0, |range| range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap());
        let fault = if digest == state.config { None } else { state.faults.lock().unwrap().pop_front() };
        match fault {
            Some(fault) => faulty(&mut stream, fault, content, offset).await?,
            None if offset == 0 => whole(&mut stream, 200, "", content, true).await?,
            None => {
                let range = format!("content-range: bytes {offset}-{}/{}\r\n", content.len() - 1, content.len());
                whole(&mut stream, 206, &range, &content[offset..], true).await?;
            }
        }
    }
}

fn basic() -> String {
    // base64 of "me:open sesame".
    "basic bwu6b3blbibzzxnhbwu=".to_owned()
}

async fn whole(stream: &mut TcpStream, status: u16, headers: &str, body: &[u8], send: bool) -> std::io::Result<()> {
    head(stream, status, headers, body.len()).await?;
    match send {
        true => stream.write_all(body).await,
        false => Ok(()),
    }
}

async fn head(stream: &mut TcpStream, status: u16, headers: &str, length: usize) -> std::io::Result<()> {
    stream.write_all(format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n").as_bytes()).await
}

async fn faulty(stream: &mut TcpStream, fault: Fault, content: &[u8], offset: usize) -> std::io::Result<()> {
    let rest = &content[offset..];
    let (status, range) = match offset {
        0 => (200, String::new()),
        offset => (206, format!("content-range: bytes {offset}-{}/{}\r\n", content.len() - 1, content.len())),
    };
    match fault {
        Fault::Status(status) => whole(stream, status, "", b"", true).await,
        Fault::Portal => whole(stream, status, &range, b"<html>", true).await,
        Fault::Flip(at) => {
            let mut flipped = rest.to_vec();
            let at = at % flipped.len();
            flipped[at] ^= 1;
            whole(stream, status, &range, &flipped, true).await
        }
        Fault::TooLong => whole(stream, status, &range, &[rest, b"more"].concat(), true).await,
        Fault::Cut(after) => {
            head(stream, status, &range, rest.len()).await?;
            stream.write_all(&rest[..after.min(rest.len())]).await?;
            Err(std::io::ErrorKind::ConnectionAborted.into())
        }
        Fault::IgnoreRange(after) => {
            head(stream, 200, "", content.len()).await?;
            stream.write_all(&content[..after.min(content.len())]).await?;
            Err(std::io::ErrorKind::ConnectionAborted.into())
        }
        Fault::Stall(after) => {
            head(stream, status, &range, rest.len()).await?;
            stream.write_all(&rest[..after.min(rest.len())]).await?;
            tokio::time::sleep(Duration::from_secs(3600)).await;
            Ok(())
        }
    }
}
