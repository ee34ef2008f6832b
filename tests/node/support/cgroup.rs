//! The cgroup files of a process, whichever version carries the controllers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// True if the line of a mountinfo file is that of a v1 hierarchy with the controller.
fn is_of_v1(line: &str, controller: &str) -> bool {
    line.split(" - cgroup ").nth(1).is_some_and(|rest| rest.split([',', ' ']).any(|option| option == controller))
}

/// The directory of a process's cgroup for the controller (`level` 0) or of one above it, and whether it is of v2.
fn directory(pid: u32, level: usize, controller: &str) -> (String, bool) {
    let above = |mut directory: String| {
        for _ in 0..level {
            directory.truncate(directory.rfind('/').unwrap());
        }
        directory
    };
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point = |is_it: &dyn Fn(&str) -> bool| {
        let line = mounts.lines().find(|line| is_it(line))?;
        line.split(' ').nth(4).map(str::to_owned)
    };
    let v1 = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, names, path) = (parts.next()?, parts.next()?, parts.next()?);
        names.split(',').any(|name| name == controller).then(|| path.to_owned())
    });
    if let Some(path) = v1 {
        return (above(format!("{}{path}", point(&|line| is_of_v1(line, controller)).unwrap())), false);
    }
    let path = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    (above(format!("{}{path}", point(&|line| line.contains(" - cgroup2 ")).unwrap())), true)
}

/// A limit of a process's cgroup (`level` 0) or of one above it, as the kernel has it: `controller/v1 file/v2 file`; trimmed.
fn file(pid: u32, level: usize, controller: &str, v1: &str, v2: &str) -> String {
    let (directory, is_v2) = directory(pid, level, controller);
    let path = format!("{directory}/{}", if is_v2 { v2 } else { v1 });
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}")).trim().to_owned()
}

/// Bytes of memory; `None` without a limit.
pub(crate) fn memory_limit(pid: u32, level: usize) -> Option<u64> {
    let limit = file(pid, level, "memory", "memory.limit_in_bytes", "memory.max").parse().ok();
    limit.filter(|limit| *limit < 1 << 60)
}

/// Microseconds of processor per 100 ms; `None` without a limit.
pub(crate) fn cpu_quota(pid: u32, level: usize) -> Option<u64> {
    let quota = file(pid, level, "cpu", "cpu.cfs_quota_us", "cpu.max");
    quota.split(' ').next().unwrap().parse().ok()
}

/// The share of processors, in `cpu.shares`; on v2 the weight that stands for it.
pub(crate) fn cpu_share(pid: u32, level: usize) -> u64 {
    file(pid, level, "cpu", "cpu.shares", "cpu.weight").parse().unwrap()
}

/// The file that tells whether jobs of the daemon run only where nobody else wants a processor, found from a container of a pod without requests.
pub(crate) fn jobs_idle(pid: u32) -> PathBuf {
    let (slice, _) = directory(pid, 3, "cpu");
    Path::new(&slice).join("jobs/cpu.idle")
}

/// The value that [`cpu_share`] reads for so many shares.
pub(crate) fn share_of(shares: u64) -> u64 {
    let is_v2 = !fs::read_to_string("/proc/self/mountinfo").unwrap().lines().any(|line| is_of_v1(line, "cpu"));
    if is_v2 { podstead::container::cgroup::cpu_weight(shares) } else { shares }
}

/// Processes and threads; `None` without a limit.
pub(crate) fn pids_limit(pid: u32, level: usize) -> Option<u64> {
    file(pid, level, "pids", "pids.max", "pids.max").parse().ok()
}

/// Number of processes and threads that the limit of a group refused.
pub(crate) fn pids_refused(pid: u32, level: usize) -> u64 {
    let events = file(pid, level, "pids", "pids.events", "pids.events");
    events.lines().find_map(|line| line.strip_prefix("max ")).map_or(0, |number| number.parse().unwrap())
}

/// True if a v1 hierarchy with the controller is mounted, or the v2 hierarchy has it.
pub(crate) fn is_mounted(controller: &str) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let v2 = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    mounts.lines().any(|line| is_of_v1(line, controller)) || v2.split_whitespace().any(|name| name == controller)
}

/// Bytes of huge pages by their size as the kernel spells it.
pub(crate) fn huge_page_limits(pid: u32, level: usize) -> BTreeMap<String, String> {
    let (directory, is_v2) = directory(pid, level, "hugetlb");
    let suffix = if is_v2 { ".max" } else { ".limit_in_bytes" };
    let files = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let size = |file: String| Some(file.strip_prefix("hugetlb.")?.strip_suffix(suffix)?.to_owned());
    let limit = |size: &str| fs::read_to_string(format!("{directory}/hugetlb.{size}{suffix}")).unwrap().trim().to_owned();
    // Those with a dot limit reservations.
    files.filter_map(size).filter(|size| !size.contains('.')).map(|size| (size.clone(), limit(&size))).collect()
}

/// A cgroup with a limit of memory; removed when dropped, after the processes in it have ended.
#[derive(Debug)]
pub(crate) struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Makes a group of this name, unique on the machine.
    pub(crate) fn make(name: &str, bytes: u64) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let point = |is_it: &dyn Fn(&str) -> bool| mounts.lines().find(|line| is_it(line)).and_then(|line| line.split(' ').nth(4));
        let v1 = point(&|line| is_of_v1(line, "memory"));
        let root = Path::new(v1.or_else(|| point(&|line| line.contains(" - cgroup2 "))).unwrap());
        if v1.is_none() {
            fs::write(root.join("cgroup.subtree_control"), "+memory").unwrap();
        }
        let group = Self(root.join(name));
        fs::create_dir(&group.0).unwrap();
        let limit = if v1.is_some() { "memory.limit_in_bytes" } else { "memory.max" };
        fs::write(group.0.join(limit), bytes.to_string()).unwrap();
        group
    }

    /// The file that processes join it by, and that lists them.
    pub(crate) fn procs(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    /// Number of processes that were killed because it was full.
    pub(crate) fn kills(&self) -> u64 {
        let read = |file: &str| fs::read_to_string(self.0.join(file));
        let text = read("memory.events").or_else(|_| read("memory.oom_control")).unwrap();
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")).unwrap().parse().unwrap()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while let Err(error) = fs::remove_dir(&self.0) {
            if Instant::now() > deadline {
                eprintln!("--- left behind: {}: {error}", self.0.display());
                return;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}
