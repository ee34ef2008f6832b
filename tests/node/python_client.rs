//! The Kubernetes client of Python against a real daemon. Skipped where Python does not have it.

use crate::support::kubectl::{Kubectl, text};
use std::io::Write;
use std::process::Command;

/// Debian's Python: its package has the client.
const PYTHON: &str = "/usr/bin/python3";

#[test]
fn python_client_reads_watches_and_writes() {
    let is_there = Command::new(PYTHON).args(["-c", "import kubernetes"]).output().is_ok_and(|output| output.status.success());
    if !is_there {
        std::io::stderr().write_all(b"no Kubernetes client for Python: skipped\n").unwrap();
        return;
    }
    let Some(host) = Kubectl::start("") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node/python_client.py");
    let output = Command::new(PYTHON).arg(script).arg(host.address().to_string()).output().unwrap();
    assert!(output.status.success(), "{}{}\n{}", text(&output.stdout), text(&output.stderr), host.host.daemon_log());
    assert!(host.has_file("settings.configmap.yaml") && host.has_file("front.service.yaml") && !host.has_file("web.pod.yaml"));
}
