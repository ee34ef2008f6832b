//! Containers: names, images, words, and everything below them.

use super::names::{dns_label, no_nul};
use super::{env, lifecycle, mounts, ports, probes, resources, restart, security};
use crate::containers::{ContainerKind, init_kind, list, text};
use crate::field::{FieldPath, Problems};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use std::collections::HashSet;

/// Facts about the pod for the checks of a container.
struct Surroundings<'a> {
    spec: &'a PodSpec,
    /// Names of all containers.
    names: Vec<&'a str>,
    claims: Vec<&'a str>,
    os: &'a str,
    grace: i64,
}

/// All containers of a pod.
pub(super) fn check(spec: &PodSpec, path: &FieldPath, problems: &mut Problems) {
    let all = list(&spec.init_containers).iter().chain(&spec.containers);
    let surroundings = Surroundings {
        spec,
        names: all.map(|container| container.name.as_str()).collect(),
        claims: list(&spec.resource_claims).iter().map(|claim| claim.name.as_str()).collect(),
        os: spec.os.as_ref().map_or("", |os| os.name.as_str()),
        grace: spec.termination_grace_period_seconds.unwrap_or_default(),
    };
    let mut names = HashSet::new();
    for (index, container) in list(&spec.init_containers).iter().enumerate() {
        let path = path.child("initContainers").index(index);
        check_name(container, &mut names, &path, problems);
        check_container(container, &surroundings, &path, problems);
        match init_kind(container) {
            ContainerKind::Sidecar | ContainerKind::Main => check_lifecycle(container, &surroundings, &path, problems),
            ContainerKind::Init => check_init(container, &path, problems),
        }
    }
    if spec.containers.is_empty() {
        problems.required(&path.child("containers"), "at least one");
    }
    for (index, container) in spec.containers.iter().enumerate() {
        let path = path.child("containers").index(index);
        check_name(container, &mut names, &path, problems);
        check_container(container, &surroundings, &path, problems);
        check_lifecycle(container, &surroundings, &path, problems);
    }
    ports::check_host_ports(spec, path, problems);
}

fn check_name<'a>(container: &'a Container, names: &mut HashSet<&'a str>, path: &FieldPath, problems: &mut Problems) {
    let path = path.child("name");
    problems.required_text(&path, &container.name, dns_label);
    if !container.name.is_empty() && !names.insert(&container.name) {
        problems.duplicate(&path, &container.name);
    }
}

fn check_container(container: &Container, surroundings: &Surroundings<'_>, path: &FieldPath, problems: &mut Problems) {
    let spec = surroundings.spec;
    let image = text(&container.image);
    if image.is_empty() {
        problems.required(&path.child("image"), "");
    } else if image.trim() != image {
        problems.invalid(&path.child("image"), image, "must not begin or end with blanks");
    }
    let words: [(_, _, &[&str]); 2] = [
        ("imagePullPolicy", text(&container.image_pull_policy), &["Always", "IfNotPresent", "Never"]),
        ("terminationMessagePolicy", text(&container.termination_message_policy), &["File", "FallbackToLogsOnError"]),
    ];
    for (name, word, allowed) in words {
        problems.one_of(&path.child(name), word, allowed);
    }
    problems.optional_text(
        &path.child("terminationMessagePath"),
        text(&container.termination_message_path),
        mounts::container_path,
    );
    problems.optional_text(&path.child("workingDir"), text(&container.working_dir), |text| {
        if text.starts_with('/') { no_nul(text) } else { Err("must be an absolute path") }
    });
    for (name, words) in [("command", list(&container.command)), ("args", list(&container.args))] {
        for (index, word) in words.iter().enumerate() {
            problems.rule(&path.child(name).index(index), word, no_nul(word));
        }
    }
    ports::check(list(&container.ports), spec.host_network == Some(true), &path.child("ports"), problems);
    env::check(container, &surroundings.names, list(&spec.volumes), path, problems);
    mounts::check(container, list(&spec.volumes), path, problems);
    if let Some(requirements) = &container.resources {
        resources::check(requirements, &path.child("resources"), problems);
        resources::check_claims(requirements, &surroundings.claims, &path.child("resources"), problems);
    }
    restart::check(container, path, problems);
    let is_never_restarted = spec.restart_policy.as_deref() == Some("Never");
    resources::check_resize_policy(list(&container.resize_policy), is_never_restarted, &path.child("resizePolicy"), problems);
    security::check_user(spec.security_context.as_ref(), container, path, problems);
    if let Some(context) = &container.security_context {
        security::check_container(context, spec.host_users != Some(false), &path.child("securityContext"), problems);
    }
}

fn check_lifecycle(container: &Container, surroundings: &Surroundings<'_>, path: &FieldPath, problems: &mut Problems) {
    if let Some(lifecycle) = &container.lifecycle {
        lifecycle::check(lifecycle, surroundings.os, surroundings.grace, &path.child("lifecycle"), problems);
    }
    probes::check(container, path, problems);
}

/// An init container that ends is not probed and has no hooks.
fn check_init(container: &Container, path: &FieldPath, problems: &mut Problems) {
    for (name, set) in [
        ("lifecycle", container.lifecycle.is_some()),
        ("livenessProbe", container.liveness_probe.is_some()),
        ("readinessProbe", container.readiness_probe.is_some()),
        ("startupProbe", container.startup_probe.is_some()),
    ] {
        if set {
            problems.forbidden(&path.child(name), "may be set on an init container only where its restartPolicy is Always");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::{check_container, check_spec};

    const LABEL: &str = "must be 1 to 63 lower-case letters, digits or '-', starting and ending with a letter or digit";

    #[test]
    fn a_pod_has_containers_with_names_of_their_own() {
        check_spec("containers: [{name: a, image: x}, {name: b, image: x}], initContainers: [{name: c, image: x}]", &[]);
        check_spec("containers: []", &["spec.containers: is required: at least one"]);
        check_spec("initContainers: [{name: a, image: x}]", &["spec.containers: is required: at least one"]);
        check_spec("containers: [{image: x}]", &["spec.containers[0].name: is required"]);
        check_spec("containers: [{name: A, image: x}]", &[&format!("spec.containers[0].name: invalid value \"A\": {LABEL}")]);
        check_spec("containers: [{name: a, image: x}, {name: a, image: x}]", &["spec.containers[1].name: duplicate value \"a\""]);
        check_spec(
            "containers: [{name: a, image: x}], initContainers: [{name: a, image: x}]",
            &["spec.containers[0].name: duplicate value \"a\""],
        );
    }

    #[test]
    fn a_container_has_an_image() {
        check_spec("containers: [{name: a}]", &["spec.containers[0].image: is required"]);
        check_spec(
            "containers: [{name: a, image: ' x'}]",
            &["spec.containers[0].image: invalid value \" x\": must not begin or end with blanks"],
        );
    }

    #[test]
    fn policies_are_known_words() {
        check_container("imagePullPolicy: Never, terminationMessagePolicy: FallbackToLogsOnError", "", &[]);
        check_container(
            "imagePullPolicy: Sometimes, terminationMessagePolicy: Log",
            "",
            &[
                "{P}.imagePullPolicy: invalid value \"Sometimes\": must be one of \"Always\", \"IfNotPresent\", \"Never\"",
                "{P}.terminationMessagePolicy: invalid value \"Log\": must be one of \"File\", \"FallbackToLogsOnError\"",
            ],
        );
    }

    #[test]
    fn paths_in_the_container_are_absolute() {
        check_container("workingDir: /srv/a, terminationMessagePath: /tmp/end", "", &[]);
        check_container(
            "workingDir: srv, terminationMessagePath: end",
            "",
            &[
                "{P}.terminationMessagePath: invalid value \"end\": must be an absolute path",
                "{P}.workingDir: invalid value \"srv\": must be an absolute path",
            ],
        );
    }

    #[test]
    fn words_of_the_command_can_be_passed_to_the_kernel() {
        check_container(
            "command: [\"a\\0\"], args: [b, \"\\0\"]",
            "",
            &[
                "{P}.command[0]: invalid value \"a\\0\": must not contain a NUL character",
                "{P}.args[1]: invalid value \"\\0\": must not contain a NUL character",
            ],
        );
    }

    #[test]
    fn an_init_container_has_no_hooks_and_probes_unless_it_stays() {
        let pod = |fields: &str| format!("containers: [{{name: a, image: x}}], initContainers: [{{name: b, image: x, {fields}}}]");
        let hooks = "lifecycle: {preStop: {sleep: {seconds: 1}}}, livenessProbe: {tcpSocket: {port: 1}}";
        let message = "forbidden: may be set on an init container only where its restartPolicy is Always";
        check_spec(&pod(&format!("restartPolicy: Always, {hooks}")), &[]);
        check_spec(
            &pod(hooks),
            &[&format!("spec.initContainers[0].lifecycle: {message}"), &format!("spec.initContainers[0].livenessProbe: {message}")],
        );
        check_spec(
            &pod(&format!("restartPolicy: OnFailure, {hooks}")),
            &[&format!("spec.initContainers[0].lifecycle: {message}"), &format!("spec.initContainers[0].livenessProbe: {message}")],
        );
    }

    #[test]
    fn problems_of_one_container_do_not_hide_those_of_another() {
        check_spec(
            "containers: [{name: a}, {name: b, image: x, ports: [{containerPort: 0}]}, {image: x}]",
            &[
                "spec.containers[0].image: is required",
                "spec.containers[1].ports[0].containerPort: is required",
                "spec.containers[2].name: is required",
            ],
        );
    }

    #[test]
    fn claims_are_those_of_the_pod() {
        check_container(
            "resources: {claims: [{name: gpu}]}",
            "",
            &["{P}.resources.claims[0].name: invalid value \"gpu\": the pod has no resource claim of that name"],
        );
    }
}
