//! The HTTP client of sources. Requests are sent by a process without rights, one for each poll ([`podstead_fetch`]).
//!
//! * Files of certificates and credentials are read for each request, so that rotated ones are found.
//! * Redirects are followed here, and led to by another process: credentials, configured headers and the client certificate go to the configured
//!   origin (scheme, host and port) and to no other, nor there again after another one; nothing leads from https to http, nor to addresses
//!   of this host or its link unless the origin itself is there.
//! * Every body has a limit, compressed and not, and every request a time limit as a whole. Half a body is an error.
//! * No error shows what a URL has behind its path, nor any header.

mod answer;
mod built;
mod error;
mod shown;

pub use answer::HttpAnswer;
pub use error::HttpError;
pub use shown::shown;

use super::credentials::{AuthFiles, CredentialFiles};
use bytes::Bytes;
use podstead_fetch::{Request, Requester, Session};
use podstead_outbound::{AddressGuard, Failure};
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Method, StatusCode, Url};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// As browsers and Go's client do.
const MAX_REDIRECTS: usize = 10;

/// Credentials, proxy and TLS settings of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpAccess {
    /// Sent to the configured origin.
    pub credentials: CredentialFiles,
    /// An http or https proxy, without credentials. `None`: what the environment names (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`).
    pub proxy: Option<Url>,
    /// Sent to that proxy only.
    pub proxy_auth: Option<AuthFiles>,
    /// PEM file with the only certificate authorities to trust. `None`: those of the host.
    pub ca_file: Option<PathBuf>,
    /// PEM files with client certificate and private key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// GET or POST.
    pub method: Method,
    /// The URL.
    pub url: Url,
    /// Beside the credentials, which are added to these; sent to every host on the way.
    pub headers: HeaderMap,
    /// A redirect of another server led to the URL earlier: no credentials are sent, and no local address is reached.
    pub is_led: bool,
    /// The body.
    pub body: Bytes,
    /// Largest body of an answer that is compressed with gzip, compressed and not: such a one comes decompressed, by the process that asks.
    pub unpack: Option<u64>,
    /// For everything: connection, redirects, the whole answer.
    pub timeout: Duration,
}

impl HttpRequest {
    /// A GET.
    pub fn get(url: Url, timeout: Duration) -> Self {
        let (headers, body) = (HeaderMap::new(), Bytes::new());
        Self { method: Method::GET, url, headers, is_led: false, body, unpack: None, timeout }
    }
}

/// Time after a poll for which its processes and their connections stay, for one that follows at once.
const LINGER: Duration = Duration::from_secs(10);

/// The session of the present poll, or of the last one.
#[derive(Debug, Default)]
struct Kept {
    session: Option<Session>,
    /// Requests so far.
    uses: u64,
}

/// A client for one source. Connections are kept for a moment after [`Self::rest`].
#[derive(Debug)]
pub struct HttpClient {
    access: HttpAccess,
    requester: Requester,
    kept: Arc<Mutex<Kept>>,
    /// Addresses that redirects may lead to.
    guard: AddressGuard,
}

impl HttpClient {
    /// A client whose requests `requester` sends. Nothing is read before the first one.
    pub fn new(access: HttpAccess, requester: Requester) -> Self {
        let guard = AddressGuard::new(built::proxy_hosts(&access));
        Self { access, requester, kept: Arc::default(), guard }
    }

    /// Ends the connections, and the processes that have them, unless another request comes within 10 s: to be called at the end of each poll, in a
    /// runtime of tokio. Answers that are being read go on.
    pub fn rest(&self) {
        let (kept, uses) = (Arc::downgrade(&self.kept), lock(&self.kept).uses);
        tokio::spawn(async move {
            tokio::time::sleep(LINGER).await;
            let Some(kept) = kept.upgrade() else { return };
            let mut kept = lock(&kept);
            if kept.uses == uses {
                kept.session = None;
            }
        });
    }

    fn session(&self) -> Session {
        let mut kept = lock(&self.kept);
        kept.uses += 1;
        kept.session.get_or_insert_with(|| self.requester.session()).clone()
    }

    /// Sends a request and follows redirects. The answer may have any status that is no redirect.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpAnswer, HttpError> {
        let deadline = Instant::now() + request.timeout;
        let session = self.session();
        let credentials = self.access.credentials.read().map_err(HttpError::Credentials)?;
        let (origin, mut url) = (request.url.origin(), request.url.clone());
        let mut at_home = !request.is_led;
        for _ in 0..=MAX_REDIRECTS {
            // Once another host has led somewhere, the place is that host's choice, be it at the origin again.
            at_home &= url.origin() == origin;
            let mut headers = request.headers.clone();
            if at_home {
                headers.extend(credentials.clone());
            } else {
                self.guard.check(&url).map_err(|error| HttpError::forbidden(&url, error))?;
            }
            let setup = built::setup(&self.access, &url, !at_home)?;
            let ask = || {
                session.send(
                    &setup,
                    Request {
                        method: request.method.clone(),
                        url: url.clone(),
                        headers: headers.clone(),
                        body: request.body.clone(),
                        unpack: request.unpack,
                        timeout: Some(deadline.saturating_duration_since(Instant::now())),
                        homes: self.guard.homes(),
                    },
                )
            };
            let mut sent = ask().await;
            // A kept connection may be closed by the server the moment it is used again: asking once more changes nothing there.
            if request.method == Method::GET && matches!(sent, Err(Failure::Broken(_))) {
                sent = ask().await;
            }
            let response = sent.map_err(|failure| HttpError::on_the_way(&url, failure))?;
            if let (true, Some(address)) = (at_home, response.remote_addr()) {
                self.guard.learn(&url, address.ip());
            }
            match redirect(&request.method, &url, response.status(), response.headers())? {
                Some(next) => url = next,
                None => return Ok(HttpAnswer::new(url, !at_home, request.unpack.is_some(), response)),
            }
        }
        Err(HttpError::Redirect { url: shown(&request.url), reason: format!("more than {MAX_REDIRECTS} redirects") })
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the target of a redirect; `None` for any other response.
fn redirect(method: &Method, url: &Url, status: StatusCode, headers: &HeaderMap) -> Result<Option<Url>, HttpError> {
    let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let of_get = matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER);
    if !keeps_method && !of_get {
        return Ok(None);
    }
    let refused = |reason: String| HttpError::Redirect { url: shown(url), reason };
    if of_get && *method != Method::GET {
        return Err(refused(format!("redirect of a {method} request with {status} is not followed")));
    }
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let location = location.ok_or_else(|| refused("redirect without a location".into()))?;
    let next = url.join(location).map_err(|_| refused("redirect to an invalid URL".into()))?;
    match (url.scheme(), next.scheme()) {
        ("http", "http" | "https") | ("https", "https") => Ok(Some(next)),
        (_, "http") => Err(refused(format!("redirect from https to http is not followed ({})", shown(&next)))),
        (_, other) => Err(refused(format!("redirect to a URL with scheme {other:?} is not followed"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn lead(method: Method, from: &str, status: u16, location: Option<&str>) -> Result<Option<String>, String> {
        let mut headers = HeaderMap::new();
        if let Some(location) = location {
            headers.insert(LOCATION, location.parse().unwrap());
        }
        redirect(&method, &url(from), StatusCode::from_u16(status).unwrap(), &headers)
            .map(|next| next.map(|next| next.to_string()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn redirects_lead_on_but_never_out_of_https() {
        let get = |from: &str, status, location| lead(Method::GET, from, status, Some(location));
        assert_eq!(get("https://a/x/y", 302, "z"), Ok(Some("https://a/x/z".into())));
        assert_eq!(get("http://a/x", 301, "https://b/"), Ok(Some("https://b/".into())));
        assert_eq!(get("https://a/x", 200, "z"), Ok(None));
        assert_eq!(get("https://a/x", 304, "z"), Ok(None));
        assert!(get("https://a/x", 302, "http://a/x?token=t").unwrap_err().ends_with("to http is not followed (http://a/x)"));
        assert!(get("https://a/x", 302, "file:///etc/passwd").is_err());
        assert!(lead(Method::GET, "https://a/x", 302, None).is_err());
        assert!(lead(Method::POST, "https://a/x", 302, Some("/y")).is_err());
        assert_eq!(lead(Method::POST, "https://a/x", 307, Some("/y")), Ok(Some("https://a/y".into())));
    }

    #[test]
    fn a_shown_url_has_nothing_secret() {
        assert_eq!(shown(&url("https://u:p@h:8443/a/b.yaml?sig=1#f")), "https://h:8443/a/b.yaml");
    }
}
