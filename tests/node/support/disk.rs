//! A disk of its own for the state directory, which can be stopped at one instant, as a power cut stops it: what has not reached the disk by then, its
//! journal included, never does.

use super::{TestHost, eventually, kernel_lacks};
use std::path::PathBuf;
use std::process::Command;

/// `EXT4_IOC_SHUTDOWN` with `EXT4_GOING_FLAGS_NOLOGFLUSH`.
const STOP: &str = "import fcntl, os, struct, sys; fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))";

/// The disk that the state directory is on.
pub(crate) struct Disk {
    image: PathBuf,
    at: PathBuf,
}

impl Disk {
    /// `None` where this machine cannot mount one.
    pub(crate) fn make(host: &TestHost) -> Option<Self> {
        let disk = Self { image: host.path("disk.img"), at: host.path("state") };
        std::fs::create_dir(&disk.at).unwrap();
        std::fs::File::create(&disk.image).unwrap().set_len(256 << 20).unwrap();
        assert!(Command::new("mke2fs").args(["-q", "-t", "ext4"]).arg(&disk.image).status().unwrap().success());
        if disk.mount() {
            return Some(disk);
        }
        kernel_lacks("file systems in files (loop, ext4)");
        None
    }

    fn mount(&self) -> bool {
        Command::new("mount").args(["-t", "ext4", "-o", "loop"]).args([&self.image, &self.at]).status().unwrap().success()
    }

    /// From now on nothing reaches the disk.
    pub(crate) fn stop(&self) {
        assert!(Command::new("python3").args(["-c", STOP]).arg(&self.at).status().unwrap().success());
    }

    /// The host is on again. Nobody must have its files open any more.
    pub(crate) fn start(&self) {
        eventually("the disk to be free", || {
            let out = Command::new("losetup").arg("-j").arg(&self.image).output().unwrap();
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            text.is_empty().then_some(()).ok_or(text)
        });
        assert!(self.mount(), "the disk is there");
    }
}
