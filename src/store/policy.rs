//! Whether an object uses only what its source may use. **Pure**.

use crate::config::Allow;
use crate::manifest::Severity;
use crate::pod::containers::{self, ContainerKind};
use crate::pod::security::{
    DEFAULT_APPARMOR_PROFILE, DEFAULT_CAPABILITIES, SeccompProfile, Security, apparmor_annotation, container_security,
};
use crate::pod::{FieldProblem, Pod, cdi};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use std::path::Path;

/// Word for [`FieldProblem::code`].
const CODE: &str = "not-allowed";

/// What an object that has nothing but a namespace uses and may not.
pub(super) fn of_namespace(namespace: &str, allow: &Allow) -> Vec<FieldProblem> {
    let refused = || violation("metadata.namespace", format!("namespace {namespace:?}"), "namespaces");
    (!allow.namespace(namespace)).then(refused).into_iter().collect()
}

/// The same for a claim, which is a directory of the host that outlives its pods.
pub(super) fn of_claim(namespace: &str, allow: &Allow) -> Vec<FieldProblem> {
    let mut found = of_namespace(namespace, allow);
    if !allow.persistent_volumes() {
        found.push(violation("kind", "a PersistentVolumeClaim".to_owned(), "persistentVolumes"));
    }
    found
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
    found.extend(of_volumes(spec, allow));
    let (mut init, mut main) = (0, 0);
    for (kind, container) in containers::all(pod) {
        let field = match kind {
            ContainerKind::Init | ContainerKind::Sidecar => {
                init += 1;
                format!("spec.initContainers[{}]", init - 1)
            }
            ContainerKind::Main => {
                main += 1;
                format!("spec.containers[{}]", main - 1)
            }
        };
        found.extend(of_container(pod, container, &field, allow));
    }
    found
}

fn of_volumes(spec: &PodSpec, allow: &Allow) -> Vec<FieldProblem> {
    let mut found = Vec::new();
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        let image = volume.image.as_ref().and_then(|source| source.reference.as_deref());
        if let Some(image) = image.filter(|image| !allow.image(image)) {
            found.push(violation(&format!("spec.volumes[{index}].image.reference"), format!("image {image:?}"), "images"));
        }
        let Some(host_path) = &volume.host_path else { continue };
        let containers = || spec.init_containers.iter().flatten().chain(&spec.containers);
        let mounts = || {
            containers().flat_map(|container| container.volume_mounts.iter().flatten()).filter(|mount| mount.name == volume.name)
        };
        let read_only = mounts().all(|mount| mount.read_only == Some(true));
        let path = Path::new(&host_path.path);
        if allow.host_path(path, read_only) {
            continue;
        }
        let field = format!("spec.volumes[{index}].hostPath.path");
        let mut problem = violation(&field, format!("path {:?} of the host", host_path.path), "hostPaths");
        if allow.host_path(path, true) {
            problem.message.push_str(" for writing");
            problem.hint = Some("mount it with readOnly: true in every container".to_owned());
        }
        found.push(problem);
    }
    found
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
        let what = "a container without a filter of system calls".to_owned();
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
        hint: Some(format!("leave it out, or allow it: allow.{allow} of the source in podstead's configuration")),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, HostFacts};
    use crate::pod::{AdmitContext, NodeName};
    use crate::store::{CheckContext, Checked, check};
    use std::path::Path;

    /// Judges a manifest for a source with this `allow`.
    fn checked(allow: &str, text: &str) -> Checked {
        let config = format!(
            "apiVersion: podstead.dev/v1alpha1\nkind: Config\nsources: [{{name: a, directory: {{path: /a}}, allow: {allow}}}]\n"
        );
        let facts = HostFacts { host_name: "edge".into(), executable: None };
        let mut config = Config::parse(config.as_bytes(), &facts, Path::new("/c")).unwrap();
        let context =
            CheckContext { allow: config.sources.remove(0).allow, ..CheckContext::new(AdmitContext::new(NodeName::new("edge"))) };
        check("p.yaml", text.as_bytes(), &context, &crate::manifest::PatchesByObject::new())
    }

    /// What is not allowed, as `line field`.
    fn violations(allow: &str, text: &str) -> Vec<String> {
        let checked = checked(allow, text);
        let found: Vec<String> = checked
            .problems
            .iter()
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
        assert!(
            problem.contains("may not use path \"/srv/data\" of the host for writing (mount it with readOnly: true"),
            "{problem}"
        );
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
        let hint = "leave it out, or allow it: allow.namespaces of the source in podstead's configuration";
        assert_eq!(
            problem,
            format!("p.yaml:5:14: error[not-allowed]: metadata.namespace: this source may not use namespace \"x\" ({hint})")
        );
    }
}
