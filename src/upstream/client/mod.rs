//! A real API server over HTTPS, as a kubeconfig describes it.
//!
//! In: a kubeconfig and the files that it names. Out: [`Cluster`]. Before every request the files are looked at, and read again when they
//! changed: certificates and tokens are rotated while the daemon runs. Answers are bounded in size, and every wait has a deadline.

mod exec;
mod identity;
pub mod kubeconfig;
mod lines;

pub use identity::IdentityError;
pub use kubeconfig::{Kubeconfig, KubeconfigError};

use super::cluster::{ApiError, ApiRequest, Cluster, Verb, Watch, WatchEvent, WatchKind};
use super::plan::weight::{TreeError, parse};
use async_trait::async_trait;
use identity::Identity;
use lines::Lines;
use podstead_outbound::Failure;
use podstead_telemetry::error_chain;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// More than any object can have that an API server stores.
const MAX_OBJECT: usize = 4 << 20;
/// A page of a list.
const MAX_LIST: usize = 8 << 20;
/// Limit for the body of an error response. A longer one is not read; only its code is reported.
const MAX_REFUSAL: usize = 64 << 10;
/// An object once it is read is a few times as large as its text.
const MAX_OBJECT_WEIGHT: usize = 8 << 20;
/// A page of a list, in the same way.
const MAX_LIST_WEIGHT: usize = 24 << 20;
/// Fields of pods that are not read; they are most of a pod's size.
const UNREAD_OF_PODS: &[&str] = &["managedFields", "spec"];

/// Time limits of requests.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// With a whole request, answer included.
    pub request: Duration,
    /// With the head of the answer to a watch.
    pub watch_start: Duration,
    /// With the next bytes of a watch: a server sends a bookmark about every minute.
    pub watch_silence: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { request: Duration::from_secs(30), watch_start: Duration::from_secs(30), watch_silence: Duration::from_secs(180) }
    }
}

/// The API server of a kubeconfig.
#[derive(Debug)]
pub struct HttpCluster {
    path: PathBuf,
    context: Option<String>,
    patience: Patience,
    current: tokio::sync::Mutex<Current>,
}

#[derive(Debug, Default)]
struct Current {
    identity: Option<Arc<Identity>>,
    /// Error of the last reload, as it was reported.
    told: Option<String>,
}

impl HttpCluster {
    /// The server of the kubeconfig at `path`, which is read when it is needed: it may come later.
    pub fn new(path: &Path, context: Option<&str>) -> Self {
        let (path, context) = (path.to_owned(), context.map(str::to_owned));
        Self { path, context, patience: Patience::default(), current: tokio::sync::Mutex::default() }
    }

    /// The same with another patience.
    pub fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// The current identity, created again if a file changed or it is about to expire.
    async fn identity(&self) -> Result<Arc<Identity>, ApiError> {
        let mut current = self.current.lock().await;
        if let Some(identity) = current.identity.as_ref()
            && identity.is_current()
        {
            return Ok(identity.clone());
        }
        match Identity::load(&self.path, self.context.as_deref()).await {
            Ok(identity) => {
                let identity = Arc::new(identity);
                *current = Current { identity: Some(identity.clone()), told: None };
                Ok(identity)
            }
            // A file that is being replaced: what was there before may still do.
            Err(error) => {
                let why = error_chain(&error).to_string();
                match current.identity.clone() {
                    Some(identity) if !identity.is_expired() => {
                        if current.told.as_ref() != Some(&why) {
                            tracing::warn!(error = %why, "cannot reload the credentials for the cluster; using the previous ones");
                            current.told = Some(why);
                        }
                        Ok(identity)
                    }
                    Some(_) | None => Err(ApiError::Credentials(why)),
                }
            }
        }
    }

    /// Drops credentials that the server has rejected.
    async fn forget(&self, identity: &Arc<Identity>) {
        let mut current = self.current.lock().await;
        if current.identity.as_ref().is_some_and(|current| Arc::ptr_eq(current, identity)) {
            current.identity = None;
        }
    }

    async fn start(&self, request: &ApiRequest, timeout: Option<Duration>) -> Result<Response, ApiError> {
        let identity = self.identity().await?;
        let url = url_of(&identity.server, request)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let method = match request.verb {
            Verb::Get => Method::GET,
            Verb::Create => Method::POST,
            Verb::Replace => Method::PUT,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        };
        let mut builder = identity.client.request(method, url).header(ACCEPT, "application/json");
        if let Some(token) = identity.token.as_ref() {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
                .map_err(|_| ApiError::Credentials("the token has characters that are not allowed in a header".to_owned()))?;
            value.set_sensitive(true);
            builder = builder.header(AUTHORIZATION, value);
        }
        if let Some(body) = &request.body {
            let kind = match request.verb {
                Verb::Patch => "application/strategic-merge-patch+json",
                Verb::Get | Verb::Create | Verb::Replace | Verb::Delete => "application/json",
            };
            builder = builder.header(CONTENT_TYPE, kind).body(body.to_string());
        }
        if let Some(timeout) = timeout {
            builder = builder.timeout(timeout);
        }
        let response = builder.send().await.map_err(|error| unreachable(&host, &error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        if response.status() == StatusCode::UNAUTHORIZED {
            self.forget(&identity).await;
        }
        let code = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let body = read(response, &host, MAX_REFUSAL).await?.unwrap_or_default();
        let status = parse(&body, MAX_OBJECT_WEIGHT, &[]).unwrap_or(Value::Null);
        Err(ApiError::of_status(code, &status, retry_after.map(Duration::from_secs)))
    }
}

/// Most bytes of the answer's text, and of what is made of it.
fn limits(request: &ApiRequest) -> (usize, usize) {
    match request.query.iter().any(|(name, _)| *name == "limit") {
        true => (MAX_LIST, MAX_LIST_WEIGHT),
        false => (MAX_OBJECT, MAX_OBJECT_WEIGHT),
    }
}

/// Fields that are passed over in the answer.
fn unread(request: &ApiRequest) -> &'static [&'static str] {
    if request.path.split('/').any(|part| part == "pods") { UNREAD_OF_PODS } else { &[] }
}

fn unreachable(host: &str, error: &reqwest::Error) -> ApiError {
    ApiError::Unreachable(Failure::of(error).with_host(host))
}

fn url_of(server: &Url, request: &ApiRequest) -> Result<Url, ApiError> {
    let path = format!("{}{}", server.path().trim_end_matches('/'), request.path);
    let mut url = server.clone();
    url.set_path(&path);
    if !request.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&request.query);
    }
    Ok(url)
}

/// The body; `None` if it has more than `most` bytes.
async fn read(mut response: Response, host: &str, most: usize) -> Result<Option<Vec<u8>>, ApiError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(host, &error))? {
        if body.len() + chunk.len() > most {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

#[async_trait]
impl Cluster for HttpCluster {
    async fn send(&self, request: ApiRequest) -> Result<Value, ApiError> {
        let response = self.start(&request, Some(self.patience.request)).await?;
        let host = response.url().host_str().unwrap_or_default().to_owned();
        let (bytes, weight) = limits(&request);
        let strange = |what: String| ApiError::Unreachable(format!("invalid response from {host}: {what}"));
        let body = read(response, &host, bytes).await?.ok_or_else(|| strange(format!("more than {bytes} bytes")))?;
        parse(&body, weight, unread(&request)).map_err(|error| strange(error.to_string()))
    }

    async fn watch(&self, request: ApiRequest) -> Result<Box<dyn Watch>, ApiError> {
        let started = tokio::time::timeout(self.patience.watch_start, self.start(&request, None)).await;
        let response = started.map_err(|_| ApiError::Unreachable("the watch request timed out".to_owned()))??;
        let host = response.url().host_str().unwrap_or_default().to_owned();
        Ok(Box::new(HttpWatch { response, host, lines: Lines::new(MAX_OBJECT), silence: self.patience.watch_silence }))
    }

    async fn address(&self) -> Option<String> {
        self.current.lock().await.identity.as_ref().map(|identity| identity.server.to_string())
    }
}

#[derive(Debug)]
struct HttpWatch {
    response: Response,
    host: String,
    lines: Lines,
    silence: Duration,
}

impl HttpWatch {
    async fn next_line(&mut self) -> Result<Option<Vec<u8>>, ApiError> {
        loop {
            let too_long = |()| ApiError::Unreachable(format!("{} sent a watch event of more than {MAX_OBJECT} bytes", self.host));
            if let Some(line) = self.lines.take().map_err(too_long)? {
                return Ok(Some(line));
            }
            // Nothing is taken out of the connection before the chunk is whole: cancel-safe.
            match tokio::time::timeout(self.silence, self.response.chunk()).await {
                Err(_) => return Err(ApiError::Unreachable(format!("the watch of {} timed out", self.host))),
                Ok(Err(error)) => return Err(unreachable(&self.host, &error)),
                Ok(Ok(None)) => return Ok(None),
                Ok(Ok(Some(chunk))) => self.lines.push(&chunk),
            }
        }
    }
}

#[async_trait]
impl Watch for HttpWatch {
    async fn next(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        match self.next_line().await {
            Ok(line) => Some(event_of(&line?)),
            Err(error) => Some(Err(error)),
        }
    }
}

fn event_of(line: &[u8]) -> Result<WatchEvent, ApiError> {
    // Only pods are watched.
    let mut event = parse(line, MAX_OBJECT_WEIGHT, UNREAD_OF_PODS)
        .map_err(|error: TreeError| ApiError::Unreachable(format!("invalid watch event: {error}")))?;
    let object = event["object"].take();
    let kind = match event["type"].as_str() {
        Some("ADDED" | "MODIFIED") => WatchKind::Present,
        Some("DELETED") => WatchKind::Deleted,
        Some("BOOKMARK") => WatchKind::Bookmark,
        Some("ERROR") => return Err(ApiError::of_status(500, &object, None)),
        Some(_) | None => return Err(ApiError::Unreachable("invalid watch event: unknown type".to_owned())),
    };
    Ok(WatchEvent { kind, object })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_apart_and_an_error_is_the_servers_word() {
        let event = event_of(br#"{"type":"MODIFIED","object":{"metadata":{"name":"a"}}}"#).unwrap();
        assert_eq!((event.kind, &event.object["metadata"]["name"]), (WatchKind::Present, &Value::from("a")));
        let gone = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        assert!(event_of(gone.as_bytes()).unwrap_err().is_expired());
        assert!(matches!(event_of(b"<html>"), Err(ApiError::Unreachable(_))));
        assert!(matches!(event_of(br#"{"type":"NEW","object":{}}"#), Err(ApiError::Unreachable(_))));
    }

    #[test]
    fn a_server_below_a_path_is_asked_below_it() {
        let server = Url::parse("https://lb.lan/clusters/a/").unwrap();
        let request = ApiRequest::new(Verb::Get, "/api/v1/pods").with_query("fieldSelector", "spec.nodeName=edge");
        let expected = "https://lb.lan/clusters/a/api/v1/pods?fieldSelector=spec.nodeName%3Dedge";
        assert_eq!(url_of(&server, &request).unwrap().as_str(), expected);
    }
}
