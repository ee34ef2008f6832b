//! Costs of one pod beside 100 to 1,000 others: they should not depend on how many there are.

use crate::figures::{Series, row};
use crate::idle::spent;
use crate::latency::{manifest, wait_for_file};
use crate::memory::{grow, pss_kib};
use crate::probes::{PATIENCE, PERIOD, Witness};
use crate::support::TestHost;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs of each measurement beside each number of pods.
const RUNS: usize = 7;

/// Numbers of pods; `PODSTEAD_BENCH_SIZES` gives others.
const SIZES: [usize; 4] = [100, 250, 500, 1000];

fn sizes() -> Vec<usize> {
    let given = std::env::var("PODSTEAD_BENCH_SIZES").ok();
    given.map_or_else(|| SIZES.to_vec(), |text| text.split(',').filter_map(|size| size.trim().parse().ok()).collect())
}

/// `podstead get pods --watch`, past the pods that there are.
struct Watch {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watch {
    fn start(host: &TestHost, pods: usize) -> Self {
        let mut command = Command::new(crate::support::binary("podstead"));
        command.arg("--socket").arg(host.path("run/podstead.sock")).args(["get", "pods", "--watch", "--no-headers"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut watch = Self { child, lines };
        for _ in 0..pods {
            watch.next();
        }
        watch
    }

    fn next(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the watch has ended");
        line
    }

    /// Waits for a line about the pod.
    fn wait_for(&mut self, pod: &str) {
        while !self.next().starts_with(pod) {}
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Durations of the operations beside one number of pods.
#[derive(Default)]
struct Operations {
    start: Series,
    edit: Series,
    watch: Series,
    status: Series,
    list: Series,
}

fn put(host: &TestHost, name: &str, out: &Path, script: &str) -> Instant {
    let staged = host.path("staged.yaml");
    std::fs::write(&staged, manifest(name, out, script)).unwrap();
    let begin = Instant::now();
    std::fs::rename(&staged, host.path("manifests").join(format!("{name}.yaml"))).unwrap();
    begin
}

/// Runs until it is asked to end, and then ends at once: an edit does not wait for its grace period.
const SERVE: &str = "trap 'exit 0' TERM; sleep 1000000 & wait";

/// One start, its news in a watch, one edit, one `status` and one list.
fn measure(host: &TestHost, out: &Path, watch: &mut Watch, run: usize, operations: &mut Operations) {
    let name = format!("one{run}");
    let begin = put(host, &name, out, SERVE);
    watch.wait_for(&name);
    operations.watch.push(begin.elapsed());
    wait_for_file(&out.join(&name));
    operations.start.push(begin.elapsed());
    let edited = out.join(format!("{name}-edited"));
    let begin = put(host, &name, out, &format!(": > /out/{name}-edited; {SERVE}"));
    wait_for_file(&edited);
    operations.edit.push(begin.elapsed());
    let begin = Instant::now();
    host.cli_ok(&["status"]);
    operations.status.push(begin.elapsed());
    let begin = Instant::now();
    host.cli_ok(&["get", "pods", "-o", "json"]);
    operations.list.push(begin.elapsed());
    std::fs::remove_file(host.path("manifests").join(format!("{name}.yaml"))).unwrap();
    for file in [out.join(&name), edited] {
        std::fs::remove_file(file).unwrap();
    }
    host.wait_gone(&name);
}

/// A pod whose readiness the witness is asked for.
fn steady(host: &TestHost, witness: &Witness) {
    let (ip, port) = (witness.address.ip(), witness.address.port());
    host.write_manifest(
        "steady.yaml",
        &format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: steady}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
             - {{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000'], \
             readinessProbe: {{httpGet: {{host: {ip}, port: {port}, path: /steady}}, periodSeconds: 1}}}}\n"
        ),
    );
    host.wait_running("steady");
}

/// The longest time between two checks of the steady pod from `begin` on.
fn longest_gap(witness: &Witness, begin: Instant) -> Duration {
    let asked = witness.asked();
    let times: Vec<Instant> = asked.get("/steady").into_iter().flatten().copied().filter(|at| *at >= begin).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
}

/// Rows for each number of pods.
pub(crate) fn one_pod_beside_many() {
    let host = TestHost::start();
    let out = host.path("out");
    std::fs::create_dir(&out).unwrap();
    let witness = Witness::start();
    steady(&host, &witness);
    let mut before = 0;
    for count in sizes() {
        let begin = Instant::now();
        let took = grow(&host, count);
        let gap = longest_gap(&witness, begin);
        let peak = pss_kib(host.daemon_pid());
        let added = count.saturating_sub(before).max(1);
        before = count;
        std::thread::park_timeout(PERIOD);
        let (cpu, idle) = (spent(&[host.daemon_pid()]).0, Duration::from_secs(30));
        std::thread::park_timeout(idle);
        let idle_ms = (spent(&[host.daemon_pid()]).0 - cpu) * 10;
        let mut operations = Operations::default();
        let mut watch = Watch::start(&host, count + 1);
        for run in 0..RUNS {
            measure(&host, &out, &mut watch, run, &mut operations);
        }
        let Operations { start, edit, watch: news, status, list } = operations;
        row(
            &format!(
                "{count} pods: time for each new one; longest time between two probes of another pod (period 1 s); memory (PSS)"
            ),
            &format!("{:.1} ms; {:.2} s{}; {peak} KiB", took.as_secs_f64() * 1e3 / added as f64, gap.as_secs_f64(), late(gap)),
            "-",
            "-",
        );
        row(
            &format!("{count} pods: CPU of the daemon in {} s without a change", idle.as_secs()),
            &format!("{idle_ms} ms"),
            "-",
            "-",
        );
        for (what, series) in [
            ("one more starts", start),
            ("an edit of it runs", edit),
            ("a watch has the new one", news),
            ("`podstead status`", status),
            ("`podstead get pods -o json`", list),
        ] {
            row(&format!("{count} pods: {what}"), &series.text(), "-", "-");
        }
    }
}

fn late(gap: Duration) -> &'static str {
    if gap > Duration::from_secs(1) + PATIENCE { " (late)" } else { "" }
}
