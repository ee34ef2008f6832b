//! The mirror of a pod: what the API server is given to show (kubelet rules E1, E7).
//!
//! A mirror must not refer to other objects: an API server refuses one that names a Secret, a ConfigMap, a service account, a claim of
//! storage or a resource claim. What does so is left out, with the mounts of volumes that are left out, and the annotation
//! [`OMITTED_ANNOTATION`] names it. What the objects hold is never in a Pod and so never leaves this host.

use super::NodeRef;
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, ProjectedVolumeSource, Toleration, Volume, VolumeProjection};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use podstead_pod::identity::{ANNOTATION_CONFIG_HASH, ANNOTATION_CONFIG_MIRROR, ANNOTATION_KEEPS_NAME};
use podstead_pod::{Pod, PodFullName};
use std::collections::BTreeSet;

pub use podstead_pod::annotations::OMITTED as OMITTED_ANNOTATION;

/// Priority classes that no cluster is without.
const CLASSES_OF_EVERY_CLUSTER: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// Returns the content hash annotation of a pod; empty for one without it, which no source delivers.
pub fn content_hash(pod: &Pod) -> &str {
    let annotations = pod.metadata.annotations.as_ref();
    annotations.and_then(|annotations| annotations.get(ANNOTATION_CONFIG_HASH)).map_or("", String::as_str)
}

/// Level of detail of a mirror pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// All that a mirror may have.
    #[default]
    Whole,
    /// Without what an API server that is older than this host may find invalid: it drops fields that it does not know, and a probe or a hook
    /// whose only handler is such a field is refused, as is a probe of an init container.
    Plain,
}

/// The name of the mirror of a pod. Names of pods that a workload made, or that are of a writable source, are the same on many hosts, and get the
/// name of the host only here; all others have it.
pub fn mirror_name(pod: &Pod, full_name: &PodFullName, node: &str) -> PodFullName {
    let suffix = format!("-{}", node.to_lowercase());
    let is_owned = pod.metadata.owner_references.as_ref().is_some_and(|owners| !owners.is_empty());
    let keeps_name = pod.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(ANNOTATION_KEEPS_NAME));
    match is_owned || keeps_name {
        true => PodFullName { name: format!("{}{suffix}", full_name.name), ..full_name.clone() },
        false => full_name.clone(),
    }
}

/// The object to create for a pod of this host. It has no status: that follows by a patch.
pub fn mirror_of(pod: &Pod, full_name: &PodFullName, node: &NodeRef, detail: Detail) -> Pod {
    let mut omitted = Vec::new();
    let mut spec = pod.spec.clone().map(|spec| bare_spec(spec, node, &mut omitted));
    match detail {
        Detail::Whole => {}
        Detail::Plain => spec.iter_mut().flat_map(containers).for_each(|(list, container)| plain(list, container, &mut omitted)),
    }
    let mut annotations = pod.metadata.annotations.clone().unwrap_or_default();
    annotations.insert(ANNOTATION_CONFIG_MIRROR.to_owned(), content_hash(pod).to_owned());
    if !omitted.is_empty() {
        annotations.insert(OMITTED_ANNOTATION.to_owned(), omitted.join(","));
    }
    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "Node".into(),
        name: node.name.clone(),
        uid: node.uid.clone(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    // UID, version and times are the server's to give; finalizers would keep a mirror that this host has to delete.
    let metadata = ObjectMeta {
        name: Some(full_name.name.clone()),
        namespace: Some(full_name.namespace.clone()),
        labels: pod.metadata.labels.clone(),
        annotations: Some(annotations),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    Pod { metadata, spec, status: None }
}

fn bare_spec(mut spec: PodSpec, node: &NodeRef, omitted: &mut Vec<String>) -> PodSpec {
    let mut leave_out = |path: &str, was_there: bool| {
        if was_there {
            omitted.push(path.to_owned());
        }
    };
    leave_out("spec.imagePullSecrets", spec.image_pull_secrets.take().is_some_and(|secrets| !secrets.is_empty()));
    leave_out("spec.serviceAccountName", spec.service_account_name.take().is_some());
    spec.service_account = None;
    leave_out("spec.resourceClaims", spec.resource_claims.take().is_some_and(|claims| !claims.is_empty()));
    // Those of every cluster stay; a class that a cluster has not is refused, and those of this host are none of its own.
    let is_foreign = |class: &String| !CLASSES_OF_EVERY_CLUSTER.contains(&class.as_str());
    leave_out("spec.priorityClassName", spec.priority_class_name.take_if(|class| is_foreign(class)).is_some());
    // The server computes them, and refuses others.
    spec.priority = None;
    spec.preemption_policy = None;
    spec.node_name = Some(node.name.clone());
    // Nothing keeps a static pod from running, so no taint may take its mirror away (kubelet rule A19).
    let tolerations = spec.tolerations.get_or_insert_default();
    let everything = Toleration { operator: Some("Exists".into()), effect: Some("NoExecute".into()), ..Toleration::default() };
    if !tolerations.contains(&everything) {
        tolerations.push(everything);
    }
    let mut gone = BTreeSet::new();
    if let Some(volumes) = spec.volumes.take() {
        let kept: Vec<_> = volumes.into_iter().filter_map(|volume| bare_volume(volume, &mut gone, omitted)).collect();
        spec.volumes = (!kept.is_empty()).then_some(kept);
    }
    for (list, container) in containers(&mut spec) {
        bare_container(list, container, &gone, omitted);
    }
    spec
}

/// All containers, with the lists that they are in.
fn containers(spec: &mut PodSpec) -> impl Iterator<Item = (&'static str, &mut Container)> {
    let init = spec.init_containers.iter_mut().flatten().map(|container| ("initContainers", container));
    init.chain(spec.containers.iter_mut().map(|container| ("containers", container)))
}

/// Removes fields that an older server may refuse.
fn plain(list: &str, container: &mut Container, omitted: &mut Vec<String>) {
    let at = format!("spec.{list}[{}]", container.name);
    let mut leave_out = |field: &str, was_there: bool| {
        if was_there {
            omitted.push(format!("{at}.{field}"));
        }
    };
    leave_out("livenessProbe", container.liveness_probe.take().is_some());
    leave_out("readinessProbe", container.readiness_probe.take().is_some());
    leave_out("startupProbe", container.startup_probe.take().is_some());
    leave_out("lifecycle", container.lifecycle.take().is_some());
    leave_out("restartPolicy", container.restart_policy.take().is_some());
    leave_out("restartPolicyRules", container.restart_policy_rules.take().is_some());
    let of_file = |variable: &EnvVar| variable.value_from.as_ref().is_some_and(|source| source.file_key_ref.is_some());
    for variable in container.env.iter_mut().flat_map(|env| env.extract_if(.., |variable| of_file(variable))) {
        leave_out(&format!("env[{}]", variable.name), true);
    }
}

/// A volume without references; `None` for one that is nothing else.
fn bare_volume(volume: Volume, gone: &mut BTreeSet<String>, omitted: &mut Vec<String>) -> Option<Volume> {
    // Only kinds that refer to nothing: a kind that is not known here cannot slip through.
    let bare = Volume {
        name: volume.name,
        empty_dir: volume.empty_dir,
        host_path: volume.host_path,
        downward_api: volume.downward_api,
        image: volume.image,
        nfs: volume.nfs,
        projected: None,
        ..Volume::default()
    };
    let sources_of = |projected: &ProjectedVolumeSource| projected.sources.as_ref().map_or(0, Vec::len);
    let all = volume.projected.as_ref().map_or(0, sources_of);
    let bare = Volume { projected: volume.projected.and_then(bare_projection), ..bare };
    if bare.projected.as_ref().is_some_and(|projected| sources_of(projected) < all) {
        omitted.push(format!("spec.volumes[{}].projected", bare.name));
    }
    let is_something = bare.empty_dir.is_some()
        || bare.host_path.is_some()
        || bare.downward_api.is_some()
        || bare.image.is_some()
        || bare.nfs.is_some()
        || bare.projected.is_some();
    if !is_something {
        omitted.push(format!("spec.volumes[{}]", bare.name));
        gone.insert(bare.name);
        return None;
    }
    Some(bare)
}

/// Returns the downward API sources of a projected volume; `None` if there are none.
fn bare_projection(projected: ProjectedVolumeSource) -> Option<ProjectedVolumeSource> {
    let of_the_pod = projected.sources.into_iter().flatten().filter_map(|source| source.downward_api);
    let sources: Vec<_> = of_the_pod
        .map(|downward_api| VolumeProjection { downward_api: Some(downward_api), ..VolumeProjection::default() })
        .collect();
    (!sources.is_empty()).then_some(ProjectedVolumeSource { sources: Some(sources), ..projected })
}

fn bare_container(list: &str, container: &mut Container, gone: &BTreeSet<String>, omitted: &mut Vec<String>) {
    let at = format!("spec.{list}[{}]", container.name);
    if let Some(env_from) = container.env_from.take()
        && !env_from.is_empty()
    {
        omitted.push(format!("{at}.envFrom"));
    }
    if let Some(env) = &mut container.env {
        env.retain(|variable| {
            let source = variable.value_from.as_ref();
            let refers = source.is_some_and(|source| source.secret_key_ref.is_some() || source.config_map_key_ref.is_some());
            if refers {
                omitted.push(format!("{at}.env[{}]", variable.name));
            }
            !refers
        });
        // What a variable is read from may be a volume that is left out.
        env.retain(|variable| {
            let file = variable.value_from.as_ref().and_then(|source| source.file_key_ref.as_ref());
            let refers = file.is_some_and(|file| gone.contains(&file.volume_name));
            if refers {
                omitted.push(format!("{at}.env[{}]", variable.name));
            }
            !refers
        });
    }
    if let Some(mounts) = &mut container.volume_mounts {
        mounts.retain(|mount| !gone.contains(&mount.name));
    }
    container.volume_devices = None;
    if let Some(resources) = &mut container.resources {
        resources.claims = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn mirror(spec: Value) -> Value {
        mirror_with(spec, Detail::Whole)
    }

    fn mirror_with(spec: Value, detail: Detail) -> Value {
        let pod = json!({
            "metadata": {
                "name": "web", "namespace": "default", "uid": "local", "finalizers": ["x/y"], "labels": {"app": "web"},
                "annotations": {"kubernetes.io/config.hash": "h1"},
            },
            "spec": spec,
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let full_name = PodFullName { name: "web-edge".into(), namespace: "default".into() };
        let node = NodeRef { name: "edge".into(), uid: "node-1".into() };
        serde_json::to_value(mirror_of(&pod, &full_name, &node, detail)).unwrap()
    }

    #[test]
    fn only_pods_of_workloads_get_node_name() {
        let full_name = |name: &str| PodFullName { name: name.into(), namespace: "shop".into() };
        let of_manifest = Pod::default();
        assert_eq!(mirror_name(&of_manifest, &full_name("web-edge"), "Edge"), full_name("web-edge"));
        let owner = OwnerReference { kind: "StatefulSet".into(), ..OwnerReference::default() };
        let metadata = ObjectMeta { owner_references: Some(vec![owner]), ..ObjectMeta::default() };
        let of_workload = Pod { metadata, ..Pod::default() };
        assert_eq!(mirror_name(&of_workload, &full_name("db-0"), "Edge"), full_name("db-0-edge"));
    }

    #[test]
    fn e1_a_mirror_has_the_hash_the_node_and_the_node_as_its_only_owner() {
        let mirror = mirror(json!({"containers": [{"name": "c", "image": "i"}]}));
        let metadata = &mirror["metadata"];
        assert_eq!(metadata["name"], "web-edge");
        assert_eq!(metadata["annotations"]["kubernetes.io/config.mirror"], "h1");
        assert_eq!(metadata["annotations"][OMITTED_ANNOTATION], Value::Null);
        assert_eq!(
            metadata["ownerReferences"],
            json!([{"apiVersion": "v1", "kind": "Node", "name": "edge", "uid": "node-1", "controller": true}])
        );
        assert_eq!((&metadata["uid"], &metadata["finalizers"]), (&Value::Null, &Value::Null));
        assert_eq!(mirror["spec"]["nodeName"], "edge");
        assert_eq!(mirror["spec"]["tolerations"], json!([{"effect": "NoExecute", "operator": "Exists"}]));
    }

    #[test]
    fn what_an_older_server_may_refuse_is_left_out_if_it_does() {
        let spec = json!({
            "initContainers": [{"name": "s", "image": "i", "restartPolicy": "Always", "startupProbe": {"grpc": {"port": 1}}}],
            "containers": [{
                "name": "c", "image": "i",
                "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
                "env": [{"name": "A", "value": "x"}, {"name": "F", "valueFrom": {"fileKeyRef": {"key": "k", "path": "p", "volumeName": "v"}}}],
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }],
            "volumes": [{"name": "v", "emptyDir": {}}],
        });
        let whole = mirror(spec.clone());
        assert_eq!(whole["metadata"]["annotations"][OMITTED_ANNOTATION], Value::Null);
        assert_eq!(whole["spec"]["initContainers"][0]["restartPolicy"], "Always");
        let plain = mirror_with(spec, Detail::Plain);
        assert_eq!(
            plain["metadata"]["annotations"][OMITTED_ANNOTATION],
            "spec.initContainers[s].startupProbe,spec.initContainers[s].restartPolicy,spec.containers[c].lifecycle,spec.containers[c].env[F]"
        );
        assert_eq!(plain["spec"]["initContainers"], json!([{"name": "s", "image": "i"}]));
        assert_eq!(plain["spec"]["containers"][0]["env"], json!([{"name": "A", "value": "x"}]));
    }

    #[test]
    fn e7_what_a_server_refuses_is_left_out_and_named() {
        let mirror = mirror(json!({
            "imagePullSecrets": [{"name": "pull"}],
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "priorityClassName": "shop",
            "priority": 7,
            "volumes": [
                {"name": "scratch", "emptyDir": {}},
                {"name": "config", "configMap": {"name": "web"}},
                {"name": "claim", "persistentVolumeClaim": {"claimName": "web"}},
                {"name": "mixed", "projected": {"sources": [{"secret": {"name": "s"}}, {"downwardAPI": {"items": []}}]}},
            ],
            "initContainers": [{"name": "i", "image": "i", "envFrom": [{"configMapRef": {"name": "web"}}]}],
            "containers": [{
                "name": "c", "image": "i",
                "env": [
                    {"name": "PLAIN", "value": "x"},
                    {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                ],
                "volumeMounts": [{"name": "config", "mountPath": "/c"}, {"name": "scratch", "mountPath": "/s"}, {"name": "mixed", "mountPath": "/m"}],
            }],
        }));
        let spec = &mirror["spec"];
        assert_eq!(
            mirror["metadata"]["annotations"][OMITTED_ANNOTATION],
            "spec.imagePullSecrets,spec.serviceAccountName,spec.priorityClassName,spec.volumes[config],spec.volumes[claim],\
             spec.volumes[mixed].projected,spec.initContainers[i].envFrom,spec.containers[c].env[TOKEN]"
        );
        let text = mirror.to_string();
        for word in ["secret", "configMap", "serviceAccount\"", "persistentVolumeClaim", "\"priority\""] {
            assert!(!text.replace(OMITTED_ANNOTATION, "").contains(&format!("\"{word}")), "{word} in {text}");
        }
        let names = |list: &Value| -> Vec<String> {
            list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&spec["volumes"]), ["scratch", "mixed"]);
        assert_eq!(names(&spec["containers"][0]["env"]), ["PLAIN", "NODE"]);
        assert_eq!(names(&spec["containers"][0]["volumeMounts"]), ["scratch", "mixed"]);
    }
}
