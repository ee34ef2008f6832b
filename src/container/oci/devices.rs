//! Device nodes. libcontainer makes the six that every container has (null, zero, full, tty, random, urandom) by itself.

use super::{BuildExt, OciError, SandboxView};
use crate::kernel::HostDevice;
use crate::{ContainerSpec, GivenDevice};
use oci_spec::runtime::{LinuxDevice, LinuxDeviceBuilder, LinuxDeviceCgroup, LinuxDeviceCgroupBuilder, LinuxDeviceType};
use std::path::Path;

/// All of the host's device nodes for a privileged container; those that it is given for every container.
pub(super) fn nodes(spec: &ContainerSpec, sandbox: &SandboxView) -> Result<Option<Vec<LinuxDevice>>, OciError> {
    let mut nodes = Vec::new();
    if spec.security.privileged {
        // A node on which something is mounted is that mount's, one that is given is as it is given.
        let is_free = |device: &&HostDevice| {
            let is_mounted = spec.mounts.iter().any(|mount| device.path.starts_with(&mount.container_path));
            !is_mounted && given(spec).all(|given| given.path != device.path)
        };
        for HostDevice { path, block, major, minor, mode, uid, gid } in sandbox.host_devices.iter().filter(is_free) {
            nodes.push(node(path, *block, (*major, *minor), *mode, (*uid, *gid))?);
        }
    }
    for GivenDevice { path, block, major, minor, mode, uid, gid, permissions: _ } in &spec.devices.nodes {
        nodes.push(node(path, *block, (*major, *minor), *mode, (*uid, *gid))?);
    }
    Ok((spec.security.privileged || !nodes.is_empty()).then_some(nodes))
}

/// Device rules of the cgroup for the container's devices.
pub(super) fn rules(spec: &ContainerSpec) -> Result<Vec<LinuxDeviceCgroup>, OciError> {
    let rule = |device: &GivenDevice| {
        LinuxDeviceCgroupBuilder::default()
            .allow(true)
            .typ(kind(device.block))
            .major(i64::from(device.major))
            .minor(i64::from(device.minor))
            .access(device.permissions.clone())
            .build()
            .part("device rule")
    };
    given(spec).map(rule).collect()
}

/// Those that the container has, made by libcontainer or mounted in their places.
fn given(spec: &ContainerSpec) -> impl Iterator<Item = &GivenDevice> {
    spec.devices.nodes.iter().chain(spec.devices.plugged.iter().flatten())
}

fn node(path: &Path, block: bool, number: (u32, u32), mode: u32, owner: (u32, u32)) -> Result<LinuxDevice, OciError> {
    LinuxDeviceBuilder::default()
        .path(path)
        .typ(kind(block))
        .major(i64::from(number.0))
        .minor(i64::from(number.1))
        .file_mode(mode)
        .uid(owner.0)
        .gid(owner.1)
        .build()
        .part("device")
}

const fn kind(block: bool) -> LinuxDeviceType {
    if block { LinuxDeviceType::B } else { LinuxDeviceType::C }
}
