//! Bringing volumes, and files of devices, to their places in the container.
//!
//! All by descriptor: what is checked is what is mounted on, however fast somebody renames what the path goes through.

use super::dev::DevTree;
use super::root::Root;
use super::stage::Stage;
use super::system_paths::SystemPaths;
use super::trees::Tree;
use super::users::Users;
use super::{Attempt, Failure};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat, stat};
use podstead_container::ContainerSpec;
use podstead_container::oci::dev::{DEV, DevVolume, dev_volume};
use podstead_container::oci::places::{Bind, Mounter, is_nested, mounter_of};
use podstead_sys::{mount_tree, namespaces, pidfd};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Mounts that are not in their place when libcontainer starts.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    /// Mounts for libcontainer to bind.
    pub(super) binds: Vec<Bind>,
    /// Mounts to attach after libcontainer, parents first.
    late: Vec<Tree>,
    /// Paths of `/proc` and `/sys` to cover after libcontainer, before all others.
    pub(super) system_paths: SystemPaths,
    /// The volume that covers the container's own `/dev` then.
    dev: Option<(DevVolume, DevTree)>,
}

/// Mounts all that libcontainer does not have to mount. Places in `spec` that lead into the container's own file systems are replaced by where they
/// lead.
pub(super) fn attach(
    spec: &mut ContainerSpec,
    trees: Vec<Tree>,
    root: &Root,
    stage: &Stage,
    users: Option<&Users>,
) -> Result<Remaining, Failure> {
    let (mut inside, mut dev) = (Vec::new(), None);
    for mut tree in trees {
        let mounter = mounter_of(&tree.place).map_err(|error| refused(&tree, &error.to_string()))?;
        match mounter {
            Mounter::OverDev => dev = Some(tree),
            Mounter::Runtime => inside.push(tree),
            Mounter::Helper => {
                let point = find_place(&tree, root, users)?;
                let place = root.path_of(&point)?;
                match mounter_of(&place).map_err(|error| refused(&tree, &error.to_string()))? {
                    // Hooks find the files of their devices once: libcontainer makes a copy of what it finds mounted. In the image itself nobody changes
                    // the way to the place.
                    Mounter::Helper if tree.volume.is_none() && stage.has_hooks() && root.is_below(&point)? => {
                        tree.place = place;
                        inside.push(tree);
                    }
                    Mounter::Helper => {
                        tree.restrict()?;
                        move_to(&tree, &point)?;
                    }
                    // As if the place were written so: libcontainer makes what is there.
                    Mounter::Runtime => {
                        if let Some(volume) = tree.volume.and_then(|number| spec.mounts.get_mut(number)) {
                            volume.container_path.clone_from(&place);
                        }
                        tree.place = place;
                        inside.push(tree);
                    }
                    Mounter::OverDev => {
                        return Err(refused(&tree, "it is a symbolic link to /dev in the image: mount the volume on /dev instead"));
                    }
                }
            }
        }
    }
    let mut remaining = put_aside(inside, stage)?;
    if let Some(tree) = dev {
        let plan = dev_volume(spec).map_err(|error| Failure::create(crate::explain(&error)))?;
        remaining.dev = plan.map(|plan| Ok::<_, Failure>((plan, DevTree::new(tree)?))).transpose()?;
    }
    Ok(remaining)
}

fn put_aside(inside: Vec<Tree>, stage: &Stage) -> Result<Remaining, Failure> {
    let mut remaining = Remaining::default();
    let places: Vec<PathBuf> = inside.iter().map(|tree| tree.place.clone()).collect();
    for (number, tree) in inside.into_iter().enumerate() {
        tree.restrict()?;
        if is_nested(&tree.place, &places) {
            remaining.late.push(tree);
        } else {
            let source = stage.put(&tree.mount, &format!("volume-{number}"))?;
            remaining.binds.push(Bind { source, place: tree.place });
        }
    }
    remaining.late.sort_by_key(|tree| tree.place.components().count());
    Ok(remaining)
}

impl Remaining {
    /// Tells whether something comes to lie over a directory that libcontainer has entered.
    pub(super) fn covers(&self, directory: &Path) -> bool {
        (self.dev.is_some() && directory.starts_with(DEV)) || self.late.iter().any(|tree| directory.starts_with(&tree.place))
    }

    /// Mounts the rest into a container whose first process is `pid`, whose program has not begun and whose root directory is `rootfs` in this process's
    /// mount namespace.
    pub(super) fn attach(&self, pid: u32, rootfs: &Path, users: Option<&Users>) -> Result<(), Failure> {
        if self.dev.is_none() && self.late.is_empty() && self.system_paths.is_empty() {
            return Ok(());
        }
        let hosts_root = stat(rootfs).attempt("inspect the root file system")?;
        let process = pidfd::open(pid).attempt("open the container's first process")?;
        let entered = namespaces::in_mounts_of(&process, || {
            let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            let root = open("/", flags, Mode::empty()).attempt("open the container's root")?;
            let found = fstat(&root).attempt("inspect the container's root")?;
            // By now another process may have the id.
            if (found.st_dev, found.st_ino) != (hosts_root.st_dev, hosts_root.st_ino) {
                return Err(Failure::create("the container's first process is gone"));
            }
            self.attach_here(&root, users)
        });
        entered.attempt("enter the container's mount namespace")?
    }

    fn attach_here(&self, root: &OwnedFd, users: Option<&Users>) -> Result<(), Failure> {
        self.system_paths.put(root)?;
        if !self.late.is_empty() {
            let root = Root::of(root.try_clone().attempt("open the container's root")?)?;
            for tree in &self.late {
                move_to(tree, &find_place(tree, &root, users)?)?;
            }
        }
        match &self.dev {
            Some((plan, tree)) => tree.mount(&plan.inner, root, users),
            None => Ok(()),
        }
    }
}

/// Finds or makes the place of a mount, as the root of the container would.
fn find_place(tree: &Tree, root: &Root, users: Option<&Users>) -> Result<OwnedFd, Failure> {
    let is_directory = tree.is_directory()?;
    let find = || root.place(&tree.place, is_directory);
    let point = users.map_or_else(find, |users| users.act_as_root(find)).attempt(&tree.name())?;
    match root.is_root(&point).attempt(&tree.name())? {
        true => Err(refused(tree, "the path leads to the root of the container")),
        false => Ok(point),
    }
}

fn move_to(tree: &Tree, point: &OwnedFd) -> Result<(), Failure> {
    mount_tree::move_to(&tree.mount, point).attempt(&tree.name())
}

fn refused(tree: &Tree, reason: &str) -> Failure {
    Failure::create(format!("{}: {reason}", tree.name()))
}
