//! The volume at `/dev` itself, in a container that is made and whose program has not begun. What comes of it is planned by
//! [`dev_volume`](podstead_container::oci::dev::dev_volume).

use super::root::{make_point, open_in};
use super::trees::Tree;
use super::users::Users;
use super::{Attempt, Failure};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{fstat, stat};
use podstead_container::oci::dev::{DEV, InnerMount, Missing};
use podstead_sys::mount_tree;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A mount of the container's own.
struct Held {
    /// Its place now and later, below `/dev`.
    path: PathBuf,
    /// Its root.
    mount: OwnedFd,
    missing: Missing,
}

/// The volume on its way to `/dev`.
#[derive(Debug)]
pub(super) struct DevTree {
    tree: Tree,
    is_the_hosts: bool,
}

impl DevTree {
    /// To be called where the host's `/dev` is seen.
    pub(super) fn new(tree: Tree) -> Result<Self, Failure> {
        let hosts = stat(DEV).attempt("stat the host's /dev")?;
        let is_the_hosts = fstat(&tree.mount).attempt("stat the volume for /dev")?.st_dev == hosts.st_dev;
        Ok(Self { tree, is_the_hosts })
    }

    /// Mounts the volume over the `/dev` of the container whose root directory is `root`. In the container's mount namespace.
    pub(super) fn mount(&self, inner: &[InnerMount], root: &OwnedFd, users: Option<&Users>) -> Result<(), Failure> {
        cover(&self.tree, inner, root, self.is_the_hosts, users)
    }
}

fn cover(volume: &Tree, inner: &[InnerMount], root: &OwnedFd, is_the_hosts: bool, users: Option<&Users>) -> Result<(), Failure> {
    let dev = open_in(root, Path::new(DEV), OFlag::O_DIRECTORY).attempt("open the container's /dev")?;
    let held: Vec<Held> = inner.iter().map(|inner| hold(inner, root, is_the_hosts)).collect::<Result<_, _>>()?;
    mount_tree::move_to(&volume.mount, &dev).attempt("mount the volume on /dev")?;

    // Missing mount points are created before the volume may become read-only, and all are opened before one mount covers another.
    let mut moves = Vec::new();
    for own in held {
        let make = || find_point(&own, &volume.mount);
        if let Some(point) = users.map_or_else(make, |users| users.act_as_root(make))? {
            moves.push((own, point));
        }
    }
    volume.restrict()?;
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

/// Finds the place to mount it on; `None` to go without. Links in the volume lead nowhere but into the volume: otherwise whoever writes to it
/// would say where something is mounted, such as a terminal over a file of `/proc` (CVE-2025-52565).
fn find_point(own: &Held, volume: &OwnedFd) -> Result<Option<OwnedFd>, Failure> {
    let Held { path, mount, missing } = own;
    let find = || open_in(volume, path, OFlag::empty());
    let shown = Path::new(DEV).join(path);
    let point = match (find(), missing) {
        (Err(Errno::ENOENT), Missing::LeaveOut) => return Ok(None),
        (Err(Errno::ENOENT), Missing::Refuse) => {
            return Err(Failure::create(format!(
                "cannot mount on {}: it does not exist on the host, and podstead does not create it there",
                shown.display()
            )));
        }
        (Err(Errno::ENOENT), Missing::Make) => make_like(path, mount, volume).and_then(|()| find()),
        (found, _) => found,
    };
    point.map(Some).attempt(&format!("open mount point {}", shown.display()))
}

/// Makes an empty file or directory, as `mount` is one.
fn make_like(path: &Path, mount: &OwnedFd, volume: &OwnedFd) -> nix::Result<()> {
    make_point(volume, path, fstat(mount)?.st_mode & libc::S_IFMT == libc::S_IFDIR)
}
