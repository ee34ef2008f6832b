//! Memory of daemon and shims, and the time that many pods take.

use crate::figures::row;
use crate::support::{TestHost, eventually_within};
use std::time::{Duration, Instant};

/// Proportional set size in KiB.
pub(crate) fn pss_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The part of it that belongs to no file, in KiB.
pub(crate) fn anonymous_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Process ids of all shims of a host.
pub(crate) fn shims(host: &TestHost) -> Vec<u32> {
    let mark = host.path("").display().to_string();
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    pids.filter(|pid| {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        comm.trim() == "podstead-shim"
            && std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&mark))
    })
    .collect()
}

/// Adds pods up to `count` by one rename of a directory into place, and waits until all run. Other manifests stay.
pub(crate) fn grow(host: &TestHost, count: usize) -> Duration {
    let staging = host.path(&format!("staging-{count}"));
    std::fs::create_dir(&staging).unwrap();
    for number in 0..count {
        let manifest = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{number}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
             - {{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000']}}\n"
        );
        std::fs::write(staging.join(format!("p{number}.yaml")), manifest).unwrap();
    }
    for entry in std::fs::read_dir(host.path("manifests")).unwrap().flatten() {
        if !staging.join(entry.file_name()).try_exists().unwrap() {
            std::fs::copy(entry.path(), staging.join(entry.file_name())).unwrap();
        }
    }
    let all = std::fs::read_dir(&staging).unwrap().count();
    let start = Instant::now();
    std::fs::rename(host.path("manifests"), host.path(&format!("before-{count}"))).unwrap();
    std::fs::rename(&staging, host.path("manifests")).unwrap();
    eventually_within(Duration::from_secs(300), &format!("{count} pods to run"), || {
        let running = host.pods().iter().filter(|pod| pod.runs("main")).count();
        if running == all { Ok(()) } else { Err(format!("{running} run")) }
    });
    start.elapsed()
}

/// Time after which what a burst of work left is given back: threads that block end after ten seconds without work.
pub(crate) const REST: Duration = Duration::from_secs(25);

/// PSS at 0, 1, 10, 100 and 250 pods, when all run and after a rest.
pub(crate) fn daemon_and_shims() {
    let host = TestHost::start();
    for count in [0, 1, 10, 100, 250] {
        let took = if count == 0 { Duration::ZERO } else { grow(&host, count) };
        let daemon = pss_kib(host.daemon_pid());
        let shims = shims(&host);
        assert_eq!(shims.len(), count);
        let each = |shims: &[u32]| shims.iter().map(|pid| pss_kib(*pid)).sum::<u64>().checked_div(count as u64).unwrap_or(0);
        let at_once = each(&shims);
        std::thread::sleep(REST);
        let (rested, each) = (pss_kib(host.daemon_pid()), each(&shims));
        row(
            &format!("{count} pods: memory (PSS); time from one rename of a directory until all run"),
            &format!(
                "daemon {daemon} KiB, after {} s {rested} KiB; each shim {at_once} KiB, after that time {each} KiB; {:.2} s",
                REST.as_secs(),
                took.as_secs_f64()
            ),
            "-",
            "-",
        );
    }
}
