//! Requests of one registry: redirects by the rules of [`super::origin`], limits on time and headers, and the addresses that may be reached.
//!
//! Redirects are followed here and not by the HTTP client, which would send `Referer`, follow https to http, and hide who answered.

use super::super::explain::explain;
use super::RegistryError;
use super::hosts::Endpoint;
use super::origin::{self, MAX_REDIRECTS, Realm, RedirectRefusal};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use podstead_outbound::{self as outbound, AddressGuard, Authorities, GuardedResolver};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// From the request to the last line of the answer's headers, with the time to connect.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const KEEP_IDLE: Duration = Duration::from_secs(10);

/// A request to the registry.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    /// GET or HEAD: what redirects may repeat.
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// For the registry's own origin only.
    pub(super) authorization: Option<HeaderValue>,
    /// For everything, the body included; `None` for a body of any size.
    pub(super) timeout: Option<Duration>,
}

/// An answer, after redirects.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) response: Response,
    /// Another place than the one that was asked gave it.
    pub(super) is_redirected: bool,
}

/// The clients of one registry. They are two, for they differ in which addresses they may reach.
#[derive(Debug)]
pub(super) struct Transport {
    endpoint: Endpoint,
    /// Further headers of requests to the registry's own origin.
    headers: HeaderMap,
    /// Registries that are configured to be asked over http.
    plain: Arc<[String]>,
    stall: Duration,
    /// For the registry's own origin, and token servers that the configuration names.
    own: Client,
    /// For where the registry leads.
    away: OnceLock<Client>,
    guard: Arc<AddressGuard>,
}

impl Transport {
    pub(super) fn new(endpoint: &Endpoint, plain: Arc<[String]>, stall: Duration) -> Result<Self, RegistryError> {
        let guard = Arc::new(AddressGuard::new(outbound::proxies_of_environment()));
        let own = client(endpoint, None)?;
        let mut headers = HeaderMap::new();
        for (name, value) in &endpoint.headers {
            if let (Ok(name), Ok(mut value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
                value.set_sensitive(true);
                headers.append(name, value);
            }
        }
        Ok(Self { endpoint: endpoint.clone(), headers, plain, stall, own, away: OnceLock::new(), guard })
    }

    /// Sends a request and follows redirects.
    pub(super) async fn send(&self, outgoing: Outgoing) -> Result<Answer, RegistryError> {
        let deadline = outgoing.timeout.map(|timeout| Instant::now() + timeout);
        let (origin, mut url, mut is_home) = (outgoing.url.origin(), outgoing.url, true);
        for count in 0..=MAX_REDIRECTS {
            let client = self.client(&url, false)?;
            let mut headers = outgoing.headers.clone();
            // Once another host has led somewhere, the place is that host's choice, be it at the registry again.
            is_home &= url.origin() == origin;
            if is_home {
                headers.extend(self.headers.clone());
                headers.extend(outgoing.authorization.clone().map(|authorization| (AUTHORIZATION, authorization)));
            }
            let request = client.request(outgoing.method.clone(), url.clone()).headers(headers);
            let response = self.head(request, &url, deadline).await?;
            if !is_redirect(response.status()) {
                return Ok(Answer { response, is_redirected: count > 0 });
            }
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let is_plain =
                |to: &Url| to.origin() == self.endpoint.base.origin() || self.plain.iter().any(|host| origin::is_at(to, host));
            url = origin::redirect(&url, location, is_plain).map_err(|refusal| self.refused(&url, refusal))?;
        }
        Err(self.refused(&url, RedirectRefusal::TooMany))
    }

    /// Asks a token server. No redirect is followed: the answer is for one host to give.
    pub(super) async fn ask_token(
        &self,
        realm: &Realm,
        prepare: impl FnOnce(&Client) -> RequestBuilder,
        timeout: Duration,
    ) -> Result<Response, RegistryError> {
        let client = self.client(&realm.url, realm.is_named)?;
        self.head(prepare(client), &realm.url, Some(Instant::now() + timeout)).await
    }

    /// The body of an answer. An error comes in place of the next chunk if there is none for too long after it was asked for; a reader that pauses is not
    /// taken for a silent host.
    pub(super) fn chunks(&self, response: Response, host: &str) -> BoxStream<'static, Result<Bytes, RegistryError>> {
        let (stall, state) = (self.stall, (response.bytes_stream().boxed(), host.to_owned()));
        let next = move |(mut chunks, host): (BoxStream<'static, reqwest::Result<Bytes>>, String)| async move {
            let chunk = match tokio::time::timeout(stall, chunks.next()).await {
                Ok(chunk) => chunk?.map_err(|error| RegistryError::from_http(&host, &error)),
                Err(_) => Err(RegistryError::Stalled { host: host.clone() }),
            };
            Some((chunk, (chunks, host)))
        };
        stream::unfold(state, next).boxed()
    }

    fn refused(&self, from: &Url, refusal: RedirectRefusal) -> RegistryError {
        RegistryError::Redirect { host: self.name(from), reason: refusal.to_string() }
    }

    /// The host for messages: the registry as references name it, another one by its authority.
    fn name(&self, url: &Url) -> String {
        if url.origin() == self.endpoint.base.origin() { self.endpoint.access.host.clone() } else { origin::authority(url) }
    }

    fn client(&self, url: &Url, is_named: bool) -> Result<&Client, RegistryError> {
        // Over another scheme than the registry's it needs other certificate authorities.
        let is_named = is_named && url.scheme() == self.endpoint.base.scheme();
        if is_named || url.origin() == self.endpoint.base.origin() {
            return Ok(&self.own);
        }
        self.guard.check(url)?;
        if let Some(client) = self.away.get() {
            return Ok(client);
        }
        let resolver = || Some(GuardedResolver(Arc::clone(&self.guard)));
        // Nobody else learns who asks.
        let mut secure = self.endpoint.clone().without_identity();
        secure.access.http = false;
        let client = match client(&secure, resolver()) {
            Ok(client) => client,
            // A host without certificate authorities can still be led from http to http.
            Err(_) if self.endpoint.access.http => client(&self.endpoint, resolver())?,
            Err(error) => return Err(error),
        };
        Ok(self.away.get_or_init(|| client))
    }

    /// Sends one request to one place; its answer up to the end of the headers.
    async fn head(&self, request: RequestBuilder, url: &Url, deadline: Option<Instant>) -> Result<Response, RegistryError> {
        let request = match deadline {
            Some(deadline) => request.timeout(deadline.saturating_duration_since(Instant::now())),
            None => request,
        };
        let host = || self.name(url);
        let response = match tokio::time::timeout(HEAD_TIMEOUT.min(self.stall), request.send()).await {
            Ok(sent) => sent.map_err(|error| RegistryError::from_http(&host(), &error))?,
            Err(_) => return Err(RegistryError::Stalled { host: host() }),
        };
        if outbound::headers_are_too_large(response.headers()) {
            return Err(RegistryError::Headers { host: host() });
        }
        if url.origin() == self.endpoint.base.origin()
            && let Some(address) = response.remote_addr()
        {
            self.guard.learn(url, address.ip());
        }
        Ok(response)
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

fn client(endpoint: &Endpoint, resolver: Option<GuardedResolver>) -> Result<Client, RegistryError> {
    let access = &endpoint.access;
    let setup = |reason: String| RegistryError::Setup { host: access.host.clone(), reason };
    outbound::install_provider();
    let mut builder = Client::builder()
        .user_agent(concat!("podstead/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(endpoint.connect_timeout.unwrap_or(CONNECT_TIMEOUT))
        .pool_idle_timeout(KEEP_IDLE);
    if let Some(resolver) = resolver {
        builder = builder.dns_resolver(resolver);
    }
    if access.http {
        // The host's certificate authorities are not needed, and may not be there.
        let tls = outbound::client_config(Authorities::Only(Vec::new()), None).map_err(|error| setup(explain(&error)))?;
        return builder.tls_backend_preconfigured(tls).build().map_err(|error| setup(explain(&error)));
    }
    let mut authorities = Vec::new();
    for (field, path) in
        access.ca_file.iter().map(|path| ("caFile", path)).chain(endpoint.authorities.iter().map(|path| ("ca", path)))
    {
        authorities.extend(outbound::certificates(path).map_err(|error| setup(format!("{field}: {}", explain(&error))))?);
    }
    let identity = endpoint.client.as_ref().map(|(certificate, key)| outbound::identity(certificate, key)).transpose();
    let identity = identity.map_err(|error| setup(format!("client certificate: {}", explain(&error))))?;
    let tls = outbound::client_config(Authorities::HostAnd(authorities), identity).map_err(|error| setup(explain(&error)))?;
    builder.tls_backend_preconfigured(tls).build().map_err(|error| setup(explain(&error)))
}
