//! Many replicas of one Deployment, against as many Pods.

use crate::figures::{Series, row};
use crate::idle::spent;
use crate::memory::{REST, anonymous_kib, pss_kib};
use crate::support::{TestHost, eventually_within};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

const REPLICAS: usize = 200;
const RUNS: usize = 2;

/// Objects of each kind whose memory is measured.
const OBJECTS: usize = 500;

/// A pod's spec whose process makes a file of its own.
fn spec(out: &Path, version: usize) -> String {
    format!(
        "{{terminationGracePeriodSeconds: 1, containers: [{{name: main, image: 'localhost/busybox:1', command: [sh, -c, ': > \
         /out/{version}-$(hostname); exec sleep 1000000'], volumeMounts: [{{name: out, mountPath: /out}}]}}], volumes: [{{name: out, \
         hostPath: {{path: {}, type: Directory}}}}]}}",
        out.display()
    )
}

fn deployment(out: &Path, version: usize) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: {REPLICAS}\n  selector: {{matchLabels: {{app: \
         web}}}}\n  template: {{metadata: {{labels: {{app: web}}}}, spec: {}}}\n",
        spec(out, version)
    )
}

fn pods(out: &Path) -> String {
    (0..REPLICAS).fold(String::new(), |mut all, number| {
        // Writing to memory cannot fail.
        let _infallible = writeln!(
            all,
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{number}, labels: {{app: web}}}}\nspec: {}",
            spec(out, 0)
        );
        all
    })
}

fn count(out: &Path, prefix: &str) -> usize {
    let names = std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with(prefix)).count()
}

/// Renames the manifest into place; time until all its processes have run. `look` is called again and again meanwhile.
fn start(host: &TestHost, out: &Path, manifest: &str, prefix: &str, mut look: impl FnMut()) -> Duration {
    let begun = Instant::now();
    host.write_manifest("all.yaml", manifest);
    while count(out, prefix) < REPLICAS {
        assert!(begun.elapsed() < Duration::from_secs(300), "{} of {REPLICAS} run", count(out, prefix));
        look();
        std::thread::park_timeout(Duration::from_millis(2));
    }
    begun.elapsed()
}

/// Available pods of the Deployment.
fn available(host: &TestHost) -> usize {
    let number = host.cli_ok(&["get", "deployments", "web", "-o", "jsonpath={.status.availableReplicas}"]);
    number.trim().parse().unwrap_or(0)
}

fn wait_until_all_are_available(host: &TestHost) {
    let begun = Instant::now();
    while available(host) < REPLICAS {
        assert!(begun.elapsed() < Duration::from_secs(300), "{} of {REPLICAS} are available", available(host));
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// A host with an empty directory that pods write to.
fn host() -> (TestHost, std::path::PathBuf) {
    let host = TestHost::start();
    let out = host.path("out");
    std::fs::create_dir(&out).unwrap();
    (host, out)
}

/// CPU and writes of the daemon in a minute in which nothing happens.
fn idle(host: &TestHost) -> String {
    std::thread::park_timeout(Duration::from_secs(10));
    let before = spent(&[host.daemon_pid()]);
    std::thread::park_timeout(Duration::from_secs(60));
    let after = spent(&[host.daemon_pid()]);
    format!("{} ms, {} B", (after.0 - before.0) * 10, after.1 - before.1)
}

/// Time until all run, memory of the daemon, a rolling update, and a minute in which nothing happens.
pub(crate) fn replicas_of_one_deployment() {
    let (mut of_pods, mut of_deployment, mut rollout) = (Series::default(), Series::default(), Series::default());
    let (mut memory_of_pods, mut memory_of_deployment, mut least) = (0, 0, REPLICAS);
    let (mut idle_with_pods, mut idle_with_deployment) = (String::new(), String::new());
    for run in 0..RUNS {
        let is_last = run + 1 == RUNS;
        let (pods_host, out) = host();
        of_pods.push(start(&pods_host, &out, &pods(&out), "0-", || {}));
        if is_last {
            idle_with_pods = idle(&pods_host);
        }
        memory_of_pods = pss_kib(pods_host.daemon_pid());
        drop(pods_host);
        let (host, out) = host();
        of_deployment.push(start(&host, &out, &deployment(&out, 0), "0-", || {}));
        wait_until_all_are_available(&host);
        if is_last {
            idle_with_deployment = idle(&host);
        }
        memory_of_deployment = pss_kib(host.daemon_pid());
        rollout.push(start(&host, &out, &deployment(&out, 1), "1-", || least = least.min(available(&host))));
    }
    assert!(least >= REPLICAS - REPLICAS / 4, "{least} of {REPLICAS} were available: maxUnavailable is 25 %");
    let what = format!("{REPLICAS} replicas of a Deployment until all run (against as many Pods)");
    row(&what, &of_deployment.text(), &of_pods.text(), &of_deployment.ratio_to(&of_pods));
    row("the same, memory of the daemon (PSS)", &format!("{memory_of_deployment} KiB"), &format!("{memory_of_pods} KiB"), "-");
    row("the same, the daemon idle for 60 s: CPU time, bytes written", &idle_with_deployment, &idle_with_pods, "-");
    row(&format!("a rolling update of {REPLICAS} replicas (25 %) until all new ones ran"), &rollout.text(), "-", "-");
    row("the same, fewest available pods", &least.to_string(), "-", "-");
}

/// A workload that has no pods, and the rest of what people write.
fn without_pods(kind: &str, number: usize) -> String {
    let api = if kind.ends_with("Job") { "batch/v1" } else { "apps/v1" };
    let restart = if api == "batch/v1" { "Never" } else { "Always" };
    let selection = if kind == "DaemonSet" { "nodeSelector: {none: here}, " } else { "" };
    let template = format!(
        "template: {{metadata: {{labels: {{app: a{number}}}}}, spec: {{restartPolicy: {restart}, {selection}containers: \
         [{{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000'], env: [{{name: NUMBER, value: '{number}'}}], ports: \
         [{{name: http, containerPort: 8080}}], readinessProbe: {{httpGet: {{path: /ready, port: http}}}}, resources: {{requests: \
         {{cpu: 100m, memory: 64Mi}}, limits: {{memory: 128Mi}}}}}}]}}}}"
    );
    let selector = format!("selector: {{matchLabels: {{app: a{number}}}}}");
    let spec = match kind {
        "Deployment" => format!("replicas: 0, {selector}, {template}"),
        "StatefulSet" => format!("replicas: 0, serviceName: a{number}, {selector}, {template}"),
        "DaemonSet" => format!("{selector}, {template}"),
        "Job" => format!("suspend: true, {template}"),
        _ => format!("schedule: '0 0 1 1 *', jobTemplate: {{spec: {{{template}}}}}"),
    };
    format!("---\napiVersion: {api}\nkind: {kind}\nmetadata: {{name: a{number}, labels: {{app: a{number}}}}}\nspec: {{{spec}}}\n")
}

/// Memory of the daemon for each object of a kind, after a rest.
pub(crate) fn memory_of_objects() {
    for kind in ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"] {
        let host = TestHost::start();
        // What the first object of a kind brings is no memory of the others.
        host.write_manifest("first.yaml", &without_pods(kind, OBJECTS));
        let shown = |count: usize| {
            eventually_within(Duration::from_secs(120), &format!("{count} objects"), || {
                let names = host.cli_ok(&["get", &kind.to_lowercase(), "-o", "name"]).lines().count();
                if names == count { Ok(()) } else { Err(format!("{names} are shown")) }
            });
            std::thread::sleep(REST);
            anonymous_kib(host.daemon_pid())
        };
        let before = shown(1);
        for number in 0..OBJECTS {
            host.write_manifest(&format!("{number}.yaml"), &without_pods(kind, number));
        }
        let each = shown(OBJECTS + 1).saturating_sub(before) as f64 / OBJECTS as f64;
        row(&format!("memory of the daemon for each {kind} without pods ({OBJECTS} of them)"), &format!("{each:.1} KiB"), "-", "-");
    }
}
