//! Which layers are mounted, anywhere on the host.
//!
//! A container's root file system is an overlay mount in a mount namespace of its own; its layers must stay, whoever forgot their
//! names. The kernel knows: every process shows the mounts of its namespace, and an overlay shows its layers' paths.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use super::digest::Digest;

/// Those of `candidates` (chain ids) that occur in the mount table of any process.
pub(super) fn mounted(candidates: &BTreeSet<Digest>) -> io::Result<BTreeSet<Digest>> {
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    let mut found = BTreeSet::new();
    if candidates.is_empty() {
        return Ok(found);
    }
    for entry in std::fs::read_dir("/proc")? {
        let path = entry?.path();
        if !path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
            continue;
        }
        // Processes end while they are looked at, and kernel threads have no namespaces: no loss.
        let Ok(namespace) = std::fs::read_link(path.join("ns/mnt")) else { continue };
        if seen.contains(&namespace) {
            continue;
        }
        let Ok(mounts) = std::fs::read_to_string(path.join("mountinfo")) else { continue };
        seen.insert(namespace);
        for line in mounts.lines().filter(|line| line.contains(" - overlay ")) {
            found.extend(candidates.iter().filter(|chain| line.contains(&chain.hex())).copied());
        }
    }
    Ok(found)
}
