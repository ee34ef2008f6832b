//! The distribution protocol over HTTP: manifests, blobs, and authentication by tokens.

use super::super::answers;
use super::super::document::MANIFEST_MEDIA_TYPES;
use super::super::explain::explain;
use super::super::registry_config::RegistryConfig;
use super::challenge::{self, Challenge};
use super::hosts::{self, Endpoint, Health, Role};
use super::login::{HostLogin, HostLogins, Logins};
use super::origin::{self, RealmRefusal};
use super::token::{self, Token};
use super::transport::{Answer, Outgoing, Transport};
use super::{BlobStream, Caller, Need, Registry, RegistryError, Route, Who};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use jiff::Timestamp;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_fetch::{Requester, Response, Session};
use podstead_runtime::credentials::Credentials;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_RANGE, DATE, HeaderMap, HeaderValue, LINK, RANGE, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Time limit of a whole document, so that no registry can delay a pull byte by byte.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(120);
const MANIFEST_MAX: u64 = 4 << 20;
/// A token is sent in a header, and servers take no more in one.
const TOKEN_MAX: u64 = 64 << 10;
const ERROR_MAX: u64 = 16 << 10;
/// Maximum length of a registry's message that is repeated.
const SAID_MAX: usize = 200;
/// Tags that a page is asked for, pages of a list, and tags in all.
const TAGS_PER_PAGE: usize = 1000;
const TAG_PAGES_MAX: usize = 200;
const TAGS_MAX: usize = 20_000;
const DIGEST_HEADER: &str = "docker-content-digest";

/// Hosts with connections; beyond it, they are made anew.
const HOSTS_MAX: usize = 256;

/// All registries and their mirrors. Connections are kept per host, for hosts differ in whom they trust.
#[derive(Debug)]
pub(crate) struct Registries {
    configs: HashMap<String, RegistryConfig>,
    /// Hosts that are asked over http.
    plain: Arc<[String]>,
    /// containerd's directory of hosts.
    directory: Option<PathBuf>,
    stall: Duration,
    logins: Arc<Logins>,
    hosts: Mutex<Vec<Arc<Host>>>,
    health: Health,
    events: Arc<dyn EventRecorder>,
    requester: Requester,
}

/// One registry or mirror.
#[derive(Debug)]
struct Host {
    /// As in references.
    name: String,
    endpoint: Endpoint,
    transport: Transport,
    logins: Arc<Logins>,
    /// `Authorization` by repository and who asks, and until when.
    tokens: Mutex<HashMap<(String, Who), (HeaderValue, Instant)>>,
    /// Until when it asked not to be asked (`Retry-After`), and its words.
    closed: Mutex<Option<(Instant, RegistryError)>>,
}

impl Registries {
    /// `stall`: a connection that is silent for so long is given up. `directory` is containerd's directory of hosts.
    pub(crate) fn new(
        configs: &[RegistryConfig],
        directory: Option<PathBuf>,
        stall: Duration,
        logins: Logins,
        events: Arc<dyn EventRecorder>,
        requester: Requester,
    ) -> Self {
        let mirrors = configs.iter().flat_map(|config| &config.mirrors).filter_map(|mirror| mirror.parsed());
        let plain_mirrors = mirrors.filter(|url| url.scheme() == "http").map(|url| origin::authority(&url));
        let plain = configs.iter().filter(|config| config.http).map(|config| config.host.clone()).chain(plain_mirrors).collect();
        let configs = configs.iter().map(|config| (config.host.clone(), config.clone())).collect();
        let (hosts, health) = (Mutex::default(), Health::default());
        Self { configs, plain, directory, stall, logins: Arc::new(logins), hosts, health, events, requester }
    }

    fn host(&self, endpoint: &Endpoint) -> Result<Arc<Host>, RegistryError> {
        let mut hosts = lock(&self.hosts);
        if let Some(host) = hosts.iter().find(|host| host.endpoint == *endpoint) {
            return Ok(Arc::clone(host));
        }
        let host = Arc::new(Host::new(endpoint.clone(), Arc::clone(&self.plain), self.stall, Arc::clone(&self.logins))?);
        if hosts.len() >= HOSTS_MAX {
            hosts.clear();
        }
        hosts.push(Arc::clone(&host));
        Ok(host)
    }

    fn config(&self, name: &str) -> RegistryConfig {
        let default = || RegistryConfig { host: name.to_owned(), ..RegistryConfig::default() };
        self.configs.get(name).cloned().unwrap_or_else(default)
    }

    /// Remembers how a host answered.
    fn noted<T>(&self, route: &Route, result: Result<T, RegistryError>) -> Result<T, RegistryError> {
        match &result {
            Err(error) if error.is_unreachable() => self.health.failed(route.host()),
            // This host of ours is what failed.
            Err(RegistryError::Credentials { .. } | RegistryError::Setup { .. }) => {}
            Ok(_) | Err(_) => self.health.answered(route.host()),
        }
        result
    }

    async fn digest(&self, reference: &Reference, route: &Route) -> Result<Digest, RegistryError> {
        let host = self.host(&route.endpoint)?;
        let path = manifest_path(reference);
        let response = host.send(reference, route, Method::HEAD, &path, Part::Document).await?;
        match host.digest_of(&response)? {
            Some(digest) => Ok(digest),
            // The header is optional.
            None => Ok(Digest::of(&self.document(reference, route).await?)),
        }
    }

    async fn document(&self, reference: &Reference, route: &Route) -> Result<Bytes, RegistryError> {
        let host = self.host(&route.endpoint)?;
        let path = manifest_path(reference);
        let response = host.send(reference, route, Method::GET, &path, Part::Document).await?;
        let promised = host.digest_of(&response)?;
        let body = host.body(response, MANIFEST_MAX).await?;
        match promised {
            Some(promised) if promised != Digest::of(&body) => Err(host
                .nonsense("the manifest does not match the digest in the response header: it was altered or damaged in transit")),
            Some(_) | None => Ok(body),
        }
    }

    async fn list(&self, reference: &Reference, route: &Route) -> Result<Option<Bytes>, RegistryError> {
        let host = self.host(&route.endpoint)?;
        let path = format!("{}/referrers/{}", reference.repository(), reference.selector());
        match host.send(reference, route, Method::GET, &path, Part::Document).await {
            Ok(response) => host.body(response, MANIFEST_MAX).await.map(Some),
            // Some registries do not know the path at all.
            Err(RegistryError::NotFound { .. } | RegistryError::Status { code: 400 | 405 | 501, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All pages of the list of tags.
    async fn all_tags(&self, reference: &Reference, route: &Route) -> Result<Vec<String>, RegistryError> {
        #[derive(Deserialize)]
        struct Page {
            #[serde(default)]
            tags: Option<Vec<String>>,
        }
        let host = self.host(&route.endpoint)?;
        let mut tags = Vec::new();
        let mut query = format!("n={TAGS_PER_PAGE}");
        for _ in 0..TAG_PAGES_MAX {
            let path = format!("{}/tags/list?{query}", reference.repository());
            let response = host.send(reference, route, Method::GET, &path, Part::Document).await?;
            let links = response.headers().get_all(LINK).iter().filter_map(|link| link.to_str().ok());
            let next = links.filter_map(answers::next_page).next().map(str::to_owned);
            let body = host.body(response, MANIFEST_MAX).await?;
            let page: Page = serde_json::from_slice(&body).map_err(|_| host.nonsense("it is not a list of tags"))?;
            tags.extend(page.tags.unwrap_or_default());
            match next {
                _ if tags.len() > TAGS_MAX => break,
                Some(next) if next != query => query = next,
                Some(_) | None => return Ok(tags),
            }
        }
        Err(host.nonsense(&format!("the repository has more than {TAGS_MAX} tags, or {TAG_PAGES_MAX} pages of them")))
    }

    async fn stream(&self, reference: &Reference, route: &Route, digest: Digest, offset: u64) -> Result<BlobStream, RegistryError> {
        let host = self.host(&route.endpoint)?;
        let path = format!("{}/blobs/{digest}", reference.repository());
        let response = match host.send(reference, route, Method::GET, &path, Part::From(offset)).await {
            // Some servers do not know ranges at all.
            Err(RegistryError::Status { code: 400 | 501, .. }) if offset > 0 => {
                host.send(reference, route, Method::GET, &path, Part::From(0)).await?
            }
            sent => sent?,
        };
        host.blob_stream(response)
    }

    /// The routes to one host. To a mirror nobody brings the credentials of the registry.
    async fn routes_to(&self, endpoint: Endpoint, reference: &Reference, caller: &Caller) -> Vec<Route> {
        let endpoint = if caller.of_host { endpoint } else { endpoint.without_identity() };
        let whos = match endpoint.role {
            Role::Registry => vec![caller.who.clone()],
            Role::Mirror if caller.of_host => {
                let found = self.logins.find(&endpoint.access, &endpoint.repository(reference)).await;
                found.logins.into_iter().chain([HostLogin::Nobody]).map(Who::Host).collect()
            }
            Role::Mirror => vec![Who::Host(HostLogin::Nobody)],
        };
        let endpoint = Arc::new(endpoint);
        let route = |who| Route { endpoint: Arc::clone(&endpoint), who, session: caller.session.clone() };
        whos.into_iter().map(route).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Registry for Registries {
    fn session(&self) -> Session {
        self.requester.session()
    }

    async fn host_logins(&self, reference: &Reference) -> HostLogins {
        self.logins.find(&self.config(reference.host()), reference.repository()).await
    }

    async fn routes(&self, reference: &Reference, caller: &Caller, need: Need) -> Result<Vec<Route>, RegistryError> {
        let registry = reference.host();
        let endpoints = hosts::endpoints(registry, &self.configs, self.directory.as_deref()).map_err(RegistryError::Hosts)?;
        let is_able = |endpoint: &Endpoint| endpoint.pulls && (need == Need::Content || endpoint.resolves);
        let mut routes = Vec::new();
        for endpoint in endpoints.into_iter().filter(is_able) {
            routes.extend(self.routes_to(endpoint, reference, caller).await);
        }
        routes.sort_by_key(|route| self.health.is_closed(route.host()));
        match routes.is_empty() {
            true => Err(RegistryError::NoHost { registry: registry.to_owned(), need: need.noun() }),
            false => Ok(routes),
        }
    }

    async fn resolve(&self, reference: &Reference, route: &Route) -> Result<Digest, RegistryError> {
        self.noted(route, self.digest(reference, route).await)
    }

    async fn manifest(&self, reference: &Reference, route: &Route) -> Result<Bytes, RegistryError> {
        self.noted(route, self.document(reference, route).await)
    }

    async fn referrers(&self, reference: &Reference, route: &Route) -> Result<Option<Bytes>, RegistryError> {
        self.noted(route, self.list(reference, route).await)
    }

    async fn tags(&self, reference: &Reference, route: &Route) -> Result<Vec<String>, RegistryError> {
        self.noted(route, self.all_tags(reference, route).await)
    }

    async fn blob(&self, reference: &Reference, route: &Route, digest: Digest, offset: u64) -> Result<BlobStream, RegistryError> {
        self.noted(route, self.stream(reference, route, digest, offset).await)
    }

    fn interrupted(&self, route: &Route) {
        self.health.failed(route.host());
    }

    fn passed_over(&self, reference: &Reference, route: &Route, failure: &(dyn Error + 'static)) {
        if !route.is_mirror() {
            return;
        }
        let message = format!("mirror {} of {}: {}", route.host(), reference.host(), explain(failure));
        // A mirror may have a part of the images only.
        if is_not_found(failure) {
            return tracing::info!(image = %reference, "{message}");
        }
        tracing::warn!(image = %reference, "{message}");
        if self.health.is_news(route.host()) {
            self.events.record(&Subject::Node, EventType::Warning, "MirrorFailed", &message);
        }
    }
}

fn is_not_found(failure: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(failure);
    while let Some(error) = cause {
        if matches!(error.downcast_ref(), Some(RegistryError::NotFound { .. })) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn manifest_path(reference: &Reference) -> String {
    format!("{}/manifests/{}", reference.repository(), reference.selector())
}

/// Requested part of a document or blob.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// All of it, in limited time.
    Document,
    /// From an offset on, for as long as it takes.
    From(u64),
}

impl Host {
    fn new(endpoint: Endpoint, plain: Arc<[String]>, stall: Duration, logins: Arc<Logins>) -> Result<Self, RegistryError> {
        let name = endpoint.access.host.clone();
        let transport = Transport::new(&endpoint, plain, stall)?;
        Ok(Self { endpoint, transport, logins, tokens: Mutex::default(), closed: Mutex::default(), name })
    }

    /// The body of a successful answer to a request for a blob.
    fn blob_stream(&self, response: Response) -> Result<BlobStream, RegistryError> {
        // Offsets would be those of other bytes.
        if let Some(encoding) =
            response.headers().get(CONTENT_ENCODING).filter(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
        {
            let shown: String = String::from_utf8_lossy(encoding.as_bytes()).chars().take(20).collect();
            return Err(self.nonsense(&format!("content is compressed on the way (Content-Encoding: {shown})")));
        }
        let (offset, total) = match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let header = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
                let range = header.and_then(answers::content_range);
                let start = range.and_then(|range| range.start);
                let start = start.ok_or_else(|| self.nonsense("a partial response without a valid Content-Range"))?;
                (start, range.and_then(|range| range.total))
            }
            _ => (0, response.content_length()),
        };
        Ok(BlobStream { offset, total, chunks: self.transport.chunks(response, &self.name) })
    }

    fn nonsense(&self, reason: &str) -> RegistryError {
        RegistryError::Protocol { host: self.name.clone(), reason: reason.to_owned() }
    }

    fn digest_of(&self, response: &Response) -> Result<Option<Digest>, RegistryError> {
        let Some(value) = response.headers().get(DIGEST_HEADER).filter(|value| !value.is_empty()) else { return Ok(None) };
        let digest = value.to_str().ok().and_then(|text| text.parse().ok());
        digest.map(Some).ok_or_else(|| self.nonsense("its digest header is not a SHA-256 digest"))
    }

    /// Sends a request for something of the reference's repository; authenticates if the registry wants that. Success only.
    async fn send(
        &self,
        reference: &Reference,
        route: &Route,
        method: Method,
        path: &str,
        part: Part,
    ) -> Result<Response, RegistryError> {
        let Route { endpoint: _, who, session } = route;
        self.check_open()?;
        let mut url = self.endpoint.base.join(path).map_err(|error| self.nonsense(&format!("{path}: {error}")))?;
        if let Some(registry) = &self.endpoint.namespace {
            url.query_pairs_mut().append_pair("ns", registry);
        }
        let request = |authorization| Outgoing {
            method: method.clone(),
            url: url.clone(),
            headers: part.headers(),
            authorization,
            timeout: match part {
                Part::Document => Some(DOCUMENT_TIMEOUT),
                Part::From(_) => None,
            },
        };
        let place = (reference.repository().to_owned(), who.clone());
        let answer = self.transport.send(session, request(self.known_token(&place))).await?;
        if answer.response.status() != StatusCode::UNAUTHORIZED {
            return self.success(reference, path, answer.response).await;
        }
        lock(&self.tokens).remove(&place);
        let (authorization, life) = self.authorize(reference, route, &answer).await?;
        let answer = self.transport.send(session, request(Some(authorization.clone()))).await?;
        if answer.response.status() == StatusCode::UNAUTHORIZED {
            let credentials = self.credentials(reference, who).await?;
            self.logins.forget();
            return Err(self.unauthorized(reference, refused_hint(&credentials)));
        }
        self.keep_token(place, authorization, life);
        self.success(reference, path, answer.response).await
    }

    /// Repeats the error of a registry that asked to wait, until then.
    fn check_open(&self) -> Result<(), RegistryError> {
        let mut closed = lock(&self.closed);
        match &*closed {
            Some((until, error)) if *until > Instant::now() => Err(error.with_wait(*until - Instant::now())),
            Some(_) | None => {
                *closed = None;
                Ok(())
            }
        }
    }

    fn close(&self, error: RegistryError) -> RegistryError {
        if let Some(wait) = error.is_transient().filter(|wait| !wait.is_zero()) {
            *lock(&self.closed) = Some((Instant::now() + wait, error.clone()));
        }
        error
    }

    async fn credentials(&self, reference: &Reference, who: &Who) -> Result<Credentials, RegistryError> {
        match who {
            Who::Host(login) => self.logins.read(login, &self.endpoint.access, &self.endpoint.repository(reference)).await,
            Who::Pod(credentials) => Ok(credentials.clone()),
        }
    }

    fn unauthorized(&self, reference: &Reference, hint: &'static str) -> RegistryError {
        RegistryError::Unauthorized { host: self.name.clone(), repository: reference.repository().to_owned(), hint }
    }

    /// Meets the challenge of a 401: the value of `Authorization`, and how long it lives.
    async fn authorize(
        &self,
        reference: &Reference,
        route: &Route,
        answer: &Answer,
    ) -> Result<(HeaderValue, Duration), RegistryError> {
        // The target of a redirect is not the registry that the credentials are for, and may name any token server.
        if answer.is_redirected {
            return Err(
                self.unauthorized(reference, "the target of its redirect requires a login, and credentials are not sent to it")
            );
        }
        let challenges = answer.response.headers().get_all(WWW_AUTHENTICATE);
        let challenge = challenges.iter().filter_map(|value| challenge::parse(value.to_str().ok()?)).next();
        let credentials = self.credentials(reference, &route.who).await?;
        let unauthorized = || self.unauthorized(reference, refused_hint(&credentials));
        let (authorization, life) = match (challenge.ok_or_else(unauthorized)?, &credentials) {
            (_, Credentials::Token(token)) => (token::bearer(token), token::TOKEN_LIFE),
            (Challenge::Basic, Credentials::Password(username, password)) => (token::basic(username, password), token::TOKEN_LIFE),
            (Challenge::Basic, Credentials::Anonymous | Credentials::Identity(_)) => return Err(unauthorized()),
            (Challenge::Bearer { realm, service, scope }, credentials) => {
                let scope = origin::pull_scope(scope.as_deref(), &self.endpoint.repository(reference));
                let token = self.fetch_token(&route.session, (&realm, service.as_deref()), &scope, credentials).await?;
                let token = token.ok_or_else(unauthorized)?;
                (token::bearer(&token.text), token.life)
            }
        };
        let authorization =
            authorization.ok_or_else(|| self.nonsense("the token contains characters that are not allowed in a header"))?;
        Ok((authorization, life))
    }

    /// A token for `scope`; `None` if the token server refuses.
    async fn fetch_token(
        &self,
        session: &Session,
        (realm, service): (&str, Option<&str>),
        scope: &str,
        credentials: &Credentials,
    ) -> Result<Option<Token>, RegistryError> {
        let refused = |refusal: RealmRefusal| RegistryError::Realm { host: self.name.clone(), reason: refusal.to_string() };
        let realm = origin::realm(&self.endpoint.access, &self.endpoint.base, realm, *credentials != Credentials::Anonymous);
        let realm = realm.map_err(refused)?;
        let response = token::ask(&self.transport, session, &realm, service, scope, credentials).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Ok(None),
            status => {
                let (host, code) = (origin::authority(&realm.url), status.as_u16());
                return Err(RegistryError::Status { host, code, said: self.said(response).await });
            }
        }
        let body = self.body(response, TOKEN_MAX).await?;
        token::parse(&body).map_err(|error| self.nonsense(&format!("response of its token server: {error}")))
    }

    /// Also forgets those that have expired, so that outdated credentials do not stay in memory.
    fn keep_token(&self, place: (String, Who), authorization: HeaderValue, life: Duration) {
        let now = Instant::now();
        let mut tokens = lock(&self.tokens);
        tokens.retain(|_, (_, until)| *until > now);
        tokens.insert(place, (authorization, now + life));
    }

    fn known_token(&self, place: &(String, Who)) -> Option<HeaderValue> {
        let tokens = lock(&self.tokens);
        tokens.get(place).filter(|(_, until)| *until > Instant::now()).map(|(value, _)| value.clone())
    }

    async fn success(&self, reference: &Reference, path: &str, response: Response) -> Result<Response, RegistryError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let after = header(RETRY_AFTER).and_then(|text| answers::retry_after(text, header(DATE), Timestamp::now()));
        // The body is not read: its length may be that of the content.
        if status == StatusCode::RANGE_NOT_SATISFIABLE {
            let range = header(CONTENT_RANGE).and_then(answers::content_range);
            let total = range.and_then(|range| range.total).map_or("an unknown number of".to_owned(), |total| total.to_string());
            return Err(self.nonsense(&format!("no more bytes than are here (416), of {total}")));
        }
        let (host, repository, said) = (self.name.clone(), reference.repository().to_owned(), self.said(response).await);
        Err(self.close(match status {
            StatusCode::NOT_FOUND => {
                let what = match path.contains("/manifests/") {
                    false if path.contains("/tags/list") => format!("repository {}", reference.repository()),
                    true => format!("image {}", reference.to_string().trim_start_matches(reference.host()).trim_start_matches('/')),
                    false => format!("content {path}"),
                };
                RegistryError::NotFound { host, what, said }
            }
            StatusCode::FORBIDDEN => RegistryError::Denied { host, repository, said },
            StatusCode::TOO_MANY_REQUESTS => RegistryError::TooMany { host, after, said },
            StatusCode::SERVICE_UNAVAILABLE if after.is_some() => RegistryError::Unavailable { host, after, said },
            status => RegistryError::Status { host, code: status.as_u16(), said },
        }))
    }

    /// The registry's own words about an error.
    async fn said(&self, response: Response) -> String {
        #[derive(Deserialize)]
        struct Envelope {
            errors: Vec<Message>,
        }
        #[derive(Deserialize)]
        struct Message {
            #[serde(default)]
            code: String,
            #[serde(default)]
            message: String,
        }
        let Ok(body) = self.body(response, ERROR_MAX).await else { return String::new() };
        let words: Vec<String> = match serde_json::from_slice::<Envelope>(&body) {
            Ok(envelope) => {
                envelope.errors.into_iter().map(|error| if error.message.is_empty() { error.code } else { error.message }).collect()
            }
            Err(_) => return String::new(),
        };
        let words: String = words.join(", ").chars().filter(|c| !c.is_control()).take(SAID_MAX).collect();
        if words.is_empty() { words } else { format!(": {words}") }
    }

    async fn body(&self, response: Response, limit: u64) -> Result<Bytes, RegistryError> {
        let mut body = BytesMut::new();
        let mut chunks = self.transport.chunks(response, &self.name);
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(RegistryError::TooLarge { host: self.name.clone(), limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

impl Part {
    fn headers(self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        // Both are made of characters that headers may have.
        headers.extend(HeaderValue::from_str(&MANIFEST_MEDIA_TYPES.join(", ")).ok().map(|value| (ACCEPT, value)));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Self::From(offset @ 1..) = self {
            headers.extend(HeaderValue::from_str(&format!("bytes={offset}-")).ok().map(|value| (RANGE, value)));
        }
        headers
    }
}

fn refused_hint(credentials: &Credentials) -> &'static str {
    match credentials {
        Credentials::Anonymous => "no credentials are configured for it, or the repository does not exist",
        Credentials::Password(..) => "the user name or password is wrong, or the user has no read access",
        Credentials::Identity(_) | Credentials::Token(_) => "the token is wrong, has expired or has no read access",
    }
}
