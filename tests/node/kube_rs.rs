//! A client made with kube-rs, which `make clients` builds from `tests/clients/kube-rs`, through the TLS port of a real daemon.

use crate::support::TestHost;
use crate::support::kubectl::text;
use std::net::TcpListener;
use std::process::Command;

/// Output of the client.
const EXPECTED: &str = r#"version 1.36, one node
created twice: AlreadyExists
patched {"a": "1", "b": "2", "c": "3"}
replaced by an older version: Conflict
labelled ["settings"], absent true
running
logged Some("ready")
executed: "200000", "aside", code Some("3")
terminal of 33 lines
attached "echo\n"
forwarded Some("page")
watched ["web"]
watched ["web"]
changed "web"
scaled to Some(2)
deleted
"#;

#[test]
#[ignore = "needs a client that is built apart: make clients"]
fn client_reads_watches_writes_and_enters_pods() {
    let client = std::env::var_os("PODSTEAD_KUBE_RS").expect("PODSTEAD_KUBE_RS names the client");
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let host = TestHost::start_with(&format!("    writable: true\napi: {{tls: {{port: {port}}}}}\n"));
    let kubeconfig = host.path("kubeconfig");
    std::fs::write(&kubeconfig, host.cli_ok(&["kubeconfig"])).unwrap();
    let output = Command::new(client).env("KUBECONFIG", kubeconfig).env("HOME", host.path("")).output().unwrap();
    assert!(output.status.success(), "{}{}\n{}", text(&output.stdout), text(&output.stderr), host.daemon_log());
    assert_eq!(text(&output.stdout), EXPECTED);
}
