//! Many replicas of one Deployment, against as many Pods.

use crate::figures::{Series, row};
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

/// Renames the manifest into place; time until all its processes have run.
fn start(host: &TestHost, out: &Path, manifest: &str, prefix: &str) -> Duration {
    let begun = Instant::now();
    host.write_manifest("all.yaml", manifest);
    while count(out, prefix) < REPLICAS {
        assert!(begun.elapsed() < Duration::from_secs(300), "{} of {REPLICAS} run", count(out, prefix));
        std::thread::park_timeout(Duration::from_millis(2));
    }
    begun.elapsed()
}

/// Time until all run, memory of the daemon, and a rolling update.
pub(crate) fn replicas_of_one_deployment() {
    let (mut of_pods, mut of_deployment, mut rollout) = (Series::default(), Series::default(), Series::default());
    let (mut memory_of_pods, mut memory_of_deployment) = (0, 0);
    for _ in 0..RUNS {
        let host = TestHost::start();
        let out = host.path("out");
        std::fs::create_dir(&out).unwrap();
        of_pods.push(start(&host, &out, &pods(&out), "0-"));
        memory_of_pods = pss_kib(host.daemon_pid());
        drop(host);
        let host = TestHost::start();
        let out = host.path("out");
        std::fs::create_dir(&out).unwrap();
        of_deployment.push(start(&host, &out, &deployment(&out, 0), "0-"));
        memory_of_deployment = pss_kib(host.daemon_pid());
        rollout.push(start(&host, &out, &deployment(&out, 1), "1-"));
    }
    let what = format!("{REPLICAS} replicas of a Deployment until all run (against as many Pods)");
    row(&what, &of_deployment.text(), &of_pods.text(), &of_deployment.ratio_to(&of_pods));
    row("the same, memory of the daemon (PSS)", &format!("{memory_of_deployment} KiB"), &format!("{memory_of_pods} KiB"), "-");
    row(&format!("a rolling update of {REPLICAS} replicas (25 %) until all new ones ran"), &rollout.text(), "-", "-");
}
