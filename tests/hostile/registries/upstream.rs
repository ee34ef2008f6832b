//! Debian's docker-registry with a password, for hostile proxies to stand before.

use super::server::Reply;
use super::store::{PASSWORD, USER};
use crate::support::{image_archive, registry};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};

/// User name and bcrypt of the password.
const HTPASSWD: &str = "me:$2y$05$uq2PYQKkcY9IDGP4vMobYeuxhj7Zue3O9y8scQLuPHtPf8r4VC7Qu\n";

pub(super) struct Upstream {
    process: Child,
    host: String,
    _directory: tempfile::TempDir,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Upstream {
    pub(super) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        std::fs::write(at("htpasswd"), HTPASSWD).unwrap();
        let config = format!(
            "version: 0.1\nlog: {{level: info, accesslog: {{disabled: true}}}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
             http: {{addr: '127.0.0.1:0'}}\nauth: {{htpasswd: {{realm: test, path: {}}}}}\n",
            at("data"),
            at("htpasswd")
        );
        let (process, port) = registry::serve(directory.path(), &config);
        Self { process, host: format!("127.0.0.1:{port}"), _directory: directory }
    }

    /// Pushes the test image as `app:1`.
    pub(super) fn push(&self, scratch: &Path) {
        let archive = image_archive().display();
        let mut skopeo = Command::new("skopeo");
        skopeo
            .args(["copy", "--quiet", "--insecure-policy", "--dest-tls-verify=false", "--dest-creds"])
            .arg(format!("{USER}:{PASSWORD}"));
        let done =
            skopeo.arg(format!("oci-archive:{archive}")).arg(format!("docker://{}/app:1", self.host)).current_dir(scratch).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Its answer to a request.
    pub(super) fn forward(&self, method: &str, target: &str, authorization: Option<&str>) -> Reply {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let authorization = authorization.map(|value| format!("Authorization: {value}\r\n")).unwrap_or_default();
        let accept = "application/vnd.oci.image.manifest.v1+json";
        write!(stream, "{method} {target} HTTP/1.0\r\nHost: {}\r\nAccept: {accept}\r\n{authorization}\r\n", self.host).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let kept = |line: &&str| {
            let name = line.to_lowercase();
            ["content-length:", "connection:", "transfer-encoding:"].iter().all(|header| !name.starts_with(header))
        };
        Reply::Whole(status, lines.filter(kept).map(str::to_owned).collect(), answer[end + 4..].to_vec())
    }
}
