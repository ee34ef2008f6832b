//! Controls about AppArmor, SELinux and seccomp.

use super::Findings;
use super::subject::Subject;

/// Annotations that came before the field `appArmorProfile`, by container.
const APPARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
/// Annotations that came before the field `seccompProfile`.
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

const PROFILE_TYPES: [&str; 2] = ["RuntimeDefault", "Localhost"];
const USE_DEFAULT: &str = "set it to RuntimeDefault";

/// SELinux types, with the minor release that allowed them.
const SELINUX_TYPES: [(u32, &str); 5] =
    [(0, ""), (0, "container_t"), (0, "container_init_t"), (0, "container_kvm_t"), (31, "container_engine_t")];

pub(super) fn apparmor(subject: &Subject<'_>, findings: &mut Findings) {
    let contexts = subject.in_contexts(|context| context.app_armor_profile.as_ref(), |context| context.app_armor_profile.as_ref());
    for (context, profile) in contexts {
        if !PROFILE_TYPES.contains(&profile.type_.as_str()) {
            let message = format!("AppArmor profile {:?} is not allowed: use RuntimeDefault or Localhost", profile.type_);
            findings.push(format!("{context}.appArmorProfile.type"), message, USE_DEFAULT);
        }
    }
    for (key, value) in subject.annotations.iter().filter(|(key, _)| key.starts_with(APPARMOR_ANNOTATION)) {
        if !(value.is_empty() || value == "runtime/default" || value.starts_with("localhost/")) {
            let message = format!("AppArmor profile {value:?} is not allowed: use runtime/default or localhost/...");
            findings.push(format!("metadata.annotations[{key}]"), message, "leave it out");
        }
    }
}

pub(super) fn selinux(subject: &Subject<'_>, findings: &mut Findings) {
    let contexts = subject.in_contexts(|context| context.se_linux_options.as_ref(), |context| context.se_linux_options.as_ref());
    let types: Vec<&str> =
        SELINUX_TYPES.iter().filter(|(since, _)| subject.version.includes(*since)).map(|(_, name)| *name).collect();
    for (context, options) in contexts {
        let field = |name: &str| format!("{context}.seLinuxOptions.{name}");
        let type_ = options.type_.as_deref().unwrap_or_default();
        if !types.contains(&type_) {
            let message = format!("SELinux type {type_:?} is not allowed: use one of{}", types.join(", ").trim_start_matches(','));
            findings.push(field("type"), message, "leave it out");
        }
        for (name, value) in [("user", &options.user), ("role", &options.role)] {
            if value.as_deref().is_some_and(|value| !value.is_empty()) {
                findings.push(field(name), format!("an SELinux {name} must not be set"), "leave it out");
            }
        }
    }
}

/// In `baseline`: annotations before v1.19, fields since.
pub(super) fn seccomp(subject: &Subject<'_>, findings: &mut Findings) {
    if subject.version.includes(19) {
        seccomp_types(subject, findings);
        return;
    }
    let of_containers = subject.containers.iter().map(|place| format!("{SECCOMP_OF_CONTAINER}{}", place.name));
    for key in of_containers.chain([SECCOMP_OF_POD.to_owned()]) {
        let Some(value) = subject.annotations.get(&key) else { continue };
        if !(value == "runtime/default" || value == "docker/default" || value.starts_with("localhost/")) {
            let message = format!("seccomp profile {value:?} is not allowed: use runtime/default or localhost/...");
            findings.push(format!("metadata.annotations[{key}]"), message, "leave it out");
        }
    }
}

/// In `restricted` since v1.19: every container has a profile, its own or the pod's.
pub(super) fn seccomp_is_set(subject: &Subject<'_>, findings: &mut Findings) {
    if subject.is_for_windows() {
        return;
    }
    seccomp_types(subject, findings);
    // A type of the pod that is not allowed is reported once.
    if subject.context.is_some_and(|context| context.seccomp_profile.is_some()) {
        return;
    }
    for place in &subject.containers {
        if place.context.is_none_or(|context| context.seccomp_profile.is_none()) {
            let field = format!("{}.seccompProfile.type", place.context_field());
            findings.push(field, "a seccomp profile must be set here or for the pod", USE_DEFAULT);
        }
    }
}

fn seccomp_types(subject: &Subject<'_>, findings: &mut Findings) {
    let contexts = subject.in_contexts(|context| context.seccomp_profile.as_ref(), |context| context.seccomp_profile.as_ref());
    for (context, profile) in contexts {
        if !PROFILE_TYPES.contains(&profile.type_.as_str()) {
            let message = format!("seccomp profile {:?} is not allowed: use RuntimeDefault or Localhost", profile.type_);
            findings.push(format!("{context}.seccompProfile.type"), message, USE_DEFAULT);
        }
    }
}
