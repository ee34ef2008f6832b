//! What probes cost, and whether they come in time: 250 pods with two each, then commands.

use crate::figures::row;
use crate::memory::{grow, pss_kib, shims};
use crate::support::servers::{Asked, Server};
use crate::support::{TestHost, eventually_within};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const PODS: usize = 250;
const PERIOD: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);

/// Milliseconds of CPU of these processes and of the children that they waited for.
fn cpu_ms(pids: &[u32]) -> u64 {
    let ticks = |pid: &u32| -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace().skip(11).take(4);
        fields.filter_map(|field| field.parse::<u64>().ok()).sum()
    };
    pids.iter().map(ticks).sum::<u64>() * 10
}

/// CPU of the daemon and of the shims over a minute.
fn minute(host: &TestHost) -> (u64, u64) {
    let (daemon, shims) = ([host.daemon_pid()], shims(host));
    let before = (cpu_ms(&daemon), cpu_ms(&shims));
    std::thread::park_timeout(MINUTE);
    (cpu_ms(&daemon) - before.0, cpu_ms(&shims) - before.1)
}

/// The pods that [`grow`] made, the first `count` with these probes. An edit of probes restarts nothing.
fn set_probes(host: &TestHost, count: usize, probes: impl Fn(usize) -> String) {
    for number in 0..PODS {
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

/// The longest wait between two requests for the same path after `since`, and how many were longer than a period and a second.
fn lateness(asked: &[Asked], since: Instant) -> (usize, Duration, usize) {
    let mut by_path: BTreeMap<&str, Vec<Instant>> = BTreeMap::new();
    for (at, head) in asked.iter().filter(|(at, _)| *at >= since) {
        by_path.entry(head.split(' ').nth(1).unwrap_or("")).or_default().push(*at);
    }
    let gaps: Vec<Duration> = by_path.values().flat_map(|times| times.windows(2).map(|pair| pair[1] - pair[0])).collect();
    let missed = gaps.iter().filter(|gap| **gap > PERIOD + Duration::from_secs(1)).count();
    (by_path.len(), gaps.iter().max().copied().unwrap_or_default(), missed)
}

/// CPU over a minute, memory and lateness.
pub(crate) fn five_hundred() {
    let host = TestHost::start();
    let took = grow(&host, PODS);
    std::thread::park_timeout(Duration::from_secs(10));
    let idle_memory = pss_kib(host.daemon_pid());
    let idle = minute(&host);
    row(
        &format!("{PODS} pods without probes: all run after; CPU over 60 s; daemon's memory (PSS)"),
        &format!("{:.1} s; daemon {} ms, shims {} ms; {idle_memory} KiB", took.as_secs_f64(), idle.0, idle.1),
        "-",
        "-",
    );

    let server = Server::start("127.0.0.2", false, Box::new(|_, _| (200, Duration::ZERO)));
    let port = server.address.port();
    let probe = |number, kind| format!(", {kind}: {{httpGet: {{host: 127.0.0.2, port: {port}, path: /p{number}-{kind}}}}}");
    set_probes(&host, PODS, |number| probe(number, "readinessProbe") + &probe(number, "livenessProbe"));
    eventually_within(Duration::from_secs(120), "every probe to be made", || {
        let made = lateness(&server.asked(), Instant::now() - Duration::from_secs(600)).0;
        if made == 2 * PODS { Ok(()) } else { Err(format!("{made} were")) }
    });
    std::thread::park_timeout(2 * PERIOD);
    let since = Instant::now();
    let busy = minute(&host);
    let memory = pss_kib(host.daemon_pid());
    let (probes, longest, missed) = lateness(&server.asked(), since);
    row(
        &format!("{probes} HTTP probes, period 10 s: CPU over 60 s; daemon's memory; longest time between two checks, missed ones"),
        &format!("daemon {} ms, shims {} ms; {memory} KiB; {:.2} s, {missed}", busy.0, busy.1, longest.as_secs_f64()),
        "-",
        "-",
    );

    let execs = 50;
    let command = ", livenessProbe: {exec: {command: [/bin/true]}, timeoutSeconds: 30}";
    set_probes(&host, execs, |_| command.to_owned());
    std::thread::park_timeout(3 * PERIOD);
    let busy = minute(&host);
    row(
        &format!("{execs} exec probes, period 10 s: CPU over 60 s with what they run"),
        &format!("daemon {} ms, shims and helpers {} ms", busy.0, busy.1),
        "-",
        "-",
    );
}
