//! Costs of the TLS port: its memory, and the CPU time of many clients that watch many pods.

use crate::figures::row;
use crate::idle::spent;
use crate::memory::{grow, pss_kib};
use crate::support::TestHost;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Clients that watch.
const CLIENTS: usize = 20;

/// Lets start-up work end.
fn settle() {
    std::thread::park_timeout(Duration::from_secs(5));
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// `kubectl get pods -w` through the TLS port, with output to nowhere.
fn watching(host: &TestHost, kubeconfig: &str) -> Child {
    let mut command = Command::new("kubectl");
    command.env("HOME", host.path("")).args(["--kubeconfig", kubeconfig, "get", "pods", "--watch"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

/// PSS without the port, with it, and with clients; CPU time of the daemon while they watch.
pub(crate) fn memory_and_watches() {
    let closed = TestHost::start();
    settle();
    let without = pss_kib(closed.daemon_pid());
    drop(closed);
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let host = TestHost::start_with(&format!("api: {{tls: {{port: {port}}}}}\n"));
    let kubeconfig = host.path("kubeconfig");
    std::fs::write(&kubeconfig, host.cli_ok(&["kubeconfig"])).unwrap();
    settle();
    let open = pss_kib(host.daemon_pid());
    let text = format!("daemon {without} KiB without, {open} KiB with");
    row("TLS port, no pods: memory (PSS)", &text, "-", "-");

    let (pods, seconds) = (number("PODSTEAD_BENCH_PODS", 250), number("PODSTEAD_BENCH_SECONDS", 60) as u64);
    grow(&host, pods);
    settle();
    let alone = pss_kib(host.daemon_pid());
    let kubeconfig = kubeconfig.to_str().unwrap();
    let mut clients: Vec<Child> = (0..CLIENTS).map(|_| watching(&host, kubeconfig)).collect();
    settle();
    let before = spent(&[host.daemon_pid()]).0;
    std::thread::park_timeout(Duration::from_secs(seconds));
    let spent = (spent(&[host.daemon_pid()]).0 - before) * 10;
    let watched = pss_kib(host.daemon_pid());
    for client in &mut clients {
        assert!(client.try_wait().unwrap().is_none(), "a client of the TLS port has ended");
        client.kill().unwrap();
        client.wait().unwrap();
    }
    let text = format!("{spent} ms in {seconds} s; {alone} KiB without clients, {watched} KiB with");
    row(&format!("{CLIENTS} clients of the TLS port watch {pods} pods: CPU time of the daemon, its memory (PSS)"), &text, "-", "-");
}
