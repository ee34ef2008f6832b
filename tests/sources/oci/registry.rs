//! Debian's docker-registry with artifacts.

use super::registry_server::serve;
use podstead::image::RegistryConfig;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;

/// bcrypt of `open sesame`.
const HTPASSWD: &str = "me:$2y$05$uq2PYQKkcY9IDGP4vMobYeuxhj7Zue3O9y8scQLuPHtPf8r4VC7Qu\n";

/// A registry on a port that the kernel chose; gone with its last test.
pub(super) struct Registry {
    process: Child,
    pub(super) host: String,
    directory: Arc<tempfile::TempDir>,
}

impl Registry {
    pub(super) fn start() -> Self {
        Self::start_at(Arc::new(tempfile::tempdir().unwrap()), "http: {addr: '127.0.0.1:0'}\n")
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
        for (name, content) in [
            ("cert.pem", certificate.pem()),
            ("key.pem", key.serialize_pem()),
            ("ca.pem", ca_certificate.pem()),
            ("htpasswd", HTPASSWD.to_owned()),
        ] {
            std::fs::write(at(name), content).unwrap();
        }
        let shown = |name: &str| at(name).display().to_string();
        let http = format!(
            "http: {{addr: '127.0.0.1:0', tls: {{certificate: {}, key: {}}}}}\nauth: {{htpasswd: {{realm: test, path: {}}}}}\n",
            shown("cert.pem"),
            shown("key.pem"),
            shown("htpasswd")
        );
        (Self::start_at(Arc::clone(&self.directory), &http), at("ca.pem"))
    }

    fn start_at(directory: Arc<tempfile::TempDir>, http: &str) -> Self {
        let data = directory.path().join("data");
        let config = format!(
            "version: 0.1\nlog: {{level: info, accesslog: {{disabled: true}}}}\n\
             storage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\n{http}",
            data.display()
        );
        let (process, port) = serve(directory.path(), &config);
        Self { process, host: format!("127.0.0.1:{port}"), directory }
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
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
