//! Fields of the pod itself.

use super::names::{dns_label, dns_subdomain};
use super::{containers, dns, pod_resources, scheduling, security, volumes};
use crate::containers::{list, text};
use crate::field::{FieldPath, Problems};
use crate::host_files::kernel_hostname;
use crate::{AdmitContext, Pod};
use k8s_openapi::api::core::v1::PodSpec;

/// Longest name that the kernel takes.
const MAX_KERNEL_NAME: usize = 64;

/// The whole spec. `full_name` is the pod's name on this host.
pub(super) fn check(pod: &Pod, spec: &PodSpec, full_name: &str, context: &AdmitContext, path: &FieldPath, problems: &mut Problems) {
    volumes::check(list(&spec.volumes), &path.child("volumes"), problems);
    volumes::check_use(pod, spec, &path.child("volumes"), problems);
    containers::check(spec, path, problems);
    pod_resources::check(pod, spec, path, problems);
    problems.one_of(&path.child("restartPolicy"), text(&spec.restart_policy), &["Always", "OnFailure", "Never"]);
    check_times(spec, path, problems);
    dns::check(spec, path, problems);
    scheduling::check(spec, path, problems);
    if let Some(security) = &spec.security_context {
        security::check_pod(security, spec, &path.child("securityContext"), problems);
    }
    check_namespaces(spec, path, problems);
    check_hostname(pod, spec, full_name, context, path, problems);
    check_references(spec, path, problems);
    check_os(spec, path, problems);
}

fn check_times(spec: &PodSpec, path: &FieldPath, problems: &mut Problems) {
    if let Some(seconds) = spec.termination_grace_period_seconds.filter(|seconds| *seconds < 0) {
        problems
            .suspicious(&path.child("terminationGracePeriodSeconds"), format_args!("{seconds} is negative and is treated as 1"));
    }
    if let Some(seconds) = spec.active_deadline_seconds.filter(|seconds| !(1..=i64::from(i32::MAX)).contains(seconds)) {
        problems.invalid(&path.child("activeDeadlineSeconds"), seconds, "must be between 1 and 2147483647");
    }
}

fn check_namespaces(spec: &PodSpec, path: &FieldPath, problems: &mut Problems) {
    if spec.share_process_namespace == Some(true) && spec.host_pid == Some(true) {
        problems.invalid(&path.child("shareProcessNamespace"), true, "must not be true together with hostPID");
    }
    if spec.host_users != Some(false) {
        return;
    }
    for (name, shared) in [("hostNetwork", spec.host_network), ("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc)] {
        if shared == Some(true) {
            problems.forbidden(&path.child(name), "must not be true where hostUsers is false");
        }
    }
}

fn check_hostname(pod: &Pod, spec: &PodSpec, full_name: &str, context: &AdmitContext, path: &FieldPath, problems: &mut Problems) {
    problems.optional_text(&path.child("hostname"), text(&spec.hostname), dns_label);
    problems.optional_text(&path.child("subdomain"), text(&spec.subdomain), dns_label);
    let name = text(&spec.hostname_override);
    let at = path.child("hostnameOverride");
    problems.optional_text(&at, name, dns_subdomain);
    if name.len() > MAX_KERNEL_NAME {
        problems.too_long(&at, MAX_KERNEL_NAME, "bytes");
    }
    if !name.is_empty() && spec.host_network == Some(true) {
        problems.forbidden(&at, "may not be set where hostNetwork is true");
    }
    if !name.is_empty() && spec.set_hostname_as_fqdn == Some(true) {
        problems.forbidden(&path.child("setHostnameAsFQDN"), "must not be true where hostnameOverride is set");
    }
    let mut named = pod.clone();
    named.metadata.name = Some(full_name.to_owned());
    if let Err(error) = kernel_hostname(&named, &context.cluster_domain) {
        problems.invalid(&path.child("setHostnameAsFQDN"), true, error);
    }
}

fn check_references(spec: &PodSpec, path: &FieldPath, problems: &mut Problems) {
    for (name, reference) in [
        ("serviceAccountName", &spec.service_account_name),
        ("priorityClassName", &spec.priority_class_name),
        ("runtimeClassName", &spec.runtime_class_name),
    ] {
        problems.optional_text(&path.child(name), text(reference), dns_subdomain);
    }
    for (index, secret) in list(&spec.image_pull_secrets).iter().enumerate() {
        problems.required_text(&path.child("imagePullSecrets").index(index).child("name"), &secret.name, dns_subdomain);
    }
    let policy = text(&spec.preemption_policy);
    if !policy.is_empty() {
        problems.one_of(&path.child("preemptionPolicy"), policy, &["PreemptLowerPriority", "Never"]);
    }
}

fn check_os(spec: &PodSpec, path: &FieldPath, problems: &mut Problems) {
    let Some(os) = &spec.os else { return };
    problems.one_of(&path.child("os.name"), &os.name, &["linux", "windows"]);
    if os.name != "linux" {
        return;
    }
    let of_pod = spec.security_context.as_ref().and_then(|context| context.windows_options.as_ref());
    if of_pod.is_some() {
        problems.forbidden(&path.child("securityContext.windowsOptions"), "may not be set where os.name is linux");
    }
    for (name, containers) in [("initContainers", list(&spec.init_containers)), ("containers", &spec.containers)] {
        for (index, container) in containers.iter().enumerate() {
            if container.security_context.as_ref().and_then(|context| context.windows_options.as_ref()).is_some() {
                let path = path.child(name).index(index).child("securityContext.windowsOptions");
                problems.forbidden(&path, "may not be set where os.name is linux");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::{check_spec, problems_of};

    #[track_caller]
    fn check(fields: &str, expected: &[&str]) {
        check_spec(&format!("containers: [{{name: a, image: x}}], {fields}"), expected);
    }

    const LABEL: &str = "must be 1 to 63 lower-case letters, digits or '-', starting and ending with a letter or digit";
    const SUBDOMAIN: &str = "must be 1 to 253 lower-case letters, digits, '-' or '.', each part between dots starting and ending with a letter or digit";

    #[test]
    fn a_pod_has_a_spec() {
        assert_eq!(problems_of("{metadata: {name: a}}"), ["spec: is required"]);
    }

    #[test]
    fn restart_policy_is_a_known_word() {
        check("restartPolicy: OnFailure", &[]);
        check(
            "restartPolicy: on-failure",
            &["spec.restartPolicy: invalid value \"on-failure\": must be one of \"Always\", \"OnFailure\", \"Never\""],
        );
    }

    #[test]
    fn times_have_their_range() {
        check("terminationGracePeriodSeconds: 0, activeDeadlineSeconds: 2147483647", &[]);
        check(
            "terminationGracePeriodSeconds: -1, activeDeadlineSeconds: 0",
            &[
                "spec.terminationGracePeriodSeconds: -1 is negative and is treated as 1",
                "spec.activeDeadlineSeconds: invalid value 0: must be between 1 and 2147483647",
            ],
        );
        check(
            "activeDeadlineSeconds: 2147483648",
            &["spec.activeDeadlineSeconds: invalid value 2147483648: must be between 1 and 2147483647"],
        );
    }

    #[test]
    fn namespaces_are_shared_with_the_host_or_with_each_other() {
        check("shareProcessNamespace: true, hostIPC: true, hostNetwork: true", &[]);
        check(
            "shareProcessNamespace: true, hostPID: true",
            &["spec.shareProcessNamespace: invalid value true: must not be true together with hostPID"],
        );
        check("hostUsers: false, hostPID: true", &["spec.hostPID: forbidden: must not be true where hostUsers is false"]);
    }

    #[test]
    fn host_names_are_labels() {
        check("hostname: www, subdomain: site, setHostnameAsFQDN: true", &[]);
        check(
            "hostname: www.example.org, subdomain: A",
            &[
                &format!("spec.hostname: invalid value \"www.example.org\": {LABEL}"),
                &format!("spec.subdomain: invalid value \"A\": {LABEL}"),
            ],
        );
    }

    #[test]
    fn an_override_is_a_name_that_the_kernel_takes_and_stands_alone() {
        check("hostnameOverride: www.example.org", &[]);
        check("hostnameOverride: A", &[&format!("spec.hostnameOverride: invalid value \"A\": {SUBDOMAIN}")]);
        check(&format!("hostnameOverride: {}.b", "a".repeat(63)), &["spec.hostnameOverride: too long: must be at most 64 bytes"]);
        check(
            "hostnameOverride: a, hostNetwork: true, setHostnameAsFQDN: true",
            &[
                "spec.hostnameOverride: forbidden: may not be set where hostNetwork is true",
                "spec.setHostnameAsFQDN: forbidden: must not be true where hostnameOverride is set",
            ],
        );
    }

    #[test]
    fn a_full_name_that_the_kernel_does_not_take_is_refused() {
        let subdomain = "s".repeat(40);
        check(
            &format!("subdomain: {subdomain}, setHostnameAsFQDN: true"),
            &[&format!(
                "spec.setHostnameAsFQDN: invalid value true: host name \"web-edge.{subdomain}.shop.svc.cluster.local\" is too long: 72 bytes, the limit is 64"
            )],
        );
    }

    #[test]
    fn references_are_names() {
        check("serviceAccountName: default, priorityClassName: system-node-critical, preemptionPolicy: Never", &[]);
        check(
            "serviceAccountName: A, imagePullSecrets: [{}], preemptionPolicy: No",
            &[
                &format!("spec.serviceAccountName: invalid value \"A\": {SUBDOMAIN}"),
                "spec.imagePullSecrets[0].name: is required",
                "spec.preemptionPolicy: invalid value \"No\": must be one of \"PreemptLowerPriority\", \"Never\"",
            ],
        );
    }

    #[test]
    fn a_pod_for_linux_has_no_options_for_windows() {
        check("os: {name: linux}", &[]);
        check("os: {}", &["spec.os.name: is required: one of linux, windows"]);
        check("os: {name: plan9}", &["spec.os.name: invalid value \"plan9\": must be one of \"linux\", \"windows\""]);
        check_spec(
            "os: {name: linux}, securityContext: {windowsOptions: {}}, containers: [{name: a, image: x, securityContext: {windowsOptions: {}}}]",
            &[
                "spec.securityContext.windowsOptions: forbidden: may not be set where os.name is linux",
                "spec.containers[0].securityContext.windowsOptions: forbidden: may not be set where os.name is linux",
            ],
        );
    }
}
