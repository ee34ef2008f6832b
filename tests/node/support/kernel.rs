//! The kernel's knowledge of a pod, looked up without the product's help.

use podstead::container::cgroup::{CgroupError, Cgroups};
use podstead::sys::layout::Paths;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for the remains of a host to go.
const PATIENCE: Duration = Duration::from_secs(20);

/// Says aloud that a test, or a part of it, is passed over since this machine's kernel has not got what it needs. Where all of it has to
/// be there (`PODSTEAD_NO_SKIPS`, as in the tests' virtual machine), that is a failure.
pub(crate) fn kernel_lacks(what: &str) {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    assert!(std::env::var_os("PODSTEAD_NO_SKIPS").is_none(), "{test}: this kernel lacks {what}");
    // Past the capture of the harness: a test that passes is not heard otherwise.
    let told = format!("SKIPPED in {test}: this kernel lacks {what}\n");
    drop(std::io::Write::write_all(&mut std::io::stderr(), told.as_bytes()));
}

/// True if a process of that id exists and is not a zombie.
pub(crate) fn process_exists(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

/// Everything in the kernel that carries `mark` (a pod's UID, or a directory): processes, cgroups, mounts.
pub(crate) fn leftovers(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let has = |file: &str| fs::read(entry.path().join(file)).is_ok_and(|text| String::from_utf8_lossy(&text).contains(mark));
        if pid != std::process::id() && process_exists(pid) && (has("cgroup") || has("cmdline")) {
            found.push(format!("process {pid}"));
        }
    }
    for cgroup in cgroups(mark) {
        found.push(format!("cgroup {}", cgroup.display()));
    }
    for mount in mounts(mark) {
        found.push(format!("mount {}", mount.display()));
    }
    found
}

/// Directories below the cgroup file systems whose name carries `mark`.
pub(crate) fn cgroups(mark: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_string_lossy().contains(mark) {
                found.push(path.clone());
            }
            folders.push(path);
        }
    }
    found
}

/// Mount points whose path carries `mark`, deepest first.
pub(crate) fn mounts(mark: &str) -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut found: Vec<PathBuf> = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|path| path.contains(mark))
        .map(|path| Path::new(path).into())
        .collect();
    found.reverse();
    found
}

/// Kills what runs in the cgroup tree of `paths`, and removes the tree and all mounts below `root`: for the end of a test, which may have
/// failed half-way.
pub(crate) fn purge(paths: &Paths, root: &Path) -> Result<(), CgroupError> {
    let cgroups = Cgroups::detect(&paths.cgroup_slice())?;
    let tree = Path::new("/").join(paths.cgroup_slice());
    // A shim is killed before it could act on the end of its containers: all are in the tree.
    let killed = cgroups.kill(&tree, PATIENCE);
    for mount in mounts(&root.display().to_string()) {
        nix::mount::umount2(&mount, nix::mount::MntFlags::MNT_DETACH).unwrap_or_default();
    }
    killed.and_then(|()| cgroups.remove(&tree, PATIENCE))
}
