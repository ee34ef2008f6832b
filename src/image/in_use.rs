//! Layers that are mounted, anywhere on the host.
//!
//! A container's root file system is an overlay mount in a mount namespace of its own; its layers must stay, whoever forgot their
//! names. The kernel knows: every process shows the mounts of its namespace, and an overlay shows its layers' paths.
//!
//! Layers of the same content have the same name in every store: only the path tells whose layer is mounted.

use podstead_container::digest::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Those of `candidates` whose tree is a layer in the mount table of any process.
pub(super) fn mounted(candidates: &BTreeMap<Digest, PathBuf>) -> io::Result<BTreeSet<Digest>> {
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
        let Ok(mounts) = std::fs::read(path.join("mountinfo")) else { continue };
        seen.insert(namespace);
        let mounts = String::from_utf8_lossy(&mounts);
        let overlays = mounts.lines().filter(|line| line.contains(" - overlay "));
        found.extend(overlays.flat_map(|line| named_in(line, candidates, is_same_directory)));
    }
    Ok(found)
}

/// The candidates that a line of a mount table names as layers.
fn named_in(line: &str, candidates: &BTreeMap<Digest, PathBuf>, is_same: impl Fn(&Path, &Path) -> bool) -> Vec<Digest> {
    let named = |chain: &Digest, tree: &Path| {
        let hex = chain.hex();
        // A path ends where the next layer or the next option begins.
        let paths = line.split([',', ':', '=', ' ']).filter(|path| path.contains(&hex));
        paths.map(Path::new).any(|path| path == tree || is_same(path, tree))
    };
    candidates.iter().filter(|(chain, tree)| named(chain, tree)).map(|(chain, _)| *chain).collect()
}

/// Returns true if two paths lead to the same directory, as they do when the store was reached through a symlink once. One that leads
/// nowhere here belongs to somebody with other files.
fn is_same_directory(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
    identity(one).is_some_and(|one| Some(one) == identity(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(chains: &[Digest]) -> BTreeMap<Digest, PathBuf> {
        chains.iter().map(|chain| (*chain, Path::new("/srv/images/layers").join(chain.hex()).join("fs"))).collect()
    }

    #[test]
    fn a_layer_of_another_store_is_not_this_stores() {
        let chain = Digest::of(b"layer");
        let candidates = candidates(&[chain, Digest::of(b"other")]);
        let line = |root: &str| {
            format!(
                "40 30 0:50 / /m rw - overlay overlay rw,lowerdir=/x/fs:{root}/layers/{}/fs,upperdir=/u,workdir=/w",
                chain.hex()
            )
        };
        let never = |_: &Path, _: &Path| false;
        assert_eq!(named_in(&line("/srv/images"), &candidates, never), [chain]);
        assert_eq!(named_in(&line("/tmp/other/images"), &candidates, never), []);
        assert_eq!(named_in(&line("/old/srv/images"), &candidates, |one, _| one.starts_with("/old")), [chain]);
        let parameters = format!("- overlay overlay rw,lowerdir+=/srv/images/layers/{}/fs,lowerdir+=/b", chain.hex());
        assert_eq!(named_in(&parameters, &candidates, never), [chain]);
    }

    #[test]
    fn one_directory_has_several_paths() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().join("real");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, directory.path().join("link")).unwrap();
        assert!(is_same_directory(&directory.path().join("link"), &real));
        assert!(!is_same_directory(directory.path(), &real));
        assert!(!is_same_directory(&directory.path().join("nowhere"), &real));
    }
}
