//! Paths of `/proc` and `/sys` that a container cannot look into, or cannot change.
//!
//! libcontainer covers such paths, too, and makes some sixty system calls for each, since it trusts no `/proc`. Here they are covered from outside, before the
//! program of the container begins: `/proc` and `/sys` are those that libcontainer has mounted itself, on directories of which [`super::root`] has made sure.

use super::root::open_in;
use super::{Attempt, Failure};
use libcontainer::oci_spec::runtime::Spec;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{SFlag, fstat, major, minor};
use nix::sys::statvfs::{FsFlags, fstatvfs};
use podstead_sys::mount_tree::{self, Submounts};
use rustix::mount::MountAttrFlags;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The device that lies over files.
const NULL: &str = "/dev/null";
/// Its numbers.
const NULL_DEVICE: (u64, u64) = (1, 3);

/// Paths to be covered; what is not there is left out.
#[derive(Debug, Default)]
pub(super) struct SystemPaths {
    hidden: Vec<PathBuf>,
    read_only: Vec<PathBuf>,
}

impl SystemPaths {
    /// Takes the paths out of the spec for libcontainer.
    pub(super) fn take(oci: &mut Spec) -> Self {
        let Some(linux) = oci.linux_mut() else { return Self::default() };
        let paths = |list: &Option<Vec<String>>| list.iter().flatten().map(PathBuf::from).collect();
        let taken = Self { hidden: paths(linux.masked_paths()), read_only: paths(linux.readonly_paths()) };
        linux.set_masked_paths(None);
        linux.set_readonly_paths(None);
        taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hidden.is_empty() && self.read_only.is_empty()
    }

    /// Covers the paths below `root`, the root directory of a container. To be called in its mount namespace.
    pub(super) fn put(&self, root: &OwnedFd) -> Result<(), Failure> {
        let (mut null, mut nothing) = (None, None);
        for (path, point) in found(root, &self.hidden)? {
            let what = || format!("hide {}", path.display());
            let is_directory = is_directory(&point).attempt(&what())?;
            hide(root, &point, is_directory, &mut null, &mut nothing).attempt(&what())?;
        }
        for path in &self.read_only {
            forbid_writing(root, path).attempt(&format!("make {} read-only", path.display()))?;
        }
        Ok(())
    }
}

/// Covers a directory with an empty one, or a file with the null device. Those that are made for the first path serve the later ones.
fn hide(
    root: &OwnedFd,
    point: &OwnedFd,
    is_directory: bool,
    null: &mut Option<OwnedFd>,
    nothing: &mut Option<OwnedFd>,
) -> nix::Result<()> {
    let cover = match (is_directory, &mut *null, &mut *nothing) {
        (true, _, Some(nothing)) => nothing,
        (true, _, nothing @ None) => {
            // It is mounted itself: kernels before 6.15 copy no mount that is in no namespace.
            let made = nothing.insert(mount_tree::empty_directory()?);
            return mount_tree::move_to(made, point);
        }
        (false, Some(null), _) => null,
        (false, null @ None, _) => null.insert(null_device(root)?),
    };
    let copy = mount_tree::clone_descriptor(cover, Submounts::Leave)?;
    mount_tree::move_to(&copy, point)
}

/// Those of `paths` that are there.
fn found<'a>(root: &OwnedFd, paths: &'a [PathBuf]) -> Result<Vec<(&'a Path, OwnedFd)>, Failure> {
    let mut there = Vec::new();
    for path in paths {
        if let Some(point) = find(root, path).attempt(&format!("find {}", path.display()))? {
            there.push((path.as_path(), point));
        }
    }
    Ok(there)
}

fn find(root: &OwnedFd, path: &Path) -> nix::Result<Option<OwnedFd>> {
    match open_in(root, path, OFlag::empty()) {
        Ok(point) => Ok(Some(point)),
        Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn is_directory(point: &OwnedFd) -> nix::Result<bool> {
    Ok(SFlag::from_bits_truncate(fstat(point)?.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR)
}

/// The null device of the container, in whose place a volume may be.
fn null_device(root: &OwnedFd) -> nix::Result<OwnedFd> {
    let opened = open_in(root, Path::new(NULL), OFlag::empty())?;
    let found = fstat(&opened)?;
    let is_device = SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFCHR;
    if is_device && (major(found.st_rdev), minor(found.st_rdev)) == NULL_DEVICE { Ok(opened) } else { Err(Errno::ENODEV) }
}

/// Nobody who comes by this path can change anything below it.
fn forbid_writing(root: &OwnedFd, path: &Path) -> nix::Result<()> {
    let Some(point) = find(root, path)? else { return Ok(()) };
    if fstatvfs(&point)?.flags().contains(FsFlags::ST_RDONLY) {
        return Ok(());
    }
    // As libcontainer has it.
    let flags = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    match mount_tree::set_flags(&point, flags, Submounts::Take) {
        // No mount has its root there.
        Err(Errno::EINVAL) => {
            let tree = mount_tree::clone_descriptor(&point, Submounts::Take)?;
            mount_tree::set_flags(&tree, flags, Submounts::Take)?;
            mount_tree::move_to(&tree, &point)
        }
        done => done,
    }
}
