//! `--watch` of subcommands: what changes is printed when the API tells it.

use crate::host::Host;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// A command that watches.
struct Watching {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Watching {
    fn start(host: &Host, arguments: &[&str]) -> Self {
        let mut child = host.command(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("another line").unwrap()
    }

    /// The next line that begins with these words.
    fn line_of(&mut self, words: &str) -> String {
        loop {
            let line = self.line();
            if line.trim_start().starts_with(words) {
                return line;
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn objects_of_sources_are_watched() {
    let host = Host::start();
    host.hold(&[("web", "one")]);
    let mut table = Watching::start(&host, &["get", "cm", "-w"]);
    assert!(table.line().starts_with("NAME "));
    assert!(table.line().starts_with("web "));
    let mut one = Watching::start(&host, &["get", "cm", "web", "-w", "-o", "jsonpath={.data.key}{'\\n'}"]);
    assert_eq!(one.line(), "one");
    let mut columns = Watching::start(&host, &["get", "cm", "-w", "-o", "custom-columns=NAME:.metadata.name,KEY:.data.key"]);
    assert_eq!((columns.line(), columns.line()), ("NAME   KEY".to_owned(), "web    one".to_owned()));
    host.hold(&[("web", "two"), ("other", "x")]);
    assert_eq!(one.line(), "two");
    assert!(table.line_of("other ").contains('1'));
    // Columns are as wide as the widest cell so far.
    assert_eq!(columns.line_of("web").split_whitespace().collect::<Vec<_>>(), ["web", "two"]);
    // One that is not there is an error, as without a watch.
    let (code, error) = host.fail(&["get", "cm", "nosuch", "-w"]);
    assert!(code == 1 && error.contains("nosuch"), "{code}: {error}");
}

#[test]
fn sources_and_images_are_watched() {
    let host = Host::start();
    host.publish_source(None, None);
    let mut sources = Watching::start(&host, &["get", "sources", "-w"]);
    assert!(sources.line().starts_with("NAME"));
    assert!(sources.line().ends_with("ok"));
    host.publish_source(None, Some("it is gone"));
    assert!(sources.line_of("manifests ").ends_with("failed"));
    assert_eq!(sources.line_of("manifests:"), "manifests: it is gone");
    for arguments in [&["get", "images", "-w"][..], &["image", "ls", "-w"]] {
        assert!(Watching::start(&host, arguments).line().starts_with("IMAGE"), "{arguments:?}");
    }
}

#[test]
fn status_is_told_by_watches() {
    let host = Host::start();
    host.publish_source(None, None);
    let web = host.publish_running("default", "web");
    let mut status = Watching::start(&host, &["status", "-w", "-o", "jsonpath={.isWell} {.pods[*].status}{'\\n'}"]);
    assert_eq!(status.line(), "true Running");
    let changed_at = Instant::now();
    let waiting = json!({"name": "main", "ready": false, "restartCount": 0, "image": "x", "imageID": "",
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}});
    host.published_status(&web, json!({"phase": "Pending", "containerStatuses": [waiting]}));
    assert_eq!(status.line(), "false ImagePullBackOff");
    // Without watches, the next look would be after 30 seconds.
    assert!(changed_at.elapsed() < Duration::from_secs(20), "{:?}", changed_at.elapsed());
}
