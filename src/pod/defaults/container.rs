//! Defaults inside a container.

use super::{set, set_number};
use crate::containers::{image_tag_is_latest, text};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, EphemeralContainer, HTTPGetAction, Lifecycle, ObjectFieldSelector, Probe,
    ResourceRequirements,
};

const TERMINATION_LOG: &str = "/dev/termination-log";

pub(super) fn default_container(container: &mut Container) {
    set(&mut container.image_pull_policy, pull_policy(text(&container.image)));
    set(&mut container.termination_message_path, TERMINATION_LOG);
    set(&mut container.termination_message_policy, "File");
    requests_from_limits(&mut container.resources);
    protocols(&mut container.ports);
    field_references(&mut container.env);
    for probe in [&mut container.liveness_probe, &mut container.readiness_probe, &mut container.startup_probe].into_iter().flatten()
    {
        default_probe(probe);
    }
    if let Some(lifecycle) = &mut container.lifecycle {
        default_lifecycle(lifecycle);
    }
}

pub(super) fn default_ephemeral_container(container: &mut EphemeralContainer) {
    set(&mut container.image_pull_policy, pull_policy(text(&container.image)));
    set(&mut container.termination_message_path, TERMINATION_LOG);
    set(&mut container.termination_message_policy, "File");
    protocols(&mut container.ports);
    field_references(&mut container.env);
    for probe in [&mut container.liveness_probe, &mut container.readiness_probe, &mut container.startup_probe].into_iter().flatten()
    {
        default_probe(probe);
    }
    if let Some(lifecycle) = &mut container.lifecycle {
        default_lifecycle(lifecycle);
    }
}

/// On the host's network a port of the container is a port of the host.
pub(super) fn host_ports(ports: &mut Option<Vec<ContainerPort>>) {
    for port in ports.iter_mut().flatten() {
        if port.host_port.unwrap_or(0) == 0 {
            port.host_port = Some(port.container_port);
        }
    }
}

/// `Always` for the tag `latest`, written or implied.
pub(super) fn pull_policy(image: &str) -> &'static str {
    if image_tag_is_latest(image) { "Always" } else { "IfNotPresent" }
}

pub(super) fn default_field_reference(reference: &mut ObjectFieldSelector) {
    set(&mut reference.api_version, "v1");
}

fn requests_from_limits(resources: &mut Option<ResourceRequirements>) {
    let Some(ResourceRequirements { limits: Some(limits), requests, .. }) = resources else { return };
    if limits.is_empty() {
        return;
    }
    let requests = requests.get_or_insert_default();
    for (name, limit) in limits {
        requests.entry(name.clone()).or_insert_with(|| limit.clone());
    }
}

fn protocols(ports: &mut Option<Vec<ContainerPort>>) {
    for port in ports.iter_mut().flatten() {
        set(&mut port.protocol, "TCP");
    }
}

fn field_references(env: &mut Option<Vec<EnvVar>>) {
    for source in env.iter_mut().flatten().filter_map(|variable| variable.value_from.as_mut()) {
        if let Some(reference) = &mut source.field_ref {
            default_field_reference(reference);
        }
        if let Some(reference) = &mut source.resource_field_ref {
            // The server shows the zero value of a divisor that is left out.
            reference.divisor.get_or_insert_with(|| k8s_openapi::apimachinery::pkg::api::resource::Quantity("0".to_owned()));
        }
    }
}

fn default_probe(probe: &mut Probe) {
    set_number(&mut probe.timeout_seconds, 1);
    set_number(&mut probe.period_seconds, 10);
    set_number(&mut probe.success_threshold, 1);
    set_number(&mut probe.failure_threshold, 3);
    if let Some(action) = &mut probe.http_get {
        default_http_get(action);
    }
    if let Some(action) = &mut probe.grpc {
        action.service.get_or_insert_default();
    }
}

fn default_lifecycle(lifecycle: &mut Lifecycle) {
    for handler in [&mut lifecycle.post_start, &mut lifecycle.pre_stop].into_iter().flatten() {
        if let Some(action) = &mut handler.http_get {
            default_http_get(action);
        }
    }
}

fn default_http_get(action: &mut HTTPGetAction) {
    set(&mut action.path, "/");
    set(&mut action.scheme, "HTTP");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn defaulted(fields: &str) -> Value {
        let mut container: Container = serde_yaml::from_str(&format!("{{name: a, image: 'x:1', {fields}}}")).unwrap();
        default_container(&mut container);
        serde_json::to_value(container).unwrap()
    }

    fn yaml(text: &str) -> Value {
        serde_yaml::from_str(text).unwrap()
    }

    #[test]
    fn probes_and_hooks_get_their_numbers_path_and_scheme() {
        let probe = "timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3";
        for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
            assert_eq!(
                defaulted(&format!("{field}: {{httpGet: {{port: 80}}, periodSeconds: 0}}"))[field],
                yaml(&format!("{{httpGet: {{port: 80, path: /, scheme: HTTP}}, {probe}}}"))
            );
            assert_eq!(
                defaulted(&format!("{field}: {{grpc: {{port: 80}}, failureThreshold: 7}}"))[field],
                yaml(
                    "{grpc: {port: 80, service: ''}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 7}"
                )
            );
        }
        assert_eq!(
            defaulted("lifecycle: {preStop: {httpGet: {port: 80}}, postStart: {httpGet: {port: 80, path: /x, scheme: HTTPS}}}")["lifecycle"],
            yaml(
                "{preStop: {httpGet: {port: 80, path: /, scheme: HTTP}}, postStart: {httpGet: {port: 80, path: /x, scheme: HTTPS}}}"
            )
        );
    }

    #[test]
    fn references_get_their_version_and_divisor() {
        assert_eq!(
            defaulted(
                "env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]"
            )["env"],
            yaml(
                "[{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name, apiVersion: v1}}}, {name: B, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: '0'}}}]"
            )
        );
    }

    #[test]
    fn the_pull_policy_follows_the_tag() {
        for (image, expected) in [
            ("x", "Always"),
            ("x:latest", "Always"),
            ("x:1", "IfNotPresent"),
            ("r:5000/x", "Always"),
            ("x@sha256:0", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), expected, "{image}");
        }
    }
}
