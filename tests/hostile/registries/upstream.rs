//! Debian's docker-registry with a password, for hostile proxies to stand before.

use super::server::Reply;
use crate::support::image_archive;
use crate::support::registry::{HTTP, Registry};
use std::io::{Read, Write};
use std::net::TcpStream;

pub(super) struct Upstream {
    registry: Registry,
    _directory: tempfile::TempDir,
}

impl Upstream {
    pub(super) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { registry: Registry::serve_private(directory.path(), HTTP), _directory: directory }
    }

    /// Pushes the test image as `app:1`.
    pub(super) fn push(&self) {
        self.registry.push(image_archive(), "app:1");
    }

    /// Its answer to a request.
    pub(super) fn forward(&self, method: &str, target: &str, authorization: Option<&str>) -> Reply {
        let mut stream = TcpStream::connect(&self.registry.host).unwrap();
        let authorization = authorization.map(|value| format!("Authorization: {value}\r\n")).unwrap_or_default();
        let accept = "application/vnd.oci.image.manifest.v1+json";
        write!(stream, "{method} {target} HTTP/1.0\r\nHost: {}\r\nAccept: {accept}\r\n{authorization}\r\n", self.registry.host)
            .unwrap();
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
