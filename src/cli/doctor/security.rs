//! Rights of pods: what of the host each of them reaches, and what of it has no bound. An inventory, not a fault: it is made only when it is asked for.

use super::finding::Finding;
use super::host::Host;
use crate::pods::{annotation, name_of, namespace_of, shown_name};
use k8s_openapi::api::core::v1::{Container, Pod, PodSecurityContext, PodSpec, SecurityContext};
use podstead_api::published::{ORIGIN_ANNOTATION, SOURCE_ANNOTATION};
use podstead_pod::security::DEFAULT_CAPABILITIES;
use podstead_telemetry::counted;
use serde::Serialize;
use std::fmt;

/// Something that a pod, or one of its containers, may do.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Right {
    HostNetwork,
    HostPid,
    HostIpc,
    Privileged,
    /// Capabilities beyond the default ones, without `CAP_`.
    Capabilities(Vec<String>),
    /// Without a filter of system calls.
    NoSeccomp,
    /// Without an AppArmor profile.
    NoAppArmor,
    UnmaskedProc,
    WritesHostPath(String),
    ReadsHostPath(String),
    HostPort(i32),
    /// Root, and no user namespace that makes it another user of the host.
    Root,
    /// Resources without a limit.
    NoLimits(Vec<&'static str>),
}

impl Right {
    /// Whoever has it has a part of the host or of other pods in hand.
    fn reaches_the_host(&self) -> bool {
        match self {
            Self::HostNetwork
            | Self::HostPid
            | Self::HostIpc
            | Self::Privileged
            | Self::Capabilities(_)
            | Self::NoSeccomp
            | Self::NoAppArmor
            | Self::UnmaskedProc
            | Self::WritesHostPath(_) => true,
            Self::ReadsHostPath(_) | Self::HostPort(_) | Self::Root | Self::NoLimits(_) => false,
        }
    }

    /// For programs.
    const fn name(&self) -> &'static str {
        match self {
            Self::HostNetwork => "hostNetwork",
            Self::HostPid => "hostPID",
            Self::HostIpc => "hostIPC",
            Self::Privileged => "privileged",
            Self::Capabilities(_) => "capabilities",
            Self::NoSeccomp => "seccompUnconfined",
            Self::NoAppArmor => "appArmorUnconfined",
            Self::UnmaskedProc => "procMountUnmasked",
            Self::WritesHostPath(_) => "hostPathWritable",
            Self::ReadsHostPath(_) => "hostPathReadOnly",
            Self::HostPort(_) => "hostPort",
            Self::Root => "root",
            Self::NoLimits(_) => "noLimits",
        }
    }

    /// The subject, for programs.
    fn value(&self) -> Option<String> {
        match self {
            Self::Capabilities(names) => Some(names.join(",")),
            Self::WritesHostPath(path) | Self::ReadsHostPath(path) => Some(path.clone()),
            Self::HostPort(port) => Some(port.to_string()),
            Self::NoLimits(resources) => Some(resources.join(",")),
            Self::HostNetwork
            | Self::HostPid
            | Self::HostIpc
            | Self::Privileged
            | Self::NoSeccomp
            | Self::NoAppArmor
            | Self::UnmaskedProc
            | Self::Root => None,
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostNetwork => f.write_str("uses the host network"),
            Self::HostPid => f.write_str("uses the host PID namespace"),
            Self::HostIpc => f.write_str("uses the host IPC namespace"),
            Self::Privileged => f.write_str("privileged"),
            Self::Capabilities(names) => write!(f, "added capabilities {}", names.join(", ")),
            Self::NoSeccomp => f.write_str("no seccomp profile"),
            Self::NoAppArmor => f.write_str("no AppArmor profile"),
            Self::UnmaskedProc => f.write_str("unmasked /proc"),
            Self::WritesHostPath(path) => write!(f, "writes host path {path}"),
            Self::ReadsHostPath(path) => write!(f, "reads host path {path}"),
            Self::HostPort(port) => write!(f, "host port {port}"),
            Self::Root => f.write_str("root without a user namespace"),
            Self::NoLimits(resources) => write!(f, "no limit for {}", resources.join(", ")),
        }
    }
}

/// A right and who has it: a container, or the pod as a whole.
type Held<'a> = (Option<&'a str>, Right);

/// A pod and its rights, for programs.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct PodRights {
    name: String,
    namespace: String,
    source: Option<String>,
    /// File, line and column of its manifest.
    origin: Option<String>,
    rights: Vec<ShownRight>,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
struct ShownRight {
    right: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

pub(super) fn check(host: &Host) -> Vec<Finding> {
    match &host.answers {
        Ok(answers) => judge(&answers.pods),
        Err(_) => vec![Finding::problem(
            "the rights of pods are unknown",
            "the daemon does not respond, and it has the list of pods",
            "podstead doctor daemon shows why",
        )],
    }
}

fn judge(pods: &[Pod]) -> Vec<Finding> {
    let findings: Vec<Finding> = pods.iter().filter_map(finding).collect();
    if !findings.is_empty() {
        return findings;
    }
    vec![Finding::ok(format!("{}, all confined and limited", counted(pods.len(), "pod")))]
}

/// The findings about a pod; none for a pod that is confined and limited.
fn finding(pod: &Pod) -> Option<Finding> {
    let held = rights(pod);
    if held.is_empty() {
        return None;
    }
    let (source, origin) = (annotation(pod, SOURCE_ANNOTATION), annotation(pod, ORIGIN_ANNOTATION));
    let from = [source.map(|source| format!("source {source}")), origin.map(str::to_owned)];
    let from: Vec<String> = from.into_iter().flatten().collect();
    let from = if from.is_empty() { String::new() } else { format!(" ({})", from.join(", ")) };
    let what = format!("pod {}{from}:\n{}", shown_name(pod), lines(&held).join("\n"));
    let shown = held.iter().map(|(container, right)| ShownRight {
        right: right.name(),
        container: container.map(str::to_owned),
        value: right.value(),
    });
    let about = PodRights {
        name: name_of(pod).to_owned(),
        namespace: namespace_of(pod).to_owned(),
        source: source.map(str::to_owned),
        origin: origin.map(str::to_owned),
        rights: shown.collect(),
    };
    let found = if held.iter().any(|(_, right)| right.reaches_the_host()) {
        let why = "a program in this pod, or an attacker who takes it over, controls a part of the host";
        Finding::warning(
            what,
            why,
            "remove the rights that it does not need; sources[].allow in the configuration limits what pods of a source may use",
        )
    } else {
        Finding::note(what, "", "")
    };
    Some(Finding { pod: Some(Box::new(about)), ..found })
}

/// A line for the pod and one for each container that has rights.
fn lines(held: &[Held<'_>]) -> Vec<String> {
    let mut lines: Vec<(Option<&str>, String)> = Vec::new();
    for (container, right) in held {
        match lines.last_mut() {
            Some((last, line)) if last == container => *line += &format!("; {right}"),
            _ => lines.push((*container, right.to_string())),
        }
    }
    let line = |(container, rights): (Option<&str>, String)| match container {
        Some(container) => format!("container {container}: {rights}"),
        None => rights,
    };
    lines.into_iter().map(line).collect()
}

/// All rights of a pod, its own first.
fn rights(pod: &Pod) -> Vec<Held<'_>> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let shared = [(spec.host_network, Right::HostNetwork), (spec.host_pid, Right::HostPid), (spec.host_ipc, Right::HostIpc)];
    let of_pod = shared.into_iter().filter(|(is_shared, _)| *is_shared == Some(true)).map(|(_, right)| (None, right));
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    let of_containers = containers.flat_map(|container| {
        container_rights(pod, spec, container).into_iter().map(|right| (Some(container.name.as_str()), right))
    });
    of_pod.chain(of_containers).collect()
}

fn container_rights(pod: &Pod, spec: &PodSpec, container: &Container) -> Vec<Right> {
    let mut rights = confinement(spec, container);
    rights.extend(host_paths(spec, container));
    if spec.host_network != Some(true) {
        rights.extend(container.ports.iter().flatten().filter_map(|port| port.host_port).map(Right::HostPort));
    }
    if spec.host_users != Some(false) && runs_as_root(pod, spec, container) {
        rights.push(Right::Root);
    }
    let limits = |resources: &k8s_openapi::api::core::v1::ResourceRequirements| resources.limits.clone().unwrap_or_default();
    let own = container.resources.as_ref().map(limits).unwrap_or_default();
    let pods = spec.resources.as_ref().map(limits).unwrap_or_default();
    let unlimited: Vec<&str> =
        ["memory", "cpu"].into_iter().filter(|resource| !own.contains_key(*resource) && !pods.contains_key(*resource)).collect();
    if !unlimited.is_empty() {
        rights.push(Right::NoLimits(unlimited));
    }
    rights
}

/// Rights that its security context and the pod's give.
fn confinement(spec: &PodSpec, container: &Container) -> Vec<Right> {
    let (none, pods_none) = (SecurityContext::default(), PodSecurityContext::default());
    let own = container.security_context.as_ref().unwrap_or(&none);
    let pods = spec.security_context.as_ref().unwrap_or(&pods_none);
    if own.privileged == Some(true) {
        // That includes the others.
        return vec![Right::Privileged];
    }
    let mut rights = Vec::new();
    let added = own.capabilities.iter().flat_map(|capabilities| capabilities.add.iter().flatten());
    let added = added.map(|name| name.strip_prefix("CAP_").unwrap_or(name).to_owned());
    let added: Vec<String> = added.filter(|name| !DEFAULT_CAPABILITIES.contains(&format!("CAP_{name}").as_str())).collect();
    if !added.is_empty() {
        rights.push(Right::Capabilities(added));
    }
    let seccomp = own.seccomp_profile.as_ref().or(pods.seccomp_profile.as_ref());
    if seccomp.is_some_and(|profile| profile.type_ == "Unconfined") {
        rights.push(Right::NoSeccomp);
    }
    let app_armor = own.app_armor_profile.as_ref().or(pods.app_armor_profile.as_ref());
    if app_armor.is_some_and(|profile| profile.type_ == "Unconfined") {
        rights.push(Right::NoAppArmor);
    }
    if own.proc_mount.as_deref() == Some("Unmasked") {
        rights.push(Right::UnmaskedProc);
    }
    rights
}

fn host_paths(spec: &PodSpec, container: &Container) -> Vec<Right> {
    let path_of = |name: &str| {
        let volume = spec.volumes.iter().flatten().find(|volume| volume.name == name)?;
        Some(volume.host_path.as_ref()?.path.clone())
    };
    let mounts = container.volume_mounts.iter().flatten();
    let right = |mount: &k8s_openapi::api::core::v1::VolumeMount| {
        let mut path = path_of(&mount.name)?;
        if let Some(below) = &mount.sub_path {
            path = format!("{}/{below}", path.trim_end_matches('/'));
        }
        Some(if mount.read_only == Some(true) { Right::ReadsHostPath(path) } else { Right::WritesHostPath(path) })
    };
    mounts.filter_map(right).collect()
}

/// As the container runs, or, where it does not, as its manifest has it; the image decides what neither says, and most say root.
fn runs_as_root(pod: &Pod, spec: &PodSpec, container: &Container) -> bool {
    let status = pod
        .status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten().chain(status.init_container_statuses.iter().flatten()));
    let seen = status
        .into_iter()
        .find(|status| status.name == container.name)
        .and_then(|status| Some(status.user.as_ref()?.linux.as_ref()?.uid));
    let (own, pods) = (container.security_context.as_ref(), spec.security_context.as_ref());
    let written = own.and_then(|own| own.run_as_user).or_else(|| pods.and_then(|pods| pods.run_as_user));
    let non_root = own.and_then(|own| own.run_as_non_root).or_else(|| pods.and_then(|pods| pods.run_as_non_root));
    match seen.or(written) {
        Some(uid) => uid == 0,
        None => non_root != Some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{Note, Ok, Warning};
    use super::*;
    use serde_json::{Value, json};

    fn pod(spec: &Value) -> Pod {
        let container = json!({
            "name": "app", "image": "nginx:1",
            "securityContext": {"runAsUser": 1000},
            "resources": {"limits": {"memory": "64Mi", "cpu": "1"}},
        });
        let mut whole = json!({"containers": [container]});
        for (key, value) in spec.as_object().unwrap() {
            match key.strip_prefix("app.") {
                Some(field) => whole["containers"][0][field] = value.clone(),
                None => whole[key] = value.clone(),
            }
        }
        serde_json::from_value(json!({
            "metadata": {"name": "web-edge", "namespace": "default", "annotations": {
                SOURCE_ANNOTATION: "fleet", ORIGIN_ANNOTATION: "apps/web.yaml:7:1",
            }},
            "spec": whole,
        }))
        .unwrap()
    }

    fn named(spec: &Value) -> Vec<(Option<String>, &'static str, Option<String>)> {
        let pod = pod(spec);
        rights(&pod).iter().map(|(container, right)| (container.map(str::to_owned), right.name(), right.value())).collect()
    }

    #[test]
    fn confined_pod_is_no_finding() {
        let confined = pod(&json!({}));
        assert_eq!(judge(&[confined]), [Finding::ok("1 pod, all confined and limited")]);
        assert_eq!(judge(&[])[0].severity, Ok);
    }

    #[test]
    fn each_right_is_named_with_its_holder() {
        let app = || Some("app".to_owned());
        let value = |text: &str| Some(text.to_owned());
        for (spec, expected) in [
            (json!({"hostNetwork": true, "app.ports": [{"containerPort": 80, "hostPort": 80}]}), (None, "hostNetwork", None)),
            (json!({"hostPID": true}), (None, "hostPID", None)),
            (json!({"hostIPC": true}), (None, "hostIPC", None)),
            (
                json!({"app.securityContext": {"runAsUser": 1, "privileged": true, "seccompProfile": {"type": "Unconfined"}}}),
                (app(), "privileged", None),
            ),
            (
                json!({"app.securityContext": {"runAsUser": 1, "capabilities": {"add": ["NET_ADMIN", "CHOWN", "SYS_TIME"]}}}),
                (app(), "capabilities", value("NET_ADMIN,SYS_TIME")),
            ),
            (json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}), (app(), "seccompUnconfined", None)),
            (json!({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}), (app(), "appArmorUnconfined", None)),
            (
                json!({"app.securityContext": {"runAsUser": 1, "procMount": "Unmasked"}, "hostUsers": false}),
                (app(), "procMountUnmasked", None),
            ),
            (json!({"app.ports": [{"containerPort": 80, "hostPort": 8080}]}), (app(), "hostPort", value("8080"))),
            (json!({"app.securityContext": {}}), (app(), "root", None)),
            (json!({"app.resources": {"limits": {"cpu": "1"}}}), (app(), "noLimits", value("memory"))),
        ] {
            assert_eq!(named(&spec), [expected], "{spec}");
        }
    }

    #[test]
    fn host_paths_are_told_by_how_they_are_mounted() {
        let mounted = |mount: Value| {
            named(&json!({"volumes": [{"name": "v", "hostPath": {"path": "/srv/"}}, {"name": "e", "emptyDir": {}}],
                "app.volumeMounts": [{"name": "e", "mountPath": "/e"}, mount]}))
        };
        let path = |right, path: &str| [(Some("app".to_owned()), right, Some(path.to_owned()))];
        assert_eq!(mounted(json!({"name": "v", "mountPath": "/a"})), path("hostPathWritable", "/srv/"));
        assert_eq!(mounted(json!({"name": "v", "mountPath": "/a", "subPath": "b"})), path("hostPathWritable", "/srv/b"));
        assert_eq!(mounted(json!({"name": "v", "mountPath": "/a", "readOnly": true})), path("hostPathReadOnly", "/srv/"));
    }

    #[test]
    fn root_is_who_runs_as_root_of_the_host() {
        let is_root = |spec: Value| named(&spec).iter().any(|(_, right, _)| *right == "root");
        let own = |context: Value| is_root(json!({"app.securityContext": context, "securityContext": {"runAsUser": 5}}));
        assert!(!own(json!({})) && own(json!({"runAsUser": 0})));
        assert!(!is_root(json!({"app.securityContext": {"runAsNonRoot": true}})));
        assert!(!is_root(json!({"app.securityContext": {"runAsUser": 0}, "hostUsers": false})));
        let mut seen = pod(&json!({"app.securityContext": {}}));
        let status = |uid: i64| {
            json!({"containerStatuses": [{"name": "app", "ready": true, "restartCount": 0, "image": "", "imageID": "",
            "user": {"linux": {"uid": uid, "gid": 0}}}]})
        };
        for (uid, is_it) in [(0, true), (33, false)] {
            seen.status = Some(serde_json::from_value(status(uid)).unwrap());
            assert_eq!(rights(&seen).iter().any(|(_, right)| *right == Right::Root), is_it, "{uid}");
        }
    }

    #[test]
    fn pod_is_told_with_source_file_and_line() {
        let strong = pod(&json!({"hostPID": true, "app.securityContext": {"privileged": true, "runAsUser": 0}}));
        let weak = pod(&json!({"app.resources": {}}));
        let found = judge(&[strong, weak]);
        assert_eq!([found[0].severity, found[1].severity], [Warning, Note]);
        assert_eq!(
            found[0].what,
            "pod web-edge (source fleet, apps/web.yaml:7:1):\nuses the host PID namespace\ncontainer app: privileged; root without a user namespace"
        );
        let shown = serde_json::to_value(found[0].pod.as_ref().unwrap()).unwrap();
        assert_eq!(shown["origin"], "apps/web.yaml:7:1");
        assert_eq!(shown["rights"][1], json!({"right": "privileged", "container": "app"}));
    }
}
