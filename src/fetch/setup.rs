//! Settings of connections.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use podstead_outbound::{Authorities, Certificate, ClientIdentity, EnvironmentProxies, HostAuthorities, TlsError, client_config};
use reqwest::Url;
use rustls::ClientConfig;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Text that is sent to the job, and shown to nobody.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hidden(
    /// The text itself.
    pub String,
);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden")
    }
}

/// Settings of connections to one server. One job has one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The server: scheme, host and port, see [`Self::peer_of`].
    pub peer: String,
    /// Limit of the time to connect.
    pub connect_timeout: Duration,
    /// Time for which a connection without requests is kept.
    pub keep_idle: Duration,
    /// Certificate authorities of servers.
    pub trust: Trust,
    /// Certificate and key of this client, PEM.
    pub identity: Option<Hidden>,
    /// Proxies.
    pub proxies: Proxies,
    /// A server leads there: of local addresses, only those of [`Request::homes`](crate::Request::homes) are reached.
    pub is_led: bool,
}

/// Certificate authorities that servers may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Trust {
    /// None: nothing is asked over TLS.
    Nobody,
    /// Those of the host, and further ones.
    HostAnd {
        /// Those of the host.
        host: HostAuthorities,
        /// Certificates (DER) in Base64.
        further: Vec<String>,
        /// A host without any asks over http alone.
        is_optional: bool,
    },
    /// These certificates (DER) alone, in Base64.
    Only(Vec<String>),
}

/// Proxies of connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Proxies {
    /// Those that the environment of the daemon names.
    Environment(EnvironmentProxies),
    /// One for all but addresses of this host.
    One {
        /// Its URL.
        url: String,
        /// The value of `Proxy-Authorization`.
        authorization: Option<Hidden>,
    },
}

impl Trust {
    /// Authorities of the host and `further` ones for `url`, which may be reached through `proxies`. Where nothing speaks TLS they are not even read.
    pub fn of_host(further: &[Certificate], url: &Url, proxies: &Proxies) -> Self {
        let is_plain = url.scheme() == "http";
        match is_plain && !proxies.is_secure() {
            true => Self::Nobody,
            false => Self::HostAnd { host: HostAuthorities::of_this_process(), further: written(further), is_optional: is_plain },
        }
    }

    /// These authorities alone.
    pub fn only(certificates: &[Certificate]) -> Self {
        Self::Only(written(certificates))
    }
}

impl Proxies {
    /// Those of the environment of this process.
    pub fn of_environment() -> Self {
        Self::Environment(EnvironmentProxies::of_this_process())
    }

    /// Names of the proxies.
    pub fn hosts(&self) -> Vec<String> {
        match self {
            Self::Environment(proxies) => proxies.hosts(),
            Self::One { url, .. } => Url::parse(url).ok().and_then(|url| Some(url.host_str()?.to_owned())).into_iter().collect(),
        }
    }

    fn is_secure(&self) -> bool {
        match self {
            Self::Environment(proxies) => proxies.is_secure(),
            Self::One { url, .. } => url.starts_with("https:"),
        }
    }
}

fn written(certificates: &[Certificate]) -> Vec<String> {
    certificates.iter().map(|certificate| STANDARD.encode(certificate)).collect()
}

fn read(written: &[String]) -> Vec<Certificate> {
    written.iter().filter_map(|text| STANDARD.decode(text).ok()).map(Certificate::from).collect()
}

impl Setup {
    /// The server of a URL.
    pub fn peer_of(url: &Url) -> String {
        url.origin().ascii_serialization()
    }

    /// Settings of TLS. Reads the certificate authorities of the host if they are needed.
    pub(crate) fn tls(&self) -> Result<ClientConfig, TlsError> {
        let identity = self.identity.as_ref().and_then(|Hidden(pem)| ClientIdentity::from_pem(pem.as_bytes()));
        let nobody = || Authorities::Only(Vec::new());
        match &self.trust {
            Trust::Nobody => client_config(nobody(), None),
            Trust::Only(certificates) => client_config(Authorities::Only(read(certificates)), identity),
            Trust::HostAnd { host, further, is_optional } => {
                match client_config(Authorities::HostAnd(host.clone(), read(further)), identity) {
                    Err(_) if *is_optional => client_config(nobody(), None),
                    made => made,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(url: &str) -> Proxies {
        Proxies::One { url: url.to_owned(), authorization: Some(Hidden("secret".into())) }
    }

    #[test]
    fn authorities_are_read_where_something_speaks_tls() {
        let url = |text: &str| Url::parse(text).unwrap();
        let trust = |at: &str, through: &str| Trust::of_host(&[], &url(at), &proxy(through));
        assert_eq!(trust("http://a/", "http://proxy/"), Trust::Nobody);
        assert!(matches!(trust("http://a/", "https://proxy/"), Trust::HostAnd { is_optional: true, .. }));
        assert!(matches!(trust("https://a/", "http://proxy/"), Trust::HostAnd { is_optional: false, .. }));
    }

    #[test]
    fn setup_arrives_as_it_was_sent_and_shows_no_secret() {
        let made = rcgen::generate_simple_self_signed(["me".to_owned()]).unwrap();
        let setup = Setup {
            peer: Setup::peer_of(&Url::parse("https://registry.lan/v2/").unwrap()),
            connect_timeout: Duration::from_millis(1500),
            keep_idle: Duration::from_secs(1),
            trust: Trust::only(&[made.cert.der().clone()]),
            identity: Some(Hidden(format!("{}{}", made.cert.pem(), made.signing_key.serialize_pem()))),
            proxies: proxy("http://proxy.lan:3128/"),
            is_led: true,
        };
        let json = serde_json::to_string(&setup).unwrap();
        assert_eq!(serde_json::from_str::<Setup>(&json).unwrap(), setup);
        assert!(setup.tls().unwrap().client_auth_cert_resolver.has_certs());
        assert_eq!((setup.peer.as_str(), setup.proxies.hosts()), ("https://registry.lan", vec!["proxy.lan".to_owned()]));
        let shown = format!("{setup:?}");
        assert!(!shown.contains("PRIVATE") && !shown.contains("secret"), "{shown}");
    }
}
