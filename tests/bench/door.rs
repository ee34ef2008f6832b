//! Costs of the TLS port: its memory, and the CPU time of many clients that watch many pods.

use crate::figures::row;
use crate::idle::spent;
use crate::memory::{REST, grow, pss_kib};
use crate::support::{TestHost, eventually_within};
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Clients that watch.
const CLIENTS: usize = 20;
/// Daemons without the port and with it.
const PAIRS: usize = 5;

/// Lets start-up work end.
fn settle() {
    std::thread::park_timeout(Duration::from_secs(5));
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// `kubectl get pods -w` through the TLS port.
struct Watching {
    kubectl: Child,
    /// Rows that it has printed.
    rows: Arc<AtomicUsize>,
}

impl Watching {
    fn start(host: &TestHost, kubeconfig: &str) -> Self {
        let mut command = Command::new("kubectl");
        command.env("HOME", host.path("")).args(["--kubeconfig", kubeconfig, "get", "pods", "--watch", "--no-headers"]);
        let mut kubectl = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(kubectl.stdout.take().unwrap()).lines();
        let rows = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&rows);
        std::thread::spawn(move || {
            for _row in lines.map_while(Result::ok) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { kubectl, rows }
    }

    fn rows(&self) -> usize {
        self.rows.load(Ordering::Relaxed)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.kubectl.kill().ok();
        self.kubectl.wait().ok();
    }
}

fn open_host() -> TestHost {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    TestHost::start_with(&format!("api: {{tls: {{port: {port}}}}}\n"))
}

/// PSS of a daemon that has just started, without pods.
fn rested_pss(host: &TestHost) -> u64 {
    settle();
    pss_kib(host.daemon_pid())
}

/// PSS without the port and with it, in turn; CPU time of the daemon while clients watch pods that do not change, and its memory.
pub(crate) fn memory_and_watches() {
    let mut pairs: Vec<(u64, u64)> = (0..PAIRS).map(|_| (rested_pss(&TestHost::start()), rested_pss(&open_host()))).collect();
    pairs.sort_by_key(|(without, with)| i128::from(*with) - i128::from(*without));
    let (without, with) = pairs[PAIRS / 2];
    let text = format!("daemon {without} KiB without, {with} KiB with: {:+} KiB", i128::from(with) - i128::from(without));
    row(&format!("TLS port, no pods: memory (PSS), median of {PAIRS} pairs"), &text, "-", "-");

    let (pods, seconds) = (number("PODSTEAD_BENCH_PODS", 500), number("PODSTEAD_BENCH_SECONDS", 60) as u64);
    let host = open_host();
    let kubeconfig = host.path("kubeconfig");
    std::fs::write(&kubeconfig, host.cli_ok(&["kubeconfig"])).unwrap();
    grow(&host, pods);
    std::thread::park_timeout(REST);
    let measure = |rows: &dyn Fn() -> usize| {
        let before = (spent(&[host.daemon_pid()]).0, rows());
        std::thread::park_timeout(Duration::from_secs(seconds));
        ((spent(&[host.daemon_pid()]).0 - before.0) * 10, rows() - before.1)
    };
    let (alone, _) = measure(&|| 0);
    let memory_alone = pss_kib(host.daemon_pid());
    let kubeconfig = kubeconfig.to_str().unwrap();
    let mut clients: Vec<Watching> = (0..CLIENTS).map(|_| Watching::start(&host, kubeconfig)).collect();
    eventually_within(Duration::from_secs(120), "all clients to have all pods", || {
        let least = clients.iter().map(Watching::rows).min().unwrap_or_default();
        if least >= pods { Ok(()) } else { Err(format!("one has {least}")) }
    });
    std::thread::park_timeout(REST);
    let (watched, rows) = measure(&|| clients.iter().map(Watching::rows).sum());
    let memory_watched = pss_kib(host.daemon_pid());
    for client in &mut clients {
        assert!(client.kubectl.try_wait().unwrap().is_none(), "a client of the TLS port has ended");
    }
    let percent = |milliseconds: u64| milliseconds as f64 / 10.0 / seconds as f64;
    let text = format!(
        "{watched} ms in {seconds} s, {:.2} % of a core (without clients {:.2} %); {rows} changes; {memory_watched} KiB ({memory_alone} KiB)",
        percent(watched),
        percent(alone)
    );
    row(&format!("{CLIENTS} clients of the TLS port watch {pods} pods: CPU time of the daemon, its memory (PSS)"), &text, "-", "-");
}
