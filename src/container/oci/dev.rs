//! A volume at `/dev` itself, as programs have it that look for devices which come and go.
//!
//! libcontainer makes device nodes, links and `ptmx` in the container's `/dev` whatever is mounted there; in the host's own that would
//! do harm. So the OCI spec keeps the container's own `/dev`, in which libcontainer works, and the volume is mounted over it when the
//! container is made and its program has not begun. What the container has below `/dev` is then moved into the volume. The result is
//! that of runc, which makes no devices where something is mounted on `/dev`.

use super::OciError;
use crate::{ContainerSpec, Mount, Propagation};
use std::path::{Path, PathBuf};

/// Path of the directory.
pub const DEV: &str = "/dev";

/// Entries that every container has below `/dev`.
const DEFAULTS: [&str; 3] = ["pts", "mqueue", "shm"];

/// Mount point of libcontainer for the terminal of a container that has one.
const CONSOLE: &str = "console";

/// Mount of a volume on `/dev`, with the mounts inside of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevVolume {
    /// Index among the container's mounts. Its source changes while the container is created.
    pub index: usize,
    /// Mounts of the container's own below `/dev`, none below another.
    pub inner: Vec<InnerMount>,
}

/// A mount of the container's own that is moved into the volume with all that is mounted below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerMount {
    /// Relative to `/dev`.
    pub path: PathBuf,
    /// Origin of the mount.
    pub origin: Origin,
}

/// Reason why something is mounted below `/dev`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Every container has it.
    Default,
    /// The pod or one of its devices names the place.
    Named,
    /// The file that takes the termination message.
    TerminationLog,
}

/// Handling of a mount point that is missing in the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Make an empty file or directory in the volume, as runc does.
    Make,
    /// Go without.
    LeaveOut,
    /// The container cannot be started.
    Refuse,
}

impl Origin {
    /// The host's own `/dev` gets nothing but the file for the termination message, without which the message would be written into it.
    pub fn when_missing(self, is_the_hosts: bool) -> Missing {
        match (is_the_hosts, self) {
            (false, _) | (true, Self::TerminationLog) => Missing::Make,
            (true, Self::Default) => Missing::LeaveOut,
            (true, Self::Named) => Missing::Refuse,
        }
    }
}

/// Returns true if the mount is left to [`DevVolume`].
pub fn is_at_dev(mount: &Mount) -> bool {
    mount.container_path == Path::new(DEV)
}

/// The container's volume at `/dev`, if it has one.
pub fn dev_volume(spec: &ContainerSpec) -> Result<Option<DevVolume>, OciError> {
    if spec.devices.mounts.iter().any(|mount| mount.container_path == Path::new(DEV)) {
        return Err(OciError::DevOfDevice);
    }
    let Some((index, mount)) = spec.mounts.iter().enumerate().find(|(_, mount)| is_at_dev(mount)) else { return Ok(None) };
    // The container's own /dev/pts would appear on the host's.
    if mount.propagation == Propagation::Bidirectional {
        return Err(OciError::DevShared(mount.host_path.clone()));
    }
    let volumes = spec.mounts.iter().map(|mount| {
        let is_log = spec.termination_log.as_ref() == Some(&mount.host_path);
        (mount.container_path.as_path(), if is_log { Origin::TerminationLog } else { Origin::Named })
    });
    let devices = spec.devices.mounts.iter().map(|mount| (mount.container_path.as_path(), Origin::Named));
    let named = volumes.chain(devices).filter_map(|(path, origin)| Some((path.strip_prefix(DEV).ok()?.to_owned(), origin)));
    let console = spec.tty.then_some(CONSOLE);
    let defaults = DEFAULTS.into_iter().chain(console).map(|name| (PathBuf::from(name), Origin::Default));
    let mut all: Vec<InnerMount> = Vec::new();
    for (path, origin) in named.chain(defaults) {
        if path != Path::new("") && all.iter().all(|other| other.path != path) {
            all.push(InnerMount { path, origin });
        }
    }
    let is_below_another =
        |inner: &InnerMount| all.iter().any(|other| inner.path != other.path && inner.path.starts_with(&other.path));
    let inner = all.iter().filter(|inner| !is_below_another(inner)).cloned().collect();
    Ok(Some(DevVolume { index, inner }))
}
