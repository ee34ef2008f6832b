//! The volume at `/dev` itself, in a container that is made and whose program has not begun. What comes of it is planned by
//! [`dev_volume`](crate::runtime::oci::dev::dev_volume).

use super::mounts::{make_directory, open_in};
use super::users::Users;
use super::{Attempt, Failure};
use crate::runtime::Mount;
use crate::runtime::oci::dev::{DEV, InnerMount, Missing, is_at_dev};
use crate::sys::mount_tree::{self, Submounts};
use crate::sys::{namespaces, pidfd};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, fstat, stat};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Refuses volumes whose place is a link to `/dev` in the image: libcontainer would follow it, and write into the volume.
pub(super) fn refuse_links(mounts: &[Mount], root: &OwnedFd) -> Result<(), Failure> {
    let look = |path: &Path| open_in(root, path, OFlag::O_DIRECTORY).and_then(fstat);
    // What is not there is no link.
    let Ok(dev) = look(Path::new(DEV)) else { return Ok(()) };
    let leads_there = |mount: &&Mount| !is_at_dev(mount) && look(&mount.container_path).is_ok_and(|found| is_same(&found, &dev));
    match mounts.iter().find(leads_there) {
        Some(mount) => Err(Failure::create(format!(
            "{} is a link to /dev in the image: let the volume be mounted on /dev",
            mount.container_path.display()
        ))),
        None => Ok(()),
    }
}

/// A mount of the container's own.
struct Held {
    /// Where it is and shall be, below `/dev`.
    path: PathBuf,
    /// Its root.
    mount: OwnedFd,
    missing: Missing,
}

/// Mounts `volume` over the `/dev` of the container, whose first process is `pid` and whose root directory is `rootfs` in this process's
/// mount namespace.
pub(super) fn mount(volume: &Mount, inner: &[InnerMount], pid: u32, rootfs: &Path, users: Option<&Users>) -> Result<(), Failure> {
    let tree = mount_tree::clone_mount(AT_FDCWD, &volume.host_path, Submounts::Take).attempt("clone the volume for /dev")?;
    let hosts = stat(DEV).attempt("look at the host's /dev")?;
    let is_the_hosts = fstat(&tree).attempt("look at the volume for /dev")?.st_dev == hosts.st_dev;
    let root = stat(rootfs).attempt("look at the root file system")?;
    let process = pidfd::open(pid).attempt("open the container's first process")?;
    let entered = namespaces::in_mounts_of(&process, || {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let entered = open("/", flags, Mode::empty()).attempt("open the container's root")?;
        // By now another process may have the id.
        if !is_same(&fstat(&entered).attempt("look at the container's root")?, &root) {
            return Err(Failure::create("the container's first process is gone"));
        }
        cover(volume, &tree, inner, &entered, is_the_hosts, users)
    });
    entered.attempt("enter the container's mount namespace")?
}

/// In the container's mount namespace.
fn cover(
    volume: &Mount,
    tree: &OwnedFd,
    inner: &[InnerMount],
    root: &OwnedFd,
    is_the_hosts: bool,
    users: Option<&Users>,
) -> Result<(), Failure> {
    let dev = open_in(root, Path::new(DEV), OFlag::O_DIRECTORY).attempt("open the container's /dev")?;
    let held: Vec<Held> = inner.iter().map(|inner| hold(inner, root, is_the_hosts)).collect::<Result<_, _>>()?;
    mount_tree::move_to(tree, &dev).attempt("mount the volume on /dev")?;

    // What is missing is made before the volume may become read-only, and all is found before one of them lies over another.
    let mut moves = Vec::new();
    for own in held {
        let make = || find_point(&own, tree);
        if let Some(point) = users.map_or_else(make, |users| users.act_as_root(make))? {
            moves.push((own, point));
        }
    }
    restrict(volume, tree).attempt("set the flags of the volume on /dev")?;
    for (Held { path, mount, missing: _ }, point) in moves {
        mount_tree::move_to(&mount, &point).attempt(&format!("move /dev/{} into the volume on /dev", path.display()))?;
    }
    Ok(())
}

fn hold(inner: &InnerMount, root: &OwnedFd, is_the_hosts: bool) -> Result<Held, Failure> {
    let path = Path::new(DEV).join(&inner.path);
    let mount = open_in(root, &path, OFlag::empty()).attempt(&format!("open the container's {}", path.display()))?;
    Ok(Held { path: inner.path.clone(), mount, missing: inner.origin.when_missing(is_the_hosts) })
}

/// What it is to be mounted on; `None` to go without. Links in the volume lead nowhere but into the volume. Else who writes to it
/// would say where something is mounted, such as a terminal over a file of `/proc` (CVE-2025-52565).
fn find_point(own: &Held, volume: &OwnedFd) -> Result<Option<OwnedFd>, Failure> {
    let Held { path, mount, missing } = own;
    let find = || open_in(volume, path, OFlag::empty());
    let shown = Path::new(DEV).join(path);
    let point = match (find(), missing) {
        (Err(Errno::ENOENT), Missing::LeaveOut) => return Ok(None),
        (Err(Errno::ENOENT), Missing::Refuse) => {
            return Err(Failure::create(format!("the host has no {} to mount on, and none is made there", shown.display())));
        }
        (Err(Errno::ENOENT), Missing::Make) => make_point(path, mount, volume).and_then(|()| find()),
        (found, _) => found,
    };
    point.map(Some).attempt(&format!("find {} to mount on", shown.display()))
}

/// Makes an empty file or directory, as `mount` is one.
fn make_point(path: &Path, mount: &OwnedFd, volume: &OwnedFd) -> nix::Result<()> {
    if fstat(mount)?.st_mode & libc::S_IFMT == libc::S_IFDIR {
        return make_directory(volume, path);
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::EINVAL) };
    make_directory(volume, parent)?;
    let parent = open_in(volume, &Path::new(".").join(parent), OFlag::O_DIRECTORY)?;
    let flags = OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    openat(parent, name, flags, Mode::from_bits_truncate(0o644)).map(drop)
}

/// While all submounts are the volume's own.
fn restrict(volume: &Mount, tree: &OwnedFd) -> nix::Result<()> {
    if volume.read_only {
        let submounts = if volume.recursive_read_only { Submounts::Take } else { Submounts::Leave };
        mount_tree::forbid_writing(tree, submounts)?;
    }
    if volume.no_exec { mount_tree::forbid_execution(tree) } else { Ok(()) }
}

fn is_same(one: &FileStat, other: &FileStat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Propagation;
    use crate::shim::helper::mounts::open_root;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_to_dev_in_the_image_is_no_place_for_a_volume() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let check = |place: &str| {
            let mount = Mount {
                host_path: "/dev".into(),
                container_path: place.into(),
                read_only: false,
                recursive_read_only: false,
                no_exec: false,
                propagation: Propagation::Private,
            };
            refuse_links(&[mount], &open_root(root).unwrap()).map_err(|failure| failure.reason)
        };
        symlink("/dev", root.join("devices")).unwrap();
        assert_eq!(check("/devices"), Ok(()), "it leads nowhere");
        fs::create_dir_all(root.join("dev/shm")).unwrap();
        symlink("../devices", root.join("dev/self")).unwrap();
        for place in ["/dev", "/dev/shm", "/devices/shm", "/else", "/dev/x/y"] {
            assert_eq!(check(place), Ok(()), "{place}");
        }
        for place in ["/devices", "/devices/", "/dev/self"] {
            let refused = check(place).unwrap_err();
            assert!(refused.contains("is a link to /dev in the image"), "{refused}");
        }
    }
}
