//! A mount namespace with nothing in it, for processes that mount what they opened before.
//!
//! A new mount namespace is a copy of the present one: on a host with thousands of mounts that takes the kernel several milliseconds, and as long again when
//! it goes. A copy of an empty one takes nothing. One process makes an empty namespace ([`make`]), and others [enter](EmptyMounts::enter) copies of it.

use super::jail;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::stat::Mode;
use nix::unistd::{chdir, chroot, fchdir};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The directory for what is mounted.
const PLACE: &str = "place";

/// Gives this process, which must have one thread, a mount namespace that holds an empty directory alone. `scratch` is a directory; on the host nothing
/// happens to it.
///
/// # Errors
///
/// Those of the kernel, for which CAP_SYS_ADMIN is needed.
pub fn make(scratch: &Path) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    jail::enter(&jail::make(scratch, &[PLACE])?)
}

/// Opens the mount namespace of a process.
pub fn of_process(pid: u32) -> io::Result<OwnedFd> {
    File::open(format!("/proc/{pid}/ns/mnt")).map(OwnedFd::from)
}

/// Reports whether a descriptor names a namespace, of any kind.
pub fn is_namespace(descriptor: impl AsFd) -> bool {
    const NSFS: u64 = 0x6e73_6673;
    rustix::fs::fstatfs(descriptor).is_ok_and(|system| system.f_type as u64 == NSFS)
}

/// An empty mount namespace that this process is in while its paths still lead to the files that they led to.
#[derive(Debug)]
pub struct EmptyMounts {
    root: OwnedFd,
}

impl EmptyMounts {
    /// Enters a copy of `namespace`. What is mounted from then on is seen by this process alone, and nothing but detached mounts can be mounted, below
    /// [`EmptyMounts::place`]. The process must have one thread. `None` if it may not enter, and then nothing has changed.
    ///
    /// # Errors
    ///
    /// The process is between the two, and cannot go on.
    pub fn enter(namespace: &OwnedFd) -> nix::Result<Option<Self>> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let before = open("/", flags, Mode::empty())?;
        if setns(namespace, CloneFlags::CLONE_NEWNS).is_err() {
            return Ok(None);
        }
        unshare(CloneFlags::CLONE_NEWNS)?;
        let root = open("/", flags, Mode::empty())?;
        fchdir(&before)?;
        chroot(".")?;
        Ok(Some(Self { root }))
    }

    /// An empty directory for what is mounted. The path is good for this process, while `self` lives.
    pub fn place(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.root.as_raw_fd().to_string()).join(PLACE)
    }

    /// Leaves the other files: paths lead into the namespace alone.
    pub fn stay(self) -> nix::Result<()> {
        fchdir(&self.root)?;
        chroot(".")?;
        chdir("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mount_tree::{Submounts, attach, clone_mount};
    use crate::overlay;
    use nix::fcntl::{AT_FDCWD, openat};
    use std::fs;

    /// An empty namespace, made by a thread as by a process.
    fn empty(scratch: PathBuf) -> OwnedFd {
        let made = std::thread::spawn(move || {
            let own = open("/proc/thread-self/ns", OFlag::O_PATH | OFlag::O_DIRECTORY, Mode::empty()).unwrap();
            let before = fs::read_dir(&scratch).unwrap().count();
            make(&scratch).unwrap();
            assert_eq!(before, 0);
            openat(&own, "mnt", OFlag::O_RDONLY, Mode::empty()).unwrap()
        });
        made.join().unwrap()
    }

    #[test]
    fn what_was_opened_before_is_mounted_and_paths_lead_where_they_led() {
        let test = "empty_mounts::tests::what_was_opened_before_is_mounted_and_paths_lead_where_they_led";
        crate::testing::in_private_mounts(test, || {
            unshare(CloneFlags::CLONE_FS).unwrap();
            let directory = tempfile::tempdir().unwrap().keep();
            let (scratch, layer) = (directory.join("scratch"), directory.join("layer"));
            for path in [&scratch, &layer] {
                fs::create_dir(path).unwrap();
            }
            fs::write(layer.join("file"), "content").unwrap();
            let namespace = empty(scratch.clone());
            assert!(is_namespace(&namespace) && !is_namespace(File::open("/dev/null").unwrap()));
            assert!(!fs::read_to_string("/proc/thread-self/mountinfo").unwrap().contains(scratch.to_str().unwrap()));

            let tree = clone_mount(AT_FDCWD, &layer, Submounts::Take).unwrap();
            let overlay = overlay::make_detached(std::slice::from_ref(&layer), &directory.join("writable")).unwrap();
            assert!(EmptyMounts::enter(&OwnedFd::from(File::open("/dev/null").unwrap())).unwrap().is_none());
            let entered = EmptyMounts::enter(&namespace).unwrap().unwrap();
            assert!(layer.join("file").is_file(), "paths are what they were");
            let place = entered.place();
            assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
            attach(&tree, &place).unwrap();
            assert_eq!(fs::read_to_string(place.join("file")).unwrap(), "content");
            if let Some(overlay) = overlay {
                attach(&overlay, &place).unwrap();
                fs::write(place.join("written"), "").unwrap();
                assert!(!layer.join("written").try_exists().unwrap());
            }
            let again = std::thread::spawn(move || {
                unshare(CloneFlags::CLONE_FS).unwrap();
                let second = EmptyMounts::enter(&namespace).unwrap().unwrap();
                fs::read_dir(second.place()).unwrap().count()
            });
            assert_eq!(again.join().unwrap(), 0, "each has a copy");
            entered.stay().unwrap();
            let shown: Vec<_> = fs::read_dir("/").unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(shown, [PLACE]);
            assert!(!layer.try_exists().unwrap_or(true));
        });
    }
}
