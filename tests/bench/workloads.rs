//! Many replicas of one Deployment, against as many Pods.

use crate::figures::{Series, row};
use crate::idle::spent;
use crate::memory::pss_kib;
use crate::support::TestHost;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

const REPLICAS: usize = 200;
const RUNS: usize = 2;

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
    let what = format!("{REPLICAS} replicas of a Deployment until all run (against as many Pods)");
    row(&what, &of_deployment.text(), &of_pods.text(), &of_deployment.ratio_to(&of_pods));
    row("the same, memory of the daemon (PSS)", &format!("{memory_of_deployment} KiB"), &format!("{memory_of_pods} KiB"), "-");
    row("the same, the daemon idle for 60 s: CPU time, bytes written", &idle_with_deployment, &idle_with_pods, "-");
    row(&format!("a rolling update of {REPLICAS} replicas (25 %) until all new ones ran"), &rollout.text(), "-", "-");
    row("the same, fewest available pods", &least.to_string(), "-", "-");
}
