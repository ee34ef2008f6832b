//! Hash of a container's definition.

use super::projection::{Projection, digest, without_zeros};
use crate::containers::{self, list, spec, text};
use crate::devices::DeviceRequest;
use crate::env::FieldRef;
use crate::identity::STAMPED_ANNOTATIONS;
use crate::security::apparmor_annotation;
use crate::{Pod, cdi, devices, nfs, resources};
use k8s_openapi::api::core::v1::{
    Container, EnvVar, EnvVarSource, Lifecycle, PodSecurityContext, PodSpec, ResourceRequirements, SecurityContext, VolumeMount,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Hash of everything that the container's process can see and that a running process would not see the change of: image, command,
/// environment with the labels and annotations that it refers to, mounts with the volumes behind them, effective security context,
/// resources that cannot be changed while it runs, terminal, names and files from the node.
///
/// Values that are known only on the host (addresses, UID, the node's capacity) count by their reference, not by their value. So
/// do the annotations that podstead itself stamps: one of them is the time of the daemon's first sight of the pod.
pub fn container_hash(pod: &Pod, container: &Container) -> String {
    hash_with(pod, container, resources_at_start(container))
}

/// The hash of versions that restarted a container for every change of its resources, where it differs: so that what they started is
/// recognised.
pub fn earlier_container_hash(pod: &Pod, container: &Container) -> Option<String> {
    let (before, now) = (resources_value(container, container.resources.as_ref()), resources_at_start(container));
    (before != now).then(|| hash_with(pod, container, before))
}

fn hash_with(pod: &Pod, container: &Container, resources: Option<Value>) -> String {
    let mut projection = Projection::default();
    of_container(&mut projection, pod, container);
    projection.optional("resources", resources.as_ref());
    of_pod(&mut projection, pod, container);
    digest("container", &projection.into_value())
}

fn of_container(projection: &mut Projection, pod: &Pod, container: &Container) {
    // Destructured in full, so that a new field of Container has to be placed here.
    let Container {
        args,
        command,
        env,
        env_from,
        image,
        lifecycle,
        name,
        stdin,
        stdin_once,
        termination_message_path,
        tty,
        volume_devices,
        volume_mounts,
        working_dir,
        // Those that count are added by hash_with.
        resources: _,
        // Effective values are joined with the pod's, see of_pod.
        security_context: _,
        // Read while the container runs.
        liveness_probe: _,
        readiness_probe: _,
        startup_probe: _,
        restart_policy: _,
        restart_policy_rules: _,
        resize_policy: _,
        termination_message_policy: _,
        // Concerns the next start only.
        image_pull_policy: _,
        // Ports only inform; host ports are the network's.
        ports: _,
    } = container;
    projection.nonzero("name", name);
    projection.nonzero("image", image);
    projection.nonzero("command", command);
    projection.nonzero("args", args);
    projection.nonzero("env", &list(env).iter().map(|variable| environment_variable(pod, container, variable)).collect::<Vec<_>>());
    projection.nonzero("envFrom", env_from);
    projection.nonzero("workingDir", working_dir);
    projection.nonzero("stdin", stdin);
    projection.nonzero("stdinOnce", stdin_once);
    projection.nonzero("tty", tty);
    projection.nonzero("terminationMessagePath", termination_message_path);
    projection.nonzero("volumeDevices", volume_devices);
    projection.nonzero("volumeMounts", &list(volume_mounts).iter().map(|mount| mount_with_volume(pod, mount)).collect::<Vec<_>>());
    // postStart and preStop are read when their moment comes.
    if let Some(Lifecycle { stop_signal, post_start: _, pre_stop: _ }) = lifecycle {
        projection.nonzero("stopSignal", stop_signal);
    }
}

fn of_pod(projection: &mut Projection, pod: &Pod, container: &Container) {
    // Destructured in full, so that a new field of PodSpec has to be placed here.
    let PodSpec {
        dns_config,
        dns_policy,
        host_aliases,
        hostname,
        hostname_override,
        security_context,
        set_hostname_as_fqdn,
        subdomain,
        // Each container and each mounted volume is taken by itself.
        containers: _,
        ephemeral_containers: _,
        init_containers: _,
        volumes: _,
        // The sandbox's: see sandbox_hash. A new sandbox has new containers.
        host_ipc: _,
        host_network: _,
        host_pid: _,
        host_users: _,
        runtime_class_name: _,
        share_process_namespace: _,
        // The pod's cgroup can be changed while its containers run.
        overhead: _,
        resources: _,
        // Read while the pod runs.
        active_deadline_seconds: _,
        readiness_gates: _,
        restart_policy: _,
        termination_grace_period_seconds: _,
        // No effect on what runs. A reference to the service account's name counts where it is made.
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
    let devices = cdi::annotated(pod.metadata.annotations.as_ref()).unwrap_or_default();
    projection.nonzero("cdi", &devices.iter().map(ToString::to_string).collect::<Vec<_>>());
    let plugged = devices::of_pod(pod);
    let of_container = plugged.iter().filter(|request| request.is_for(&container.name));
    let shown = |request: &DeviceRequest| format!("{} {} {}", request.path.display(), request.selector, request.permissions);
    projection.nonzero("devices", &of_container.map(shown).collect::<Vec<_>>());
    projection.nonzero("hostAliases", host_aliases);
    projection.nonzero("dnsPolicy", dns_policy);
    projection.nonzero("dnsConfig", dns_config);
    projection.nonzero("hostname", hostname);
    projection.nonzero("hostnameOverride", hostname_override);
    projection.nonzero("setHostnameAsFQDN", set_hostname_as_fqdn);
    projection.nonzero("subdomain", subdomain);
    let of_pod = security_context.clone().unwrap_or_default();
    let of_container = container.security_context.clone().unwrap_or_default();
    if of_container.app_armor_profile.is_none() {
        projection.optional("appArmorAnnotation", apparmor_annotation(pod, &container.name).as_ref());
    }
    effective_security(projection, of_pod, of_container);
}

fn effective_security(projection: &mut Projection, pod: PodSecurityContext, container: SecurityContext) {
    let PodSecurityContext {
        app_armor_profile,
        fs_group,
        run_as_group,
        run_as_non_root,
        run_as_user,
        se_linux_options,
        seccomp_profile,
        supplemental_groups,
        supplemental_groups_policy,
        // The sandbox's.
        sysctls: _,
        // These label and own volumes; the process does not see them.
        fs_group_change_policy: _,
        se_linux_change_policy: _,
        // Not on Linux.
        windows_options: _,
    } = pod;
    let SecurityContext {
        allow_privilege_escalation,
        app_armor_profile: own_app_armor_profile,
        capabilities,
        privileged,
        proc_mount,
        read_only_root_filesystem,
        run_as_group: own_group,
        run_as_non_root: own_non_root,
        run_as_user: own_user,
        se_linux_options: own_se_linux_options,
        seccomp_profile: own_seccomp_profile,
        windows_options: _,
    } = container;
    // Zero and false are values here.
    projection.optional("allowPrivilegeEscalation", allow_privilege_escalation.as_ref());
    projection.optional("fsGroup", fs_group.as_ref());
    projection.optional("runAsGroup", own_group.or(run_as_group).as_ref());
    projection.optional("runAsUser", own_user.or(run_as_user).as_ref());
    projection.nonzero("runAsNonRoot", &own_non_root.or(run_as_non_root));
    projection.nonzero("appArmorProfile", &own_app_armor_profile.or(app_armor_profile));
    projection.nonzero("capabilities", &capabilities);
    projection.nonzero("privileged", &privileged);
    projection.nonzero("procMount", &proc_mount);
    projection.nonzero("readOnlyRootFilesystem", &read_only_root_filesystem);
    projection.nonzero("seLinuxOptions", &own_se_linux_options.or(se_linux_options));
    projection.nonzero("seccompProfile", &own_seccomp_profile.or(seccomp_profile));
    projection.nonzero("supplementalGroups", &supplemental_groups);
    projection.nonzero("supplementalGroupsPolicy", &supplemental_groups_policy);
}

fn environment_variable(pod: &Pod, container: &Container, variable: &EnvVar) -> Value {
    let EnvVar { name, value, value_from } = variable;
    match value_from {
        Some(reference) if text(value).is_empty() => json!([name, reference_value(pod, container, reference)]),
        _ => json!([name, text(value)]),
    }
}

/// A reference as written, with the value where an edit of the pod can change it.
fn reference_value(pod: &Pod, container: &Container, reference: &EnvVarSource) -> Value {
    let mut written = without_zeros(serde_json::to_value(reference).unwrap_or(Value::Null));
    let value = if let Some(selector) = &reference.field_ref {
        FieldRef::parse(&selector.field_path).ok().and_then(|field| field_value(pod, &field)).map(Value::String)
    } else if let Some(selector) = &reference.resource_field_ref {
        let name = text(&selector.container_name);
        let subject = if name.is_empty() { Some(container) } else { containers::find(pod, name).map(|(_, subject)| subject) };
        subject.and_then(|subject| resources_value(subject, subject.resources.as_ref()))
    } else {
        None
    };
    if let (Value::Object(members), Some(value)) = (&mut written, value) {
        members.insert("value".to_owned(), value);
    }
    written
}

fn field_value(pod: &Pod, field: &FieldRef) -> Option<String> {
    let entry = |map: &Option<BTreeMap<String, String>>, key: &String| map.as_ref().and_then(|map| map.get(key)).cloned();
    match field {
        FieldRef::Label(key) => entry(&pod.metadata.labels, key),
        FieldRef::Annotation(key) if STAMPED_ANNOTATIONS.contains(&key.as_str()) => None,
        FieldRef::Annotation(key) => entry(&pod.metadata.annotations, key),
        FieldRef::ServiceAccountName => spec(pod).service_account_name.clone(),
        // The same for as long as the pod is the same.
        FieldRef::Name | FieldRef::Namespace | FieldRef::Uid => None,
        // Facts of the host.
        FieldRef::NodeName | FieldRef::HostIp | FieldRef::HostIps | FieldRef::PodIp | FieldRef::PodIps => None,
    }
}

fn mount_with_volume(pod: &Pod, mount: &VolumeMount) -> Value {
    let volume = list(&spec(pod).volumes).iter().find(|volume| volume.name == mount.name);
    let options = volume.filter(|volume| volume.nfs.is_some()).and_then(|volume| nfs::options_of(pod, &volume.name));
    without_zeros(json!({ "mount": mount, "volume": volume, "options": options }))
}

/// Resources that a process gets at its start and keeps. Cpu and memory are changed while it runs; ephemeral storage is watched from
/// outside.
fn resources_at_start(container: &Container) -> Option<Value> {
    let mut requirements = container.resources.clone()?;
    for amounts in [&mut requirements.limits, &mut requirements.requests].into_iter().flatten() {
        amounts.retain(|name, _| name != "ephemeral-storage" && !resources::RESIZABLE.contains(&name.as_str()));
    }
    let container = Container { resources: Some(requirements), ..Container::default() };
    resources_value(&container, container.resources.as_ref())
}

/// Amounts by value, not by spelling; `None` when there are none.
fn resources_value(container: &Container, requirements: Option<&ResourceRequirements>) -> Option<Value> {
    // `limits` and `requests` are read as amounts.
    let ResourceRequirements { claims, limits: _, requests: _ } = requirements?;
    let amounts = |amounts: resources::Amounts| -> Option<BTreeMap<String, String>> {
        (!amounts.is_empty()).then(|| amounts.into_iter().map(|(name, amount)| (name, amount.nanos().to_string())).collect())
    };
    let mut projection = Projection::default();
    projection.nonzero("claims", claims);
    projection.optional("limits", amounts(resources::limits(container)).as_ref());
    projection.optional("requests", amounts(resources::requests(container)).as_ref());
    Some(projection.into_value())
}
