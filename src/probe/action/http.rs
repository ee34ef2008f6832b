//! An HTTP request: HTTP/1.1, one connection for each, redirects within the host only.

use super::connect::{PodAddress, authority, connect};
use super::request::HttpGet;
use super::{KUBERNETES_VERSION, OUTPUT_LIMIT, tls};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
pub use hyper::header::HeaderValue;
use hyper::header::{ACCEPT, CONNECTION, HOST, HeaderMap, HeaderName, LOCATION, USER_AGENT};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use podstead_telemetry::error_chain;
use reqwest::Url;
use std::pin::pin;
use tokio::io::{AsyncRead, AsyncWrite};

/// More redirects than this are a failure, as with Go's client.
const MOST_REDIRECTS: usize = 10;
/// More bytes of headers than this are a failure.
const HEADER_LIMIT: usize = 64 * 1024;

/// Response of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Status code.
    pub status: u16,
    /// The body, cut at [`OUTPUT_LIMIT`].
    pub body: String,
}

/// The asker, as the user agent names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// `kube-probe/...`.
    Probe,
    /// `kube-lifecycle/...`.
    Hook,
}

impl Asker {
    /// The user agent. The kubelet's name, since programs and their access logs look for it.
    pub fn user_agent(self) -> String {
        match self {
            Asker::Probe => format!("kube-probe/{KUBERNETES_VERSION}"),
            Asker::Hook => format!("kube-lifecycle/{KUBERNETES_VERSION}"),
        }
    }
}

/// Asks, and follows redirects to the same host. The answer to the last request is the answer, whatever its status. The error says, in
/// the kubelet's words, why there is none.
pub async fn get(pod: &PodAddress, request: &HttpGet, asker: Asker) -> Result<HttpAnswer, String> {
    let host = request.host.clone().unwrap_or_else(|| pod.ip().to_string());
    let first = url(request, &host)?;
    let headers = headers(request, asker)?;
    let mut at = first.clone();
    for turn in 0..=MOST_REDIRECTS {
        let failed = |reason: String| format!("Get \"{at}\": {reason}");
        let response = ask(pod, request, &at, headers.clone(), turn == 0).await.map_err(failed)?;
        match response.next {
            Some(next) if next.host_str() == first.host_str() => at = next,
            Some(_) | None => return Ok(response.answer),
        }
    }
    Err(format!("Get \"{at}\": stopped after {MOST_REDIRECTS} redirects"))
}

/// One request of possibly several.
struct Answered {
    answer: HttpAnswer,
    /// Target of the redirect.
    next: Option<Url>,
}

async fn ask(pod: &PodAddress, request: &HttpGet, at: &Url, mut headers: HeaderMap, is_first: bool) -> Result<Answered, String> {
    let port = at.port_or_known_default().ok_or("the URL has no port")?;
    let host = at.host_str().unwrap_or_default().trim_matches(['[', ']']);
    if !headers.contains_key(HOST) || !is_first {
        // As Go's client: with the port, even where that is the scheme's own.
        let name = if is_first { authority(host, port) } else { at.authority().to_owned() };
        headers.insert(HOST, HeaderValue::from_str(&name).map_err(|error| error.to_string())?);
    }
    let mut message = Request::new(Empty::<Bytes>::new());
    *message.uri_mut() = target(at)?;
    *message.headers_mut() = headers;
    let stream = connect(pod, request.host.as_deref(), port).await?;
    if at.scheme() == "https" {
        exchange(tls::wrap(stream, host).await?, message, at).await
    } else {
        exchange(stream, message, at).await
    }
}

async fn exchange<S>(stream: S, message: Request<Empty<Bytes>>, at: &Url) -> Result<Answered, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = hyper::client::conn::http1::Builder::new();
    builder.max_buf_size(HEADER_LIMIT);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|error| said(&error))?;
    let mut connection = pin!(connection);
    let mut talk = pin!(async {
        let response = sender.send_request(message).await.map_err(|error| said(&error))?;
        let next = next(&response, at);
        let status = response.status().as_u16();
        Ok(Answered { answer: HttpAnswer { status, body: body(response.into_body()).await? }, next })
    });
    tokio::select! {
        // The connection moves the talk on; when it ends first, what it delivered is still to be read.
        _ended = &mut connection => talk.await,
        answered = &mut talk => answered,
    }
}

fn said(error: &hyper::Error) -> String {
    if error.is_incomplete_message() { "EOF".to_owned() } else { error_chain(error).to_string() }
}

async fn body(mut incoming: Incoming) -> Result<String, String> {
    let mut body = Vec::new();
    while body.len() < OUTPUT_LIMIT {
        match incoming.frame().await {
            Some(Ok(frame)) => body.extend_from_slice(frame.data_ref().map_or(&[], |bytes| bytes.as_ref())),
            Some(Err(error)) => return Err(said(&error)),
            None => break,
        }
    }
    Ok(super::bounded_text(&body))
}

/// The place that a redirect names. A redirect without one is an answer like any other.
fn next(response: &Response<Incoming>, at: &Url) -> Option<Url> {
    match response.status() {
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::SEE_OTHER
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => {
            let location = response.headers().get(LOCATION)?.to_str().ok()?;
            at.join(location).ok().filter(|next| matches!(next.scheme(), "http" | "https"))
        }
        _ => None,
    }
}

/// The URL as the kubelet builds it: the path may carry a query.
fn url(request: &HttpGet, host: &str) -> Result<Url, String> {
    let scheme = if request.is_tls { "https" } else { "http" };
    let slash = if request.path.starts_with('/') { "" } else { "/" };
    let text = format!("{scheme}://{}{slash}{}", authority(host, request.port), request.path);
    Url::parse(&text).map_err(|error| format!("parse {text:?}: {error}"))
}

/// Path and query, as the request line has them.
fn target(at: &Url) -> Result<hyper::Uri, String> {
    let query = at.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{query}", at.path()).parse().map_err(|error| format!("{error}"))
}

/// The headers of the spec, and those that the kubelet adds unless the spec has them. Both of these can be taken away by an empty value.
pub fn headers(request: &HttpGet, asker: Asker) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let bad = |what: &str| format!("header {name:?} has an invalid {what}");
        let (key, value) = (
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("name"))?,
            HeaderValue::from_bytes(value.as_bytes()).map_err(|_| bad("value"))?,
        );
        if key == HOST {
            headers.insert(key, value);
        } else {
            headers.append(key, value);
        }
    }
    for (name, value) in [(USER_AGENT, asker.user_agent()), (ACCEPT, "*/*".to_owned())] {
        match headers.get(&name) {
            Some(own) if own.is_empty() => drop(headers.remove(&name)),
            Some(_) => {}
            None => drop(headers.insert(name, HeaderValue::from_str(&value).map_err(|error| error.to_string())?)),
        }
    }
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(headers)
}
