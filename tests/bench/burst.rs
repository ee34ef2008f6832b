//! 40 pods from one rename until all their processes run, against bare runtimes that run as many containers, one on each processor at a time.

use crate::figures::{Series, row};
use crate::images::host_with_disk;
use crate::latency::{manifest, wait_for_file};
use crate::peers::Runtime;
use crate::support::TestHost;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PODS: usize = 40;
const RUNS: usize = 7;
/// Longer than the time in which jobs give way after a start.
const REST: Duration = Duration::from_secs(2);

/// One rename until all run, on a disk with a journal.
pub(crate) fn one_rename() {
    let host = host_with_disk(&[]);
    let out = host.path("out");
    std::fs::create_dir(&out).unwrap();
    let mut runtimes = Runtime::all(&host.path("bundle"));
    // Of two at a time, one sometimes waits forever for a container that has ended.
    runtimes.retain(|runtime| runtime.name() != "youki");
    let mut own = Series::default();
    let mut peers: Vec<Series> = runtimes.iter().map(|_| Series::default()).collect();
    for run in 0..RUNS {
        std::thread::park_timeout(REST);
        own.push(start_all(&host, &out, run));
        host.remove_manifest("all.yaml");
        (0..PODS).for_each(|number| host.wait_gone(&format!("r{run}p{number}")));
        for (runtime, series) in runtimes.iter().zip(&mut peers) {
            std::thread::park_timeout(REST);
            series.push(run_all(runtime, run));
        }
    }
    for (runtime, series) in runtimes.iter().zip(&peers) {
        let what = format!("one rename -> {PODS} pods run; {PODS} containers of `{} run` from create to exit", runtime.name());
        row(&what, &own.text(), &series.text(), &own.ratio_to(series));
    }
}

fn start_all(host: &TestHost, out: &Path, run: usize) -> Duration {
    let names: Vec<String> = (0..PODS).map(|number| format!("r{run}p{number}")).collect();
    let pod = |name: &String| manifest(name, out, "exec sleep 1000000").replace("restartPolicy: Never", "restartPolicy: Always");
    let staged = host.path("staged.yaml");
    std::fs::write(&staged, names.iter().map(pod).collect::<Vec<_>>().join("---\n")).unwrap();
    let begun = Instant::now();
    std::fs::rename(&staged, host.path("manifests/all.yaml")).unwrap();
    names.iter().for_each(|name| wait_for_file(&out.join(name)));
    begun.elapsed()
}

fn run_all(runtime: &Runtime, run: usize) -> Duration {
    let next = AtomicUsize::new(0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                while let Some(number) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < PODS) {
                    runtime.run_once(run * PODS + number);
                }
            });
        }
    });
    begun.elapsed()
}
