//! Environment variables and the references in them.

use super::names::{Rule, config_key, dns_subdomain, environment_name, inner_path, no_nul, qualified_name};
use crate::containers::{list, text};
use crate::env::{FieldRef, parse_resource};
use crate::field::{FieldPath, Problems};
use crate::quantity::Amount;
use k8s_openapi::api::core::v1::{
    Container, EnvFromSource, EnvVar, EnvVarSource, FileKeySelector, ObjectFieldSelector, ResourceFieldSelector, Volume,
};

use std::collections::HashSet;

/// `env` and `envFrom` of one container; `names` are the names of all containers of the pod.
pub(super) fn check(container: &Container, names: &[&str], volumes: &[Volume], path: &FieldPath, problems: &mut Problems) {
    let mut declared = HashSet::new();
    for (index, variable) in list(&container.env).iter().enumerate() {
        let path = path.child("env").index(index);
        problems.required_text(&path.child("name"), &variable.name, environment_name);
        problems.optional_text(&path.child("value"), text(&variable.value), no_nul);
        if !declared.insert(&variable.name) && !refers_to_itself(variable) {
            problems.suspicious(
                &path.child("name"),
                format_args!("{:?} is declared more than once; the last value is used", variable.name),
            );
        }
        check_value(variable, names, volumes, &path, problems);
    }
    for (index, source) in list(&container.env_from).iter().enumerate() {
        check_env_from(source, &path.child("envFrom").index(index), problems);
    }
}

/// `PATH: $(PATH):/more` adds to what was declared before.
fn refers_to_itself(variable: &EnvVar) -> bool {
    text(&variable.value).contains(&format!("$({})", variable.name))
}

fn check_value(variable: &EnvVar, names: &[&str], volumes: &[Volume], path: &FieldPath, problems: &mut Problems) {
    let Some(source) = &variable.value_from else { return };
    let path = path.child("valueFrom");
    if !text(&variable.value).is_empty() {
        problems.forbidden(&path, "may not be set together with value");
    }
    let EnvVarSource { config_map_key_ref, field_ref, file_key_ref, resource_field_ref, secret_key_ref } = source;
    let set = [
        config_map_key_ref.is_some(),
        field_ref.is_some(),
        file_key_ref.is_some(),
        resource_field_ref.is_some(),
        secret_key_ref.is_some(),
    ];
    match set.iter().filter(|set| **set).count() {
        0 => problems.required(&path, "one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef"),
        1 => {}
        _ => problems.forbidden(&path, "may have only one kind of reference"),
    }
    if let Some(selector) = field_ref {
        check_field_ref(selector, &path.child("fieldRef"), problems);
    }
    if let Some(selector) = resource_field_ref {
        check_resource_ref(selector, Some(names), &path.child("resourceFieldRef"), problems);
    }
    if let Some(selector) = file_key_ref {
        check_file_ref(selector, volumes, &path.child("fileKeyRef"), problems);
    }
    if let Some(selector) = config_map_key_ref {
        check_key_ref(&selector.name, &selector.key, &path.child("configMapKeyRef"), problems);
    }
    if let Some(selector) = secret_key_ref {
        check_key_ref(&selector.name, &selector.key, &path.child("secretKeyRef"), problems);
    }
}

fn check_key_ref(name: &str, key: &str, path: &FieldPath, problems: &mut Problems) {
    problems.required_text(&path.child("name"), name, dns_subdomain);
    problems.required_text(&path.child("key"), key, config_key);
}

fn check_file_ref(selector: &FileKeySelector, volumes: &[Volume], path: &FieldPath, problems: &mut Problems) {
    let FileKeySelector { key, optional: _, path: file, volume_name } = selector;
    problems.required_text(&path.child("key"), key, env_file_key);
    problems.required_text(&path.child("path"), file, |text| inner_path(text).and_then(|()| no_nul(text)));
    let path = path.child("volumeName");
    match volumes.iter().find(|volume| volume.name == *volume_name) {
        _ if volume_name.is_empty() => problems.required(&path, ""),
        None => problems.invalid(&path, volume_name, "the pod has no volume of that name"),
        Some(volume) if volume.empty_dir.is_none() => problems.invalid(&path, volume_name, "must be an emptyDir volume"),
        Some(_) => {}
    }
}

/// A name in an env file, at most 128 printable ASCII characters.
fn env_file_key(text: &str) -> Rule {
    let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'=');
    if is_printable && text.len() <= 128 { Ok(()) } else { Err("must be 1 to 128 printable characters without blanks and '='") }
}

fn check_env_from(source: &EnvFromSource, path: &FieldPath, problems: &mut Problems) {
    problems.optional_text(&path.child("prefix"), text(&source.prefix), environment_name);
    match (&source.config_map_ref, &source.secret_ref) {
        (None, None) => problems.required(path, "one of configMapRef, secretRef"),
        (Some(_), Some(_)) => problems.forbidden(path, "may have only one of configMapRef and secretRef"),
        (Some(reference), None) => problems.required_text(&path.child("configMapRef.name"), &reference.name, dns_subdomain),
        (None, Some(reference)) => problems.required_text(&path.child("secretRef.name"), &reference.name, dns_subdomain),
    }
}

/// `fieldRef` of an environment variable.
fn check_field_ref(selector: &ObjectFieldSelector, path: &FieldPath, problems: &mut Problems) {
    let Some(field) = check_field_path(selector, path, problems) else { return };
    let path = path.child("fieldPath");
    let key_rule: Rule = match &field {
        FieldRef::Label(key) => qualified_name(key),
        FieldRef::Annotation(key) => qualified_name(&key.to_lowercase()),
        FieldRef::Name
        | FieldRef::Namespace
        | FieldRef::Uid
        | FieldRef::NodeName
        | FieldRef::ServiceAccountName
        | FieldRef::HostIp
        | FieldRef::HostIps
        | FieldRef::PodIp
        | FieldRef::PodIps => Ok(()),
    };
    problems.rule(&path, &selector.field_path, key_rule);
}

/// `fieldRef` of a file in a volume: it may name all labels or all annotations, and no address.
pub(super) fn check_volume_field_ref(selector: &ObjectFieldSelector, path: &FieldPath, problems: &mut Problems) {
    if matches!(selector.field_path.as_str(), "metadata.labels" | "metadata.annotations") {
        return;
    }
    match check_field_path(selector, path, problems) {
        Some(FieldRef::Name | FieldRef::Namespace | FieldRef::Uid | FieldRef::Label(_) | FieldRef::Annotation(_)) | None => {}
        Some(
            FieldRef::NodeName
            | FieldRef::ServiceAccountName
            | FieldRef::HostIp
            | FieldRef::HostIps
            | FieldRef::PodIp
            | FieldRef::PodIps,
        ) => problems.invalid(&path.child("fieldPath"), &selector.field_path, "must be a field of metadata when used in a volume"),
    }
}

fn check_field_path(selector: &ObjectFieldSelector, path: &FieldPath, problems: &mut Problems) -> Option<FieldRef> {
    if text(&selector.api_version) != "v1" {
        problems.not_one_of(&path.child("apiVersion"), text(&selector.api_version), &["v1"]);
    }
    if selector.field_path.is_empty() {
        problems.required(&path.child("fieldPath"), "");
        return None;
    }
    let field = FieldRef::parse(&selector.field_path);
    if field.is_err() {
        problems.invalid(&path.child("fieldPath"), &selector.field_path, format_args!("must be one of {}", FieldRef::SUPPORTED));
    }
    field.ok()
}

/// `resourceFieldRef`. `names` are the containers that may be named; `None` in a volume, where one must be named.
pub(super) fn check_resource_ref(
    selector: &ResourceFieldSelector,
    names: Option<&[&str]>,
    path: &FieldPath,
    problems: &mut Problems,
) {
    let container = text(&selector.container_name);
    match names {
        None if container.is_empty() => problems.required(&path.child("containerName"), ""),
        Some(names) if !container.is_empty() && !names.contains(&container) => {
            problems.invalid(&path.child("containerName"), container, "the pod has no container of that name");
        }
        None | Some(_) => {}
    }
    if selector.resource.is_empty() {
        problems.required(&path.child("resource"), "e.g. limits.cpu");
        return;
    }
    match parse_resource(&selector.resource) {
        Ok((_, resource)) => check_divisor(selector, resource, path, problems),
        Err(_) => problems.invalid(
            &path.child("resource"),
            &selector.resource,
            "must be limits or requests of cpu, memory, ephemeral-storage or hugepages-<size>, e.g. limits.cpu",
        ),
    }
}

/// Only units may divide; zero stands for the default of one.
fn check_divisor(selector: &ResourceFieldSelector, resource: &str, path: &FieldPath, problems: &mut Problems) {
    const BYTES: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let Some(divisor) = selector.divisor.as_ref().filter(|divisor| !divisor.0.is_empty()) else { return };
    let allowed: &[&str] = if resource == "cpu" { &["1m", "1"] } else { &BYTES };
    let amount = Amount::read(divisor).ok();
    let is_unit = |unit: &&str| unit.parse::<Amount>().ok() == amount;
    if amount != Some(Amount::ZERO) && !allowed.iter().any(is_unit) {
        problems.not_one_of(&path.child("divisor"), &divisor.0, allowed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::testing::check_container;

    #[test]
    fn names_and_values_are_checked() {
        check_container("env: [{name: A, value: a}, {name: a.b-c}, {name: A, value: '$(A):more'}]", "", &[]);
        check_container(
            "env: [{name: A, value: a}, {name: A, value: b}]",
            "",
            &["{P}.env[1].name: \"A\" is declared more than once; the last value is used"],
        );
        check_container(
            "env: [{name: A, value: \"a\\0\"}]",
            "",
            &["{P}.env[0].value: invalid value \"a\\0\": must not contain a NUL character"],
        );
        check_container("env: [{value: a}]", "", &["{P}.env[0].name: is required"]);
        check_container(
            "env: [{name: 'A=B'}]",
            "",
            &["{P}.env[0].name: invalid value \"A=B\": must be printable ASCII without '='"],
        );
        check_container(
            "env: [{name: A, value: a, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
            "",
            &["{P}.env[0].valueFrom: forbidden: may not be set together with value"],
        );
        check_container(
            "env: [{name: A, valueFrom: {}}]",
            "",
            &["{P}.env[0].valueFrom: is required: one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef"],
        );
        check_container(
            "env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}, resourceFieldRef: {resource: limits.cpu}}}]",
            "",
            &["{P}.env[0].valueFrom: forbidden: may have only one kind of reference"],
        );
        check_container(
            "env: [{name: A, valueFrom: {secretKeyRef: {name: S, key: ..}}}]",
            "",
            &[
                "{P}.env[0].valueFrom.secretKeyRef.name: invalid value \"S\": must be 1 to 253 lower-case letters, digits, '-' or '.', each part between dots starting and ending with a letter or digit",
                "{P}.env[0].valueFrom.secretKeyRef.key: invalid value \"..\": must be 1 to 253 letters, digits, '-', '_' or '.', not '.' and not starting with '..'",
            ],
        );
    }

    #[test]
    fn references_to_fields_are_checked() {
        let with = |field: &str| format!("env: [{{name: A, valueFrom: {{fieldRef: {{{field}}}}}}}]");
        for path in ["metadata.name", "status.podIPs", "spec.nodeName", "metadata.labels['a/b']", "metadata.annotations['A.b/c']"] {
            check_container(&with(&format!("fieldPath: \"{path}\"")), "", &[]);
        }
        check_container(&with(""), "", &["{P}.env[0].valueFrom.fieldRef.fieldPath: is required"]);
        check_container(
            &with("fieldPath: spec.hostname"),
            "",
            &[&format!(
                "{{P}}.env[0].valueFrom.fieldRef.fieldPath: invalid value \"spec.hostname\": must be one of {}",
                FieldRef::SUPPORTED
            )],
        );
        check_container(
            &with("fieldPath: metadata.name, apiVersion: v2"),
            "",
            &["{P}.env[0].valueFrom.fieldRef.apiVersion: invalid value \"v2\": must be one of \"v1\""],
        );
        check_container(
            &with("fieldPath: \"metadata.labels['a b']\""),
            "",
            &[
                "{P}.env[0].valueFrom.fieldRef.fieldPath: invalid value \"metadata.labels['a b']\": must be a name of 1 to 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit, optionally behind a DNS subdomain and '/'",
            ],
        );
    }

    #[test]
    fn references_to_resources_are_checked() {
        let with = |field: &str| format!("env: [{{name: A, valueFrom: {{resourceFieldRef: {{{field}}}}}}}]");
        for field in [
            "resource: limits.cpu, divisor: 1m",
            "resource: limits.cpu, divisor: '0'",
            "resource: limits.cpu, divisor: 1000m",
            "resource: requests.memory, divisor: 1Mi, containerName: a",
            "resource: limits.hugepages-2Mi, divisor: 1Gi",
        ] {
            check_container(&with(field), "", &[]);
        }
        let at = "{P}.env[0].valueFrom.resourceFieldRef";
        check_container(&with(""), "", &[&format!("{at}.resource: is required: e.g. limits.cpu")]);
        check_container(
            &with("resource: limits.gpu"),
            "",
            &[&format!(
                "{at}.resource: invalid value \"limits.gpu\": must be limits or requests of cpu, memory, ephemeral-storage or hugepages-<size>, e.g. limits.cpu"
            )],
        );
        check_container(
            &with("resource: limits.cpu, divisor: 1Mi"),
            "",
            &[&format!("{at}.divisor: invalid value \"1Mi\": must be one of \"1m\", \"1\"")],
        );
        check_container(
            &with("resource: limits.cpu, containerName: b"),
            "",
            &[&format!("{at}.containerName: invalid value \"b\": the pod has no container of that name")],
        );
    }

    #[test]
    fn whole_environments_name_one_source() {
        check_container("envFrom: [{configMapRef: {name: m}, prefix: P_}, {secretRef: {name: s}}]", "", &[]);
        check_container(
            "envFrom: [{}, {configMapRef: {name: m}, secretRef: {name: s}}, {secretRef: {}}]",
            "",
            &[
                "{P}.envFrom[0]: is required: one of configMapRef, secretRef",
                "{P}.envFrom[1]: forbidden: may have only one of configMapRef and secretRef",
                "{P}.envFrom[2].secretRef.name: is required",
            ],
        );
    }

    #[test]
    fn a_file_is_in_an_empty_dir_of_the_pod() {
        let volumes = "volumes: [{name: v, emptyDir: {}}, {name: h, hostPath: {path: /x}}]";
        let file = |fields: &str| format!("env: [{{name: A, valueFrom: {{fileKeyRef: {{{fields}}}}}}}]");
        let at = "{P}.env[0].valueFrom.fileKeyRef";
        check_container(&file("volumeName: v, path: a/b, key: K"), volumes, &[]);
        for (fields, expected) in [
            ("volumeName: h, path: a, key: K", "volumeName: invalid value \"h\": must be an emptyDir volume"),
            ("volumeName: n, path: a, key: K", "volumeName: invalid value \"n\": the pod has no volume of that name"),
            ("path: a, key: K", "volumeName: is required"),
            ("volumeName: v, path: ../a, key: K", "path: invalid value \"../a\": must not contain '..'"),
            ("volumeName: v, key: K", "path: is required"),
            ("volumeName: v, path: a", "key: is required"),
            (
                "volumeName: v, path: a, key: a=b",
                "key: invalid value \"a=b\": must be 1 to 128 printable characters without blanks and '='",
            ),
        ] {
            check_container(&file(fields), volumes, &[&format!("{at}.{expected}")]);
        }
    }
}
