//! A pod with users of its own: what its containers see of the host's files is mapped to their ids.
//!
//! No file on disk gets other owners: layers, volumes and `/dev/shm` are mounted with mapped ids (kernel 5.12, tmpfs 6.3). What the container
//! writes into its own layer has the host's ids; that layer goes with the container.

use super::mounts::make_like;
use super::{Attempt, Failure};
use nix::fcntl::{AT_FDCWD, OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid, chown, setfsgid, setfsuid};
use podstead_container::protocol::ShimConfig;
use podstead_sys::jail;
use podstead_sys::mount_tree::{self, Submounts};
use podstead_sys::namespaces::Namespace;
use std::fs::{self, DirBuilder, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// May pass through a directory without being its owner.
const PASS: u32 = 0o001;

/// The pod's users.
#[derive(Debug)]
pub(super) struct Users {
    namespace: OwnedFd,
    first: u32,
}

impl Users {
    /// `None` for a pod that shares the host's users. Makes the way to the bundle passable for them.
    pub(super) fn of(config: &ShimConfig, bundle: &Path) -> Result<Option<Self>, Failure> {
        let Some(first) = config.spec.first_host_id else { return Ok(None) };
        let (paths, uid) = (config.paths(), &config.spec.uid);
        let pin = paths.namespaces(uid).join(Namespace::User.file_name());
        let namespace = open(&pin, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()).attempt("open the pod's user namespace")?;
        let own = [
            paths.pods_run(),
            paths.pod_run(uid),
            paths.namespaces(uid),
            paths.bundles(uid),
            bundle.to_owned(),
            paths.oci_state(uid),
        ];
        for directory in own {
            make_passable(&directory)?;
        }
        for directory in paths.pods_run().ancestors().skip(1) {
            let mode = fs::metadata(directory).attempt(&format!("stat {}", directory.display()))?.permissions().mode();
            if mode & PASS == 0 {
                let reason = format!(
                    "hostUsers: false needs a run directory that all users can traverse: run chmod o+x {}",
                    directory.display()
                );
                return Err(Failure::create(reason));
            }
        }
        Ok(Some(Self { namespace, first }))
    }

    /// The pod's root, as the host counts.
    pub(super) const fn first_host_id(&self) -> u32 {
        self.first
    }

    /// Maps a detached tree to the pod's ids.
    pub(super) fn map(&self, tree: &OwnedFd, origin: &Path) -> Result<(), Failure> {
        mount_tree::map_ids(tree, &self.namespace, Submounts::Take).map_err(|error| {
            Failure::create(format!(
                "hostUsers: false needs an ID-mapped mount of {}, which this kernel or file system does not support: {error}",
                origin.display()
            ))
        })
    }

    /// Mounts `origin` at `target` with the pod's ids, in this process's own mount namespace.
    pub(super) fn mapped(&self, origin: &Path, target: &Path) -> Result<PathBuf, Failure> {
        let tree = mount_tree::clone_mount(AT_FDCWD, origin, Submounts::Leave).attempt(&format!("clone {}", origin.display()))?;
        self.map(&tree, origin)?;
        make_like(&tree, target)?;
        mount_tree::attach(&tree, target).attempt(&format!("attach {}", origin.display()))?;
        Ok(target.to_owned())
    }

    /// Mounts the layers with the pod's ids, and makes the writable layer its root's.
    pub(super) fn prepare_root(&self, layers: &mut [PathBuf], writable: &Path, bundle: &Path) -> Result<(), Failure> {
        for (number, layer) in layers.iter_mut().enumerate() {
            *layer = self.mapped(layer, &bundle.join(format!("layer-{number}")))?;
        }
        let upper = writable.join("upper");
        let what = format!("create {}", upper.display());
        DirBuilder::new().recursive(true).mode(0o700).create(writable).attempt(&what)?;
        DirBuilder::new().recursive(true).mode(0o755).create(&upper).attempt(&what)?;
        chown(&upper, Some(Uid::from_raw(self.first)), Some(Gid::from_raw(self.first))).attempt(&what)
    }

    /// Does it with the pod's root as the owner of what is made.
    pub(super) fn act_as_root<T>(&self, work: impl FnOnce() -> T) -> T {
        let (uid, gid) = (setfsuid(Uid::from_raw(self.first)), setfsgid(Gid::from_raw(self.first)));
        // The kernel has taken the rights over files; the root of a container has them over the files of all its users.
        let _as_its_owner_only = jail::use_all_capabilities();
        let result = work();
        setfsgid(gid);
        setfsuid(uid);
        result
    }
}

fn make_passable(directory: &Path) -> Result<(), Failure> {
    let what = format!("make {} traversable", directory.display());
    let mode = match fs::metadata(directory) {
        Ok(metadata) => metadata.permissions().mode() & 0o7777,
        // libcontainer makes it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return DirBuilder::new().recursive(true).mode(0o711).create(directory).attempt(&what);
        }
        Err(error) => return Err(error).attempt(&what),
    };
    if mode & PASS == 0 { fs::set_permissions(directory, Permissions::from_mode(mode | PASS)).attempt(&what) } else { Ok(()) }
}
