//! Memory of hosts that ignore ranges or delivered wrong content, while the daemon runs.

use super::lock;
use super::spool::BlobKey;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// A host that ignores ranges is asked last for so long.
const IGNORES_RANGE: Duration = Duration::from_secs(3600);
/// A host that took part in wrong content is asked last for that blob for so long.
const WRONG: Duration = Duration::from_secs(24 * 3600);
/// Remembered at most; beyond it, the memory begins anew.
const REMEMBERED: usize = 1024;

/// Hosts to be asked last.
#[derive(Debug, Default)]
pub(super) struct HostMemory {
    ignores_range: Mutex<HashMap<String, Instant>>,
    wrong: Mutex<HashMap<(BlobKey, String), Instant>>,
}

fn remember<K: Eq + std::hash::Hash>(memory: &Mutex<HashMap<K, Instant>>, key: K, life: Duration) {
    let mut memory = lock(memory);
    let now = Instant::now();
    memory.retain(|_, until| *until > now);
    if memory.len() >= REMEMBERED {
        memory.clear();
    }
    memory.insert(key, now + life);
}

impl HostMemory {
    pub(super) fn ignored_range(&self, host: &str) {
        remember(&self.ignores_range, host.to_owned(), IGNORES_RANGE);
    }

    pub(super) fn ignores_range(&self, host: &str) -> bool {
        lock(&self.ignores_range).get(host).is_some_and(|until| *until > Instant::now())
    }

    pub(super) fn delivered_wrong(&self, key: BlobKey, hosts: &[String]) {
        for host in hosts {
            remember(&self.wrong, (key, host.clone()), WRONG);
        }
    }

    pub(super) fn is_wrong(&self, key: BlobKey, host: &str) -> bool {
        lock(&self.wrong).get(&(key, host.to_owned())).is_some_and(|until| *until > Instant::now())
    }

    /// Returns true if the blob was wrong before: it is fetched from one host alone then.
    pub(super) fn has_wrong(&self, key: BlobKey) -> bool {
        lock(&self.wrong).keys().any(|(wrong, _)| *wrong == key)
    }
}
