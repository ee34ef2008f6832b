//! The helper's mount namespace: private to it, so that what it mounts goes with it and the container.

use super::{Attempt, Failure};
use crate::helper_job::SPEC_FILE;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use podstead_container::ContainerSpec;
use std::fs::{DirBuilder, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Leaves the host's mount namespace: nothing that is mounted afterwards is seen by the host, but below what was cloned before as a peer.
pub(super) fn isolate() -> Result<(), Failure> {
    unshare(CloneFlags::CLONE_NEWNS).attempt("unshare the mount namespace")?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>).attempt("make mounts private")
}

/// Makes an empty file or directory, as `tree` is one.
pub(super) fn make_like(tree: &OwnedFd, target: &Path) -> Result<(), Failure> {
    let what = format!("make {}", target.display());
    let is_directory = nix::sys::stat::fstat(tree).attempt(&what)?.st_mode & libc::S_IFMT == libc::S_IFDIR;
    if is_directory {
        DirBuilder::new().recursive(true).mode(0o700).create(target).attempt(&what)
    } else {
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(target).map(drop).attempt(&what)
    }
}

/// Reads what the shim wrote into the bundle.
pub(super) fn read_spec(bundle: &Path) -> Result<ContainerSpec, Failure> {
    let text = std::fs::read(bundle.join(SPEC_FILE)).attempt("read the container's spec")?;
    serde_json::from_slice(&text).attempt("decode the container's spec")
}
