//! Waiting for conditions, with a deadline.

use std::time::{Duration, Instant};

/// Time for a condition that normally holds within a second; generous, since the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls `probe` until it gives a value. Panics with `what` and what `probe` last said when the deadline is over.
pub(crate) fn eventually<T>(what: &str, probe: impl FnMut() -> Result<T, String>) -> T {
    eventually_within(PATIENCE, what, probe)
}

/// As [`eventually`], with a deadline of its own; ten times that on an emulated processor.
pub(crate) fn eventually_within<T>(patience: Duration, what: &str, mut probe: impl FnMut() -> Result<T, String>) -> T {
    let patience = if std::env::var_os("PODSTEAD_EMULATED").is_some() { patience * 10 } else { patience };
    let end = Instant::now() + patience;
    loop {
        match probe() {
            Ok(value) => return value,
            Err(last) if Instant::now() >= end => panic!("gave up after {patience:?} waiting for: {what}; last seen: {last}"),
            Err(_) => std::thread::park_timeout(Duration::from_millis(20)),
        }
    }
}
