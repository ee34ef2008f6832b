//! View of the host for libcontainer while it creates a container.
//!
//! In a jail: a root in memory with the container's root file system, the pod's namespaces, what is to be mounted, and the kernel's own file systems. It
//! has none of the host's files: a path that leads astray ends in ENOENT. Hooks of devices are programs of the host, so a container with hooks is
//! made with the host's files in sight.

use super::mounts::make_like;
use super::users::Users;
use super::{Attempt, Failure};
use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::{Mode, fstat, mkdirat};
use podstead_pod::PodUid;
use podstead_sys::empty_mounts::EmptyMounts;
use podstead_sys::layout::Paths;
use podstead_sys::mount_tree::{self, EventFlow, Submounts};
use podstead_sys::{jail, mounts};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The spec as libcontainer reads it, and as exec reads it later.
pub(super) const CONFIG_FILE: &str = "config.json";

/// Directory of the root file system in the bundle.
const ROOTFS: &str = "rootfs";

/// Directories of the jail.
mod place {
    pub(super) const ROOTFS: &str = "r";
    pub(super) const MOUNTS: &str = "v";
    pub(super) const STATE: &str = "s";
    pub(super) const BUNDLE: &str = "b";
    pub(super) const NAMESPACES: &str = "n";
    pub(super) const ALL: [&str; 8] = [ROOTFS, MOUNTS, STATE, BUNDLE, NAMESPACES, "proc", "sys", "dev"];
}

/// Clones of what is shown of the host in the jail, by their places there.
#[derive(Debug)]
pub(super) struct Views(Vec<(&'static str, OwnedFd)>);

impl Views {
    /// Clones them. To be called before any volume is cloned.
    pub(super) fn take(paths: &Paths, uid: &PodUid, users: Option<&Users>) -> Result<Self, Failure> {
        let pins = paths.namespaces(uid);
        let mut views = vec![
            // All of procfs and sysfs: libcontainer finds its own files by the first, and a user namespace may mount its own only where whole ones are seen.
            ("proc", Path::new("/proc"), Submounts::Leave),
            ("sys", Path::new("/sys"), Submounts::Leave),
            ("sys/fs/cgroup", Path::new("/sys/fs/cgroup"), Submounts::Take),
        ];
        if pins.is_dir() {
            views.push((place::NAMESPACES, &pins, Submounts::Take));
        }
        if users.is_some() {
            // Without the right to make device nodes, libcontainer binds the host's.
            views.push(("dev", Path::new("/dev"), Submounts::Leave));
        }
        let clone = |(name, path, submounts): (&'static str, &Path, Submounts)| {
            let what = format!("expose {} to libcontainer", path.display());
            let tree = mount_tree::clone_mount(AT_FDCWD, path, submounts).attempt(&what)?;
            // Not the peer of the host's: nothing that is mounted on it is seen there.
            mount_tree::set_event_flow(&tree, EventFlow::Private).attempt(&what)?;
            Ok((name, tree))
        };
        views.into_iter().map(clone).collect::<Result<_, Failure>>().map(Self)
    }
}

fn remove_empty(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) }
}

/// Paths for libcontainer, valid once [`Stage::enter`] was called.
#[derive(Debug)]
pub(super) struct Stage {
    /// The jail's root, which is mounted at `place` until it is entered.
    jail: Option<OwnedFd>,
    /// The mount point of the jail, or of the root file system.
    place: PathBuf,
    /// The empty namespace that the jail is in; `None` in a copy of the host's mounts.
    empty: Option<EmptyMounts>,
    /// The bundle's path in the host's directories.
    host_bundle: PathBuf,
    /// The root file system.
    pub(super) rootfs: PathBuf,
    /// Pins of the pod's namespaces.
    pub(super) namespaces: PathBuf,
    /// libcontainer's own notes.
    pub(super) state: PathBuf,
    /// The bundle.
    pub(super) bundle: PathBuf,
}

impl Stage {
    /// The target for [`overlay::make`](podstead_sys::overlay::make).
    pub(super) fn overlay_target(bundle: &Path) -> PathBuf {
        bundle.join(ROOTFS)
    }

    /// Prepares the jail. To be called when this process has a mount namespace of its own, without shared mounts: `empty`, or a copy of the host's.
    pub(super) fn jail(bundle: &Path, views: Views, empty: Option<EmptyMounts>) -> Result<Self, Failure> {
        let mount_point = empty.as_ref().map_or_else(|| Self::overlay_target(bundle), EmptyMounts::place);
        let root = jail::make(&mount_point, &place::ALL).attempt("create a root directory for libcontainer")?;
        for (name, tree) in views.0 {
            mount_tree::attach_in(&tree, &root, name).attempt(&format!("expose {name} to libcontainer"))?;
        }
        let at = |name: &str| Path::new("/").join(name);
        Ok(Self {
            jail: Some(root),
            place: mount_point,
            empty,
            host_bundle: bundle.to_owned(),
            rootfs: at(place::ROOTFS),
            namespaces: at(place::NAMESPACES),
            state: at(place::STATE),
            bundle: at(place::BUNDLE),
        })
    }

    /// The host's own directories.
    pub(super) fn host(paths: &Paths, uid: &PodUid, bundle: &Path) -> Self {
        Self {
            jail: None,
            place: Self::overlay_target(bundle),
            empty: None,
            host_bundle: bundle.to_owned(),
            rootfs: bundle.join(ROOTFS),
            namespaces: paths.namespaces(uid),
            state: paths.oci_state(uid),
            bundle: bundle.to_owned(),
        }
    }

    /// Tells whether programs of the host take part.
    pub(super) fn has_hooks(&self) -> bool {
        self.jail.is_none()
    }

    /// Makes sure that libcontainer, which looks for cgroups in the table of mounts, finds the host's before those that a volume may hold: mounts are listed
    /// in the order of their making. Without a jail; in it they are older than all volumes.
    pub(super) fn put_behind_cgroups(&self, tree: OwnedFd) -> Result<OwnedFd, Failure> {
        let target = self.put(&tree, "renewed")?;
        let what = format!("clone {}", target.display());
        let renewed = mount_tree::clone_mount(AT_FDCWD, &target, Submounts::Take).attempt(&what)?;
        mounts::detach(&target).attempt(&what)?;
        remove_empty(&target).attempt(&what)?;
        Ok(renewed)
    }

    /// Mounts the root file system; returns its path as long as the jail is not entered.
    pub(super) fn put_rootfs(&self, overlay: &OwnedFd) -> Result<PathBuf, Failure> {
        let what = "mount the root file system";
        match &self.jail {
            Some(jail) => {
                mount_tree::attach_in(overlay, jail, place::ROOTFS).attempt(what)?;
                Ok(self.place.join(place::ROOTFS))
            }
            None => {
                mount_tree::attach(overlay, &self.place).attempt(what)?;
                Ok(self.place.clone())
            }
        }
    }

    /// Mounts something for libcontainer to bind; returns the path for libcontainer.
    pub(super) fn put(&self, tree: &OwnedFd, name: &str) -> Result<PathBuf, Failure> {
        let Some(jail) = &self.jail else {
            let target = self.host_bundle.join(name);
            make_like(tree, &target)?;
            mount_tree::attach(tree, &target).attempt(&format!("attach {name}"))?;
            return Ok(target);
        };
        let (name, what) = (Path::new(place::MOUNTS).join(name), format!("attach {name}"));
        let is_directory = fstat(tree).attempt(&what)?.st_mode & libc::S_IFMT == libc::S_IFDIR;
        if is_directory {
            mkdirat(jail, &name, Mode::S_IRWXU).attempt(&what)?;
        } else {
            let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
            openat(jail, &name, flags, Mode::S_IRUSR | Mode::S_IWUSR).attempt(&what)?;
        }
        mount_tree::attach_in(tree, jail, &name).attempt(&what)?;
        Ok(Path::new("/").join(name))
    }

    /// Writes the spec for exec into the host's directories, and for libcontainer into the jail. Both have the container's environment: for root only.
    /// Without a jail libcontainer reads the former.
    pub(super) fn write_config(&self, for_exec: &[u8], for_libcontainer: &[u8]) -> Result<(), Failure> {
        let in_jail = self.jail.is_some().then(|| self.place.join(place::BUNDLE));
        for (directory, text) in [(Some(self.host_bundle.clone()), for_exec), (in_jail, for_libcontainer)] {
            let Some(directory) = directory else { continue };
            let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(directory.join(CONFIG_FILE));
            opened.and_then(|mut file| file.write_all(text)).attempt("write the OCI spec")?;
        }
        Ok(())
    }

    /// Leaves the host's files behind, if there is a jail. From here on the paths of this struct are true.
    pub(super) fn enter(&mut self) -> Result<(), Failure> {
        const WHAT: &str = "leave the host's root file system";
        let Some(jail) = self.jail.take() else { return Ok(()) };
        self.empty.take().map_or(Ok(()), EmptyMounts::stay).attempt(WHAT)?;
        jail::enter(&jail).attempt(WHAT)
    }
}
