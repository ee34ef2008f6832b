//! Security context and namespaces of a pod, resolved.

mod sysctl;

pub use sysctl::AllowedSysctls;
pub(super) use sysctl::{is_of_ipc, is_of_network};

use crate::Pod;
use k8s_openapi::api::core::v1::{AppArmorProfile, Container, PodSecurityContext, SecurityContext};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Namespaces of the host that a pod uses, and sharing of one PID namespace among its containers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodNamespaces {
    /// `spec.hostNetwork`; then the UTS namespace is the host's too (kubelet rule D23).
    pub host_network: bool,
    /// `spec.hostPID`.
    pub host_pid: bool,
    /// `spec.hostIPC`.
    pub host_ipc: bool,
    /// `spec.shareProcessNamespace`.
    pub share_process: bool,
}

/// System calls that a container may make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeccompProfile {
    /// The built-in default profile.
    RuntimeDefault,
    /// No filter.
    Unconfined,
    /// A profile file: `localhostProfile` as written, relative to `Paths::seccomp_profiles` of `podstead-sys`.
    Localhost(PathBuf),
}

/// Privileges of a container; computed from pod and container security context (pure).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Security {
    /// All devices, all capabilities, no masks.
    pub privileged: bool,
    /// Final list, e.g. `CAP_CHOWN`; for permitted, effective and bounding set.
    pub capabilities: Vec<String>,
    /// `allowPrivilegeEscalation: false`.
    pub no_new_privileges: bool,
    /// `readOnlyRootFilesystem`.
    pub read_only_root: bool,
    /// `procMount: Unmasked`.
    pub unmasked_proc: bool,
    /// Seccomp.
    pub seccomp: SeccompProfile,
    /// AppArmor profile name; `None` leaves it to the kernel.
    pub apparmor: Option<String>,
}

/// User of a container's first process, as far as the manifest sets it. What it leaves open, the image decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunAs {
    /// `runAsUser`; `None` means the image's user.
    pub uid: Option<i64>,
    /// `runAsGroup`; `None` means the user's primary group in the image, or 0.
    pub gid: Option<i64>,
    /// `runAsNonRoot`: a resolved uid of 0 is refused (`CreateContainerConfigError`).
    pub non_root: bool,
    /// `supplementalGroups` and `fsGroup`, without duplicates, in that order.
    pub supplemental: Vec<i64>,
    /// Also the groups that the image's `/etc/group` gives the user: true unless `supplementalGroupsPolicy: Strict`.
    pub image_groups: bool,
}

/// Capabilities of a container whose manifest names none: containerd's default set.
pub const DEFAULT_CAPABILITIES: [&str; 14] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FSETID",
    "CAP_FOWNER",
    "CAP_MKNOD",
    "CAP_NET_RAW",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETFCAP",
    "CAP_SETPCAP",
    "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT",
    "CAP_KILL",
    "CAP_AUDIT_WRITE",
];

/// Every capability that Linux has, by number: `CAP_CHOWN` is 0.
pub const ALL_CAPABILITIES: [&str; 41] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
];

/// The AppArmor profile that `RuntimeDefault` stands for. The Debian package brings it, AppArmor's own service loads it.
pub const DEFAULT_APPARMOR_PROFILE: &str = "podstead-default";

/// Resolves what `container` may do. Container values win over the pod's. Where neither gives a seccomp profile it is `RuntimeDefault`, which
/// is podstead's default and not the kubelet's (that one is Unconfined); so is the AppArmor profile, as with containerd.
/// `default_apparmor` is what that one is called, or `None` if it is not loaded on this host.
pub fn container_security(pod: &Pod, container: &Container, default_apparmor: Option<&str>) -> Security {
    let (of_pod, of_container) = contexts(pod, container);
    let privileged = of_container.privileged.unwrap_or(false);
    Security {
        privileged,
        capabilities: capabilities(&of_container, privileged),
        no_new_privileges: of_container.allow_privilege_escalation == Some(false),
        read_only_root: of_container.read_only_root_filesystem.unwrap_or(false),
        unmasked_proc: of_container.proc_mount.as_deref() == Some("Unmasked"),
        seccomp: if privileged {
            SeccompProfile::Unconfined
        } else {
            of_container.seccomp_profile.or(of_pod.seccomp_profile).map_or(SeccompProfile::RuntimeDefault, |profile| match profile
                .type_
                .as_str()
            {
                "Unconfined" => SeccompProfile::Unconfined,
                "Localhost" => SeccompProfile::Localhost(profile.localhost_profile.unwrap_or_default().into()),
                _ => SeccompProfile::RuntimeDefault,
            })
        },
        apparmor: of_container
            .app_armor_profile
            .or_else(|| annotated_apparmor(pod, &container.name))
            .or(of_pod.app_armor_profile)
            .map_or_else(|| default_apparmor.map(str::to_owned), |profile| apparmor_name(profile, default_apparmor))
            .filter(|_| !privileged),
    }
}

/// Resolves which of the host's namespaces the pod uses.
pub fn pod_namespaces(pod: &Pod) -> PodNamespaces {
    let Some(spec) = &pod.spec else { return PodNamespaces::default() };
    PodNamespaces {
        host_network: spec.host_network.unwrap_or(false),
        host_pid: spec.host_pid.unwrap_or(false),
        host_ipc: spec.host_ipc.unwrap_or(false),
        share_process: spec.share_process_namespace.unwrap_or(false),
    }
}

/// Sysctls of the pod's namespaces, dots as separators, in manifest order. A `/`-separated name is normalised as sysctl(8) does.
pub fn sysctls(pod: &Pod) -> Vec<(String, String)> {
    let context = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let declared = context.and_then(|context| context.sysctls.as_deref()).unwrap_or_default();
    declared.iter().map(|sysctl| (dotted(&sysctl.name), sysctl.value.clone())).collect()
}

/// Resolves user and groups. Container values win over the pod's.
pub fn run_as(pod: &Pod, container: &Container) -> RunAs {
    let (of_pod, of_container) = contexts(pod, container);
    let mut supplemental: Vec<i64> = Vec::new();
    for group in of_pod.supplemental_groups.unwrap_or_default().into_iter().chain(of_pod.fs_group) {
        if !supplemental.contains(&group) {
            supplemental.push(group);
        }
    }
    RunAs {
        uid: of_container.run_as_user.or(of_pod.run_as_user),
        gid: of_container.run_as_group.or(of_pod.run_as_group),
        non_root: of_container.run_as_non_root.or(of_pod.run_as_non_root).unwrap_or(false),
        supplemental,
        image_groups: of_pod.supplemental_groups_policy.as_deref() != Some("Strict"),
    }
}

fn contexts(pod: &Pod, container: &Container) -> (PodSecurityContext, SecurityContext) {
    let of_pod = pod.spec.as_ref().and_then(|spec| spec.security_context.clone()).unwrap_or_default();
    (of_pod, container.security_context.clone().unwrap_or_default())
}

/// The order is the CRI's: `add: ALL`, then `drop: ALL`, then single additions, then single drops.
fn capabilities(context: &SecurityContext, privileged: bool) -> Vec<String> {
    if privileged {
        return ALL_CAPABILITIES.map(str::to_owned).to_vec();
    }
    let declared = context.capabilities.clone().unwrap_or_default();
    let add: Vec<String> = declared.add.unwrap_or_default().iter().map(|name| canonical(name)).collect();
    let drop: Vec<String> = declared.drop.unwrap_or_default().iter().map(|name| canonical(name)).collect();
    let is_all = |name: &String| name == "CAP_ALL";
    let mut result: Vec<String> = if drop.iter().any(is_all) {
        Vec::new()
    } else if add.iter().any(is_all) {
        ALL_CAPABILITIES.map(str::to_owned).to_vec()
    } else {
        DEFAULT_CAPABILITIES.map(str::to_owned).to_vec()
    };
    for name in add.into_iter().filter(|name| !is_all(name)) {
        if !result.contains(&name) {
            result.push(name);
        }
    }
    result.retain(|name| !drop.contains(name));
    result
}

/// Kubernetes names capabilities without `CAP_`, but accepts both, in any case.
fn canonical(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    if upper.starts_with("CAP_") { upper } else { format!("CAP_{upper}") }
}

/// `None` for `Unconfined`, which is what the kernel does with no name.
fn apparmor_name(profile: AppArmorProfile, default: Option<&str>) -> Option<String> {
    match profile.type_.as_str() {
        "Localhost" => profile.localhost_profile,
        "Unconfined" => None,
        _ => default.map(str::to_owned),
    }
}

/// The annotation that came before the field (Kubernetes 1.29 and older); the field wins.
pub fn apparmor_annotation<'a>(pod: &'a Pod, container: &str) -> Option<&'a str> {
    let key = format!("container.apparmor.security.beta.kubernetes.io/{container}");
    pod.metadata.annotations.as_ref()?.get(&key).map(String::as_str)
}

fn annotated_apparmor(pod: &Pod, container: &str) -> Option<AppArmorProfile> {
    let value = apparmor_annotation(pod, container)?;
    let profile = |kind: &str, name: Option<&str>| AppArmorProfile { type_: kind.into(), localhost_profile: name.map(Into::into) };
    Some(match value.strip_prefix("localhost/") {
        Some(name) => profile("Localhost", Some(name)),
        None if value == "unconfined" => profile("Unconfined", None),
        None => profile("RuntimeDefault", None),
    })
}

/// sysctl(8): where the first separator is a slash, slashes separate and dots are part of a name.
pub(super) fn dotted(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(first) if name.as_bytes()[first] == b'/' => name
            .chars()
            .map(|c| {
                if c == '/' {
                    '.'
                } else if c == '.' {
                    '/'
                } else {
                    c
                }
            })
            .collect(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
