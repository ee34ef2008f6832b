//! Security contexts of pod and container.

use super::names::{id, no_nul, no_steps_back, sysctl_name};
use crate::containers::{list, text};
use crate::field::{FieldPath, Problems, did_you_mean};
use crate::security::{ALL_CAPABILITIES, dotted, is_of_ipc, is_of_network};
use k8s_openapi::api::core::v1::{
    AppArmorProfile, Capabilities, Container, PodSecurityContext, PodSpec, SeccompProfile, SecurityContext, Sysctl,
};
use std::collections::HashSet;

/// A path fits with its NUL.
const MAX_APPARMOR_PROFILE: usize = 4095;

/// `securityContext` of the pod.
pub(super) fn check_pod(context: &PodSecurityContext, spec: &PodSpec, path: &FieldPath, problems: &mut Problems) {
    let ids = [("runAsUser", context.run_as_user), ("runAsGroup", context.run_as_group), ("fsGroup", context.fs_group)];
    for (name, value) in ids {
        check_id(value, &path.child(name), problems);
    }
    for (index, group) in list(&context.supplemental_groups).iter().enumerate() {
        check_id(Some(*group), &path.child("supplementalGroups").index(index), problems);
    }
    let words = [
        ("fsGroupChangePolicy", text(&context.fs_group_change_policy), ["OnRootMismatch", "Always"]),
        ("supplementalGroupsPolicy", text(&context.supplemental_groups_policy), ["Merge", "Strict"]),
        ("seLinuxChangePolicy", text(&context.se_linux_change_policy), ["MountOption", "Recursive"]),
    ];
    for (name, word, allowed) in words {
        if !word.is_empty() {
            problems.one_of(&path.child(name), word, &allowed);
        }
    }
    check_sysctls(list(&context.sysctls), spec, &path.child("sysctls"), problems);
    check_profiles(context.seccomp_profile.as_ref(), context.app_armor_profile.as_ref(), path, problems);
}

/// `securityContext` of a container.
pub(super) fn check_container(context: &SecurityContext, host_users: bool, path: &FieldPath, problems: &mut Problems) {
    check_id(context.run_as_user, &path.child("runAsUser"), problems);
    check_id(context.run_as_group, &path.child("runAsGroup"), problems);
    let proc_mount = text(&context.proc_mount);
    if !proc_mount.is_empty() {
        problems.one_of(&path.child("procMount"), proc_mount, &["Default", "Unmasked"]);
    }
    if proc_mount == "Unmasked" && host_users {
        problems.invalid(&path.child("procMount"), proc_mount, "hostUsers must be false to use Unmasked");
    }
    let capabilities = context.capabilities.clone().unwrap_or_default();
    if context.allow_privilege_escalation == Some(false) {
        let path = path.child("allowPrivilegeEscalation");
        if context.privileged == Some(true) {
            problems.invalid(&path, false, "must not be false in a privileged container");
        }
        // The API server refuses this spelling only: manifests of clusters have the other one.
        if list(&capabilities.add).iter().any(|name| name == "CAP_SYS_ADMIN") {
            problems.invalid(&path, false, "must not be false in a container with CAP_SYS_ADMIN, as in a cluster: write SYS_ADMIN");
        }
    }
    check_capabilities(&capabilities, &path.child("capabilities"), problems);
    check_profiles(context.seccomp_profile.as_ref(), context.app_armor_profile.as_ref(), path, problems);
}

/// A container that must not run as root is not told to. The image's user is known only later.
pub(super) fn check_user(pod: Option<&PodSecurityContext>, container: &Container, path: &FieldPath, problems: &mut Problems) {
    let own = container.security_context.as_ref();
    let user = own.and_then(|context| context.run_as_user).or(pod.and_then(|context| context.run_as_user));
    let non_root = own.and_then(|context| context.run_as_non_root).or(pod.and_then(|context| context.run_as_non_root));
    if user == Some(0) && non_root == Some(true) {
        problems.invalid(&path.child("securityContext.runAsUser"), 0, "must not be 0 where runAsNonRoot is true");
    }
}

fn check_id(value: Option<i64>, path: &FieldPath, problems: &mut Problems) {
    if let Some(value) = value {
        problems.rule(path, value, id(value));
    }
}

/// The API server takes any word and leaves the rest to the runtime.
fn check_capabilities(capabilities: &Capabilities, path: &FieldPath, problems: &mut Problems) {
    for (list_name, names) in [("add", list(&capabilities.add)), ("drop", list(&capabilities.drop))] {
        for (index, name) in names.iter().enumerate() {
            let word = bare(name);
            if word != "ALL" && !known_capabilities().any(|known| known == word) {
                problems.invalid(&path.child(list_name).index(index), name, "must be ALL or a Linux capability such as NET_ADMIN");
                problems.hint(did_you_mean(&word, known_capabilities()));
            }
        }
    }
}

fn known_capabilities() -> impl Iterator<Item = &'static str> {
    ALL_CAPABILITIES.into_iter().map(|name| name.trim_start_matches("CAP_"))
}

/// Upper case, without `CAP_`.
fn bare(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    upper.strip_prefix("CAP_").map(str::to_owned).unwrap_or(upper)
}

fn check_sysctls(sysctls: &[Sysctl], spec: &PodSpec, path: &FieldPath, problems: &mut Problems) {
    let mut names = HashSet::new();
    for (index, sysctl) in sysctls.iter().enumerate() {
        let path = path.index(index).child("name");
        problems.required_text(&path, &sysctl.name, sysctl_name);
        let name = dotted(&sysctl.name);
        if spec.host_network == Some(true) && is_of_network(&name) {
            problems.invalid(&path, &sysctl.name, "may not be set when hostNetwork is true: it would change the host's value");
        }
        if spec.host_ipc == Some(true) && is_of_ipc(&name) {
            problems.invalid(&path, &sysctl.name, "may not be set when hostIPC is true: it would change the host's value");
        }
        if !name.is_empty() && !names.insert(name) {
            problems.duplicate(&path, &sysctl.name);
        }
    }
}

fn check_profiles(seccomp: Option<&SeccompProfile>, apparmor: Option<&AppArmorProfile>, path: &FieldPath, problems: &mut Problems) {
    const TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
    if let Some(profile) = seccomp {
        let path = path.child("seccompProfile");
        problems.one_of(&path.child("type"), &profile.type_, &TYPES);
        let localhost = text(&profile.localhost_profile);
        let relative = |text: &str| {
            if text.starts_with('/') { Err("must be a relative path") } else { no_steps_back(text).and_then(|()| no_nul(text)) }
        };
        let path = path.child("localhostProfile");
        if profile.type_ == "Localhost" {
            problems.required_text(&path, localhost, relative);
        } else if !localhost.is_empty() {
            problems.forbidden(&path, "may be set only where type is Localhost");
        }
    }
    if let Some(profile) = apparmor {
        let path = path.child("appArmorProfile");
        problems.one_of(&path.child("type"), &profile.type_, &TYPES);
        let localhost = text(&profile.localhost_profile);
        let path = path.child("localhostProfile");
        if profile.type_ != "Localhost" {
            if !localhost.is_empty() {
                problems.forbidden(&path, "may be set only where type is Localhost");
            }
        } else if localhost.trim().is_empty() {
            problems.required(&path, "the name of a profile that is loaded on the host");
        } else if localhost.trim() != localhost {
            problems.invalid(&path, localhost, "must not begin or end with blanks");
        } else if localhost.len() > MAX_APPARMOR_PROFILE {
            problems.too_long(&path, MAX_APPARMOR_PROFILE, "bytes");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::{check_container, check_spec};

    #[track_caller]
    fn container(context: &str, expected: &[&str]) {
        check_container(&format!("securityContext: {{{context}}}"), "", expected);
    }

    #[track_caller]
    fn pod(context: &str, rest: &str, expected: &[&str]) {
        check_spec(&format!("containers: [{{name: a, image: x}}], securityContext: {{{context}}}, {rest}"), expected);
    }

    #[test]
    fn users_and_groups_are_ids() {
        let range = "must be between 0 and 2147483647";
        container("runAsUser: 0, runAsGroup: 2147483647", &[]);
        container(
            "runAsUser: -1, runAsGroup: 2147483648",
            &[
                &format!("{{P}}.securityContext.runAsUser: invalid value -1: {range}"),
                &format!("{{P}}.securityContext.runAsGroup: invalid value 2147483648: {range}"),
            ],
        );
        pod("runAsUser: 1, runAsGroup: 1, fsGroup: 1, supplementalGroups: [1, 2]", "", &[]);
        pod(
            "fsGroup: -1, supplementalGroups: [1, -2]",
            "",
            &[
                &format!("spec.securityContext.fsGroup: invalid value -1: {range}"),
                &format!("spec.securityContext.supplementalGroups[1]: invalid value -2: {range}"),
            ],
        );
    }

    #[test]
    fn root_is_not_a_user_who_is_not_root() {
        container("runAsUser: 1, runAsNonRoot: true", &[]);
        container("runAsUser: 0, runAsNonRoot: false", &[]);
        container(
            "runAsUser: 0, runAsNonRoot: true",
            &["{P}.securityContext.runAsUser: invalid value 0: must not be 0 where runAsNonRoot is true"],
        );
        pod(
            "runAsUser: 0, runAsNonRoot: true",
            "",
            &["spec.containers[0].securityContext.runAsUser: invalid value 0: must not be 0 where runAsNonRoot is true"],
        );
        check_container("securityContext: {runAsUser: 5}", "securityContext: {runAsUser: 0, runAsNonRoot: true}", &[]);
    }

    #[test]
    fn policies_are_known_words() {
        pod("fsGroupChangePolicy: Always, supplementalGroupsPolicy: Strict, seLinuxChangePolicy: Recursive", "", &[]);
        pod(
            "fsGroupChangePolicy: Never, supplementalGroupsPolicy: None",
            "",
            &[
                "spec.securityContext.fsGroupChangePolicy: invalid value \"Never\": must be one of \"OnRootMismatch\", \"Always\"",
                "spec.securityContext.supplementalGroupsPolicy: invalid value \"None\": must be one of \"Merge\", \"Strict\"",
            ],
        );
    }

    #[test]
    fn escalation_cannot_be_denied_to_those_who_have_all() {
        container("allowPrivilegeEscalation: false", &[]);
        container(
            "allowPrivilegeEscalation: false, privileged: true",
            &["{P}.securityContext.allowPrivilegeEscalation: invalid value false: must not be false in a privileged container"],
        );
        container("allowPrivilegeEscalation: false, capabilities: {add: [SYS_ADMIN]}", &[]);
        container(
            "allowPrivilegeEscalation: false, capabilities: {add: [CAP_SYS_ADMIN]}",
            &[
                "{P}.securityContext.allowPrivilegeEscalation: invalid value false: must not be false in a container with CAP_SYS_ADMIN, as in a cluster: write SYS_ADMIN",
            ],
        );
    }

    #[test]
    fn capabilities_are_those_of_linux() {
        container("capabilities: {add: [NET_ADMIN, CAP_CHOWN, net_raw], drop: [ALL]}", &[]);
        container(
            "capabilities: {add: [NET_ADMN], drop: [all, EVERYTHING]}",
            &[
                "{P}.securityContext.capabilities.add[0]: invalid value \"NET_ADMN\": must be ALL or a Linux capability such as NET_ADMIN",
                "{P}.securityContext.capabilities.drop[1]: invalid value \"EVERYTHING\": must be ALL or a Linux capability such as NET_ADMIN",
            ],
        );
    }

    #[test]
    fn proc_is_unmasked_only_in_a_user_namespace() {
        container("procMount: Default", &[]);
        container(
            "procMount: Unmasked",
            &["{P}.securityContext.procMount: invalid value \"Unmasked\": hostUsers must be false to use Unmasked"],
        );
        check_container("securityContext: {procMount: Unmasked}", "hostUsers: false", &[]);
        container(
            "procMount: none",
            &["{P}.securityContext.procMount: invalid value \"none\": must be one of \"Default\", \"Unmasked\""],
        );
    }

    #[test]
    fn profiles_have_a_type_and_on_the_host_a_name() {
        container(
            "seccompProfile: {type: Localhost, localhostProfile: a/b.json}, appArmorProfile: {type: Localhost, localhostProfile: web}",
            &[],
        );
        container("seccompProfile: {type: RuntimeDefault}, appArmorProfile: {type: Unconfined}", &[]);
        for field in ["seccompProfile", "appArmorProfile"] {
            let at = format!("{{P}}.securityContext.{field}");
            container(
                &format!("{field}: {{}}"),
                &[&format!("{at}.type: is required: one of Localhost, RuntimeDefault, Unconfined")],
            );
            container(
                &format!("{field}: {{type: Default}}"),
                &[&format!(
                    "{at}.type: invalid value \"Default\": must be one of \"Localhost\", \"RuntimeDefault\", \"Unconfined\""
                )],
            );
            container(
                &format!("{field}: {{type: Unconfined, localhostProfile: a}}"),
                &[&format!("{at}.localhostProfile: forbidden: may be set only where type is Localhost")],
            );
        }
        container("seccompProfile: {type: Localhost}", &["{P}.securityContext.seccompProfile.localhostProfile: is required"]);
        container(
            "seccompProfile: {type: Localhost, localhostProfile: /a}",
            &["{P}.securityContext.seccompProfile.localhostProfile: invalid value \"/a\": must be a relative path"],
        );
        container(
            "seccompProfile: {type: Localhost, localhostProfile: a/../b}",
            &["{P}.securityContext.seccompProfile.localhostProfile: invalid value \"a/../b\": must not contain '..'"],
        );
        container(
            "appArmorProfile: {type: Localhost, localhostProfile: ' a'}",
            &["{P}.securityContext.appArmorProfile.localhostProfile: invalid value \" a\": must not begin or end with blanks"],
        );
        container(
            "appArmorProfile: {type: Localhost, localhostProfile: ' '}",
            &[
                "{P}.securityContext.appArmorProfile.localhostProfile: is required: the name of a profile that is loaded on the host",
            ],
        );
    }

    #[test]
    fn sysctls_are_named_once_and_are_the_pods_own() {
        pod("sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}, {name: kernel/shm_rmid_forced, value: '1'}]", "", &[]);
        pod("sysctls: [{value: '1'}]", "", &["spec.securityContext.sysctls[0].name: is required"]);
        pod(
            "sysctls: [{name: 'A b', value: '1'}]",
            "",
            &["spec.securityContext.sysctls[0].name: invalid value \"A b\": must be a sysctl such as net.ipv4.tcp_syncookies"],
        );
        pod(
            "sysctls: [{name: net.a.b, value: '1'}, {name: net/a/b, value: '2'}]",
            "",
            &["spec.securityContext.sysctls[1].name: duplicate value \"net/a/b\""],
        );
        pod(
            "sysctls: [{name: net.a.b, value: '1'}, {name: kernel.msgmax, value: '1'}]",
            "hostNetwork: true",
            &[
                "spec.securityContext.sysctls[0].name: invalid value \"net.a.b\": may not be set when hostNetwork is true: it would change the host's value",
            ],
        );
        pod(
            "sysctls: [{name: net.a.b, value: '1'}, {name: kernel.msgmax, value: '1'}, {name: fs/mqueue/msg_max, value: '1'}]",
            "hostIPC: true",
            &[
                "spec.securityContext.sysctls[1].name: invalid value \"kernel.msgmax\": may not be set when hostIPC is true: it would change the host's value",
                "spec.securityContext.sysctls[2].name: invalid value \"fs/mqueue/msg_max\": may not be set when hostIPC is true: it would change the host's value",
            ],
        );
    }
}
