//! Defaults that the API server sets on a Pod (kubelet rule A17). Idempotent.
//!
//! Absent and zero mean the same for fields that are no pointers in Kubernetes' own types: an empty text, a probe's period of 0.

mod container;
mod volume;

use super::Pod;
use super::containers::text;
use super::resources::set_pod_level_defaults;
use container::{default_container, default_ephemeral_container, host_ports};
use k8s_openapi::api::core::v1::{PodSecurityContext, PodSpec};
use volume::default_volume;

/// Grants every default that a cluster would.
pub fn apply(pod: &mut Pod) {
    let Some(spec) = &mut pod.spec else { return };
    set(&mut spec.dns_policy, "ClusterFirst");
    set(&mut spec.restart_policy, "Always");
    set(&mut spec.scheduler_name, "default-scheduler");
    spec.security_context.get_or_insert_with(PodSecurityContext::default);
    spec.termination_grace_period_seconds.get_or_insert(30);
    spec.enable_service_links.get_or_insert(true);
    service_account(spec);
    for volume in spec.volumes.iter_mut().flatten() {
        default_volume(volume);
    }
    let on_host_network = spec.host_network == Some(true);
    for container in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
        default_container(container);
        if on_host_network {
            host_ports(&mut container.ports);
        }
    }
    for container in spec.ephemeral_containers.iter_mut().flatten() {
        default_ephemeral_container(container);
    }
    set_pod_level_defaults(pod);
}

/// `serviceAccount` is an older name of `serviceAccountName`; both are shown.
fn service_account(spec: &mut PodSpec) {
    if text(&spec.service_account_name).is_empty() {
        spec.service_account_name = spec.service_account.clone().filter(|name| !name.is_empty());
    }
    spec.service_account = spec.service_account_name.clone();
}

/// Sets a text that is absent or empty.
fn set(field: &mut Option<String>, default: &str) {
    if text(field).is_empty() {
        *field = Some(default.to_owned());
    }
}

/// Sets a number that is absent or zero.
fn set_number(field: &mut Option<i32>, default: i32) {
    if field.unwrap_or(0) == 0 {
        *field = Some(default);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaulted(yaml: &str) -> serde_json::Value {
        let mut pod: Pod = serde_yaml::from_str(yaml).unwrap();
        apply(&mut pod);
        let once = serde_json::to_value(&pod).unwrap();
        apply(&mut pod);
        assert_eq!(serde_json::to_value(&pod).unwrap(), once, "defaults are idempotent");
        once
    }

    /// Compares with what `kubectl create --dry-run=server -o yaml` shows.
    #[track_caller]
    fn check(written: &str, expected: &str) {
        let expected: serde_json::Value = serde_yaml::from_str(expected).unwrap();
        assert_eq!(defaulted(written)["spec"], expected, "{written}");
    }

    const POD: &str = "dnsPolicy: ClusterFirst, restartPolicy: Always, schedulerName: default-scheduler, securityContext: {},
        terminationGracePeriodSeconds: 30, enableServiceLinks: true";
    const CONTAINER: &str =
        "imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File";

    #[test]
    fn a_bare_pod_gets_every_default() {
        check(
            "{spec: {containers: [{name: a, image: 'x:1'}]}}",
            &format!("{{{POD}, containers: [{{name: a, image: 'x:1', {CONTAINER}}}]}}"),
        );
    }

    #[test]
    fn what_is_written_stays() {
        let written = "dnsPolicy: None, restartPolicy: Never, schedulerName: mine, securityContext: {runAsUser: 0}, terminationGracePeriodSeconds: 0,
            enableServiceLinks: false, containers: [{name: a, image: x, imagePullPolicy: Never, terminationMessagePath: /x,
            terminationMessagePolicy: FallbackToLogsOnError, resources: {requests: {cpu: '0'}, limits: {cpu: '1'}},
            ports: [{containerPort: 1, hostPort: 2, protocol: UDP}]}]";
        check(&format!("{{spec: {{{written}}}}}"), &format!("{{{written}}}"));
    }

    #[test]
    fn empty_texts_are_defaulted_as_absent_ones() {
        check(
            "{spec: {dnsPolicy: '', restartPolicy: '', schedulerName: '', containers: []}}",
            &format!("{{{POD}, containers: []}}"),
        );
    }

    #[test]
    fn requests_follow_limits_resource_by_resource() {
        check(
            "{spec: {containers: [{name: a, image: 'x:1', resources: {requests: {cpu: 1m}, limits: {cpu: '1', memory: 1Gi}}}],
                     initContainers: [{name: b, image: 'x:1', resources: {limits: {memory: 1Mi}}}]}}",
            &format!(
                "{{{POD}, containers: [{{name: a, image: 'x:1', {CONTAINER}, resources: {{requests: {{cpu: 1m, memory: 1Gi}}, limits: {{cpu: '1', memory: 1Gi}}}}}}],
                  initContainers: [{{name: b, image: 'x:1', {CONTAINER}, resources: {{requests: {{memory: 1Mi}}, limits: {{memory: 1Mi}}}}}}]}}"
            ),
        );
    }

    #[test]
    fn ports_get_a_protocol_and_on_the_hosts_network_the_hosts_port() {
        check(
            "{spec: {hostNetwork: true, containers: [{name: a, image: 'x:1', ports: [{containerPort: 80}, {containerPort: 53, hostPort: 53, protocol: UDP}]}]}}",
            &format!(
                "{{{POD}, hostNetwork: true, containers: [{{name: a, image: 'x:1', {CONTAINER},
                  ports: [{{containerPort: 80, hostPort: 80, protocol: TCP}}, {{containerPort: 53, hostPort: 53, protocol: UDP}}]}}]}}"
            ),
        );
    }

    #[test]
    fn the_older_name_of_the_service_account_means_the_same() {
        for written in ["serviceAccount: bot", "serviceAccountName: bot", "serviceAccountName: bot, serviceAccount: other"] {
            let expected = format!("{{{POD}, containers: [], serviceAccount: bot, serviceAccountName: bot}}");
            check(&format!("{{spec: {{{written}, containers: []}}}}"), &expected);
        }
    }

    #[test]
    fn a_pod_without_spec_stays_without() {
        assert_eq!(defaulted("{metadata: {name: a}}")["spec"], serde_json::Value::Null);
    }
}
