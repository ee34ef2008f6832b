//! The helper's mount namespace: private to it, so that what it mounts goes with it and the container.

use super::super::starting::SPEC_FILE;
use super::users::Users;
use super::{Attempt, Failure};
use crate::runtime::{ContainerSpec, Propagation};
use crate::sys::mount_tree::{self, EventFlow, Submounts};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, mkdirat};
use std::fs::{DirBuilder, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path};

/// Leaves the host's mount namespace. Only volumes that asked for it stay connected to the host: their host paths in `spec` are replaced
/// by connected clones in the bundle. Nothing that is mounted afterwards is seen by the host.
pub(super) fn isolate(spec: &mut ContainerSpec, bundle: &Path, users: Option<&Users>) -> Result<(), Failure> {
    let mut connected = Vec::new();
    for (number, mount) in spec.mounts.iter().enumerate() {
        // Told here, in fewer words than libcontainer's.
        std::fs::metadata(&mount.host_path).attempt(&format!("mount {}", mount.host_path.display()))?;
        if mount.propagation == Propagation::Private && users.is_none() {
            continue;
        }
        let what = format!("clone {}", mount.host_path.display());
        // The host's own mount is cloned, before this process has copies: a clone of it is its peer.
        let tree = mount_tree::clone_mount(AT_FDCWD, &mount.host_path, Submounts::Take).attempt(&what)?;
        if let Some(users) = users {
            users.map(&tree, &mount.host_path)?;
        }
        connected.push((number, tree));
    }
    unshare(CloneFlags::CLONE_NEWNS).attempt("unshare the mount namespace")?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>).attempt("make mounts private")?;
    for (number, tree) in connected {
        let mount = &mut spec.mounts[number];
        let flow = match mount.propagation {
            Propagation::Private => Some(EventFlow::Private),
            Propagation::HostToContainer => Some(EventFlow::Slave),
            Propagation::Bidirectional => None,
        };
        if let Some(flow) = flow {
            mount_tree::set_event_flow(&tree, flow).attempt("set mount propagation")?;
        }
        let target = bundle.join(format!("volume-{number}"));
        make_like(&tree, &target)?;
        mount_tree::attach(&tree, &target).attempt(&format!("attach {}", mount.host_path.display()))?;
        mount.host_path = target;
    }
    Ok(())
}

/// Makes an empty file or directory, as `tree` is one.
pub(super) fn make_like(tree: &OwnedFd, target: &Path) -> Result<(), Failure> {
    let what = format!("make {}", target.display());
    let is_directory = nix::sys::stat::fstat(tree).attempt(&what)?.st_mode & libc::S_IFMT == libc::S_IFDIR;
    if is_directory {
        DirBuilder::new().recursive(true).mode(0o700).create(target).attempt(&what)
    } else {
        File::create(target).map(drop).attempt(&what)
    }
}

/// Opens the container's root directory.
pub(super) fn open_root(root: &Path) -> Result<OwnedFd, Failure> {
    open(root, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()).attempt("open the root file system")
}

/// Makes a directory, such as the working directory, where it is missing; links in the image cannot lead out of its root. A working
/// directory inside of a volume is made in the volume's place and hidden by it, as with other runtimes.
pub(super) fn make_directory(root: &OwnedFd, path: &Path) -> nix::Result<()> {
    let mut walked = std::path::PathBuf::new();
    let mut parent = open_in(root, Path::new("."), OFlag::O_DIRECTORY)?;
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        walked.push(name);
        let opened = match open_in(root, &walked, OFlag::O_DIRECTORY) {
            Err(Errno::ENOENT) => match mkdirat(parent.as_fd(), name, Mode::from_bits_truncate(0o755)) {
                Ok(()) | Err(Errno::EEXIST) => open_in(root, &walked, OFlag::O_DIRECTORY),
                Err(error) => Err(error),
            },
            other => other,
        };
        parent = opened?;
    }
    Ok(())
}

/// Opens a path below `root`, without reading it and with links as they are for who has that root.
pub(super) fn open_in(root: &OwnedFd, path: &Path, more: OFlag) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC | more)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(root, path, how)
}

/// Reads what the shim wrote into the bundle.
pub(super) fn read_spec(bundle: &Path) -> Result<ContainerSpec, Failure> {
    let text = std::fs::read(bundle.join(SPEC_FILE)).attempt("read the container's spec")?;
    serde_json::from_slice(&text).attempt("decode the container's spec")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_working_directory_is_made_inside_of_the_root() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        std::fs::create_dir_all(root.join("real")).unwrap();
        std::os::unix::fs::symlink("/real", root.join("link")).unwrap();
        std::os::unix::fs::symlink("../../../../outside", root.join("dangling")).unwrap();
        let opened = open_root(&root).unwrap();
        make_directory(&opened, Path::new("/link/a/b")).unwrap();
        assert!(root.join("real/a/b").is_dir());
        make_directory(&opened, Path::new("/")).unwrap();
        assert!(make_directory(&opened, Path::new("/dangling/x")).is_err());
        assert!(!directory.path().join("outside").try_exists().unwrap());
    }
}
