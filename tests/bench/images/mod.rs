//! Pulls of images from a registry on this machine: cost against other programs, bytes on a link that breaks, and starts of pods meanwhile.

mod content;
mod cutting;
mod meter;
mod pullers;

use crate::figures::{Series, row};
use crate::idle::spent;
use crate::latency::{manifest, wait_for_file};
use crate::memory::grow;
use crate::steps::Steps;
use crate::support::{TestHost, eventually};
use content::{Images as _, Registry};
use meter::{Cost, Costs, Meter, Peak};
use pullers::Puller;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MIB: f64 = (1 << 20) as f64;
/// Starts of pods, without and with pulls.
const STARTS: usize = 20;
/// Rest between two starts: jobs give way to none for some seconds where starts follow each other without one.
const BETWEEN_STARTS: Duration = Duration::from_secs(1);
/// Bytes after which each connection of the bad link ends.
const CUT: u64 = 40_000_000;
/// Pause before pulls whose memory is compared with that of a daemon at rest.
const REST: Duration = Duration::from_secs(25);

/// Pulls by each program. `PODSTEAD_BENCH_RUNS` sets how often.
fn runs() -> usize {
    std::env::var("PODSTEAD_BENCH_RUNS").map_or(3, |text| text.parse().unwrap())
}

/// A host that may pull from `registries`.
fn host_of(registries: &[&str]) -> TestHost {
    let list: String = registries.iter().map(|host| format!("  - {{host: '{host}', http: true}}\n")).collect();
    TestHost::prepare(&format!("registries:\n{list}"))
}

/// As [`host_of`], with its state on a disk of its own, which is mounted on `disk`.
pub(crate) fn host_with_disk(registries: &[&str]) -> TestHost {
    let mut host = host_of(registries);
    let (image, disk, state) = (host.path("disk.img"), host.path("disk"), host.path("state"));
    std::fs::File::create(&image).unwrap().set_len(8 << 30).unwrap();
    let run = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
    run(Command::new("mkfs.ext4").args(["-q", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"]).arg(&image));
    std::fs::create_dir(&disk).unwrap();
    std::fs::create_dir(&state).unwrap();
    // Past the cache of the file below, which a flush would write to its disk as a whole.
    let made = Command::new("losetup").args(["--direct-io=on", "--show", "--find"]).arg(&image).output().unwrap();
    let device = String::from_utf8(made.stdout).unwrap();
    run(Command::new("mount").arg(device.trim()).arg(&disk));
    // It goes with the mount.
    run(Command::new("losetup").args(["--detach", device.trim()]));
    std::fs::create_dir(disk.join("state")).unwrap();
    run(Command::new("mount").arg("--bind").arg(disk.join("state")).arg(&state));
    start(&mut host);
    host
}

/// Starts the daemon, and waits for its first image.
fn start(host: &mut TestHost) {
    host.start_daemon();
    eventually("the image to be listed", || {
        let list = host.cli_ok(&["image", "ls"]);
        if list.contains("localhost/busybox") { Ok(()) } else { Err(list) }
    });
}

fn own_pull(host: &TestHost, meter: &Meter, image: &str) -> Cost {
    let cost = meter.measure(&[host.daemon_pid()], || drop(host.cli_ok(&["image", "pull", image])));
    host.cli_ok(&["image", "rm", "--force", image]);
    cost
}

/// One layer of about 300 MB.
pub(crate) fn one_large_layer() {
    let registry = Registry::start();
    compare(&registry, "one layer", &registry.large());
}

/// 40 layers of about 1 MB each.
pub(crate) fn many_small_layers() {
    let registry = Registry::start();
    compare(&registry, "40 layers", &registry.small());
}

/// Cold pulls by podstead and its peers, in turn.
fn compare(registry: &Registry, what: &str, image: &str) {
    let host = host_with_disk(&[&registry.host]);
    let disk = host.path("disk");
    let meter = Meter::of(&disk);
    let peers = Puller::all();
    let mut own = Costs::default();
    let mut others: Vec<Costs> = peers.iter().map(|_| Costs::default()).collect();
    for number in 0..runs() {
        own.push(own_pull(&host, &meter, image));
        for (peer, costs) in peers.iter().zip(&mut others) {
            let directory = disk.join(format!("{}-{number}", peer.name()));
            std::fs::create_dir(&directory).unwrap();
            costs.push(peer.pull(registry, image, &directory, &meter));
            std::fs::remove_dir_all(&directory).unwrap();
        }
    }
    let size = registry.size(image) as f64 / MIB;
    for (peer, costs) in peers.iter().zip(&others) {
        let what = format!(
            "pull of {what}, {size:.0} MiB ({}): time, until it is on the disk; CPU; peak of memory (PSS); bytes written",
            peer.name()
        );
        row(&what, &own.text(), &costs.text(), &own.ratios_to(costs));
    }
}

/// Bytes on a link that breaks each 40 MB, and the memory of a daemon that was at rest before.
pub(crate) fn link_that_breaks() {
    let registry = Registry::start();
    let link = cutting::Link::to(&registry.host, CUT);
    let image = registry.large();
    let host = host_with_disk(&[&registry.host, &link.host()]);
    let meter = Meter::of(&host.path("disk"));
    std::thread::park_timeout(REST);
    let rest = Peak::of(&[host.daemon_pid()]);
    let good = own_pull(&host, &meter, &image);
    row(
        "memory of a daemon at rest, and most in a pull of one layer, with its jobs: PSS; of it without a file",
        &format!("{} and {}; {} and {} KiB", rest.pss_kib, good.peak.pss_kib, rest.anonymous_kib, good.peak.anonymous_kib),
        "-",
        "-",
    );
    let size = registry.size(&image);
    let broken = own_pull(&host, &meter, &image.replace(&registry.host, &link.host()));
    let (sent, cuts) = link.sent();
    row(
        &format!("pull of {:.0} MiB on a link that breaks each 40 MB: {cuts} cuts; time (without them)", size as f64 / MIB),
        &format!("{:.1} s", broken.wall.as_secs_f64()),
        &format!("{:.1} s", good.wall.as_secs_f64()),
        &format!("{:.3}", broken.wall.as_secs_f64() / good.wall.as_secs_f64()),
    );
    row(
        "the same: bytes on the link (of the image)",
        &format!("{:.1} MiB", sent as f64 / MIB),
        &format!("{:.1} MiB", size as f64 / MIB),
        &format!("{:.3}", sent as f64 / size as f64),
    );
}

/// Starts of pods whose image is here, while another is pulled again and again (and while nothing is pulled).
pub(crate) fn starts_during_pulls() {
    let registry = Registry::start();
    let image = registry.large();
    // Otherwise it is on another machine.
    give_way(registry.process.id());
    // With a journal: ext4 without one looks for inodes that were not deleted of late, of which each image that is removed has thousands.
    let host = host_with_disk(&[&registry.host]);
    let out = host.path("out");
    std::fs::create_dir(&out).unwrap();
    let starts = |what: &str| {
        let (mut times, mut steps) = (Series::default(), Steps::default());
        for number in 0..STARTS {
            let name = format!("{what}{number}");
            std::thread::park_timeout(BETWEEN_STARTS);
            times.push(run(&host, &out, &name));
            steps.push(&host, &name);
            remove(&host, &name);
        }
        (times, steps)
    };
    let (alone, steps_alone) = starts("alone");
    let busy: Vec<_> = (0..2).map(|_| Computing::start()).collect();
    let (computing, steps_computing) = starts("computing");
    drop(busy);
    let (ends, mut beside, mut steps) = (AtomicBool::new(false), Series::default(), Steps::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                host.cli_ok(&["image", "pull", &image]);
                host.cli_ok(&["image", "rm", "--force", &image]);
            }
        });
        for number in 0..STARTS {
            std::thread::park_timeout(BETWEEN_STARTS);
            let pulled = || host.cli_ok(&["image", "pulls"]).contains(&image);
            eventually("a pull to be under way", || if pulled() { Ok(()) } else { Err("none".to_owned()) });
            let name = format!("beside{number}");
            beside.push(run(&host, &out, &name));
            steps.push(&host, &name);
            remove(&host, &name);
        }
        ends.store(true, Ordering::Relaxed);
    });
    row("manifest renamed -> process running, during a pull (without)", &beside.text(), &alone.text(), &beside.ratio_to(&alone));
    steps.print();
    let what = "the same, beside two processes that compute when nobody else does (without)";
    row(what, &computing.text(), &alone.text(), &computing.ratio_to(&alone));
    steps_computing.print();
    row("the same, without either", &alone.text(), "-", "-");
    steps_alone.print();
}

/// Bytes that the disk of a daemon with pods gets in ten minutes in which nothing is pulled. `PODSTEAD_BENCH_SECONDS` sets another time.
pub(crate) fn idle() {
    let registry = Registry::start();
    let image = registry.small();
    let host = host_with_disk(&[&registry.host]);
    host.cli_ok(&["image", "pull", &image]);
    grow(&host, 10);
    let meter = Meter::of(&host.path("disk"));
    // What a start of pods leaves to be written, and access times of new directories.
    std::thread::park_timeout(REST);
    let seconds = std::env::var("PODSTEAD_BENCH_SECONDS").map_or(600, |text| text.parse().unwrap());
    let before = (meter.written(), spent(&[host.daemon_pid()]).0);
    std::thread::park_timeout(Duration::from_secs(seconds));
    let after = (meter.written(), spent(&[host.daemon_pid()]).0);
    row(
        &format!(
            "a store with two images and 10 pods for {seconds} s without a pull: bytes written to its disk; CPU of the daemon"
        ),
        &format!("{} B; {} ms", after.0 - before.0, (after.1 - before.1) * 10),
        "-",
        "-",
    );
}

/// A process that computes, without a file or a call of the kernel, whenever nobody else wants its processor: what a start costs on a machine with busy
/// processors.
struct Computing(Child);

impl Computing {
    fn start() -> Self {
        Self(Command::new("chrt").args(["--idle", "0", "sh", "-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).map(drop).unwrap();
    }
}

/// Gives all threads of a process the lowest priority, which those that it makes later have, too.
fn give_way(pid: u32) {
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let id = thread.file_name().to_str().unwrap().parse().ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::setpriority_process(id, 19).unwrap();
    }
}

/// The time from the rename of a manifest until its process runs, which restarts after every exit.
fn run(host: &TestHost, out: &Path, name: &str) -> Duration {
    let (staged, target) = (host.path("staged.yaml"), host.path("manifests").join(format!("{name}.yaml")));
    let manifest = manifest(name, out, "exec sleep 1000000").replace("restartPolicy: Never", "restartPolicy: Always");
    std::fs::write(&staged, manifest).unwrap();
    let begun = Instant::now();
    std::fs::rename(&staged, &target).unwrap();
    wait_for_file(&out.join(name));
    begun.elapsed()
}

fn remove(host: &TestHost, name: &str) {
    host.remove_manifest(&format!("{name}.yaml"));
    host.wait_gone(name);
}
