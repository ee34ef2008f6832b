//! Settings of the connections of a source, from its files as they are now.

use super::{HttpAccess, HttpError};
use crate::credentials::AuthFiles;
use podstead_fetch::{Hidden, Proxies, Setup, Trust};
use podstead_outbound as outbound;
use reqwest::Url;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A little less than what servers keep idle connections for, so that no request meets one that is being closed.
const KEEP_IDLE: Duration = Duration::from_secs(60);

/// Reads the files. Where a redirect leads (`is_led`), no client certificate is shown.
pub(super) fn setup(access: &HttpAccess, url: &Url, is_led: bool) -> Result<Setup, HttpError> {
    let proxies = proxies(access)?;
    let identity = access.client_certificate.as_ref().filter(|_| !is_led);
    let identity = identity.map(|(certificate, key)| outbound::identity_text(certificate, key)).transpose();
    let trust = match &access.ca_file {
        Some(path) => Trust::only(&outbound::certificates(path).map_err(HttpError::Tls)?),
        None => Trust::of_host(&[], url, &proxies),
    };
    Ok(Setup {
        peer: Setup::peer_of(url),
        connect_timeout: CONNECT_TIMEOUT,
        keep_idle: KEEP_IDLE,
        trust,
        identity: identity.map_err(HttpError::Tls)?.map(|pem| Hidden(pem.expose().to_owned())),
        proxies,
        is_led,
    })
}

fn proxies(access: &HttpAccess) -> Result<Proxies, HttpError> {
    let Some(proxy) = &access.proxy else { return Ok(Proxies::of_environment()) };
    let value = access.proxy_auth.as_ref().map(AuthFiles::read).transpose().map_err(HttpError::Credentials)?;
    let value = value.as_ref().and_then(|value| value.to_str().ok());
    Ok(Proxies::One { url: proxy.to_string(), authorization: value.map(|value| Hidden(value.to_owned())) })
}

/// Names of the proxies.
pub(super) fn proxy_hosts(access: &HttpAccess) -> Vec<String> {
    match &access.proxy {
        Some(proxy) => proxy.host_str().map(str::to_owned).into_iter().collect(),
        None => Proxies::of_environment().hosts(),
    }
}
