//! TLS files: certificate authorities and client certificates.

use std::io;
use std::path::{Path, PathBuf};

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

/// Makes ring the process's provider of cryptography. To be called before any client is made; any number of times.
pub fn install_provider() {
    // Somebody else in the process may have installed one: any will do.
    let _installed = rustls::crypto::ring::default_provider().install_default();
}

fn read(path: &Path) -> Result<Vec<u8>, TlsFileError> {
    std::fs::read(path).map_err(|source| TlsFileError::Read { path: path.to_owned(), source })
}

/// All certificates of a PEM file; at least one.
pub fn certificates(path: &Path) -> Result<Vec<reqwest::Certificate>, TlsFileError> {
    let bad = |reason: String| TlsFileError::Unusable { path: path.to_owned(), reason };
    let found = reqwest::Certificate::from_pem_bundle(&read(path)?);
    let found = found.map_err(|_| bad("is not a PEM file with certificates".into()))?;
    if found.is_empty() { Err(bad("has no PEM certificate".into())) } else { Ok(found) }
}

/// A client certificate with its chain, and its private key, both PEM. They may be the same file.
pub fn identity(certificate: &Path, key: &Path) -> Result<reqwest::Identity, TlsFileError> {
    let mut pem = read(certificate)?;
    if key != certificate {
        pem.push(b'\n');
        pem.extend(read(key)?);
    }
    reqwest::Identity::from_pem(&pem).map_err(|_| TlsFileError::Unusable {
        path: certificate.to_owned(),
        reason: format!("and {} are not a client certificate and its private key in PEM format", key.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_hold_no_certificate_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        assert!(certificates(&path).unwrap_err().to_string().contains("ca.pem"));
        std::fs::write(&path, "no certificate").unwrap();
        assert!(certificates(&path).unwrap_err().to_string().contains("certificate"));
        assert!(identity(&path, &path).unwrap_err().to_string().contains("are not a client certificate"));
    }

    #[test]
    fn certificate_and_key_are_read_from_one_file_or_two() {
        install_provider();
        let directory = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["me".to_owned()]).unwrap();
        let [certificate, key, both] = ["cert.pem", "key.pem", "both.pem"].map(|name| directory.path().join(name));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        std::fs::write(&both, format!("{}{}", made.cert.pem(), made.signing_key.serialize_pem())).unwrap();
        assert_eq!(certificates(&certificate).unwrap().len(), 1);
        assert!(identity(&certificate, &key).is_ok());
        assert!(identity(&both, &both).is_ok());
        assert!(identity(&certificate, &certificate).is_err());
    }
}
