//! Counters of a container for dashboards besides [`Usage`](super::Usage): kinds of processor time, throttling, disks, limits in force.

use super::control::read;
use super::tree::below;
use super::{CgroupError, CgroupVersion, Cgroups};
use std::collections::BTreeMap;
use std::path::Path;

/// A limit of memory above this is none: v1 writes the largest number of pages.
const UNLIMITED: u64 = 1 << 62;

/// Counters of a group; zero where the host does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Processor time in programs, in nanoseconds.
    pub cpu_user_nanos: u64,
    /// Processor time in the kernel, in nanoseconds.
    pub cpu_system_nanos: u64,
    /// Periods in which the group ran under a quota of processor time.
    pub periods: u64,
    /// Those of them in which it was held back.
    pub throttled_periods: u64,
    /// For how long it was held back, in nanoseconds, summed over its threads.
    pub throttled_nanos: u64,
    /// Bytes of memory that belong to no file.
    pub anonymous_bytes: u64,
    /// Bytes of files in memory.
    pub file_bytes: u64,
    /// By device, as `major:minor`.
    pub disks: BTreeMap<String, DiskCounters>,
    /// Most bytes of memory; `None` without a limit.
    pub memory_limit: Option<u64>,
    /// Microseconds of processor time in each period, and the period; `None` without a quota.
    pub cpu_quota: Option<(u64, u64)>,
}

/// Traffic of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Requests to read.
    pub reads: u64,
    /// Requests to write.
    pub writes: u64,
}

impl Cgroups {
    /// The counters of a group and all below.
    pub fn counters(&self, path: &Path) -> Result<Counters, CgroupError> {
        let text = |controller: &str, file: &str| -> Result<String, CgroupError> {
            let root = self.hierarchies.controller(controller);
            Ok(root.map(|root| read(&below(root, path).join(file))).transpose()?.flatten().unwrap_or_default())
        };
        let limit = |text: &str| text.trim().parse().ok().filter(|limit| *limit < UNLIMITED);
        Ok(match self.version() {
            CgroupVersion::V2 => {
                let (cpu, memory) = (text("cpu", "cpu.stat")?, text("memory", "memory.stat")?);
                let nanos = |key| key_of(&cpu, key).saturating_mul(1000);
                Counters {
                    cpu_user_nanos: nanos("user_usec"),
                    cpu_system_nanos: nanos("system_usec"),
                    periods: key_of(&cpu, "nr_periods"),
                    throttled_periods: key_of(&cpu, "nr_throttled"),
                    throttled_nanos: nanos("throttled_usec"),
                    anonymous_bytes: key_of(&memory, "anon"),
                    file_bytes: key_of(&memory, "file"),
                    disks: disks_v2(&text("io", "io.stat")?),
                    memory_limit: limit(&text("memory", "memory.max")?),
                    cpu_quota: quota_v2(&text("cpu", "cpu.max")?),
                }
            }
            CgroupVersion::V1 => {
                let (cpu, times, memory) =
                    (text("cpu", "cpu.stat")?, text("cpuacct", "cpuacct.stat")?, text("memory", "memory.stat")?);
                let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
                let quota = text("cpu", "cpu.cfs_quota_us")?.trim().parse().ok();
                let period = text("cpu", "cpu.cfs_period_us")?.trim().parse().ok();
                let mut disks = BTreeMap::new();
                add_disks_v1(&mut disks, &text("blkio", "blkio.throttle.io_service_bytes_recursive")?, |disk, reads| {
                    if reads { &mut disk.read_bytes } else { &mut disk.written_bytes }
                });
                add_disks_v1(&mut disks, &text("blkio", "blkio.throttle.io_serviced_recursive")?, |disk, reads| {
                    if reads { &mut disk.reads } else { &mut disk.writes }
                });
                Counters {
                    cpu_user_nanos: key_of(&times, "user").saturating_mul(tick),
                    cpu_system_nanos: key_of(&times, "system").saturating_mul(tick),
                    periods: key_of(&cpu, "nr_periods"),
                    throttled_periods: key_of(&cpu, "nr_throttled"),
                    throttled_nanos: key_of(&cpu, "throttled_time"),
                    anonymous_bytes: key_of(&memory, "total_rss"),
                    file_bytes: key_of(&memory, "total_cache"),
                    disks,
                    memory_limit: limit(&text("memory", "memory.limit_in_bytes")?),
                    // -1 is no quota, and no unsigned number.
                    cpu_quota: quota.zip(period),
                }
            }
        })
    }
}

fn key_of(text: &str, key: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == key).and_then(|(_, value)| value.trim().parse().ok()).unwrap_or_default()
}

/// `8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0`.
fn disks_v2(text: &str) -> BTreeMap<String, DiskCounters> {
    let disk = |line: &str| {
        let (device, fields) = line.split_once(' ')?;
        let field = |name: &str| {
            let mut pairs = fields.split_whitespace().filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse().ok()).unwrap_or_default()
        };
        let counters = DiskCounters {
            read_bytes: field("rbytes"),
            written_bytes: field("wbytes"),
            reads: field("rios"),
            writes: field("wios"),
        };
        (counters != DiskCounters::default()).then(|| (device.to_owned(), counters))
    };
    text.lines().filter_map(disk).collect()
}

/// `8:0 Read 1`; `pick` gives the counter of reads or of writes.
fn add_disks_v1(disks: &mut BTreeMap<String, DiskCounters>, text: &str, pick: fn(&mut DiskCounters, bool) -> &mut u64) {
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [device, kind @ ("Read" | "Write"), count] = words.as_slice() else { continue };
        if let Some(count) = count.parse().ok().filter(|count| *count > 0) {
            *pick(disks.entry((*device).to_owned()).or_default(), *kind == "Read") = count;
        }
    }
}

/// `50000 100000`, or `max 100000`.
fn quota_v2(text: &str) -> Option<(u64, u64)> {
    let (quota, period) = text.trim().split_once(' ')?;
    quota.parse().ok().zip(period.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_told_by_device_in_both_dialects() {
        let expected = DiskCounters { read_bytes: 4096, written_bytes: 8192, reads: 1, writes: 2 };
        let found =
            disks_v2("8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n7:0 rbytes=0 wbytes=0 rios=0 wios=0\n8:16 \n");
        assert_eq!(found, BTreeMap::from([("8:0".to_owned(), expected)]));
        let mut found = BTreeMap::new();
        let bytes = "8:0 Read 4096\n8:0 Write 8192\n8:0 Sync 0\n8:0 Total 12288\n8:16 Read 0\nTotal 12288\n";
        add_disks_v1(&mut found, bytes, |disk, reads| if reads { &mut disk.read_bytes } else { &mut disk.written_bytes });
        add_disks_v1(&mut found, "8:0 Read 1\n8:0 Write 2\n", |disk, reads| if reads { &mut disk.reads } else { &mut disk.writes });
        assert_eq!(found, BTreeMap::from([("8:0".to_owned(), expected)]));
    }

    #[test]
    fn a_quota_is_two_numbers_or_none() {
        assert_eq!(quota_v2("50000 100000\n"), Some((50_000, 100_000)));
        assert_eq!(quota_v2("max 100000\n"), None);
        assert_eq!(quota_v2(""), None);
        assert_eq!(key_of("user 5\nuser_other 6\n", "user"), 5);
    }
}
