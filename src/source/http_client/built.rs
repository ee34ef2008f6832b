//! A client, and the files that it was made of.

use super::{HttpAccess, HttpError};
use crate::credentials::AuthFiles;
use podstead_outbound::{self as outbound, AddressGuard, Authorities, GuardedResolver};
use reqwest::{Client, Proxy, Url};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A little less than what servers keep idle connections for, so that no request meets one that is being closed.
const KEEP_IDLE: Duration = Duration::from_secs(60);

/// Everything that the kernel changes when a file's content changes; `None` for a missing file.
type Stamp = Option<(u64, u64, u64, i64, i64, i64, i64)>;

/// Clients of one state of the files.
#[derive(Debug)]
pub(super) struct Built {
    /// For the configured origin.
    pub(super) own: Client,
    /// Addresses that redirects may lead to.
    pub(super) guard: Arc<AddressGuard>,
    /// For where redirects lead: without the client certificate, behind the guard.
    bare: OnceLock<Client>,
    stamps: Vec<Stamp>,
}

impl Built {
    /// Reads the files. `url` determines whether TLS is needed from the start.
    pub(super) fn new(access: &HttpAccess, url: &Url) -> Result<Self, HttpError> {
        outbound::install_provider();
        // Before they are read: what changes meanwhile is then found to have changed.
        let stamps = stamps(access);
        let own = client(access, true, url, None)?;
        let proxies = match &access.proxy {
            Some(proxy) => proxy.host_str().map(str::to_owned).into_iter().collect(),
            None => outbound::proxies_of_environment(),
        };
        Ok(Self { own, guard: Arc::new(AddressGuard::new(proxies)), bare: OnceLock::new(), stamps })
    }

    /// The client for a URL that a redirect leads to.
    pub(super) fn bare(&self, access: &HttpAccess, url: &Url) -> Result<&Client, HttpError> {
        self.guard.check(url).map_err(|error| HttpError::forbidden(url, error))?;
        if let Some(client) = self.bare.get() {
            return Ok(client);
        }
        let client = client(access, false, url, Some(GuardedResolver(Arc::clone(&self.guard))))?;
        Ok(self.bare.get_or_init(|| client))
    }

    pub(super) fn is_current(&self, access: &HttpAccess) -> bool {
        self.stamps == stamps(access)
    }
}

fn stamps(access: &HttpAccess) -> Vec<Stamp> {
    let HttpAccess { credentials: _, proxy: _, proxy_auth, ca_file, client_certificate } = access;
    let (certificate, key) = client_certificate.iter().map(|(certificate, key)| (certificate, key)).unzip::<_, _, Vec<_>, Vec<_>>();
    let files: Vec<&PathBuf> =
        ca_file.iter().chain(certificate).chain(key).chain(proxy_auth.iter().flat_map(AuthFiles::files)).collect();
    files
        .into_iter()
        .map(|path| {
            let meta = std::fs::metadata(path).ok()?;
            Some((meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()))
        })
        .collect()
}

/// The resolver is for clients that others lead somewhere.
fn client(access: &HttpAccess, with_identity: bool, url: &Url, resolver: Option<GuardedResolver>) -> Result<Client, HttpError> {
    let mut builder = Client::builder()
        .user_agent(concat!("podstead/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(KEEP_IDLE)
        .pool_max_idle_per_host(1);
    if let Some(resolver) = resolver.clone() {
        builder = builder.dns_resolver(resolver);
    }
    if let Some(proxy) = &access.proxy {
        // An address on this host is not reached through it, as with the environment's proxies.
        let direct = reqwest::NoProxy::from_string("localhost,127.0.0.0/8,::1");
        builder = builder.proxy(through(proxy, access)?.no_proxy(direct));
    }
    let identity = access.client_certificate.as_ref().filter(|_| with_identity);
    let identity = identity.map(|(certificate, key)| outbound::identity(certificate, key)).transpose().map_err(HttpError::Tls)?;
    let authorities = match &access.ca_file {
        Some(path) => Authorities::Only(outbound::certificates(path).map_err(HttpError::Tls)?),
        None => Authorities::HostAnd(Vec::new()),
    };
    match outbound::client_config(authorities, identity) {
        Ok(tls) => builder.tls_backend_preconfigured(tls).build().map_err(setup),
        // A host without certificate authorities can still ask over http; and it cannot ask over https.
        Err(_) if access.ca_file.is_none() && url.scheme() == "http" => {
            let trusting_nobody = HttpAccess { ca_file: None, client_certificate: None, ..access.clone() };
            client_without_authorities(&trusting_nobody, resolver)
        }
        Err(error) => Err(unprepared(&error)),
    }
}

fn through(proxy: &Url, access: &HttpAccess) -> Result<Proxy, HttpError> {
    let proxy = Proxy::all(proxy.clone()).map_err(setup)?;
    match &access.proxy_auth {
        Some(auth) => Ok(proxy.custom_http_auth(auth.read().map_err(HttpError::Credentials)?)),
        None => Ok(proxy),
    }
}

fn client_without_authorities(access: &HttpAccess, resolver: Option<GuardedResolver>) -> Result<Client, HttpError> {
    let mut builder = Client::builder()
        .user_agent(concat!("podstead/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .tls_backend_preconfigured(
            outbound::client_config(Authorities::Only(Vec::new()), None).map_err(|error| unprepared(&error))?,
        );
    if let Some(resolver) = resolver {
        builder = builder.dns_resolver(resolver);
    }
    if let Some(proxy) = &access.proxy {
        builder = builder.proxy(through(proxy, access)?);
    }
    builder.build().map_err(setup)
}

fn setup(error: reqwest::Error) -> HttpError {
    unprepared(&error.without_url())
}

fn unprepared(error: &(dyn std::error::Error + 'static)) -> HttpError {
    let text = podstead_telemetry::error_chain(error).to_string();
    HttpError::Setup(format!("{text} (if the host has no certificate authorities, install ca-certificates or set caFile)"))
}
