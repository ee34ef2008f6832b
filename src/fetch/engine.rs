//! The HTTP client itself: HTTP/1.1, rustls with ring, the system's resolver.

use crate::coming::Coming;
use crate::message::{Head, chosen};
use crate::request::Request;
use crate::setup::{Hidden, Proxies, Setup};
use podstead_outbound::{AddressGuard, Failure, GuardedResolver, headers_are_too_large, install_provider};
use podstead_telemetry::error_chain;
use reqwest::header::HeaderValue;
use reqwest::{Client, ClientBuilder, NoProxy, Proxy};
use rustls::ClientConfig;
use std::sync::Arc;

/// Addresses on this host are not reached through a proxy, as with the environment's proxies.
const DIRECT: &str = "localhost,127.0.0.0/8,::1";

/// A client with one setup.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    client: Client,
    peer: String,
    guard: Option<Arc<AddressGuard>>,
}

impl Engine {
    /// As [`Self::with`], in this process as it is.
    pub(crate) fn new(setup: &Setup) -> Result<Self, Failure> {
        Self::with(setup, tls(setup)?)
    }

    /// A client with settings of TLS that [`tls`] made. Reads no files.
    pub(crate) fn with(setup: &Setup, tls: ClientConfig) -> Result<Self, Failure> {
        install_provider();
        let mut builder = Client::builder()
            .user_agent(concat!("podstead/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(setup.connect_timeout)
            .pool_idle_timeout(setup.keep_idle)
            .tls_backend_preconfigured(tls);
        let guard = setup.is_led.then(|| Arc::new(AddressGuard::new(setup.proxies.hosts())));
        if let Some(guard) = &guard {
            builder = builder.dns_resolver(GuardedResolver(Arc::clone(guard)));
        }
        let client =
            through(builder, &setup.proxies).and_then(ClientBuilder::build).map_err(|error| unprepared(&error.without_url()))?;
        Ok(Self { client, peer: setup.peer.clone(), guard })
    }

    /// Sends a request; the answer up to the end of its headers.
    pub(crate) async fn send(&self, request: Request) -> Result<(Head, Coming), Failure> {
        let Request { method, url, headers, body, unpack, timeout, homes } = request;
        if Setup::peer_of(&url) != self.peer {
            return Err(Failure::Setup("it is for another server".to_owned()));
        }
        if let Some(guard) = &self.guard {
            homes.into_iter().for_each(|home| guard.allow(home));
        }
        let mut asked = self.client.request(method, url).headers(headers);
        if !body.is_empty() {
            asked = asked.body(body);
        }
        if let Some(timeout) = timeout {
            asked = asked.timeout(timeout);
        }
        let response = asked.send().await.map_err(|error| Failure::of(&error))?;
        if headers_are_too_large(response.headers()) {
            return Err(Failure::Headers);
        }
        let (status, headers, remote) = (response.status().as_u16(), chosen(response.headers()), response.remote_addr());
        let coming = Coming::new(response, unpack);
        Ok((Head { status, headers, length: coming.length(), remote }, coming))
    }
}

/// The settings of TLS. Reads the certificate authorities of the host if they are needed.
pub(crate) fn tls(setup: &Setup) -> Result<ClientConfig, Failure> {
    install_provider();
    setup.tls().map_err(|error| unprepared(&error))
}

fn through(builder: ClientBuilder, proxies: &Proxies) -> reqwest::Result<ClientBuilder> {
    // None of the environment of this process: a job has none.
    let builder = builder.no_proxy();
    match proxies {
        Proxies::Environment(proxies) => Ok(proxies.proxies().into_iter().fold(builder, ClientBuilder::proxy)),
        Proxies::One { url, authorization } => {
            let mut proxy = Proxy::all(url)?.no_proxy(NoProxy::from_string(DIRECT));
            if let Some(mut value) = authorization.as_ref().and_then(|Hidden(text)| HeaderValue::from_str(text).ok()) {
                value.set_sensitive(true);
                proxy = proxy.custom_http_auth(value);
            }
            Ok(builder.proxy(proxy))
        }
    }
}

fn unprepared(error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::Setup(error_chain(error).to_string())
}
