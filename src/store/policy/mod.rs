//! Checks an object against the rules of its source: permissions (`allow`) and requirements (`podSecurity`, `require`).
//! **Pure**.
//!
//! `reach_test` holds the rules of `allow` against the table of supported fields, so that no field that reaches the host is without one.

mod channels;
mod network_objects;
#[cfg(test)]
mod reach_test;
mod requirements;

pub(super) use channels::of_pod as channels_of_pod;
pub(super) use network_objects::of_network_object;
pub(super) use requirements::of_pod as requirements_of_pod;

use k8s_openapi::api::core::v1::{Container, NFSVolumeSource, PersistentVolumeClaim, PodSpec, VolumeMount};
use podstead_pod::containers::{self, ContainerKind};
use podstead_pod::security::{
    DEFAULT_APPARMOR_PROFILE, DEFAULT_CAPABILITIES, SeccompProfile, Security, apparmor_annotation, container_security,
};
use podstead_pod::{FieldProblem, Pod, Severity, cdi, claims, devices};
use podstead_settings::Allow;
use std::path::Path;

/// Value of [`FieldProblem::code`].
const CODE: &str = "not-allowed";

/// Returns the violations of an object for which only the namespace matters.
pub(super) fn of_namespace(namespace: &str, allow: &Allow) -> Vec<FieldProblem> {
    let refused = || violation("metadata.namespace", format!("namespace {namespace:?}"), "namespaces");
    (!allow.namespace(namespace)).then(refused).into_iter().collect()
}

/// The same for a claim, which is a directory of the host that outlives its pods.
pub(super) fn of_claim(claim: &PersistentVolumeClaim, namespace: &str, allow: &Allow) -> Vec<FieldProblem> {
    let mut found = of_namespace(namespace, allow);
    found.extend(of_block_device(claim, "metadata.annotations", allow));
    if !allow.persistent_volumes() {
        found.push(violation("kind", "a PersistentVolumeClaim".to_owned(), "persistentVolumes"));
    }
    found
}

/// A claim that is a block device of the host.
fn of_block_device(claim: &PersistentVolumeClaim, field: &str, allow: &Allow) -> Option<FieldProblem> {
    let device = claims::block_device(claim)?.display().to_string();
    (!allow.device_path(&device)).then(|| violation(field, format!("device {device}"), "devices"))
}

/// The same for the claims that a StatefulSet makes.
pub(super) fn of_claim_templates(templates: &[PersistentVolumeClaim], allow: &Allow) -> Vec<FieldProblem> {
    let made = |index| {
        violation(&format!("spec.volumeClaimTemplates[{index}]"), "a PersistentVolumeClaim".to_owned(), "persistentVolumes")
    };
    let mut found = if allow.persistent_volumes() { Vec::new() } else { (0..templates.len()).map(made).collect() };
    for (index, template) in templates.iter().enumerate() {
        found.extend(of_block_device(template, &format!("spec.volumeClaimTemplates[{index}].metadata.annotations"), allow));
    }
    found
}

/// Reports whether a pod has access to the host beyond that of a pod under `allow: {}`. Its namespace and images do not matter.
pub fn needs_host_access(pod: &Pod, namespace: &str) -> bool {
    !of_pod(pod, namespace, &Allow::default()).is_empty()
}

/// The same for a pod, defaulted or as written.
pub(super) fn of_pod(pod: &Pod, namespace: &str, allow: &Allow) -> Vec<FieldProblem> {
    let mut found = of_namespace(namespace, allow);
    let Some(spec) = &pod.spec else { return found };
    let host = [
        ("hostNetwork", spec.host_network, allow.host_network()),
        ("hostPID", spec.host_pid, allow.host_pid()),
        ("hostIPC", spec.host_ipc, allow.host_ipc()),
    ];
    for (name, used, allowed) in host {
        if used == Some(true) && !allowed {
            found.push(violation(&format!("spec.{name}"), name.to_owned(), name));
        }
    }
    for device in
        cdi::annotated(pod.metadata.annotations.as_ref()).unwrap_or_default().iter().filter(|device| !allow.device(device))
    {
        found.push(violation("metadata.annotations", format!("device {device}"), "devices"));
    }
    // Claims are judged by themselves.
    for request in devices::all_of(pod, |_| None).iter().filter(|request| !allow.requested_device(request)) {
        found.push(violation("metadata.annotations", format!("device {}", request.permission()), "devices"));
    }
    found.extend(of_volumes(spec, allow));
    for (field, container) in containers_of(pod) {
        found.extend(of_container(pod, container, &field, allow));
    }
    found
}

/// The containers of a pod with the paths of their entries, in the order of their start.
fn containers_of(pod: &Pod) -> Vec<(String, &Container)> {
    let (mut init, mut main) = (0, 0);
    let with_field = |(kind, container)| {
        let (list, index) = match kind {
            ContainerKind::Init | ContainerKind::Sidecar => ("initContainers", &mut init),
            ContainerKind::Main => ("containers", &mut main),
        };
        *index += 1;
        (format!("spec.{list}[{}]", *index - 1), container)
    };
    containers::all(pod).map(with_field).collect()
}

fn of_volumes(spec: &PodSpec, allow: &Allow) -> Vec<FieldProblem> {
    let mut found = Vec::new();
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        let image = volume.image.as_ref().and_then(|source| source.reference.as_deref());
        if let Some(image) = image.filter(|image| !allow.image(image)) {
            found.push(violation(&format!("spec.volumes[{index}].image.reference"), format!("image {image:?}"), "images"));
        }
        if let Some(export) = &volume.nfs {
            found.extend(of_export(export, &format!("spec.volumes[{index}].nfs"), allow));
        }
        let Some(host_path) = &volume.host_path else { continue };
        let containers = || spec.init_containers.iter().flatten().chain(&spec.containers);
        let mounts = || {
            containers().flat_map(|container| container.volume_mounts.iter().flatten()).filter(|mount| mount.name == volume.name)
        };
        let is_device =
            containers().flat_map(|container| container.volume_devices.iter().flatten()).any(|device| device.name == volume.name);
        let read_only = !is_device && mounts().all(|mount| mount.read_only == Some(true));
        let path = Path::new(&host_path.path);
        let is_connected = |mount: &VolumeMount| !matches!(mount.mount_propagation.as_deref(), None | Some("" | "None"));
        let only_read = allow.host_path_bounds(path).is_some_and(|bounds| bounds.read_only);
        if allow.host_path(path, read_only) {
            if only_read && mounts().any(is_connected) {
                found.push(connected(&format!("spec.volumes[{index}].hostPath.path"), &host_path.path));
            }
            continue;
        }
        let field = format!("spec.volumes[{index}].hostPath.path");
        let mut problem = violation(&field, format!("host path {:?}", host_path.path), "hostPaths");
        if allow.host_path(path, true) {
            problem.message.push_str(" for writing");
            problem.hint = Some("mount it with readOnly: true in every container".to_owned());
        }
        found.push(problem);
    }
    found
}

/// A directory of another host, which this host may mount and the source perhaps not.
fn of_export(export: &NFSVolumeSource, field: &str, allow: &Allow) -> Option<FieldProblem> {
    let NFSVolumeSource { path, read_only, server } = export;
    if allow.nfs(server, path, *read_only == Some(true)) {
        return None;
    }
    let mut problem = violation(field, format!("the NFS export {server}:{path}"), "nfs");
    if allow.nfs(server, path, true) {
        problem.message.push_str(" for writing");
        problem.hint = Some("add readOnly: true".to_owned());
    }
    Some(problem)
}

/// A volume that may only be read, and gets mounts of the host that could be written to.
fn connected(field: &str, path: &str) -> FieldProblem {
    let mut problem = violation(field, format!("host path {path:?} with mountPropagation"), "hostPaths");
    problem.hint = Some("remove mountPropagation: file systems mounted there later would be writable".to_owned());
    problem
}

fn of_container(pod: &Pod, container: &Container, field: &str, allow: &Allow) -> Vec<FieldProblem> {
    let mut found = Vec::new();
    if let Some(image) = container.image.as_deref().filter(|image| !allow.image(image)) {
        found.push(violation(&format!("{field}.image"), format!("image {image:?}"), "images"));
    }
    let context = format!("{field}.securityContext");
    let Security { privileged, capabilities, unmasked_proc, seccomp, apparmor, no_new_privileges: _, read_only_root: _ } =
        container_security(pod, container, Some(DEFAULT_APPARMOR_PROFILE));
    if privileged {
        // It has everything that is asked for below.
        if !allow.privileged() {
            found.push(violation(&format!("{context}.privileged"), "a privileged container".to_owned(), "privileged"));
        }
        return found;
    }
    for capability in capabilities.iter().filter(|name| !DEFAULT_CAPABILITIES.contains(&name.as_str())) {
        if !allow.capability(capability) {
            let name = capability.trim_start_matches("CAP_");
            found.push(violation(&format!("{context}.capabilities.add"), format!("capability {name}"), "capabilities"));
        }
    }
    if allow.unconfined() {
        return found;
    }
    // What the container leaves open, the pod says.
    let place = |is_own: bool| if is_own { context.as_str() } else { "spec.securityContext" };
    let own = container.security_context.as_ref();
    if apparmor.is_none() {
        let is_own = own.is_some_and(|own| own.app_armor_profile.is_some());
        let place = match apparmor_annotation(pod, &container.name) {
            Some(_) if !is_own => "metadata.annotations".to_owned(),
            Some(_) | None => format!("{}.appArmorProfile.type", place(is_own)),
        };
        found.push(violation(&place, "a container without an AppArmor profile".to_owned(), "unconfined"));
    }
    if seccomp == SeccompProfile::Unconfined {
        let place = place(own.is_some_and(|own| own.seccomp_profile.is_some()));
        let what = "a container without a seccomp filter".to_owned();
        found.push(violation(&format!("{place}.seccompProfile.type"), what, "unconfined"));
    }
    if unmasked_proc {
        found.push(violation(&format!("{context}.procMount"), "an unmasked /proc".to_owned(), "unconfined"));
    }
    found
}

fn violation(field: &str, what: String, allow: &str) -> FieldProblem {
    FieldProblem {
        severity: Severity::Error,
        code: CODE.to_owned(),
        field: field.to_owned(),
        message: format!("this source may not use {what}"),
        hint: Some(format!("remove it, or permit it with allow.{allow} of the source in podstead's configuration")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::{CheckContext, Checked, check};
    use podstead_config::{Config, HostFacts};
    use podstead_pod::{AdmitContext, NodeName, Severity};
    use std::path::Path;

    /// Judges a manifest for a source with this `allow`.
    fn checked(allow: &str, text: &str) -> Checked {
        checked_by(&format!("allow: {allow}"), text)
    }

    /// Judges a manifest for a source with these fields.
    pub(crate) fn checked_by(fields: &str, text: &str) -> Checked {
        check("p.yaml", text.as_bytes(), &context(fields), &podstead_manifest::PatchesByObject::new())
    }

    /// The context of a source with these fields.
    pub(crate) fn context(fields: &str) -> CheckContext {
        let config = format!(
            "apiVersion: podstead.dev/v1alpha1\nkind: Config\nallowedUnsafeSysctls: [net.core.*]\n\
             sources: [{{name: a, directory: {{path: /a}}, {fields}}}]\n"
        );
        let facts = HostFacts { host_name: "edge".into(), executable: None };
        let mut config = Config::parse(config.as_bytes(), &facts, Path::new("/c")).unwrap();
        let source = config.sources.remove(0);
        CheckContext {
            allow: source.allow,
            requirements: source.requirements,
            ..CheckContext::new(AdmitContext {
                unsafe_sysctls: config.allowed_unsafe_sysctls,
                ..AdmitContext::new(NodeName::new("edge"))
            })
        }
    }

    /// Returns violations as `line field`.
    pub(super) fn violations(allow: &str, text: &str) -> Vec<String> {
        let checked = checked(allow, text);
        let found: Vec<String> = checked
            .problems
            .iter()
            .filter(|problem| problem.severity == Severity::Error)
            .inspect(|problem| assert_eq!(problem.code, super::CODE, "{problem}"))
            .map(|problem| format!("{} {}", problem.position.unwrap().line, problem.field))
            .collect();
        assert_eq!(checked.accepted.is_empty(), !found.is_empty());
        assert_eq!(checked.broken.is_empty(), found.is_empty());
        found
    }

    #[test]
    fn devices_are_allowed_by_class_or_by_name() {
        let text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: radio\n  annotations:\n    cdi.k8s.io/x: v.org/radio=0,v.org/light=1\nspec:\n  \
                    containers: [{name: a, image: nginx}]\n";
        assert_eq!(violations("{}", text).len(), 2);
        assert_eq!(violations("{devices: [v.org/radio]}", text).len(), 1);
        assert!(violations("{devices: [v.org/radio=0, v.org/light]}", text).is_empty());
    }

    #[test]
    fn block_devices_need_a_right_of_their_own() {
        let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: data\n  annotations: {podstead.dev/block-device: /dev/sdb}\nspec:\n  \
                     accessModes: [ReadWriteOnce]\n  volumeMode: Block\n  resources: {requests: {storage: 1Gi}}\n";
        assert_eq!(violations("{persistentVolumes: true}", claim).len(), 1);
        assert!(violations("{persistentVolumes: true, devices: [/dev/sd*]}", claim).is_empty());
        let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: db\nspec:\n  volumes: [{name: raw, hostPath: {path: /dev/sdb, type: BlockDevice}}]\n  \
                   containers: [{name: a, image: nginx, volumeDevices: [{name: raw, devicePath: /dev/xvda}]}]\n";
        assert_eq!(violations("{hostPaths: [{path: /dev}]}", pod).len(), 1, "a path alone does not open its device");
        assert!(violations("{hostPaths: [{path: /dev}], devices: [/dev/sdb]}", pod).is_empty());
        assert!(!violations("{hostPaths: [{path: /dev, readOnly: true}], devices: [/dev/sdb]}", pod).is_empty());
    }

    #[test]
    fn exports_of_other_hosts_are_allowed_by_name() {
        let text = |more: &str| {
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  containers: [{{name: a, image: b, volumeMounts: [{{name: share, mountPath: /n}}]}}]\n  \
                 volumes:\n  - name: share\n    nfs: {{server: nas.lan, path: /export/a{more}}}\n"
            )
        };
        assert_eq!(violations("{}", &text("")), ["8 spec.volumes[0].nfs"]);
        assert!(violations("{nfs: [{server: nas.lan, path: /export/a}]}", &text("")).is_empty());
        let reading = "{nfs: [{server: nas.lan, path: /export/a, readOnly: true}]}";
        assert!(violations(reading, &text(", readOnly: true")).is_empty());
        let problem = checked(reading, &text("")).problems[0].to_string();
        assert!(problem.contains("may not use the NFS export nas.lan:/export/a for writing (add readOnly: true)"), "{problem}");
    }

    #[test]
    fn plugged_devices_are_allowed_by_path_or_usb_identity() {
        let text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: radio\n  annotations:\n    devices.podstead.dev/a: /dev/serial/by-id/usb-A_1\n    \
                    devices.podstead.dev/b: \"{usb: '10C4:ea60'}\"\nspec:\n  containers: [{name: a, image: nginx}]\n";
        assert_eq!(violations("{}", text).len(), 2);
        assert_eq!(violations("{devices: [v.org/radio, /dev/serial/by-id/usb-B*]}", text).len(), 2);
        assert_eq!(violations("{devices: [/dev/serial/by-id/usb-A*]}", text).len(), 1);
        assert_eq!(violations("{devices: ['usb:10C4:*']}", text).len(), 1);
        assert!(violations("{devices: [/dev/serial/by-id/usb-A_1, 'usb:10c4:ea60']}", text).is_empty());
    }

    const GREEDY: &str = "apiVersion: v1
kind: Pod
metadata:
  name: greedy
  namespace: kube-system
spec:
  hostNetwork: true
  hostPID: true
  hostIPC: true
  securityContext:
    seccompProfile: {type: Unconfined}
  initContainers:
  - name: init
    image: registry.lan/init
    securityContext:
      privileged: true
  containers:
  - name: a
    image: nginx
    securityContext:
      capabilities:
        add: [NET_ADMIN, CHOWN]
    volumeMounts:
    - {name: data, mountPath: /data}
    - {name: etc, mountPath: /x, readOnly: true}
  volumes:
  - name: data
    hostPath: {path: /srv/data}
  - name: etc
    hostPath:
      path: /etc
";

    #[test]
    fn everything_that_is_not_named_is_told_with_its_line() {
        assert_eq!(
            violations("{namespaces: [default], images: [registry.lan/]}", GREEDY),
            [
                "5 metadata.namespace",
                "7 spec.hostNetwork",
                "8 spec.hostPID",
                "9 spec.hostIPC",
                "11 spec.securityContext.seccompProfile.type",
                "16 spec.initContainers[0].securityContext.privileged",
                "19 spec.containers[0].image",
                "22 spec.containers[0].securityContext.capabilities.add",
                "28 spec.volumes[0].hostPath.path",
                "31 spec.volumes[1].hostPath.path",
            ]
        );
    }

    #[test]
    fn a_container_without_a_profile_of_apparmor_is_unconfined() {
        let text = |own: &str, annotations: &str| {
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations: {{{annotations}}}\nspec:\n  securityContext: \
                 {{appArmorProfile: {{type: Unconfined}}}}\n  containers:\n  - name: c\n    image: b\n    securityContext:\n      \
                 appArmorProfile: {own}\n"
            )
        };
        let (default, unconfined) = ("{type: RuntimeDefault}", "{type: Unconfined}");
        let annotation = "container.apparmor.security.beta.kubernetes.io/c: unconfined";
        assert_eq!(violations("{}", &text(default, annotation)), [""; 0]);
        assert_eq!(violations("{}", &text(unconfined, "")), ["12 spec.containers[0].securityContext.appArmorProfile.type"]);
        assert_eq!(violations("{}", &text("null", "")), ["7 spec.securityContext.appArmorProfile.type"]);
        assert_eq!(violations("{}", &text("null", annotation)), ["5 metadata.annotations"]);
        assert_eq!(violations("{unconfined: true}", &text(unconfined, annotation)), [""; 0]);
    }

    #[test]
    fn what_is_named_is_allowed() {
        let all = "{privileged: true, hostNetwork: true, hostPID: true, hostIPC: true, unconfined: true, capabilities: [NET_ADMIN], \
                   hostPaths: [{path: /srv}, {path: /etc, readOnly: true}], namespaces: [kube-system], images: [registry.lan/, nginx]}";
        assert_eq!(violations(all, GREEDY), [""; 0]);
        let read_only = "{privileged: true, hostNetwork: true, hostPID: true, hostIPC: true, unconfined: true, capabilities: [ALL], \
                         hostPaths: [{path: /, readOnly: true}], namespaces: [kube-system]}";
        assert_eq!(violations(read_only, GREEDY), ["28 spec.volumes[0].hostPath.path"]);
        let problem = checked(read_only, GREEDY).problems[0].to_string();
        assert!(problem.contains("may not use host path \"/srv/data\" for writing (mount it with readOnly: true"), "{problem}");
    }

    #[test]
    fn path_for_reading_does_not_get_later_mounts() {
        let pod = |propagation: &str| {
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  containers: [{{name: a, image: b, volumeMounts: [{{name: h, mountPath: /h, readOnly: \
                 true, mountPropagation: {propagation}}}]}}]\n  volumes: [{{name: h, hostPath: {{path: /srv/x}}}}]\n"
            )
        };
        let reading = "{hostPaths: [{path: /srv, readOnly: true}]}";
        assert_eq!(violations(reading, &pod("None")), [""; 0]);
        assert_eq!(violations(reading, &pod("HostToContainer")), ["6 spec.volumes[0].hostPath.path"]);
        assert_eq!(violations("{hostPaths: [{path: /srv}]}", &pod("HostToContainer")), [""; 0]);
    }

    #[test]
    fn a_modest_pod_needs_nothing() {
        let modest = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: b, securityContext: {capabilities: {drop: [ALL], add: [CHOWN]}}}]}\n";
        assert_eq!(violations("{}", modest), [""; 0]);
    }

    #[test]
    fn objects_without_pods_are_judged_by_their_namespace() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  namespace: x\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n";
        let checked = checked("{namespaces: [default]}", text);
        assert_eq!((checked.accepted.len(), checked.problems.len()), (1, 1));
        let problem = checked.problems[0].to_string();
        let hint = "remove it, or permit it with allow.namespaces of the source in podstead's configuration";
        assert_eq!(
            problem,
            format!("p.yaml:5:14: error[not-allowed]: metadata.namespace: this source may not use namespace \"x\" ({hint})")
        );
    }
}
