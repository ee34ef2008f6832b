//! The wait before a process is moved between cgroups, paid in advance.
//!
//! The kernel makes forks and exits cheap and moves dear: the first move in a while waits for a grace period of RCU, 4 to 10 ms on an idle host, and
//! the moves of the next few milliseconds do not wait (`cgroup_threadgroup_rwsem` in `kernel/cgroup/cgroup.c`, a `percpu_rw_semaphore` on
//! `kernel/rcu/sync.c`; `favordynmods` in cgroups(7) turns it around for a whole host). A write of this process into the group that it is in already moves
//! nothing and begins that grace period.

use crate::mounts::{MountEntry, mounts};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

/// Enough to read two files of `/proc`.
const STACK: usize = 128 * 1024;

/// A write is under way.
static UNDER_WAY: AtomicBool = AtomicBool::new(false);

/// Has the kernel prepare for moves that come within a few milliseconds, and waits for nothing. Without effect where this process may not write to its
/// group: the moves then wait as always.
pub fn prepare_in_background() {
    if UNDER_WAY.swap(true, Ordering::AcqRel) {
        return;
    }
    let spawned = Builder::new().name("cgroup-moves".into()).stack_size(STACK).spawn(|| {
        if let Err(error) = stay() {
            tracing::debug!(%error, "cannot prepare for moves between cgroups");
        }
        UNDER_WAY.store(false, Ordering::Release);
    });
    if spawned.is_err() {
        UNDER_WAY.store(false, Ordering::Release);
    }
}

/// Moves this process into the group that it is in. Until the kernel has done so, nobody can make a cgroup, move a process or fork one into a cgroup.
fn stay() -> io::Result<()> {
    let hierarchies = hierarchies()?;
    // Read last: whoever moves this process in between would have it moved back.
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let group = own_group(hierarchies, &groups).ok_or(io::ErrorKind::NotFound)?;
    OpenOptions::new().write(true).open(group.join("cgroup.procs"))?.write_all(b"0")
}

/// The mounted hierarchies of cgroups as they were when they were needed first: they stay where they are, and a host may have thousands of other mounts.
fn hierarchies() -> io::Result<&'static [MountEntry]> {
    static FOUND: OnceLock<Vec<MountEntry>> = OnceLock::new();
    match FOUND.get() {
        Some(found) => Ok(found),
        None => {
            let found = mounts()?.into_iter().filter(|mount| matches!(mount.kind.as_str(), "cgroup" | "cgroup2")).collect();
            Ok(FOUND.get_or_init(|| found))
        }
    }
}

/// The directory of this process's group in one of the mounted hierarchies: that of v2 if there is one. `groups` is the text of `/proc/self/cgroup`.
fn own_group(hierarchies: &[MountEntry], groups: &str) -> Option<PathBuf> {
    let lines = groups.lines().filter_map(|line| {
        let (_number, rest) = line.split_once(':')?;
        rest.split_once(':')
    });
    let mut lines: Vec<(&str, &str)> = lines.collect();
    lines.sort_by_key(|(controllers, _)| !controllers.is_empty());
    lines.into_iter().find_map(|(controllers, path)| {
        let is_here = |mount: &&MountEntry| match controllers {
            "" => mount.kind == "cgroup2",
            _ => mount.kind == "cgroup" && controllers.split(',').all(|name| mount.options.split(',').any(|option| option == name)),
        };
        let mount = hierarchies.iter().filter(|mount| mount.root == Path::new("/")).find(is_here)?;
        let below = Path::new(path).strip_prefix("/").ok()?;
        // `..`: a group outside of this process's cgroup namespace, which cannot be reached from here.
        below.components().all(|component| matches!(component, Component::Normal(_))).then(|| mount.point.join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::parse_mountinfo;

    const V1: &str = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";
    const GROUPS: &str = "4:cpu,cpuacct:/a.slice/b.service\n0::/c.slice/d.service\n";

    fn found(mountinfo: &str, groups: &str) -> Option<String> {
        own_group(&parse_mountinfo(mountinfo.as_bytes()), groups).map(|path| path.display().to_string())
    }

    #[test]
    fn own_group_is_in_any_mounted_hierarchy() {
        let (v1, v2) = ("/sys/fs/cgroup/cpu,cpuacct/a.slice/b.service", "/sys/fs/cgroup/unified/c.slice/d.service");
        assert_eq!(found(&format!("{V1}{V2}"), GROUPS).as_deref(), Some(v2));
        assert_eq!(found(V2, GROUPS).as_deref(), Some(v2));
        assert_eq!(found(V1, GROUPS).as_deref(), Some(v1));
        assert_eq!(found(V2, "0::/\n").as_deref(), Some("/sys/fs/cgroup/unified/"));
    }

    #[test]
    fn group_that_cannot_be_reached_is_left_alone() {
        assert_eq!(found("", GROUPS), None);
        assert_eq!(found(V2, "0::/../other.service\n"), None);
        assert_eq!(
            found("41 31 0:38 /part /mnt rw - cgroup2 cgroup2 rw\n", GROUPS),
            None,
            "only a part of the hierarchy is mounted"
        );
        assert_eq!(found(V1, "4:memory:/a\n"), None);
    }

    #[test]
    fn staying_moves_nothing() {
        let groups = || fs::read_to_string("/proc/self/cgroup").unwrap();
        let before = groups();
        // Without rights, nothing happens either.
        let _refused = stay();
        assert_eq!(groups(), before);
    }
}
