//! Requests of one registry: redirects by the rules of [`super::origin`], limits on time and headers, and the addresses that may be reached.
//!
//! Requests are sent by a process without rights ([`podstead_fetch`]). Redirects are followed here, and led to by another process.

use super::super::explain::explain;
use super::RegistryError;
use super::hosts::Endpoint;
use super::origin::{self, MAX_REDIRECTS, Realm, RedirectRefusal};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use podstead_fetch::{Hidden, Proxies, Request, Response, Session, Setup, Trust};
use podstead_outbound::{self as outbound, AddressGuard};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode, Url};
use std::borrow::Cow;
use std::sync::Arc;
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

/// A request to one place.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// An answer, after redirects.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) response: Response,
    /// Another place than the one that was asked gave it.
    pub(super) is_redirected: bool,
}

/// The way to one registry. Where the registry leads is another way, for it differs in which addresses may be reached.
#[derive(Debug)]
pub(super) struct Transport {
    endpoint: Endpoint,
    /// Further headers of requests to the registry's own origin.
    headers: HeaderMap,
    /// Registries that are configured to be asked over http.
    plain: Arc<[String]>,
    stall: Duration,
    /// For the registry's own origin, and token servers that the configuration names.
    own: Setup,
    guard: AddressGuard,
}

impl Transport {
    pub(super) fn new(endpoint: &Endpoint, plain: Arc<[String]>, stall: Duration) -> Result<Self, RegistryError> {
        let guard = AddressGuard::new(Proxies::of_environment().hosts());
        let own = setup(endpoint, None)?;
        let mut headers = HeaderMap::new();
        for (name, value) in &endpoint.headers {
            if let (Ok(name), Ok(mut value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
                value.set_sensitive(true);
                headers.append(name, value);
            }
        }
        Ok(Self { endpoint: endpoint.clone(), headers, plain, stall, own, guard })
    }

    /// Sends a request and follows redirects.
    pub(super) async fn send(&self, session: &Session, outgoing: Outgoing) -> Result<Answer, RegistryError> {
        let deadline = outgoing.timeout.map(|timeout| Instant::now() + timeout);
        let (origin, mut url, mut is_home) = (outgoing.url.origin(), outgoing.url, true);
        for count in 0..=MAX_REDIRECTS {
            let setup = self.setup(&url, false)?;
            let mut headers = outgoing.headers.clone();
            // Once another host has led somewhere, the place is that host's choice, be it at the registry again.
            is_home &= url.origin() == origin;
            if is_home {
                headers.extend(self.headers.clone());
                headers.extend(outgoing.authorization.clone().map(|authorization| (AUTHORIZATION, authorization)));
            }
            let asked = Asked { method: outgoing.method.clone(), url: url.clone(), headers, body: Bytes::new() };
            let response = self.head(session, &setup, asked, deadline).await?;
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
        session: &Session,
        realm: &Realm,
        asked: Asked,
        timeout: Duration,
    ) -> Result<Response, RegistryError> {
        let setup = self.setup(&realm.url, realm.is_named)?;
        self.head(session, &setup, asked, Some(Instant::now() + timeout)).await
    }

    /// The body of an answer. An error comes in place of the next chunk if there is none for too long after it was asked for; a reader that pauses is not
    /// taken for a silent host.
    pub(super) fn chunks(&self, response: Response, host: &str) -> BoxStream<'static, Result<Bytes, RegistryError>> {
        let (stall, state) = (self.stall, Some((response, host.to_owned())));
        let next = move |state: Option<(Response, String)>| async move {
            let (mut response, host) = state?;
            match tokio::time::timeout(stall, response.chunk()).await {
                Ok(Ok(chunk)) => Some((Ok(chunk?), Some((response, host)))),
                Ok(Err(failure)) => Some((Err(RegistryError::from_http(&host, failure)), None)),
                Err(_) => Some((Err(RegistryError::Stalled { host: host.clone() }), Some((response, host)))),
            }
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

    fn setup(&self, url: &Url, is_named: bool) -> Result<Cow<'_, Setup>, RegistryError> {
        // Over another scheme than the registry's it needs other certificate authorities.
        let is_named = is_named && url.scheme() == self.endpoint.base.scheme();
        if url.origin() == self.endpoint.base.origin() {
            return Ok(Cow::Borrowed(&self.own));
        }
        if is_named {
            return Ok(Cow::Owned(Setup { peer: Setup::peer_of(url), ..self.own.clone() }));
        }
        self.guard.check(url)?;
        // Nobody else learns who asks.
        let mut away = self.endpoint.clone().without_identity();
        away.access.http = false;
        Ok(Cow::Owned(setup(&away, Some(url))?))
    }

    /// Sends one request to one place; its answer up to the end of the headers.
    async fn head(
        &self,
        session: &Session,
        setup: &Setup,
        asked: Asked,
        deadline: Option<Instant>,
    ) -> Result<Response, RegistryError> {
        let Asked { method, url, headers, body } = asked;
        let host = || self.name(&url);
        let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let request = Request { method, url: url.clone(), headers, body, unpack: None, timeout, homes: self.guard.homes() };
        let response = match tokio::time::timeout(HEAD_TIMEOUT.min(self.stall), session.send(setup, request)).await {
            Ok(sent) => sent.map_err(|failure| RegistryError::from_http(&host(), failure))?,
            Err(_) => return Err(RegistryError::Stalled { host: host() }),
        };
        if url.origin() == self.endpoint.base.origin()
            && let Some(address) = response.remote_addr()
        {
            self.guard.learn(&url, address.ip());
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

/// Settings of connections: those to the registry, or those to where it leads.
fn setup(endpoint: &Endpoint, led_to: Option<&Url>) -> Result<Setup, RegistryError> {
    let access = &endpoint.access;
    let failed = |reason: String| RegistryError::Setup { host: access.host.clone(), reason };
    let url = led_to.unwrap_or(&endpoint.base);
    let mut setup = Setup {
        peer: Setup::peer_of(url),
        connect_timeout: endpoint.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
        keep_idle: KEEP_IDLE,
        // Of a registry over http, the host's certificate authorities are not needed, and may not be there.
        trust: Trust::Nobody,
        identity: None,
        proxies: Proxies::of_environment(),
        is_led: led_to.is_some(),
    };
    if access.http {
        return Ok(setup);
    }
    let mut authorities = Vec::new();
    for (field, path) in
        access.ca_file.iter().map(|path| ("caFile", path)).chain(endpoint.authorities.iter().map(|path| ("ca", path)))
    {
        authorities.extend(outbound::certificates(path).map_err(|error| failed(format!("{field}: {}", explain(&error))))?);
    }
    let identity = endpoint.client.as_ref().map(|(certificate, key)| outbound::identity_text(certificate, key)).transpose();
    let identity = identity.map_err(|error| failed(format!("client certificate: {}", explain(&error))))?;
    setup.identity = identity.map(|pem| Hidden(pem.expose().to_owned()));
    setup.trust = Trust::of_host(&authorities, url, &setup.proxies);
    Ok(setup)
}
