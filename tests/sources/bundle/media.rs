//! Media that are plugged in and pulled out.

use super::made::Made;
use super::{Bench, Following, pod};
use crate::support::run;
use podstead::source::bundle::BundleOptions;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A file with a file system, as a stick is one.
struct Stick {
    directory: tempfile::TempDir,
}

impl Stick {
    fn new() -> Self {
        let stick = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::File::create(stick.path("disk")).unwrap().set_len(16 << 20).unwrap();
        run(Command::new("mkfs.ext4").arg("-q").arg(stick.path("disk")));
        std::fs::create_dir(stick.path("mounted")).unwrap();
        stick
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn plug_in(&self) {
        run(Command::new("mount").args(["-o", "loop"]).arg(self.path("disk")).arg(self.path("mounted")));
    }

    /// As if it were pulled out: whoever has a file open keeps it.
    fn pull_out(&self) {
        run(Command::new("umount").arg("-l").arg(self.path("mounted")));
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let folder = self.path("mounted/podstead");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

impl Drop for Stick {
    fn drop(&mut self) {
        // It may be pulled out already.
        drop(Command::new("umount").arg("-l").arg(self.path("mounted")).output());
    }
}

fn made(serial: u64) -> Made {
    let image = format!("localhost/app:{serial}");
    Made::new(serial, &[("web.yaml", &pod("web", &image))]).image(&image, &["base"])
}

/// Puts a bundle on a stick, and a link to a newer one outside of it: whoever made the medium leads nowhere else. Returns the place of that one.
fn fill(stick: &Stick, bench: &Bench) -> PathBuf {
    stick.plug_in();
    stick.write("a.bundle", &made(1).bytes());
    let secret = bench.path("secret.bundle");
    std::fs::write(&secret, made(9).bytes()).unwrap();
    std::os::unix::fs::symlink(&secret, stick.path("mounted/podstead/b.bundle")).unwrap();
    stick.pull_out();
    secret
}

fn outside(path: &Path) -> bool {
    path.try_exists().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bundle_on_a_medium_is_taken_when_it_is_mounted() {
    let (bench, stick) = (Bench::new(), Stick::new());
    let secret = fill(&stick, &bench);
    // Only the kernel tells.
    let hour = Duration::from_secs(3600);
    let mut source = Following::start(BundleOptions { removable: true, interval: hour, ..bench.options() });
    assert_eq!(source.artifact().await.revision.0, "none");
    stick.plug_in();
    assert_eq!(source.artifact().await.revision.0, made(1).revision());
    assert!(outside(&secret));
    stick.pull_out();
    stick.plug_in();
    let told = source.failure().await;
    assert!(told.contains("b.bundle"), "{told}");
    stick.pull_out();
    assert!(matches!(source.next().await, podstead::artifact::SourceReport::Recovered), "it is no failure that it is gone");
    assert_eq!(bench.references().await, ["localhost/app:1"]);
}

/// A device of the kernel that a file stands behind.
struct LoopDevice(PathBuf);

impl LoopDevice {
    fn of(file: &Path) -> Self {
        let shown = run(Command::new("losetup").args(["--find", "--show", "--read-only"]).arg(file));
        Self(shown.trim().into())
    }

    fn is_in_use(file: &Path) -> bool {
        !run(Command::new("losetup").arg("--associated").arg(file)).is_empty()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // The kernel detaches it when its last user has gone.
        drop(Command::new("losetup").arg("--detach").arg(&self.0).output());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn medium_with_the_label_is_mounted_while_it_is_read() {
    let (bench, stick) = (Bench::new(), Stick::new());
    fill(&stick, &bench);
    let labels = bench.path("by-label");
    // Only the kernel tells.
    let hour = Duration::from_secs(3600);
    let mut source = Following::start(BundleOptions { labelled: Some(labels.join("FLEET")), interval: hour, ..bench.options() });
    assert_eq!(source.artifact().await.revision.0, "none");
    // The first device with a label: as udev does it, the directory comes with it.
    let device = LoopDevice::of(&stick.path("disk"));
    std::fs::create_dir(&labels).unwrap();
    std::os::unix::fs::symlink(&device.0, labels.join("OTHER")).unwrap();
    std::fs::rename(labels.join("OTHER"), labels.join("FLEET")).unwrap();
    assert_eq!(source.artifact().await.revision.0, made(1).revision());
    assert_eq!(bench.references().await, ["localhost/app:1"]);
    // It is not mounted any more, so that whoever plugged it in may pull it out.
    std::fs::remove_file(labels.join("FLEET")).unwrap();
    drop(device);
    let file = stick.path("disk");
    crate::support::eventually("nobody uses the medium", || !LoopDevice::is_in_use(&file)).await;
}
