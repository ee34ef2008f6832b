//! Files of the host for a container: clones of mounts, held by descriptors. From here on no path of the host is resolved again.

use super::users::Users;
use super::{Attempt, Failure};
use nix::fcntl::{AT_FDCWD, OFlag, open};
use nix::sys::stat::{Mode, fstat};
use podstead_container::{BoundDirectory, ContainerSpec, Mount, PinnedSource, Propagation};
use podstead_sys::beneath::open_beneath;
use podstead_sys::device_node;
use podstead_sys::mount_tree::{self, EventFlow, Submounts};
use rustix::mount::MountAttrFlags;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A volume, or files that belong to a device, on the way to its place.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) mount: OwnedFd,
    /// In the container.
    pub(super) place: PathBuf,
    pub(super) restrictions: Restrictions,
    /// Its number among the spec's mounts; `None` for files of devices.
    pub(super) volume: Option<usize>,
}

impl Tree {
    /// Clones what the container mounts, in the order of the mounts' making. To be called in the host's mount namespace: a clone of a mount there is its
    /// peer, and events can travel.
    pub(super) fn take_all(spec: &ContainerSpec, users: Option<&Users>) -> Result<Vec<Self>, Failure> {
        let mut trees: Vec<Self> = Vec::new();
        for (number, mount) in spec.mounts.iter().enumerate() {
            trees.push(Self::of_volume(number, mount, users)?);
        }
        trees.sort_by_key(|tree| tree.place.components().count());
        for files in &spec.devices.mounts {
            trees.push(Self::of_device(files)?);
        }
        Ok(trees)
    }

    fn of_volume(number: usize, mount: &Mount, users: Option<&Users>) -> Result<Self, Failure> {
        let tree = match &mount.pinned {
            Some(pinned) => clone_pinned(&mount.host_path, pinned)?,
            None => clone(&mount.host_path)?,
        };
        if let Some(users) = users {
            users.map(&tree, &mount.host_path)?;
        }
        let flow = match mount.propagation {
            Propagation::Private => Some(EventFlow::Private),
            Propagation::HostToContainer => Some(EventFlow::Slave),
            Propagation::Bidirectional => None,
        };
        if let Some(flow) = flow {
            mount_tree::set_event_flow(&tree, flow).attempt("set mount propagation")?;
        }
        let restrictions = Restrictions::of_volume(mount);
        Ok(Self { mount: tree, place: mount.container_path.clone(), restrictions, volume: Some(number) })
    }

    fn of_device(files: &BoundDirectory) -> Result<Self, Failure> {
        let tree = clone(&files.host_path)?;
        mount_tree::set_event_flow(&tree, EventFlow::Private).attempt("set mount propagation")?;
        let restrictions = Restrictions::of_options(&files.options);
        Ok(Self { mount: tree, place: files.container_path.clone(), restrictions, volume: None })
    }

    /// Makes the nodes of devices that may be unplugged. To be called in a mount namespace of this process's own, in which nothing is shared;
    /// for a moment something is mounted on the directory `scratch` there.
    pub(super) fn make_plugged(spec: &ContainerSpec, users: Option<&Users>, scratch: &Path) -> Result<Vec<Self>, Failure> {
        let made = spec.devices.plugged.iter().flatten().map(|device| {
            let node = device.node(users.map(Users::first_host_id));
            let what = format!("make the node of the device at {}", device.path.display());
            let mount = device_node::make(&node, scratch).attempt(&what)?;
            Ok(Self { mount, place: device.path.clone(), restrictions: Restrictions::of_options(&[]), volume: None })
        });
        made.collect()
    }

    /// The same with another mount of the same files.
    pub(super) fn replaced(self, replace: impl FnOnce(OwnedFd) -> Result<OwnedFd, Failure>) -> Result<Self, Failure> {
        Ok(Self { mount: replace(self.mount)?, ..self })
    }

    /// Names it in messages.
    pub(super) fn name(&self) -> String {
        let noun = if self.volume.is_some() { "volume" } else { "files of a device" };
        format!("{noun} at {}", self.place.display())
    }

    pub(super) fn is_directory(&self) -> Result<bool, Failure> {
        let found = fstat(&self.mount).attempt(&format!("stat {}", self.name()))?;
        Ok(found.st_mode & libc::S_IFMT == libc::S_IFDIR)
    }

    /// Sets the flags of the mount; to be called before anybody can come by it.
    pub(super) fn restrict(&self) -> Result<(), Failure> {
        self.restrictions.apply(&self.mount).map_err(|error| {
            let how = if self.restrictions.all.is_empty() { "" } else { " including the mounts below it" };
            Failure::create(format!("{}: the kernel cannot restrict this mount{how}: {}", self.name(), error.desc()))
        })
    }
}

fn clone(path: &Path) -> Result<OwnedFd, Failure> {
    mount_tree::clone_mount(AT_FDCWD, path, Submounts::Take).attempt(&format!("mount {}", path.display()))
}

/// Clones what the path leads to, if that is what was checked when the start was planned.
fn clone_pinned(path: &Path, pinned: &PinnedSource) -> Result<OwnedFd, Failure> {
    let what = format!("mount {}", path.display());
    let prefix = open(&pinned.beneath, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).attempt(&what)?;
    let inner = path.strip_prefix(&pinned.beneath).attempt(&what)?;
    let found = if inner.components().next().is_none() { prefix } else { open_beneath(prefix, inner).attempt(&what)? };
    let facts = fstat(&found).attempt(&what)?;
    if (facts.st_dev, facts.st_ino) != (pinned.device, pinned.inode) {
        return Err(Failure::create(format!("{what}: the path was replaced while the container was starting")));
    }
    mount_tree::clone_descriptor(&found, Submounts::Take).attempt(&what)
}

/// Flags of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Restrictions {
    /// Of the mount itself.
    one: MountAttrFlags,
    /// Of all that is mounted below it, too.
    all: MountAttrFlags,
}

impl Restrictions {
    pub(super) fn of_volume(mount: &Mount) -> Self {
        let read_only = |wanted: bool| if wanted { MountAttrFlags::MOUNT_ATTR_RDONLY } else { MountAttrFlags::empty() };
        let no_exec = if mount.no_exec { MountAttrFlags::MOUNT_ATTR_NOEXEC } else { MountAttrFlags::empty() };
        Self { one: no_exec | read_only(mount.read_only), all: read_only(mount.read_only && mount.recursive_read_only) }
    }

    /// From words of mount(8). Those that take nothing away say what is so in any case.
    fn of_options(options: &[String]) -> Self {
        let flag = |word: &String| match word.as_str() {
            "ro" => MountAttrFlags::MOUNT_ATTR_RDONLY,
            "nosuid" => MountAttrFlags::MOUNT_ATTR_NOSUID,
            "nodev" => MountAttrFlags::MOUNT_ATTR_NODEV,
            "noexec" => MountAttrFlags::MOUNT_ATTR_NOEXEC,
            "noatime" => MountAttrFlags::MOUNT_ATTR_NOATIME,
            "strictatime" => MountAttrFlags::MOUNT_ATTR_STRICTATIME,
            "nodiratime" => MountAttrFlags::MOUNT_ATTR_NODIRATIME,
            _ => MountAttrFlags::empty(),
        };
        Self { one: options.iter().map(flag).collect(), all: MountAttrFlags::empty() }
    }

    pub(super) fn apply(self, tree: &OwnedFd) -> nix::Result<()> {
        for (flags, submounts) in [(self.all, Submounts::Take), (self.one.difference(self.all), Submounts::Leave)] {
            if !flags.is_empty() {
                mount_tree::set_flags(tree, flags, submounts)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(read_only: bool, recursive_read_only: bool, no_exec: bool) -> Mount {
        Mount {
            host_path: "/h".into(),
            container_path: "/c".into(),
            read_only,
            recursive_read_only,
            no_exec,
            propagation: Propagation::Private,
            pinned: None,
        }
    }

    #[test]
    fn volume_is_restricted_as_its_mount_says() {
        let of = |read_only, recursive, no_exec| Restrictions::of_volume(&mount(read_only, recursive, no_exec));
        let (none, read_only) = (MountAttrFlags::empty(), MountAttrFlags::MOUNT_ATTR_RDONLY);
        assert_eq!(of(false, false, false), Restrictions { one: none, all: none });
        assert_eq!(of(true, false, false), Restrictions { one: read_only, all: none });
        assert_eq!(of(true, true, false), Restrictions { one: read_only, all: read_only });
        assert_eq!(of(false, true, true), Restrictions { one: MountAttrFlags::MOUNT_ATTR_NOEXEC, all: none });
    }

    #[test]
    fn options_of_devices_become_flags() {
        let of = |options: &[&str]| Restrictions::of_options(&options.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let expected = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        assert_eq!(of(&["ro", "nosuid", "nodev", "rbind", "rslave"]).one, expected);
        assert_eq!(of(&["rw", "exec", "relatime"]).one, MountAttrFlags::empty());
    }
}
