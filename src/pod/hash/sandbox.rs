//! Hash of a sandbox's definition.

use super::projection::{Projection, digest};
use crate::Pod;
use crate::containers::spec;
use k8s_openapi::api::core::v1::PodSpec;

/// Hash of what the sandbox is made from: its namespaces, its names and its sysctls. When it differs, the pod gets a new sandbox.
pub fn sandbox_hash(pod: &Pod) -> String {
    // Destructured in full, so that a new field of PodSpec has to be placed here.
    let PodSpec {
        host_ipc,
        host_network,
        host_pid,
        host_users,
        hostname,
        hostname_override,
        runtime_class_name,
        security_context,
        set_hostname_as_fqdn,
        share_process_namespace,
        subdomain,
        // Containers, their files and their limits: see container_hash.
        containers: _,
        dns_config: _,
        dns_policy: _,
        ephemeral_containers: _,
        host_aliases: _,
        init_containers: _,
        volumes: _,
        // Limits of the pod's cgroup can be changed while it runs.
        overhead: _,
        resources: _,
        // Read while the pod runs.
        active_deadline_seconds: _,
        readiness_gates: _,
        restart_policy: _,
        termination_grace_period_seconds: _,
        // No effect on what runs.
        affinity: _,
        automount_service_account_token: _,
        enable_service_links: _,
        image_pull_secrets: _,
        node_name: _,
        node_selector: _,
        os: _,
        preemption_policy: _,
        priority: _,
        priority_class_name: _,
        resource_claims: _,
        scheduler_name: _,
        scheduling_gates: _,
        service_account: _,
        service_account_name: _,
        tolerations: _,
        topology_spread_constraints: _,
    } = spec(pod);
    let mut projection = Projection::default();
    projection.nonzero("hostIPC", host_ipc);
    projection.nonzero("hostNetwork", host_network);
    projection.nonzero("hostPID", host_pid);
    // Unset means true: the host's user namespace.
    projection.optional("hostUsers", host_users.as_ref().filter(|host_users| !**host_users));
    projection.nonzero("hostname", hostname);
    projection.nonzero("hostnameOverride", hostname_override);
    projection.nonzero("runtimeClassName", runtime_class_name);
    projection.nonzero("setHostnameAsFQDN", set_hostname_as_fqdn);
    projection.nonzero("shareProcessNamespace", share_process_namespace);
    projection.nonzero("subdomain", subdomain);
    projection.nonzero("sysctls", &security_context.as_ref().and_then(|context| context.sysctls.as_ref()));
    digest("sandbox", &projection.into_value())
}
