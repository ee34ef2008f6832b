//! The certificate of the TLS port: made once, valid always, trusted because it is pinned (Q5). The clock plays no part: a host may be in 1970.

use podstead_sys::atomic_file::write_durable_with_directories;
use podstead_telemetry::error_chain;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, PKCS_ECDSA_P256_SHA256, SanType, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Errors of certificate and key.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// They cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the disk.
        #[source]
        source: io::Error,
    },
    /// They cannot be kept.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the disk.
        #[source]
        source: io::Error,
    },
    /// They cannot be made.
    #[error("create a certificate for {name}")]
    Make {
        /// Its DNS name.
        name: String,
        /// The error of the library.
        #[source]
        source: rcgen::Error,
    },
    /// The file is of another name.
    #[error("the file does not have a certificate and its private key: it is not the certificate of {name}")]
    OtherName {
        /// The name of this host.
        name: String,
    },
    /// The file has no certificate or no key.
    #[error("the file does not have a certificate and its private key")]
    Pem(#[source] pem::Error),
    /// Certificate and key cannot be used together.
    #[error("the file does not have a certificate and its private key")]
    Tls(#[source] rustls::Error),
}

/// Certificate and private key of the TLS port.
#[derive(Clone, Debug)]
pub struct ServerIdentity {
    /// The certificate as PEM, which clients pin.
    pub(crate) certificate: String,
    /// The name in the certificate.
    pub(crate) name: String,
    pub(crate) tls: Arc<ServerConfig>,
}

impl ServerIdentity {
    /// Reads certificate and key, or makes them. What cannot be used is made anew, with a warning: kubeconfigs that pin the old one end then.
    pub fn load_or_make(path: &Path, node: &str) -> Result<Self, IdentityError> {
        let name = format!("{node}.podstead");
        match fs::read_to_string(path) {
            Ok(text) => match Self::parse(&text, &name) {
                Ok(identity) => return Ok(identity),
                Err(error) => {
                    let (error, path) = (error_chain(&error).to_string(), path.display());
                    tracing::warn!(%path, error, "the certificate of the API cannot be used: making another one; existing kubeconfigs no longer work");
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            Err(source) => return Err(IdentityError::Read { path: path.to_owned(), source }),
        }
        let text = make(&name).map_err(|source| IdentityError::Make { name: name.clone(), source })?;
        // One file, so that certificate and key are always of one making.
        let written = write_durable_with_directories(path, text.as_bytes(), 0o600, 0o700);
        written.map_err(|source| IdentityError::Write { path: path.to_owned(), source })?;
        Self::parse(&text, &name)
    }

    fn parse(text: &str, name: &str) -> Result<Self, IdentityError> {
        // A host that was renamed gets another certificate.
        let text = text.strip_prefix(&heading(name)).ok_or_else(|| IdentityError::OtherName { name: name.to_owned() })?;
        let certificate = CertificateDer::from_pem_slice(text.as_bytes()).map_err(IdentityError::Pem)?;
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(IdentityError::Pem)?;
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider())).with_safe_default_protocol_versions();
        let builder = builder.map_err(IdentityError::Tls)?.with_no_client_auth();
        let mut tls = builder.with_single_cert(vec![certificate], key).map_err(IdentityError::Tls)?;
        // WebSockets and SPDY need the connection itself.
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let end = "-----END CERTIFICATE-----\n";
        let certificate = text.split_inclusive(end).next().unwrap_or_default().to_owned();
        Ok(Self { certificate, name: name.to_owned(), tls: Arc::new(tls) })
    }
}

/// First line of the file; what reads PEM skips it.
fn heading(name: &str) -> String {
    format!("{name}\n")
}

/// Certificate and key as PEM.
fn make(name: &str) -> Result<String, rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    // For clients that know no tls-server-name.
    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    params.subject_alt_names.extend(loopback.map(SanType::IpAddress));
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.not_before = date_time_ymd(1970, 1, 1);
    params.not_after = date_time_ymd(9999, 12, 31);
    let certificate = params.self_signed(&key)?;
    Ok(format!("{}{}{}", heading(name), certificate.pem().replace("\r\n", "\n"), key.serialize_pem().replace("\r\n", "\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn certificate_stays_until_it_is_broken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("api/tls.pem");
        let first = ServerIdentity::load_or_make(&path, "edge1").unwrap();
        assert_eq!(first.name, "edge1.podstead");
        assert!(first.certificate.starts_with("-----BEGIN CERTIFICATE-----") && !first.certificate.contains("PRIVATE"));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(ServerIdentity::load_or_make(&path, "edge1").unwrap().certificate, first.certificate);
        let renamed = ServerIdentity::load_or_make(&path, "edge2").unwrap();
        assert_ne!(renamed.certificate, first.certificate);
        for broken in ["", "torn", &first.certificate] {
            fs::write(&path, broken).unwrap();
            assert_ne!(ServerIdentity::load_or_make(&path, "edge1").unwrap().certificate, first.certificate, "{broken:?}");
        }
    }

    #[test]
    fn unusable_directory_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("api"), "a file").unwrap();
        assert!(ServerIdentity::load_or_make(&directory.path().join("api/tls.pem"), "edge1").is_err());
    }
}
