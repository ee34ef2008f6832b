//! The cgroup files of a process, whichever version carries the controllers.

use std::fs;

/// The directory of a process's cgroup for the controller, and whether it is of v2.
fn directory(pid: u32, controller: &str) -> (String, bool) {
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
        let is_it = |line: &str| {
            line.split(" - cgroup ").nth(1).is_some_and(|rest| rest.split([',', ' ']).any(|option| option == controller))
        };
        return (format!("{}{path}", point(&is_it).unwrap()), false);
    }
    let path = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    (format!("{}{path}", point(&|line| line.contains(" - cgroup2 ")).unwrap()), true)
}

/// A limit of a process's cgroup (`level` 0) or of one above it, as the kernel has it: `controller/v1 file/v2 file`; trimmed.
fn file(pid: u32, level: usize, controller: &str, v1: &str, v2: &str) -> String {
    let (mut directory, is_v2) = directory(pid, controller);
    for _ in 0..level {
        directory.truncate(directory.rfind('/').unwrap());
    }
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

/// What [`cpu_share`] reads for so many shares.
pub(crate) fn share_of(shares: u64) -> u64 {
    let is_v2 = !fs::read_to_string("/proc/self/mountinfo")
        .unwrap()
        .lines()
        .any(|line| line.split(" - cgroup ").nth(1).is_some_and(|rest| rest.split([',', ' ']).any(|option| option == "cpu")));
    if is_v2 { podstead::sys::cgroup::cpu_weight(shares) } else { shares }
}

/// Processes and threads; `None` without a limit.
pub(crate) fn pids_limit(pid: u32, level: usize) -> Option<u64> {
    file(pid, level, "pids", "pids.max", "pids.max").parse().ok()
}

/// Bytes of huge pages of 2 MiB, or why there is no such file.
pub(crate) fn huge_page_limit(pid: u32, level: usize) -> String {
    file(pid, level, "hugetlb", "hugetlb.2MB.limit_in_bytes", "hugetlb.2MB.max")
}
