//! Device nodes. libcontainer makes the six that every container has (null, zero, full, tty, random, urandom) by itself.

use super::{BuildExt, OciError, SandboxView};
use crate::runtime::ContainerSpec;
use libcontainer::oci_spec::runtime::{LinuxDevice, LinuxDeviceBuilder, LinuxDeviceType};

/// All of the host's device nodes for a privileged container, none beyond the usual for others.
pub(super) fn nodes(spec: &ContainerSpec, sandbox: &SandboxView) -> Result<Option<Vec<LinuxDevice>>, OciError> {
    if !spec.security.privileged {
        return Ok(None);
    }
    // A node on which something is mounted is that mount's.
    let free = sandbox
        .host_devices
        .iter()
        .filter(|device| !spec.mounts.iter().any(|mount| device.path.starts_with(&mount.container_path)));
    free.map(|device| {
        LinuxDeviceBuilder::default()
            .path(device.path.clone())
            .typ(if device.block { LinuxDeviceType::B } else { LinuxDeviceType::C })
            .major(i64::from(device.major))
            .minor(i64::from(device.minor))
            .file_mode(device.mode)
            .uid(device.uid)
            .gid(device.gid)
            .build()
            .part("device")
    })
    .collect::<Result<Vec<_>, _>>()
    .map(Some)
}
