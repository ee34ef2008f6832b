//! TLS of connections to other hosts: certificate authorities, client certificates, and the time at which certificates are judged.

use super::Secret;
use super::judge::Judge;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

/// Reason why a file with a certificate or key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    /// It cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
    /// It is not what it has to be.
    #[error("{} {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// Reason why no connection can be prepared.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// This host has no certificate authorities.
    #[error("this host has no certificate authorities")]
    NoAuthorities,
    /// A certificate that is none, or a key that does not fit.
    #[error(transparent)]
    Unfit(#[from] rustls::Error),
}

/// A certificate.
pub type Certificate = CertificateDer<'static>;

/// Places of the certificate authorities of this host, where the environment names other ones than the usual.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostAuthorities {
    file: Option<PathBuf>,
    directories: Vec<PathBuf>,
}

impl HostAuthorities {
    /// Those that the environment of this process names: `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    pub fn of_this_process() -> Self {
        let directories = std::env::var_os("SSL_CERT_DIR").map(|all| std::env::split_paths(&all).collect());
        Self { file: std::env::var_os("SSL_CERT_FILE").map(PathBuf::from), directories: directories.unwrap_or_default() }
    }

    /// One that cannot be read or used is that of a server that nobody asks, as a rule.
    fn load(&self) -> Vec<Certificate> {
        let Self { file, directories } = self;
        if file.is_none() && directories.is_empty() {
            return rustls_native_certs::load_native_certs().certs;
        }
        let of_file = file.as_deref().map(|file| rustls_native_certs::load_certs_from_paths(Some(file), None));
        let of_directories = directories.iter().map(|path| rustls_native_certs::load_certs_from_paths(None, Some(path)));
        of_file.into_iter().chain(of_directories).flat_map(|loaded| loaded.certs).collect()
    }
}

/// Certificate authorities that a client trusts.
#[derive(Clone, Debug)]
pub enum Authorities {
    /// Those of this host, and these.
    HostAnd(HostAuthorities, Vec<Certificate>),
    /// These alone. Without any, no server is trusted.
    Only(Vec<Certificate>),
}

/// A client certificate with its chain, and its private key.
pub struct ClientIdentity {
    chain: Vec<Certificate>,
    key: PrivateKeyDer<'static>,
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity").field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}

impl ClientIdentity {
    /// Reads PEM text with both; `None` if one of them is missing or broken.
    pub fn from_pem(pem: &[u8]) -> Option<Self> {
        let chain = certificates_of(pem)?;
        Some(Self { chain, key: PrivateKeyDer::from_pem_slice(pem).ok()? })
    }
}

/// Makes ring the process's provider of cryptography. To be called before any client is made; any number of times.
pub fn install_provider() {
    // Somebody else in the process may have installed one: any will do.
    let _installed = ring::default_provider().install_default();
}

/// The settings of a client, for `reqwest::ClientBuilder::tls_backend_preconfigured`. Certificates of servers are judged at the newest time that is
/// known (I39).
pub fn client_config(authorities: Authorities, identity: Option<ClientIdentity>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let roots = roots(authorities)?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = if roots.is_empty() {
        builder.with_root_certificates(roots)
    } else {
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let verifier = verifier.map_err(|error| rustls::Error::General(error.to_string()))?;
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Judge::new(verifier)))
    };
    let mut config = match identity {
        Some(ClientIdentity { chain, key }) => builder.with_client_auth_cert(chain, key)?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn roots(authorities: Authorities) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let (of_host, named) = match authorities {
        Authorities::HostAnd(places, named) => (Some(places), named),
        Authorities::Only(named) => (None, named),
    };
    for certificate in named {
        roots.add(certificate)?;
    }
    if let Some(places) = &of_host {
        roots.add_parsable_certificates(places.load());
    }
    if of_host.is_some() && roots.is_empty() { Err(TlsError::NoAuthorities) } else { Ok(roots) }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsFileError> {
    std::fs::read(path).map_err(|source| TlsFileError::Read { path: path.to_owned(), source })
}

/// All certificates of a PEM text; `None` without any, or if one is broken.
pub fn certificates_of(pem: &[u8]) -> Option<Vec<Certificate>> {
    let found: Vec<Certificate> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()?;
    (!found.is_empty()).then_some(found)
}

/// All certificates of a PEM file; at least one.
pub fn certificates(path: &Path) -> Result<Vec<Certificate>, TlsFileError> {
    let bad = |reason: &str| TlsFileError::Unusable { path: path.to_owned(), reason: reason.to_owned() };
    certificates_of(&read(path)?).ok_or_else(|| bad("has no PEM certificate, or a broken one"))
}

/// A client certificate with its chain, and its private key, both PEM. They may be the same file.
pub fn identity(certificate: &Path, key: &Path) -> Result<ClientIdentity, TlsFileError> {
    read_identity(certificate, key).map(|(identity, _)| identity)
}

/// As [`identity`], as the text that [`ClientIdentity::from_pem`] takes.
pub fn identity_text(certificate: &Path, key: &Path) -> Result<Secret, TlsFileError> {
    // Bytes around the certificates that are no text count for nothing.
    read_identity(certificate, key).map(|(_, pem)| Secret::new(String::from_utf8_lossy(&pem)))
}

fn read_identity(certificate: &Path, key: &Path) -> Result<(ClientIdentity, Vec<u8>), TlsFileError> {
    let mut pem = read(certificate)?;
    if key != certificate {
        pem.push(b'\n');
        pem.extend(read(key)?);
    }
    match ClientIdentity::from_pem(&pem) {
        Some(identity) => Ok((identity, pem)),
        None => Err(TlsFileError::Unusable {
            path: certificate.to_owned(),
            reason: format!("and {} are not a client certificate and its private key in PEM format", key.display()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_hold_no_certificate_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        assert!(certificates(&path).unwrap_err().to_string().contains("ca.pem"));
        for content in ["no certificate", "-----BEGIN CERTIFICATE-----\nAAAA"] {
            std::fs::write(&path, content).unwrap();
            assert!(certificates(&path).unwrap_err().to_string().contains("has no PEM certificate"));
        }
        assert!(identity(&path, &path).unwrap_err().to_string().contains("are not a client certificate"));
    }

    #[test]
    fn certificate_and_key_are_read_from_one_file_or_two() {
        let directory = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["me".to_owned()]).unwrap();
        let [certificate, key, both] = ["cert.pem", "key.pem", "both.pem"].map(|name| directory.path().join(name));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        std::fs::write(&both, format!("{}{}", made.cert.pem(), made.signing_key.serialize_pem())).unwrap();
        assert_eq!(certificates(&certificate).unwrap().len(), 1);
        for found in [identity(&certificate, &key).unwrap(), identity(&both, &both).unwrap()] {
            assert!(client_config(Authorities::Only(Vec::new()), Some(found)).is_ok());
        }
        assert!(identity(&certificate, &certificate).is_err());
    }
}
