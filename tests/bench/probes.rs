//! Costs of many pods when nothing happens, costs of their probes, and the delay of those: pods with two probes each, then commands.
//!
//! `PODSTEAD_BENCH_PODS` (250) and `PODSTEAD_BENCH_SECONDS` (60) make it larger or shorter.

use crate::figures::row;
use crate::idle::spent;
use crate::memory::{grow, pss_kib, shims};
use crate::support::{TestHost, eventually_within};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) const PERIOD: Duration = Duration::from_secs(10);
/// A check that comes later than this after its time was missed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// Containers that are probed by a command.
const EXECS: usize = 50;

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// Costs in a window: CPU of the daemon, and of shims with the helpers that they waited for, in milliseconds; bytes written.
#[derive(Debug)]
struct Window {
    daemon_ms: u64,
    shims_ms: u64,
    written: u64,
    begin: Instant,
    end: Instant,
}

impl Window {
    fn of(host: &TestHost, length: Duration) -> Self {
        let (daemon, shims) = ([host.daemon_pid()], shims(host));
        let begin = Instant::now();
        let before = (spent(&daemon), spent(&shims));
        std::thread::park_timeout(length);
        let after = (spent(&daemon), spent(&shims));
        Self {
            daemon_ms: (after.0.0 - before.0.0) * 10,
            shims_ms: (after.1.0 - before.1.0) * 10,
            written: after.0.1 + after.1.1 - before.0.1 - before.1.1,
            begin,
            end: Instant::now(),
        }
    }
}

/// Proportional set sizes of the daemon and of all shims.
fn memory(host: &TestHost) -> String {
    let shims: u64 = shims(host).iter().map(|pid| pss_kib(*pid)).sum();
    format!("daemon {:.1} MiB, shims {:.1} MiB", pss_kib(host.daemon_pid()) as f64 / 1024.0, shims as f64 / 1024.0)
}

pub(crate) type Asked = BTreeMap<String, Vec<Instant>>;

/// Answers every HTTP request with success and writes down when which path was asked for. Ends with the process.
#[derive(Debug)]
pub(crate) struct Witness {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Asked>>,
}

impl Witness {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        // All probes of pods that came together come together: with the usual queue of 128 some would have to knock twice.
        nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(4096).unwrap()).unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Arc::<Mutex<Asked>>::default());
        let listener = Arc::new(listener);
        // More than one, so that who connects and says nothing yet keeps nobody waiting.
        for _ in 0..16 {
            let (listener, record) = (Arc::clone(&listener), Arc::clone(&asked));
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    if let Some(path) = answer(&stream) {
                        record.lock().unwrap().entry(path).or_default().push(Instant::now());
                    }
                }
            });
        }
        Self { address, asked }
    }

    pub(crate) fn asked(&self) -> Asked {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut stream: &TcpStream) -> Option<String> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut lines = BufReader::new(stream).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    while !lines.next()?.ok()?.is_empty() {}
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").ok()?;
    Some(path)
}

/// The longest time that passed between two checks of the same probe in the window, and how many were missed.
fn lateness(asked: &Asked, window: &Window) -> (Duration, usize) {
    let gaps = asked.values().flat_map(|times| {
        let inside = times.iter().copied().filter(|at| (window.begin..window.end).contains(at));
        let times: Vec<Instant> = std::iter::once(window.begin).chain(inside).chain([window.end]).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>()
    });
    let gaps: Vec<Duration> = gaps.collect();
    let missed = gaps.iter().filter(|gap| **gap > PERIOD + PATIENCE).map(|gap| (gap.as_secs() / PERIOD.as_secs()) as usize).sum();
    (gaps.into_iter().max().unwrap_or_default(), missed)
}

/// Gives the pods that [`grow`] made these fields, the first `count` of them. An edit of probes restarts nothing.
fn set_probes(host: &TestHost, pods: usize, count: usize, probes: impl Fn(usize) -> String) {
    for number in 0..pods {
        let fields = if number < count { probes(number) } else { String::new() };
        host.write_manifest(
            &format!("p{number}.yaml"),
            &format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{number}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
                 - {{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000']{fields}}}\n"
            ),
        );
    }
}

/// Pods whose container is not ready, or was restarted.
fn disturbed(host: &TestHost) -> usize {
    let is_well = |pod: &crate::support::PodView| pod.container("main")["ready"] == true && pod.restarts("main") == 0;
    host.pods().iter().filter(|pod| !is_well(pod)).count()
}

/// Rows for idleness, HTTP probes and commands.
pub(crate) fn many_pods_with_probes() {
    let pods = number("PODSTEAD_BENCH_PODS", 250);
    let length = Duration::from_secs(number("PODSTEAD_BENCH_SECONDS", 60) as u64);
    let host = TestHost::start();
    let took = grow(&host, pods);
    std::thread::park_timeout(PERIOD);
    let idle = Window::of(&host, length);
    row(
        &format!("{pods} idle pods: all run after; CPU over {} s; written; memory (PSS)", length.as_secs()),
        &format!(
            "{:.1} s; daemon {} ms, shims {} ms; {} B; {}",
            took.as_secs_f64(),
            idle.daemon_ms,
            idle.shims_ms,
            idle.written,
            memory(&host)
        ),
        "-",
        "-",
    );

    let witness = Witness::start();
    let SocketAddr::V4(address) = witness.address else { unreachable!("it listens on IPv4") };
    let (ip, port) = (address.ip(), address.port());
    let probe = |number, kind| format!(", {kind}: {{httpGet: {{host: {ip}, port: {port}, path: /p{number}-{kind}}}}}");
    set_probes(&host, pods, pods, |number| probe(number, "readinessProbe") + &probe(number, "livenessProbe"));
    eventually_within(Duration::from_secs(120), "every probe to be made", || match witness.asked().len() {
        made if made == 2 * pods => Ok(()),
        made => Err(format!("{made} were")),
    });
    std::thread::park_timeout(2 * PERIOD);
    let busy = Window::of(&host, length);
    let (longest, missed) = lateness(&witness.asked(), &busy);
    let disturbed_pods = disturbed(&host);
    if disturbed_pods > 0 {
        eprintln!("what disturbed them:\n{}", host.cli_ok(&["get", "events"]).lines().take(20).collect::<Vec<_>>().join("\n"));
    }
    row(
        &format!(
            "{} HTTP probes, period 10 s: CPU over {} s; longest time between two checks, missed ones, pods disturbed; memory (PSS)",
            2 * pods,
            length.as_secs()
        ),
        &format!(
            "daemon {} ms, shims {} ms; {:.2} s, {missed}, {}; {}",
            busy.daemon_ms,
            busy.shims_ms,
            longest.as_secs_f64(),
            disturbed_pods,
            memory(&host)
        ),
        "-",
        "-",
    );

    let execs = EXECS.min(pods);
    let command = ", livenessProbe: {exec: {command: [/bin/true]}, timeoutSeconds: 30}";
    set_probes(&host, pods, execs, |_| command.to_owned());
    std::thread::park_timeout(3 * PERIOD);
    let busy = Window::of(&host, length);
    row(
        &format!("{execs} exec probes, period 10 s: CPU over {} s with what they run; pods disturbed", length.as_secs()),
        &format!("daemon {} ms, shims and helpers {} ms; {}", busy.daemon_ms, busy.shims_ms, disturbed(&host)),
        "-",
        "-",
    );
}
