//! A `preStop` hook by `httpGet` while the host shuts down and no daemon is there: a process that asks once and ends.
//!
//! It waits for the first bytes of an answer: any answer will do, as for the kubelet. It has no deadline of its own: the shim stops waiting
//! for it when the pod's grace period is over, and it dies with the shim.

use super::helper_job::SPEC_FILE;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use podstead_container::protocol::ShimConfig;
use podstead_container::{ContainerSpec, ShutdownRequest};
use podstead_pod::ContainerId;
use podstead_sys::namespaces::Namespace;
use podstead_sys::netns_socket;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// Reason why the request was not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    /// A file is not what the shim was given.
    #[error("read {}", _0.display())]
    Read(PathBuf, #[source] io::Error),
    /// The container has no such hook.
    #[error("the container has no HTTP preStop hook")]
    NoRequest,
    /// A header would be more than one.
    #[error("header {0:?} contains a control character")]
    Header(String),
    /// The system refused.
    #[error("{0}")]
    System(&'static str, #[source] io::Error),
}

/// Asks what the container's spec says.
pub(super) fn run(config: &Path, container: &str) -> Result<(), AskError> {
    let system = |what, error: nix::Error| AskError::System(what, error.into());
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| system("set the parent death signal", error))?;
    let config: ShimConfig = read(config)?;
    let (paths, uid) = (config.paths(), &config.spec.uid);
    let spec: ContainerSpec = read(&paths.bundle(uid, &ContainerId::new(container)).join(SPEC_FILE))?;
    let request = spec.shutdown.request.ok_or(AskError::NoRequest)?;
    let text = message(&request)?;
    if request.in_pod {
        let pin = paths.namespaces(uid).join(Namespace::Net.file_name());
        netns_socket::enter(&pin).map_err(|error| AskError::System("enter the pod's network namespace", error))?;
    }
    let mut stream = connect(&request).map_err(|error| AskError::System("connect", error))?;
    stream.write_all(text.as_bytes()).map_err(|error| AskError::System("send the request", error))?;
    let read = stream.read(&mut [0; 64]).map_err(|error| AskError::System("read the response", error))?;
    if read > 0 { Ok(()) } else { Err(AskError::System("read the response", io::ErrorKind::UnexpectedEof.into())) }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, AskError> {
    let failed = |error| AskError::Read(path.to_owned(), error);
    serde_json::from_slice(&std::fs::read(path).map_err(failed)?).map_err(|error| failed(error.into()))
}

fn connect(request: &ShutdownRequest) -> io::Result<TcpStream> {
    let mut failure = io::ErrorKind::NotFound.into();
    for address in (request.host.as_str(), request.port).to_socket_addrs()? {
        match TcpStream::connect(address) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The request as it is sent.
fn message(request: &ShutdownRequest) -> Result<String, AskError> {
    let ShutdownRequest { host, in_pod: _, port, path, headers } = request;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut text = format!("GET {slash}");
    for byte in path.bytes() {
        // Characters that would end the request line are escaped, as in the daemon's client.
        if byte.is_ascii_graphic() && byte != b'#' {
            text.push(char::from(byte));
        } else {
            // Writing to memory cannot fail.
            write!(text, "%{byte:02X}").ok();
        }
    }
    text.push_str(" HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        let brackets = if host.contains(':') { ["[", "]"] } else { ["", ""] };
        write!(text, "Host: {}{host}{}:{port}\r\n", brackets[0], brackets[1]).ok();
    }
    for (name, value) in headers {
        if name.chars().chain(value.chars()).any(|c| c.is_control() && c != '\t') {
            return Err(AskError::Header(name.clone()));
        }
        write!(text, "{name}: {value}\r\n").ok();
    }
    text.push_str("\r\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&str, &str)]) -> ShutdownRequest {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ShutdownRequest { host: "fd00::1".into(), in_pod: true, port: 80, path: "bye now?a=b#c".into(), headers }
    }

    #[test]
    fn a_request_is_one_request_whatever_its_parts_hold() {
        assert_eq!(
            message(&request(&[("X-Hook", "a")])).unwrap(),
            "GET /bye%20now?a=b%23c HTTP/1.1\r\nHost: [fd00::1]:80\r\nX-Hook: a\r\n\r\n"
        );
        assert!(message(&request(&[("host", "web")])).unwrap().ends_with("HTTP/1.1\r\nhost: web\r\n\r\n"));
        for (name, value) in [("X", "a\r\nY: b"), ("X\n", "a")] {
            assert!(matches!(message(&request(&[(name, value)])), Err(AskError::Header(_))));
        }
    }
}
