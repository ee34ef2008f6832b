//! Work of daemon and shims when there is nothing to do.

use crate::figures::row;
use crate::memory::{grow, shims};
use crate::support::TestHost;
use std::time::Duration;

/// CPU ticks (1/100 s), with those of children that were waited for, and bytes sent to storage.
pub(crate) fn spent(pids: &[u32]) -> (u64, u64) {
    let ticks = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<u64> = stat
            .rsplit(')')
            .next()
            .unwrap_or("")
            .split_whitespace()
            .skip(11)
            .take(4)
            .filter_map(|field| field.parse().ok())
            .collect();
        fields.iter().sum::<u64>()
    };
    let written = |pid: &u32| {
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    };
    (pids.iter().map(ticks).sum(), pids.iter().map(written).sum::<u64>())
}

/// CPU and writes over a minute with 10 idle pods.
pub(crate) fn one_minute() {
    let host = TestHost::start();
    grow(&host, 10);
    let mut pids = shims(&host);
    pids.push(host.daemon_pid());
    // Let start-up work end before the minute begins.
    std::thread::park_timeout(Duration::from_secs(5));
    let before = spent(&pids);
    std::thread::park_timeout(Duration::from_secs(60));
    let after = spent(&pids);
    row(
        "10 idle pods for 60 s: CPU time, bytes written",
        &format!("{} ms, {} B", (after.0 - before.0) * 10, after.1 - before.1),
        "-",
        "-",
    );
}
