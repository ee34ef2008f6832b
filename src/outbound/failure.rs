//! Failures between this host and another one, as messages for operators. **Pure**.

use super::{ForbiddenAddress, MAX_HEADERS};
use rustls::CertificateError;
use serde::{Deserialize, Serialize};
use std::error::Error;

/// Message of [`Failure::Tls`] for a host without TLS; callers that know how to configure plain http may add that.
pub const NO_TLS: &str = "the server does not use TLS";

/// Names of a certificate that a message lists.
const MAX_NAMES: usize = 4;

/// Reason why there is no complete response. Callers name the other host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Failure {
    /// No address for its name; what the resolver said.
    Resolve(String),
    /// No connection; what the system said.
    Connect(String),
    /// No secure connection; what is wrong with it, and what may help.
    Tls(String),
    /// Connected, then silent or too slow.
    Stalled,
    /// The answer ended early; what was seen.
    Broken(String),
    /// The server led to an address to which it may not lead.
    Forbidden(ForbiddenAddress),
    /// Headers of more than [`MAX_HEADERS`](super::MAX_HEADERS) bytes.
    Headers,
    /// The body is larger than this number of bytes, compressed or not.
    TooLarge(u64),
    /// The body cannot be decompressed; what is wrong with it.
    Encoding(String),
    /// No request can be sent with these settings; what is wrong with them.
    Setup(String),
    /// The process that asked failed by itself; what became of it.
    Process(String),
}

impl Failure {
    /// From what the HTTP client says. Holds nothing of the URL, which may have secrets in it.
    pub fn of(error: &reqwest::Error) -> Self {
        let causes = causes(error);
        // The first one names the URL.
        let reason = causes.iter().skip(1).last().map_or_else(|| "the request failed".to_owned(), ToString::to_string);
        if let Some(tls) = causes.iter().find_map(|cause| tls_error(*cause)) {
            return Self::Tls(explain_tls(tls));
        }
        if let Some(forbidden) = causes.iter().find_map(|cause| cause.downcast_ref::<ForbiddenAddress>()) {
            return Self::Forbidden(forbidden.clone());
        }
        if causes.iter().any(|cause| cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse_too_large)) {
            return Self::Headers;
        }
        if causes.iter().any(|cause| cause.to_string().starts_with("dns error")) {
            return Self::Resolve(reason);
        }
        match (error.is_connect(), error.is_timeout()) {
            (true, true) => Self::Connect("connection timed out".into()),
            (true, false) => Self::Connect(reason),
            (false, true) => Self::Stalled,
            (false, false) => Self::Broken(reason),
        }
    }

    /// The same failure with each of its texts changed.
    #[must_use]
    pub fn map_texts(self, change: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Resolve(text) => Self::Resolve(change(&text)),
            Self::Connect(text) => Self::Connect(change(&text)),
            Self::Tls(text) => Self::Tls(change(&text)),
            Self::Broken(text) => Self::Broken(change(&text)),
            Self::Forbidden(ForbiddenAddress(host)) => Self::Forbidden(ForbiddenAddress(change(&host))),
            Self::Setup(text) => Self::Setup(change(&text)),
            Self::Process(text) => Self::Process(change(&text)),
            Self::Encoding(text) => Self::Encoding(change(&text)),
            Self::Stalled | Self::Headers | Self::TooLarge(_) => self,
        }
    }

    /// With the name of the other host.
    pub fn with_host(&self, host: &str) -> String {
        match self {
            Self::Resolve(reason) => format!("cannot resolve {host}: {reason}"),
            Self::Connect(reason) => format!("cannot connect to {host}: {reason}"),
            Self::Tls(reason) => format!("TLS connection to {host} failed: {reason}"),
            Self::Stalled => format!("{host} stopped responding"),
            Self::Broken(reason) => format!("response from {host} was cut off: {reason}"),
            Self::Forbidden(error) => error.to_string(),
            Self::Headers => format!("response headers from {host} are larger than {} KiB", MAX_HEADERS >> 10),
            Self::TooLarge(limit) => format!("response from {host} is larger than {limit} bytes"),
            Self::Encoding(reason) => format!("response from {host} {reason}"),
            Self::Setup(reason) => format!("cannot prepare a request to {host}: {reason}"),
            Self::Process(reason) => format!("no response from {host}: {reason}"),
        }
    }
}

fn causes(error: &reqwest::Error) -> Vec<&(dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |cause: &&(dyn Error + 'static)| (*cause).source()).collect()
}

/// rustls's errors come in IO errors in IO errors, which do not name what they hold as their source.
fn tls_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut cause = cause;
    while let Some(inner) = cause.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref()) {
        cause = inner;
    }
    cause.downcast_ref()
}

fn explain_tls(error: &rustls::Error) -> String {
    use rustls::{AlertDescription, Error};
    match error {
        Error::InvalidCertificate(reason) => explain_certificate(reason),
        Error::InvalidMessage(_) => NO_TLS.into(),
        Error::AlertReceived(AlertDescription::CertificateRequired) => "the server requires a client certificate".into(),
        Error::AlertReceived(AlertDescription::ProtocolVersion) | Error::PeerIncompatible(_) => {
            format!("the server has no version and ciphers of TLS 1.2 or 1.3 in common with this host ({error})")
        }
        other => other.to_string(),
    }
}

fn explain_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => {
            "its certificate is signed by an unknown authority (install ca-certificates, or set caFile)".into()
        }
        CertificateError::BadSignature => {
            "its certificate is signed by another key than that of the known authority with this name (renew caFile)".into()
        }
        CertificateError::Expired => "its certificate has expired, or this host's clock is wrong".into(),
        CertificateError::ExpiredContext { time, not_after } => {
            let days = time.as_secs().saturating_sub(not_after.as_secs()) / 86_400;
            format!("its certificate has expired {}, or this host's clock is wrong", days_ago(days))
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet (check this host's clock)".into()
        }
        CertificateError::NotValidForName => "its certificate is for another name".into(),
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            "its certificate has no subjectAltName, and is for no name (make one with the name of the server)".into()
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            let more = if presented.len() > MAX_NAMES { " and others" } else { "" };
            let names: Vec<&str> = presented.iter().take(MAX_NAMES).map(|name| name_of(name)).collect();
            format!("its certificate is for another name: {}{more}", names.join(", "))
        }
        CertificateError::Other(other) => match other.to_string() {
            reason if reason.contains("CaUsedAsEndEntity") => {
                "its certificate is its own authority (CA:TRUE), as openssl req -x509 makes it: make an \
                authority, sign a certificate of the server with it, and name the authority as caFile"
                    .into()
            }
            reason if reason.contains("UnsupportedCertVersion") => {
                "its certificate has version 1 of X.509: make one of version 3, with a subjectAltName".into()
            }
            reason => format!("its certificate cannot be used: {reason}"),
        },
        other => format!("its certificate cannot be used: {other}"),
    }
}

/// `DnsName("a.lan")` as `a.lan`.
fn name_of(presented: &str) -> &str {
    presented.split('"').nth(1).unwrap_or(presented)
}

fn days_ago(days: u64) -> String {
    match days {
        0 => "today".into(),
        1 => "a day ago".into(),
        days => format!("{days} days ago"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_names_the_host() {
        let all = [
            Failure::Resolve("x".into()),
            Failure::Connect("x".into()),
            Failure::Tls("x".into()),
            Failure::Stalled,
            Failure::Broken("x".into()),
            Failure::Headers,
            Failure::Setup("x".into()),
            Failure::Process("x".into()),
        ];
        for failure in all {
            assert!(failure.with_host("git.lan").contains("git.lan"), "{failure:?}");
        }
    }

    #[test]
    fn unusable_certificates_are_explained() {
        use rustls::pki_types::{ServerName, UnixTime};
        let at = |days: u64| UnixTime::since_unix_epoch(std::time::Duration::from_secs(days * 86_400));
        let expected = ServerName::try_from("registry.lan").unwrap();
        let for_names = |presented: &[&str]| CertificateError::NotValidForNameContext {
            expected: expected.clone(),
            presented: presented.iter().map(|name| (*name).to_owned()).collect(),
        };
        for (error, words) in [
            (CertificateError::ExpiredContext { time: at(30), not_after: at(20) }, "expired 10 days ago"),
            (for_names(&["DnsName(\"a.lan\")"]), "for another name: a.lan"),
            (for_names(&[]), "no subjectAltName"),
            (for_names(&["DnsName(\"a.lan\")"; 9]), "and others"),
            (CertificateError::BadSignature, "renew caFile"),
        ] {
            let explained = explain_tls(&rustls::Error::InvalidCertificate(error));
            assert!(explained.contains(words), "{explained}");
        }
    }

    #[tokio::test]
    async fn a_refused_connection_is_told_without_the_secrets_of_its_url() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        super::super::install_provider();
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        let error = client.get(format!("http://127.0.0.1:{port}/?token=secret")).send().await.unwrap_err();
        let failure = Failure::of(&error);
        assert!(matches!(&failure, Failure::Connect(reason) if reason.contains("refused")), "{failure:?}");
        assert!(!format!("{failure:?}").contains("secret"));
    }
}
