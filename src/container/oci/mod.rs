//! From a resolved [`ContainerSpec`] to an OCI runtime spec. **Pure**.
//!
//! In: what the container shall be ([`ContainerSpec`]), and what it runs in ([`SandboxView`]: namespaces, cgroup, facts of the kernel).
//! Out: the `config.json` of its bundle, for libcontainer. Defaults (mounts, masked paths, capabilities, devices, system calls) are
//! containerd's, so that an image that runs in a cluster runs here.
//!
//! Where libcontainer differs from the specification, the generated spec avoids the difference; each such place says so.

mod capabilities;
pub mod dev;
mod devices;
mod error;
mod hooks;
mod mounts;
pub mod places;
mod resources;
mod sandbox;
pub mod seccomp;

pub use error::OciError;
pub use sandbox::SandboxView;
pub use seccomp::{ProfileError, ProfileFile, parse_profile};

use super::{ContainerSpec, PodNamespaces, SeccompProfile};
use crate::cgroup::CgroupVersion;
use error::BuildExt;
use oci_spec::runtime::{
    Capabilities, Linux, LinuxBuilder, LinuxCapabilitiesBuilder, LinuxNamespace, LinuxNamespaceBuilder, LinuxNamespaceType,
    LinuxSeccomp, Process, ProcessBuilder, RootBuilder, Spec, SpecBuilder, UserBuilder,
};
use seccomp::Machine;
use std::path::{Path, PathBuf};

/// Generates the OCI runtime spec of one container. The same arguments give the same spec.
pub fn oci_spec(spec: &ContainerSpec, sandbox: &SandboxView) -> Result<Spec, OciError> {
    let granted = capabilities::granted(&spec.security, sandbox.facts.capabilities)?;
    let mut result = SpecBuilder::default()
        .version("1.1.0")
        .root(RootBuilder::default().path(sandbox.rootfs.clone()).readonly(spec.security.read_only_root).build().part("root")?)
        .mounts(mounts::mounts(spec, sandbox)?)
        .linux(linux(spec, sandbox, &granted)?)
        .process(process(spec, sandbox, granted)?)
        .build()
        .part("spec")?;
    // The builder starts from an example container. The host name belongs to the pod's pinned namespace.
    result.set_hostname(None).set_domainname(None).set_annotations(None).set_hooks(hooks::hooks(spec)?);
    Ok(result)
}

fn process(spec: &ContainerSpec, sandbox: &SandboxView, granted: Capabilities) -> Result<Process, OciError> {
    // Nothing is inheritable (CVE-2022-24769) and nothing ambient: a process that is not root has capabilities only through files.
    let mut sets = LinuxCapabilitiesBuilder::default()
        .bounding(granted.clone())
        .effective(granted.clone())
        .permitted(granted)
        .build()
        .part("capabilities")?;
    sets.set_inheritable(None).set_ambient(None);

    // The primary group is listed too, so that dropping it by setgid does not lift a negative permission (CVE-2022-36109).
    let mut gids = spec.user.additional_gids.clone();
    if !gids.contains(&spec.user.gid) {
        gids.insert(0, spec.user.gid);
    }
    let user = UserBuilder::default().uid(spec.user.uid).gid(spec.user.gid).additional_gids(gids).build().part("user")?;

    let oom_score_adj = sandbox.facts.oom_score_adj_floor.map_or(spec.oom_score_adj, |floor| spec.oom_score_adj.max(floor));
    let mut process = ProcessBuilder::default()
        .terminal(spec.tty)
        .user(user)
        .args(spec.args.clone())
        .env(spec.env.clone())
        .cwd(spec.cwd.clone())
        .capabilities(sets)
        .oom_score_adj(oom_score_adj)
        .build()
        .part("process")?;
    // `Some(false)` makes libcontainer load seccomp after it dropped the right to do so: absent means false.
    process.set_rlimits(None).set_no_new_privileges(spec.security.no_new_privileges.then_some(true));
    process.set_apparmor_profile(match &spec.security.apparmor {
        Some(name) if !sandbox.facts.apparmor => return Err(OciError::AppArmorUnavailable(name.clone())),
        profile => profile.clone(),
    });
    Ok(process)
}

fn linux(spec: &ContainerSpec, sandbox: &SandboxView, granted: &Capabilities) -> Result<Linux, OciError> {
    let mut linux = LinuxBuilder::default()
        .cgroups_path(sandbox.cgroup.join(spec.id.as_str()))
        .namespaces(namespaces(spec, sandbox)?)
        .resources(resources::resources(spec, sandbox)?)
        .rootfs_propagation(mounts::rootfs_propagation(spec))
        .build()
        .part("linux")?;
    linux
        .set_devices(devices::nodes(spec, sandbox)?)
        .set_masked_paths(mounts::masked_paths(spec))
        .set_readonly_paths(mounts::readonly_paths(spec, sandbox))
        .set_seccomp(seccomp_filter(spec, sandbox, granted)?)
        .set_uid_mappings(None)
        .set_gid_mappings(None);
    Ok(linux)
}

fn seccomp_filter(spec: &ContainerSpec, sandbox: &SandboxView, granted: &Capabilities) -> Result<Option<LinuxSeccomp>, OciError> {
    match &spec.security.seccomp {
        _ if spec.security.privileged => Ok(None),
        SeccompProfile::Unconfined => Ok(None),
        SeccompProfile::RuntimeDefault => seccomp::default_profile(granted, Machine::NATIVE).map(Some),
        SeccompProfile::Localhost(path) => {
            let file = sandbox.localhost_seccomp.as_ref().ok_or_else(|| OciError::SeccompNotLoaded(path.clone()))?;
            file.resolve(granted, Machine::NATIVE, sandbox.facts.release).map(Some)
        }
    }
}

/// Mount is always the container's own; cgroup too on v2, unless privileged (as the CRI does); the rest is the pod's or the host's.
fn namespaces(spec: &ContainerSpec, sandbox: &SandboxView) -> Result<Vec<LinuxNamespace>, OciError> {
    use LinuxNamespaceType::{Cgroup, Ipc, Mount, Network, Pid, User, Uts};
    let PodNamespaces { host_network, host_pid, host_ipc, share_process } = sandbox.namespaces;
    let mut result = vec![namespace(Mount, None)?];
    if let Some(path) = &sandbox.user {
        result.push(namespace(User, Some(path))?);
    }
    let mut join = |kind, path: &Option<PathBuf>| match path {
        Some(path) => namespace(kind, Some(path)).map(|namespace| result.push(namespace)),
        None => Err(OciError::NoNamespace(kind)),
    };
    if !host_network {
        join(Network, &sandbox.net)?;
        join(Uts, &sandbox.uts)?;
    }
    if !host_ipc {
        join(Ipc, &sandbox.ipc)?;
    }
    if share_process && !host_pid {
        join(Pid, &sandbox.pid)?;
    } else if !host_pid {
        result.push(namespace(Pid, None)?);
    }
    if sandbox.facts.cgroup == CgroupVersion::V2 && !spec.security.privileged {
        result.push(namespace(Cgroup, None)?);
    }
    Ok(result)
}

fn namespace(kind: LinuxNamespaceType, path: Option<&Path>) -> Result<LinuxNamespace, OciError> {
    let builder = LinuxNamespaceBuilder::default().typ(kind);
    match path {
        Some(path) => builder.path(path).build(),
        None => builder.build(),
    }
    .part("namespace")
}

#[cfg(test)]
mod tests;
