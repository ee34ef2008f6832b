//! Debian's docker-registry with artifacts.

use super::registry_server::{self, HTTP};
use podstead::image::RegistryConfig;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// A registry on a port that the kernel chose; gone with its last test.
pub(super) struct Registry {
    server: registry_server::Registry,
    pub(super) host: String,
    directory: Arc<tempfile::TempDir>,
}

impl Registry {
    pub(super) fn start() -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        Self::of(registry_server::Registry::serve(directory.path(), HTTP), directory)
    }

    /// Another one with the same content, over TLS and for those with a password. Returns also the file of its authority.
    pub(super) fn secured(&self) -> (Self, PathBuf) {
        let ca_key = rcgen::KeyPair::generate().unwrap();
        let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let ca_certificate = ca.self_signed(&ca_key).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let leaf = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = leaf.signed_by(&key, &rcgen::Issuer::new(ca, ca_key)).unwrap();
        let at = |name: &str| self.directory.path().join(name);
        for (name, content) in [("cert.pem", certificate.pem()), ("key.pem", key.serialize_pem()), ("ca.pem", ca_certificate.pem())]
        {
            std::fs::write(at(name), content).unwrap();
        }
        let shown = |name: &str| at(name).display().to_string();
        let http =
            format!("http: {{addr: '127.0.0.1:0', tls: {{certificate: {}, key: {}}}}}\n", shown("cert.pem"), shown("key.pem"));
        let server = registry_server::Registry::serve_private(self.directory.path(), &http);
        (Self::of(server, Arc::clone(&self.directory)), at("ca.pem"))
    }

    fn of(server: registry_server::Registry, directory: Arc<tempfile::TempDir>) -> Self {
        Self { host: server.host.clone(), server, directory }
    }

    pub(super) fn url(&self) -> String {
        format!("oci://{}/fleet", self.host)
    }

    pub(super) fn config(&self) -> RegistryConfig {
        RegistryConfig { host: self.host.clone(), http: true, ..RegistryConfig::default() }
    }

    /// Removes a manifest, and the tags that name it.
    pub(super) fn delete(&self, digest: &str) {
        let mut stream = std::net::TcpStream::connect(&self.host).unwrap();
        write!(stream, "DELETE /v2/fleet/manifests/{digest} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.host).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("202 Accepted"), "{answer}");
    }

    pub(super) fn stop(&mut self) {
        self.server.stop();
    }
}
