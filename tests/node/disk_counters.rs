//! Disks in `/metrics/cadvisor`: what a real container reads and writes past the cache of the kernel.

use crate::support::{TestHost, eventually, kernel_lacks};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes that go each way.
const BYTES: f64 = (4 << 20) as f64;

/// A disk of its own, which nobody else uses; dropping it takes it away.
struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.0).status());
        drop(fs::remove_dir_all(&self.0));
        drop(fs::remove_file(self.0.with_extension("img")));
    }
}

fn run(command: &str, arguments: &[&str]) {
    let out = Command::new(command).args(arguments).output().unwrap();
    assert!(out.status.success(), "{command} {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
}

impl Disk {
    fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("disk").tempdir_in("/tmp").unwrap().keep();
        let image = directory.with_extension("img");
        fs::File::create(&image).unwrap().set_len(32 << 20).unwrap();
        let disk = Self(directory);
        run("mkfs.ext4", &["-q", image.to_str().unwrap()]);
        run("mount", &["-o", "loop", image.to_str().unwrap(), disk.0.to_str().unwrap()]);
        disk
    }

    /// `major:minor`.
    fn device(&self) -> String {
        let device = fs::metadata(&self.0).unwrap().dev();
        format!("{}:{}", nix::sys::stat::major(device), nix::sys::stat::minor(device))
    }
}

/// Newer kernels count in the first version of cgroups what goes to a disk only after somebody has limited one group there.
fn have_it_counted(device: &str) {
    let group = Path::new("/sys/fs/cgroup/blkio").join(format!("counting-{}", std::process::id()));
    fs::create_dir(&group).unwrap();
    let limit = |bytes: u64| fs::write(group.join("blkio.throttle.write_bps_device"), format!("{device} {bytes}\n"));
    let (set, unset) = (limit(1 << 40), limit(0));
    fs::remove_dir(&group).unwrap();
    set.and(unset).unwrap();
}

#[test]
fn disk_traffic_is_counted_by_device() {
    let disk = Disk::new();
    let device = disk.device();
    let is_there = |path: &str| Path::new("/sys/fs/cgroup").join(path).is_file();
    if is_there("blkio/blkio.throttle.write_bps_device") {
        have_it_counted(&device);
    } else if !fs::read_to_string("/sys/fs/cgroup/cgroup.controllers")
        .is_ok_and(|all| all.split_whitespace().any(|one| one == "io"))
    {
        return kernel_lacks("counters of disks by cgroup");
    }
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let host = TestHost::start_with(&format!("monitoring: {{port: {port}}}\n"));
    let pod = format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: scribe}}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{{name: disk, hostPath: {{path: {}}}}}]
  containers:
    - name: main
      image: localhost/busybox:1
      command:
        - sh
        - -c
        - |
          dd if=/dev/zero of=/disk/file bs=64k count=64 oflag=direct conv=fsync
          dd if=/disk/file of=/dev/null bs=64k iflag=direct
          exec sleep 1000000
      volumeMounts: [{{name: disk, mountPath: /disk}}]
    - {{name: idle, image: localhost/busybox:1, command: [sleep, '1000000']}}
",
        disk.0.display()
    );
    host.write_manifest("scribe.yaml", &pod);
    host.wait_running("scribe");
    let page = || {
        let url = format!("http://127.0.0.1:{port}/metrics/cadvisor");
        let out = Command::new("curl").args(["-sS", "--fail", "--max-time", "20", &url]).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let sample = |text: &str, family: &str, container: &str| -> Option<f64> {
        let line = text.lines().find(|line| {
            line.starts_with(&format!("{family}{{"))
                && line.contains(&format!("container=\"{container}\""))
                && line.contains(&format!("device=\"{device}\""))
        })?;
        line.rsplit_once(' ')?.1.parse().ok()
    };
    let text = eventually("the disk to be counted", || {
        let text = page();
        let read = sample(&text, "container_fs_reads_bytes_total", "main");
        if read.is_some_and(|read| read >= BYTES) { Ok(text) } else { Err(text) }
    });
    // Its own directory and journal are there as well, and little.
    for family in ["container_fs_reads_bytes_total", "container_fs_writes_bytes_total"] {
        let bytes = sample(&text, family, "main").unwrap();
        assert!((BYTES..BYTES * 1.5).contains(&bytes), "{family} {bytes}");
    }
    for family in ["container_fs_reads_total", "container_fs_writes_total"] {
        let requests = sample(&text, family, "main").unwrap();
        assert!((1.0..1000.0).contains(&requests), "{family} {requests}");
    }
    assert_eq!(sample(&text, "container_fs_writes_bytes_total", "idle"), None, "{text}");
    host.remove_manifest("scribe.yaml");
    host.wait_gone("scribe");
}
