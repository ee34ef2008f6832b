//! Resource usage of this host, from `/proc`.

use std::fs;
use std::io;

/// Of the host as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostUsage {
    /// Processor time of all processors since boot, in nanoseconds, without idleness and waiting for disks.
    pub cpu_nanos: u64,
    /// Bytes of memory there are.
    pub memory_total: u64,
    /// Bytes that programs could still get.
    pub memory_available: u64,
    /// Seconds since 1970 at which the host was booted, by the clock of now.
    pub booted_at: i64,
}

impl HostUsage {
    /// Bytes in use that cannot be dropped at once.
    pub fn working_set_bytes(&self) -> u64 {
        self.memory_total.saturating_sub(self.memory_available)
    }
}

/// Of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Processor time, in nanoseconds.
    pub cpu_nanos: u64,
    /// Bytes of memory that are resident.
    pub resident_bytes: u64,
    /// Open files.
    pub open_files: u64,
}

/// Reads what the host uses.
pub fn host_usage() -> io::Result<HostUsage> {
    Ok(host(&fs::read_to_string("/proc/stat")?, &fs::read_to_string("/proc/meminfo")?, nanos_per_tick()))
}

/// Reads what this process uses.
pub fn process_usage() -> io::Result<ProcessUsage> {
    let page = rustix::param::page_size() as u64;
    let open_files = fs::read_dir("/proc/self/fd")?.count() as u64;
    let mut usage = process(&fs::read_to_string("/proc/self/stat")?, nanos_per_tick(), page);
    usage.open_files = open_files;
    Ok(usage)
}

fn nanos_per_tick() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

fn host(stat: &str, meminfo: &str, tick: u64) -> HostUsage {
    let field = |text: &str, name: &str| -> Vec<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().map_while(|word| word.parse().ok()).collect()
    };
    let kib = |name: &str| field(meminfo, name).first().copied().unwrap_or_default().saturating_mul(1024);
    // user nice system idle iowait irq softirq steal; what guests use is in user already.
    let cpu = field(stat, "cpu ");
    let busy: u64 = cpu.iter().enumerate().filter(|(column, _)| matches!(column, 0..=2 | 5..=7)).map(|(_, ticks)| *ticks).sum();
    HostUsage {
        cpu_nanos: busy.saturating_mul(tick),
        memory_total: kib("MemTotal:"),
        memory_available: kib("MemAvailable:"),
        booted_at: field(stat, "btime ").first().copied().and_then(|at| i64::try_from(at).ok()).unwrap_or_default(),
    }
}

fn process(stat: &str, tick: u64, page: u64) -> ProcessUsage {
    // The name may hold anything, also `)`.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let number = |column: usize| fields.get(column).and_then(|word| word.parse::<u64>().ok()).unwrap_or_default();
    // proc(5) counts from 1, and the state is number 3.
    ProcessUsage {
        cpu_nanos: (number(14 - 3) + number(15 - 3)).saturating_mul(tick),
        resident_bytes: number(24 - 3).saturating_mul(page),
        open_files: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_memory_and_boot_are_found() {
        let stat = "cpu  100 10 50 1000 300 5 5 30 7 0\ncpu0 1 1 1 1\nbtime 1700000000\n";
        let meminfo = "MemTotal:        2000 kB\nMemFree:          100 kB\nMemAvailable:    1500 kB\n";
        let usage = host(stat, meminfo, 10_000_000);
        let expected =
            HostUsage { cpu_nanos: 2_000_000_000, memory_total: 2_048_000, memory_available: 1_536_000, booted_at: 1_700_000_000 };
        assert_eq!((usage, usage.working_set_bytes()), (expected, 512_000));
    }

    #[test]
    fn a_process_may_have_any_name() {
        let stat = "7 (a) b (c) S 1 1 1 0 -1 4194304 100 0 0 0 40 2 0 0 20 0 5 0 100 1000000 300 18446744073709551615";
        let usage = process(stat, 10_000_000, 4096);
        assert_eq!(usage, ProcessUsage { cpu_nanos: 420_000_000, resident_bytes: 300 * 4096, open_files: 0 });
    }

    #[test]
    fn this_host_and_this_process_use_something() {
        let (host, process) = (host_usage().unwrap(), process_usage().unwrap());
        assert!(host.cpu_nanos > 0 && host.memory_total > host.memory_available && host.booted_at > 0, "{host:?}");
        assert!(process.resident_bytes > 0 && process.open_files > 2, "{process:?}");
    }
}
