//! The status page: over the API, and at the port of `podstead page`.

use crate::host::{Host, desired, eventually, text};
use podstead::telemetry::events::{EventRecorder, EventType, Subject};
use serde::Deserialize;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const HOSTILE: &str = "<script>alert(1)</script>";

fn host() -> Host {
    let host = Host::start();
    host.publish_source(Some(HOSTILE), Some(HOSTILE));
    host.publish_running("default", "web");
    let pod = desired("default", "bad", json!({}));
    let waiting = json!({"name": "main", "ready": false, "restartCount": 1, "image": "x", "imageID": "",
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": HOSTILE}}});
    host.published_status(&pod, json!({"phase": "Pending", "containerStatuses": [waiting]}));
    host.events.record(&Subject::Node, EventType::Warning, "Starting", HOSTILE);
    host
}

/// `podstead page`, until it is dropped.
struct Page {
    child: Child,
    /// `127.0.0.1:PORT`.
    address: String,
    /// `/TOKEN/`.
    path: String,
}

impl Page {
    fn open(host: &Host) -> Self {
        let mut child = host.command(&["page"]).stdout(Stdio::piped()).spawn().unwrap();
        let line = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        let (address, path) = line.strip_prefix("http://").unwrap().split_once('/').unwrap();
        Self { child, address: address.to_owned(), path: format!("/{path}") }
    }

    /// Status line, headers and body.
    fn ask(&self, method: &str, path: &str, name: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        text(&answer)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn page_shows_text_only_as_text() {
    let host = host();
    let page = Page::open(&host);
    let answer = page.ask("GET", &page.path, &page.address);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    for header in [
        "content-security-policy: default-src 'none'; style-src 'sha256-",
        "content-type: text/html; charset=utf-8",
        "x-content-type-options: nosniff",
        "x-frame-options: DENY",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(head.contains(header), "{header}: {head}");
    }
    assert!(!head.contains("unsafe") && body.len() < 50_000 && !body.contains("<script"), "{body}");
    let escaped = "&lt;script&gt;alert(1)&lt;/script&gt;";
    // The source's error, the pod's reason, and the event.
    assert_eq!(body.matches(escaped).count(), 3, "{body}");
    for word in ["default/web-edge", "default/bad-edge", "ImagePullBackOff", "0123456789ab", "1 of 2 pods are not well"] {
        assert!(body.contains(word), "{word}: {body}");
    }
    // The same through the API, and so through kubectl.
    let uri = "/apis/podstead.dev/v1alpha1/page";
    let through_api = host.get(uri);
    assert!(through_api.as_str().unwrap().contains(escaped), "{through_api}");
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        assert_eq!(host.send(method.parse().unwrap(), uri, "{}").0, 405, "{method}");
    }
}

#[test]
fn nothing_is_shown_without_the_token() {
    let host = host();
    let page = Page::open(&host);
    assert_eq!(page.path.len(), 50, "{}", page.path);
    let port = page.address.rsplit_once(':').unwrap().1;
    let wrong = page.path.replace(|digit: char| digit.is_ascii_digit(), "f");
    for (method, path, name, expected) in [
        ("GET", "/", page.address.as_str(), "404"),
        ("GET", &wrong, &page.address, "404"),
        ("GET", page.path.trim_end_matches('/'), &page.address, "404"),
        ("GET", &format!("{}x", page.path), &page.address, "404"),
        ("GET", &page.path, "evil.example:80", "403"),
        ("GET", &page.path, &format!("127.0.0.1.evil.example:{port}"), "403"),
        ("POST", &page.path, &page.address, "405"),
        ("DELETE", &page.path, &page.address, "405"),
        ("GET", &page.path, &format!("localhost:{port}"), "200"),
    ] {
        let answer = page.ask(method, path, name);
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{method} {path} {name}: {answer}");
        assert!(expected == "200" || !answer.contains("web-edge"), "{answer}");
        assert!(answer.contains("content-security-policy: default-src 'none'"), "{answer}");
    }
    // Another session has another token.
    assert_ne!(Page::open(&host).path, page.path);
}

#[test]
fn page_ends_with_its_command() {
    let host = host();
    let mut page = Page::open(&host);
    // Also while a browser holds a connection.
    let _held = TcpStream::connect(&page.address).unwrap();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(page.child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let status = eventually("the command to end", || page.child.try_wait().unwrap());
    assert!(status.success(), "{status}");
    assert!(TcpStream::connect(&page.address).is_err());
    // A daemon that is away is told before a port is opened.
    let nowhere = host.root.path().join("nowhere.sock").display().to_string();
    let (code, error) = host.fail(&["page", "--socket", &nowhere]);
    assert!(code == 2 && error.contains("nowhere.sock"), "{code}: {error}");
}

/// A view of the page in a browser, as `browser.py` prints it.
#[derive(Debug, Deserialize)]
struct View {
    view: String,
    scheme: String,
    /// Pixels.
    viewport: u32,
    /// Pixels that the content needs.
    width: u32,
    color: String,
    text: String,
    scripts: u32,
    /// Further resources.
    loaded: u32,
    /// Messages of the browser, such as what its policy refused.
    complaints: Vec<String>,
}

/// In a real browser: on a phone and on a desk, light and dark. Skipped where there is no Chromium.
#[test]
fn page_fits_phone_and_desk() {
    if Command::new("chromium").arg("--version").output().is_err() {
        std::io::stderr().write_all(b"no Chromium: skipped\n").unwrap();
        return;
    }
    let host = host();
    let page = Page::open(&host);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/browser.py");
    let output = Command::new("python3").arg(script).arg(format!("http://{}{}", page.address, page.path)).output().unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let views: Vec<View> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(views.len(), 4);
    for seen in &views {
        let View { view, scheme, viewport, width, color, text, scripts, loaded, complaints } = seen;
        assert!(width <= viewport, "{view} {scheme}: {width} of {viewport} pixels");
        assert_eq!((*scripts, *loaded, complaints.len()), (0, 0, 0), "{view} {scheme}: {complaints:?}");
        assert!(text.contains("default/bad-edge") && text.contains(HOSTILE), "{view} {scheme}: {text}");
        assert_eq!(color == "rgb(255, 255, 255)", scheme == "dark", "{view} {scheme}: {color}");
        // No word is cut on a desk; on a phone the headings are beside the values.
        let heading = if view == "desk" { "Restarts\tAge" } else { "Restarts" };
        assert_eq!(text.contains(heading), view == "desk", "{view} {scheme}: {text}");
    }
}
