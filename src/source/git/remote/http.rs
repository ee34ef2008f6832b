//! HTTP: a request per question, nothing kept open but connections.

use super::lines::{Chunks, Lines};
use crate::git::error::GitError;
use crate::git::protocol::said;
use crate::http_client::{HttpAccess, HttpAnswer, HttpClient, HttpError, HttpRequest};
use bytes::Bytes;
use podstead_fetch::Requester;
use podstead_outbound::Failure;
use podstead_telemetry::error_chain;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use std::sync::Arc;
use std::time::Duration;

const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";
const REQUEST: &str = "application/x-git-upload-pack-request";
const RESULT: &str = "application/x-git-upload-pack-result";
const LIST: &str = "/info/refs?service=git-upload-pack";

/// The longest that one answer may take, a pack over a slow line included.
const WHOLE_ANSWER: Duration = Duration::from_secs(3600);
/// The most of an error page that is looked at.
const PAGE_MAX: usize = 4 << 10;

/// A repository behind HTTP.
#[derive(Clone, Debug)]
pub(super) struct HttpRemote {
    location: String,
    /// Base URL after redirects.
    base: String,
    /// Redirects led there by another host: it gets no credentials.
    is_led: bool,
    client: Arc<HttpClient>,
    timeout: Duration,
}

impl HttpRemote {
    /// `url`: without a slash at the end.
    pub(super) fn new(url: &str, access: &HttpAccess, requester: &Requester, timeout: Duration) -> Self {
        let client = Arc::new(HttpClient::new(access.clone(), requester.clone()));
        Self { location: url.to_owned(), base: url.to_owned(), is_led: false, client, timeout }
    }

    /// Ends the connections until the next question.
    pub(super) fn rest(&self) {
        self.client.rest();
    }

    /// Asks what the server can do, at the URL as configured.
    pub(super) async fn advertisement(&mut self, limit: u64) -> Result<Lines, GitError> {
        self.base.clone_from(&self.location);
        self.is_led = false;
        let answer = self.ask(Method::GET, LIST, ADVERTISEMENT, true, Bytes::new()).await?;
        // As git does by default, a redirect of the first request is followed for good.
        if let Some(base) = answer.url().as_str().strip_suffix(LIST) {
            base.clone_into(&mut self.base);
            self.is_led = answer.is_led();
        }
        Ok(self.lines(answer, limit))
    }

    /// Asks a question of the protocol. `current`: in version 2.
    pub(super) async fn question(&self, body: Vec<u8>, current: bool, limit: u64) -> Result<Lines, GitError> {
        let answer = self.ask(Method::POST, "/git-upload-pack", RESULT, current, body.into()).await?;
        Ok(self.lines(answer, limit))
    }

    fn lines(&self, answer: HttpAnswer, limit: u64) -> Lines {
        Lines::new(Chunks::Http(Box::new(answer)), self.timeout, limit)
    }

    async fn ask(
        &self,
        method: Method,
        suffix: &str,
        expected: &'static str,
        current: bool,
        body: Bytes,
    ) -> Result<HttpAnswer, GitError> {
        let location = || self.location.clone();
        let parse = |url: &str| Url::parse(url).map_err(|error| GitError::Setup(format!("{}: {error}", self.location)));
        let url = parse(&format!("{}{suffix}", self.base))?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(expected));
        if current {
            headers.insert(HeaderName::from_static("git-protocol"), HeaderValue::from_static("version=2"));
        }
        if method == Method::POST {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(REQUEST));
        }
        let request = HttpRequest { method, url, headers, is_led: self.is_led, body, unpack: None, timeout: WHOLE_ANSWER };
        let answer = match tokio::time::timeout(self.timeout, self.client.send(request)).await {
            Ok(answer) => answer.map_err(|error| explain(location(), &error))?,
            Err(_) => return Err(GitError::Silent { location: location(), after: self.timeout }),
        };
        let kind = content_type(&answer);
        if !answer.status().is_success() {
            return Err(self.refusal(answer).await);
        }
        if kind != expected {
            let what =
                if kind.is_empty() { "no content type".to_owned() } else { format!("content type {:?}", said(kind.as_bytes())) };
            let reason = format!("the response has {what} (captive portal, proxy or login page?)");
            return Err(GitError::NotGit { location: location(), reason });
        }
        Ok(answer)
    }

    async fn refusal(&self, mut answer: HttpAnswer) -> GitError {
        let (status, location, retry_after) = (answer.status(), self.location.clone(), answer.retry_after());
        let elsewhere = match answer.url().as_str().starts_with(&self.location) {
            true => String::new(),
            false => format!(" from {}", answer.url().host_str().unwrap_or("another host")),
        };
        let words = if content_type(&answer) == "text/plain" { self.page(&mut answer).await } else { String::new() };
        let reason = format!("HTTP status {status}{elsewhere}{words}");
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                GitError::Authentication { location, reason }
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => GitError::NotFound { location, reason },
            _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                GitError::Busy { location, reason, retry_after }
            }
            // What nginx says to whoever comes without a client certificate.
            StatusCode::BAD_REQUEST => {
                GitError::Refused { location, reason: format!("{reason} (does the server require a client certificate?)") }
            }
            _ => GitError::Refused { location, reason },
        }
    }

    /// The beginning of a page of plain text.
    async fn page(&self, answer: &mut HttpAnswer) -> String {
        let mut page = Vec::new();
        while page.len() < PAGE_MAX {
            match tokio::time::timeout(self.timeout, answer.chunk()).await {
                Ok(Ok(Some(chunk))) => page.extend_from_slice(&chunk),
                Ok(Ok(None) | Err(_)) | Err(_) => break,
            }
        }
        page.truncate(PAGE_MAX);
        let words = said(&page);
        if words.is_empty() { words } else { format!(": {words}") }
    }
}

/// Converts an error of the HTTP client.
pub(super) fn explain(location: String, error: &HttpError) -> GitError {
    match error {
        HttpError::OnTheWay { failure: Failure::Tls(reason), .. } => GitError::Tls { location, reason: reason.clone() },
        HttpError::OnTheWay { failure, host } => GitError::Unreachable { location, reason: failure.with_host(host) },
        HttpError::Credentials(error) => GitError::Setup(format!("{location}: {}", error_chain(error))),
        HttpError::Tls(_) | HttpError::Setup(_) => GitError::Setup(format!("{location}: {}", error_chain(error))),
        HttpError::Redirect { reason, .. } => GitError::NotGit { location, reason: reason.clone() },
        HttpError::Status { .. } | HttpError::TooLarge { .. } | HttpError::Encoding { .. } => {
            GitError::NotGit { location, reason: error.to_string() }
        }
    }
}

fn content_type(answer: &HttpAnswer) -> String {
    let value = answer.header(CONTENT_TYPE).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
