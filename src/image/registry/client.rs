//! The distribution protocol over HTTP: manifests, blobs, and the token dance.

use super::super::credentials::Credentials;
use super::super::digest::Digest;
use super::super::document::MANIFEST_MEDIA_TYPES;
use super::super::reference::{DEFAULT_HOST, Reference};
use super::super::registry_config::RegistryConfig;
use super::challenge::{self, Challenge};
use super::{BlobStream, Registry, RegistryError, Who, credentials};
use crate::outbound;
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_RANGE, HeaderMap, HeaderValue, RANGE, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For a document as a whole, so that nobody can keep a pull waiting byte by byte.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(120);
const MANIFEST_MAX: u64 = 4 << 20;
const TOKEN_MAX: u64 = 1 << 20;
const ERROR_MAX: u64 = 16 << 10;
/// How much of a registry's own words is repeated.
const SAID_MAX: usize = 200;
/// What the token specification says when the server does not; a little less, for the way.
const TOKEN_LIFE: Duration = Duration::from_secs(55);
const DIGEST_HEADER: &str = "docker-content-digest";

/// All registries. Connections are kept per host, for hosts differ in whom they trust.
#[derive(Debug)]
pub(in crate::image) struct Registries {
    configs: HashMap<String, RegistryConfig>,
    stall: Duration,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
}

/// One registry.
#[derive(Debug)]
struct Host {
    /// As in references.
    name: String,
    config: RegistryConfig,
    /// Scheme and authority of its URLs.
    base: String,
    http: reqwest::Client,
    /// `Authorization` by repository and who asks, and until when.
    tokens: Mutex<HashMap<(String, Who), (HeaderValue, Instant)>>,
}

impl Registries {
    /// `stall`: a connection that is silent for so long is given up.
    pub(in crate::image) fn new(configs: &[RegistryConfig], stall: Duration) -> Self {
        let configs = configs.iter().map(|config| (config.host.clone(), config.clone())).collect();
        Self { configs, stall, hosts: Mutex::default() }
    }

    fn host(&self, name: &str) -> Result<Arc<Host>, RegistryError> {
        let mut hosts = lock(&self.hosts);
        if let Some(host) = hosts.get(name) {
            return Ok(Arc::clone(host));
        }
        let default = || RegistryConfig { host: name.to_owned(), ..RegistryConfig::default() };
        let host = Arc::new(Host::new(self.configs.get(name).cloned().unwrap_or_else(default), self.stall)?);
        hosts.insert(name.to_owned(), Arc::clone(&host));
        Ok(host)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Registry for Registries {
    fn has_credentials(&self, host: &str) -> bool {
        self.configs.get(host).is_some_and(|config| config.username.is_some() || config.auth_file.is_some())
    }

    async fn resolve(&self, reference: &Reference, who: &Who) -> Result<Digest, RegistryError> {
        let host = self.host(reference.host())?;
        let path = manifest_path(reference);
        let response = host.send(reference, who, &|request| request.timeout(DOCUMENT_TIMEOUT), Method::HEAD, &path).await?;
        match host.digest_of(&response)? {
            Some(digest) => Ok(digest),
            // The header is optional.
            None => Ok(Digest::of(&self.manifest(reference, who).await?)),
        }
    }

    async fn manifest(&self, reference: &Reference, who: &Who) -> Result<Bytes, RegistryError> {
        let host = self.host(reference.host())?;
        let path = manifest_path(reference);
        let response = host.send(reference, who, &|request| request.timeout(DOCUMENT_TIMEOUT), Method::GET, &path).await?;
        let promised = host.digest_of(&response)?;
        let body = host.body(response, MANIFEST_MAX).await?;
        match promised {
            Some(promised) if promised != Digest::of(&body) => Err(host
                .nonsense("the manifest does not have the digest that the answer promises: it was altered or damaged on the way")),
            Some(_) | None => Ok(body),
        }
    }

    async fn blob(&self, reference: &Reference, who: &Who, digest: Digest, offset: u64) -> Result<BlobStream, RegistryError> {
        let host = self.host(reference.host())?;
        let path = format!("{}/blobs/{digest}", reference.repository());
        let from_offset = |request: RequestBuilder| match offset {
            0 => request,
            offset => request.header(RANGE, format!("bytes={offset}-")),
        };
        let response = host.send(reference, who, &from_offset, Method::GET, &path).await?;
        let offset = match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                range_start(response.headers()).ok_or_else(|| host.nonsense("a part without Content-Range"))?
            }
            _ => 0,
        };
        let name = host.name.clone();
        let chunks = response.bytes_stream().map(move |chunk| chunk.map_err(|error| RegistryError::from_http(&name, &error)));
        Ok(BlobStream { offset, chunks: chunks.boxed() })
    }
}

fn manifest_path(reference: &Reference) -> String {
    format!("{}/manifests/{}", reference.repository(), reference.selector())
}

/// `bytes 100-199/200`
fn range_start(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

impl Host {
    fn new(config: RegistryConfig, stall: Duration) -> Result<Self, RegistryError> {
        let name = config.host.clone();
        let setup = |reason: String| RegistryError::Setup { host: name.clone(), reason };
        outbound::install_provider();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("podstead/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(stall)
            .pool_idle_timeout(Duration::from_secs(10));
        if config.http {
            // The host's certificate authorities are not needed, and may not be there.
            builder = builder.tls_certs_only([]);
        } else if let Some(path) = &config.ca_file {
            let certificates = outbound::certificates(path)
                .map_err(|error| setup(format!("caFile: {}", super::super::explain::explain(&error))))?;
            builder = builder.tls_certs_merge(certificates);
        }
        let http = builder.build().map_err(|error| setup(super::super::explain::explain(&error)))?;
        // The hub answers under another name than its references have.
        let authority = if name == DEFAULT_HOST { "registry-1.docker.io" } else { &name };
        let base = format!("{}://{authority}", if config.http { "http" } else { "https" });
        Ok(Self { base, config, http, tokens: Mutex::default(), name })
    }

    fn nonsense(&self, reason: &str) -> RegistryError {
        RegistryError::Protocol { host: self.name.clone(), reason: reason.to_owned() }
    }

    fn digest_of(&self, response: &Response) -> Result<Option<Digest>, RegistryError> {
        let Some(value) = response.headers().get(DIGEST_HEADER).filter(|value| !value.is_empty()) else { return Ok(None) };
        let digest = value.to_str().ok().and_then(|text| text.parse().ok());
        digest.map(Some).ok_or_else(|| self.nonsense("its digest header is no SHA-256 digest"))
    }

    /// Sends a request for something of the reference's repository; authenticates if the registry wants that. Success only.
    async fn send(
        &self,
        reference: &Reference,
        who: &Who,
        prepare: &(dyn Fn(RequestBuilder) -> RequestBuilder + Sync),
        method: Method,
        path: &str,
    ) -> Result<Response, RegistryError> {
        let url = format!("{}/v2/{path}", self.base);
        let request = |authorization: Option<&HeaderValue>| {
            let request = prepare(self.http.request(method.clone(), &url)).header(ACCEPT, MANIFEST_MEDIA_TYPES.join(", "));
            match authorization {
                Some(value) => request.header(AUTHORIZATION, value),
                None => request,
            }
        };
        let place = (reference.repository().to_owned(), who.clone());
        let known = self.known_token(&place);
        let response = self.execute(request(known.as_ref())).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return self.success(reference, path, response).await;
        }
        lock(&self.tokens).remove(&place);
        let challenges = response.headers().get_all(WWW_AUTHENTICATE);
        let challenge = challenges.iter().filter_map(|value| challenge::parse(value.to_str().ok()?)).next();
        let credentials = match who {
            Who::Host => credentials::read(&self.config)?,
            Who::Pod(credentials) => credentials.clone(),
        };
        let unauthorized = || RegistryError::Unauthorized {
            host: self.name.clone(),
            repository: reference.repository().to_owned(),
            hint: match &credentials {
                Credentials::Anonymous => "no credentials are configured for it, or the repository does not exist",
                Credentials::Password(..) => "user name or password is wrong, or the user may not read it",
                Credentials::Identity(_) | Credentials::Token(_) => "the token is wrong or has expired, or may not read it",
            },
        };
        let (authorization, life) = match (challenge.ok_or_else(unauthorized)?, &credentials) {
            (_, Credentials::Token(token)) => (bearer(token), TOKEN_LIFE),
            (Challenge::Basic, Credentials::Password(username, password)) => (basic(username, password), TOKEN_LIFE),
            (Challenge::Basic, Credentials::Anonymous | Credentials::Identity(_)) => return Err(unauthorized()),
            (Challenge::Bearer { realm, service, scope }, credentials) => {
                let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", reference.repository()));
                let token = self.fetch_token(&realm, service.as_deref(), &scope, credentials).await?;
                let (token, life) = token.ok_or_else(unauthorized)?;
                (bearer(&token), life)
            }
        };
        let authorization = authorization.ok_or_else(|| self.nonsense("credentials with characters that no header can have"))?;
        let response = self.execute(request(Some(&authorization))).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            return Err(unauthorized());
        }
        self.keep_token(place, authorization, life);
        self.success(reference, path, response).await
    }

    /// Also forgets those that have expired, so that credentials that nobody has any more do not stay in memory.
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

    async fn execute(&self, request: RequestBuilder) -> Result<Response, RegistryError> {
        request.send().await.map_err(|error| RegistryError::from_http(&self.name, &error))
    }

    /// A token for `scope`, and how long it lives. `None` if the token server refuses.
    async fn fetch_token(
        &self,
        realm: &str,
        service: Option<&str>,
        scope: &str,
        credentials: &Credentials,
    ) -> Result<Option<(String, Duration)>, RegistryError> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            token: String,
            #[serde(default)]
            access_token: String,
            #[serde(default)]
            expires_in: Option<u64>,
        }
        let mut url =
            Url::parse(realm).map_err(|error| self.nonsense(&format!("its token server {realm:?} is no URL ({error})")))?;
        if !self.config.http && url.scheme() != "https" && *credentials != Credentials::Anonymous {
            return Err(self.nonsense(&format!("its token server {realm} would get the credentials in clear text")));
        }
        let mut parameters = vec![("scope", scope)];
        parameters.extend(service.map(|service| ("service", service)));
        let request = match credentials {
            Credentials::Identity(token) => {
                parameters.extend([("grant_type", "refresh_token"), ("client_id", "podstead"), ("refresh_token", token)]);
                // A form's body is written like a query.
                let mut form = url.clone();
                form.query_pairs_mut().clear().extend_pairs(parameters);
                let form = form.query().unwrap_or_default().to_owned();
                self.http.post(url).header(reqwest::header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(form)
            }
            Credentials::Password(username, password) => {
                url.query_pairs_mut().extend_pairs(parameters);
                self.http.get(url).basic_auth(username, Some(password))
            }
            Credentials::Anonymous | Credentials::Token(_) => {
                url.query_pairs_mut().extend_pairs(parameters);
                self.http.get(url)
            }
        };
        let response = request.timeout(DOCUMENT_TIMEOUT).send().await.map_err(|error| RegistryError::from_http(realm, &error))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Ok(None),
            status => {
                return Err(RegistryError::Status {
                    host: realm.to_owned(),
                    code: status.as_u16(),
                    said: self.said(response).await,
                });
            }
        }
        let body = self.body(response, TOKEN_MAX).await?;
        let answer: Answer =
            serde_json::from_slice(&body).map_err(|error| self.nonsense(&format!("its token server's answer: {error}")))?;
        let token = if answer.token.is_empty() { answer.access_token } else { answer.token };
        let life = answer.expires_in.map_or(TOKEN_LIFE, |seconds| Duration::from_secs(seconds.saturating_sub(5)));
        Ok(Some((token, life)).filter(|(token, _)| !token.is_empty()))
    }

    async fn success(&self, reference: &Reference, path: &str, response: Response) -> Result<Response, RegistryError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let after =
            response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_secs);
        let (host, repository, said) = (self.name.clone(), reference.repository().to_owned(), self.said(response).await);
        Err(match status {
            StatusCode::NOT_FOUND => {
                let what = match path.contains("/manifests/") {
                    true => format!("image {}", reference.to_string().trim_start_matches(reference.host()).trim_start_matches('/')),
                    false => format!("content {path}"),
                };
                RegistryError::NotFound { host, what, said }
            }
            StatusCode::FORBIDDEN => RegistryError::Denied { host, repository, said },
            StatusCode::TOO_MANY_REQUESTS => RegistryError::TooMany { host, after, said },
            status => RegistryError::Status { host, code: status.as_u16(), said },
        })
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
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| RegistryError::from_http(&self.name, &error))?;
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(RegistryError::TooLarge { host: self.name.clone(), limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

fn bearer(token: &str) -> Option<HeaderValue> {
    secret(&format!("Bearer {token}"))
}

fn basic(username: &str, password: &str) -> Option<HeaderValue> {
    use base64::Engine;
    secret(&format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"))))
}

fn secret(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}
