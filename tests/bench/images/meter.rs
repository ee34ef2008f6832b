//! Time, CPU, memory and writes of a piece of work.

use crate::idle::spent;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Pause between two looks at the memory.
const LOOK: Duration = Duration::from_millis(20);

/// Memory of a tree of processes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peak {
    pub(super) pss_kib: u64,
    /// Memory that belongs to no file.
    pub(super) anonymous_kib: u64,
}

impl Peak {
    /// That of processes and all that they started.
    pub(super) fn of(pids: &[u32]) -> Self {
        let mut total = Self::default();
        let mut left = pids.to_vec();
        while let Some(pid) = left.pop() {
            let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            let value = |key: &str| {
                let line = rollup.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("0");
                line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
            };
            total.pss_kib += value("Pss:");
            total.anonymous_kib += value("Anonymous:");
            // One that has not executed its program yet has the memory of its parent, which counts once.
            left.extend(started_by(pid).into_iter().filter(|child| command_line(*child) != command_line(pid)));
        }
        total
    }

    fn most(self, other: Self) -> Self {
        Self { pss_kib: self.pss_kib.max(other.pss_kib), anonymous_kib: self.anonymous_kib.max(other.anonymous_kib) }
    }
}

/// Cost of one pull.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) wall: Duration,
    /// With the time that the disk then takes for what is in memory alone.
    durable: Duration,
    cpu: Duration,
    pub(super) peak: Peak,
    written: u64,
}

/// The command line of a process; empty when it is gone.
fn command_line(pid: u32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// Processes that a process started and that run.
fn started_by(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    children.flat_map(|list| list.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// Costs of all pulls by one program.
#[derive(Debug, Default)]
pub(super) struct Costs(Vec<Cost>);

impl Costs {
    pub(super) fn push(&mut self, cost: Cost) {
        self.0.push(cost);
    }

    fn median(&self, value: impl Fn(&Cost) -> f64) -> f64 {
        let mut values: Vec<f64> = self.0.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Medians: time, time until all is on the disk, CPU time, memory, bytes written.
    fn medians(&self) -> [f64; 5] {
        [
            self.median(|cost| cost.wall.as_secs_f64()),
            self.median(|cost| cost.durable.as_secs_f64()),
            self.median(|cost| cost.cpu.as_secs_f64()),
            self.median(|cost| cost.peak.pss_kib as f64 / 1024.0),
            self.median(|cost| cost.written as f64 / (1 << 20) as f64),
        ]
    }

    pub(super) fn text(&self) -> String {
        let [wall, durable, cpu, peak, written] = self.medians();
        format!("{wall:.2} s, {durable:.2} s; {cpu:.2} s; {peak:.0} MiB; {written:.0} MiB")
    }

    /// Each of these medians divided by the other's.
    pub(super) fn ratios_to(&self, other: &Self) -> String {
        let ratios: Vec<String> =
            self.medians().iter().zip(other.medians()).map(|(own, other)| format!("{:.2}", own / other)).collect();
        let [wall, durable, cpu, peak, written] = ratios.as_slice() else { return "-".to_owned() };
        format!("{wall}, {durable}; {cpu}; {peak}; {written}")
    }
}

/// Meter of the work on one disk.
#[derive(Debug)]
pub(super) struct Meter {
    disk: PathBuf,
}

impl Meter {
    /// For work whose files are below this directory, on a file system of its own.
    pub(super) fn of(disk: &Path) -> Self {
        Self { disk: disk.to_owned() }
    }

    /// Bytes that the device has written, when all that was to be written is.
    pub(super) fn written(&self) -> u64 {
        rustix::fs::syncfs(fs::File::open(&self.disk).unwrap()).unwrap();
        let device = fs::metadata(&self.disk).unwrap().dev();
        let path = format!("/sys/dev/block/{}:{}/stat", nix::sys::stat::major(device), nix::sys::stat::minor(device));
        fs::read_to_string(path).unwrap().split_whitespace().nth(6).unwrap().parse::<u64>().unwrap() * 512
    }

    /// Runs `work`. `daemons` work for it; without them, those whom this process starts meanwhile do.
    pub(super) fn measure(&self, daemons: &[u32], work: impl FnOnce()) -> Cost {
        let before = (self.written(), spent(daemons).0, children());
        let ends = AtomicBool::new(false);
        let own = std::process::id();
        // The registry and a daemon that has nothing to do with it.
        let others = started_by(own);
        let (wall, begun, peak) = std::thread::scope(|scope| {
            let looks = scope.spawn(|| {
                let mut peak = Peak::default();
                while !ends.load(Ordering::Relaxed) {
                    let workers = if daemons.is_empty() {
                        started_by(own).into_iter().filter(|pid| !others.contains(pid)).collect()
                    } else {
                        daemons.to_vec()
                    };
                    peak = peak.most(Peak::of(&workers));
                    std::thread::park_timeout(LOOK);
                }
                peak
            });
            let begun = Instant::now();
            work();
            let wall = begun.elapsed();
            ends.store(true, Ordering::Relaxed);
            (wall, begun, looks.join().unwrap())
        });
        let written = self.written();
        let durable = begun.elapsed();
        let ticks = spent(daemons).0 - before.1;
        let cpu = Duration::from_millis(ticks * 10) + (children() - before.2);
        Cost { wall, durable, cpu, peak, written: written - before.0 }
    }
}

/// CPU time of all that this process started and waited for.
fn children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(micros).unwrap())
}
