//! Files that a pod's volumes have from ConfigMaps, Secrets and from the pod itself: `configMap`, `secret`, `downwardAPI` and `projected`
//! volumes. **Pure**.
//!
//! In: a defaulted and validated pod, the objects that it may refer to and the facts of its node. Out: for each such volume its files, or
//! why it has none. Writing them is the volume store's.

mod downward;
mod project;

use super::Pod;
use super::containers::{has_volume, list, spec, text};
use super::env::{EnvFacts, FieldRefError, ResourceFieldError};
use super::objects::{ObjectError, ObjectKind, SourceView};
use k8s_openapi::api::core::v1::{SecretProjection, Volume};
use project::Projecting;
use std::collections::BTreeMap;
use std::fmt;

/// One file.
#[derive(Clone, PartialEq, Eq)]
pub struct VolumeFile {
    /// Permissions.
    pub mode: u32,
    /// Content of the file.
    pub content: Vec<u8>,
}

impl fmt::Debug for VolumeFile {
    /// Never the content: it may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:o} {} bytes", self.mode, self.content.len())
    }
}

/// Files by their path in the volume: relative, without `..` and not beginning with it.
pub type VolumeFiles = BTreeMap<String, VolumeFile>;

/// Desired files of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    /// Name in `spec.volumes`.
    pub volume: String,
    /// The files.
    pub files: VolumeFiles,
    /// True if the files are final: no source that has yet to deliver could change them. What is in the volume is kept until then.
    pub is_sure: bool,
}

/// Reason why a volume cannot have its files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MountVolume.SetUp failed for volume {volume:?} : {why}")]
pub struct ProjectionError {
    /// Name in `spec.volumes`.
    pub volume: String,
    /// The reason.
    pub why: Box<ProjectionProblem>,
}

/// Problem with a volume's files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProjectionProblem {
    /// An object, or a key of it, is missing.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A field of the pod cannot be read.
    #[error(transparent)]
    Field(#[from] FieldRefError),
    /// A resource cannot be read.
    #[error(transparent)]
    Resource(#[from] ResourceFieldError),
    /// A container mounts what is a block device.
    #[error("the claim has volumeMode: Block, use it in volumeDevices instead of volumeMounts")]
    BlockMounted,
    /// A container wants a block device from what is a directory.
    #[error("the claim is a directory, use it in volumeMounts, or set volumeMode: Block and its block device")]
    NoBlock,
    /// One path is a file and the directory of another.
    #[error("{0:?} is below another path that is a file")]
    Clash(String),
}

/// Returns true if podstead writes the volume's files.
pub fn is_projected(volume: &Volume) -> bool {
    volume.config_map.is_some() || volume.secret.is_some() || volume.downward_api.is_some() || volume.projected.is_some()
}

/// Returns true if a container of the pod has such a volume.
pub fn has_projected(pod: &Pod) -> bool {
    projected(pod).next().is_some()
}

fn projected(pod: &Pod) -> impl Iterator<Item = &Volume> {
    list(&spec(pod).volumes).iter().filter(|volume| is_projected(volume) && has_volume(pod, &volume.name))
}

/// The files of each volume of the pod's containers that has some from objects or from the pod.
pub fn projections(pod: &Pod, objects: SourceView<'_>, facts: &EnvFacts) -> Vec<Result<Projection, ProjectionError>> {
    let project = |volume: &Volume| {
        let mut projecting = Projecting::new(pod, objects, facts, default_mode(volume));
        let done = project(volume, &mut projecting).and_then(|()| projecting.checked());
        let done = done.map(|(files, is_sure)| Projection { volume: volume.name.clone(), files, is_sure });
        done.map_err(|why| ProjectionError { volume: volume.name.clone(), why: Box::new(why) })
    };
    projected(pod).map(project).collect()
}

fn default_mode(volume: &Volume) -> u32 {
    let modes = [
        volume.config_map.as_ref().and_then(|source| source.default_mode),
        volume.secret.as_ref().and_then(|source| source.default_mode),
        volume.downward_api.as_ref().and_then(|source| source.default_mode),
        volume.projected.as_ref().and_then(|source| source.default_mode),
    ];
    modes.into_iter().flatten().next().map_or(0o644, project::permissions)
}

fn project(volume: &Volume, projecting: &mut Projecting<'_>) -> Result<(), ProjectionProblem> {
    if let Some(source) = &volume.config_map {
        return projecting.object(ObjectKind::ConfigMap, &source.name, list(&source.items), source.optional == Some(true));
    }
    if let Some(source) = &volume.secret {
        let name = text(&source.secret_name);
        return projecting.object(ObjectKind::Secret, name, list(&source.items), source.optional == Some(true));
    }
    if let Some(source) = &volume.downward_api {
        return projecting.downward(list(&source.items));
    }
    for source in volume.projected.iter().flat_map(|projected| list(&projected.sources)) {
        if let Some(source) = &source.config_map {
            projecting.object(ObjectKind::ConfigMap, &source.name, list(&source.items), source.optional == Some(true))?;
        }
        if let Some(SecretProjection { name, items, optional }) = &source.secret {
            projecting.object(ObjectKind::Secret, name, list(items), *optional == Some(true))?;
        }
        if let Some(source) = &source.downward_api {
            projecting.downward(list(&source.items))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeName;
    use crate::objects::Objects;
    use crate::testing::{seen, view};

    const OBJECTS: &str = "{kind: ConfigMap, metadata: {name: m}, data: {a: one, b: two}, binaryData: {raw: /wA=}}
---
{kind: Secret, metadata: {name: s}, data: {p: c2VjcmV0}}";

    fn facts() -> EnvFacts {
        EnvFacts {
            node_name: NodeName::new("edge"),
            cluster_domain: "cluster.local".into(),
            host_ips: vec![],
            pod_ips: vec![],
            service_variables: Vec::new(),
            allocatable_cpu_milli: 3500,
            allocatable_memory_bytes: 4 << 30,
            allocatable_ephemeral_storage_bytes: 1 << 30,
        }
    }

    fn of(volume: &str, objects: &Objects) -> Result<Projection, ProjectionError> {
        let pod = format!(
            "{{metadata: {{name: web, uid: u, labels: {{b: 'x \"y\"', a: \"1\\n2\"}}}},
               spec: {{containers: [{{name: c, resources: {{limits: {{memory: 64Mi}}}}, volumeMounts: [{{name: v, mountPath: /v}}, {{name: plain, mountPath: /p}}]}}],
                volumes: [{{name: plain, emptyDir: {{}}}}, {{name: v, {volume}}}, {{name: unused, secret: {{secretName: none}}}}]}}}}"
        );
        let mut pod: Pod = serde_yaml::from_str(&pod).unwrap();
        crate::defaults::apply(&mut pod);
        let [projection] = projections(&pod, seen(objects), &facts()).try_into().unwrap();
        projection
    }

    #[track_caller]
    fn check(volume: &str, expected: &[(&str, u32, &[u8])]) {
        let projection = of(volume, &view(&[("a", Some(OBJECTS))])).unwrap();
        let found: Vec<_> =
            projection.files.iter().map(|(path, file)| (path.as_str(), file.mode, file.content.as_slice())).collect();
        assert_eq!(found, expected, "{volume}");
        assert!(projection.is_sure);
    }

    #[test]
    fn all_keys_or_the_items_become_files() {
        check("configMap: {name: m}", &[("a", 0o644, b"one"), ("b", 0o644, b"two"), ("raw", 0o644, &[255, 0])]);
        check("secret: {secretName: s, defaultMode: 256}", &[("p", 0o400, b"secret")]);
        check(
            "configMap: {name: m, defaultMode: 0o600, items: [{key: a, path: x/y}, {key: a, path: z, mode: 0o777}]}",
            &[("x/y", 0o600, b"one"), ("z", 0o777, b"one")],
        );
        check("configMap: {name: none, optional: true}", &[]);
        check("configMap: {name: m, optional: true, items: [{key: none, path: x}, {key: b, path: y}]}", &[("y", 0o644, b"two")]);
    }

    #[test]
    fn a_projected_volume_joins_its_sources() {
        check(
            "projected: {defaultMode: 0o440, sources: [{configMap: {name: m, items: [{key: a, path: conf/a}]}},
               {secret: {name: s, items: [{key: p, path: conf/p, mode: 0o400}]}},
               {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}]}",
            &[("conf/a", 0o440, b"one"), ("conf/p", 0o400, b"secret"), ("labels", 0o440, b"a=\"1\\n2\"\nb=\"x \\\"y\\\"\"")],
        );
    }

    #[test]
    fn fields_of_the_pod_become_files() {
        check(
            "downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}, {path: a, fieldRef: {fieldPath: \"metadata.labels['b']\"}},
               {path: mem, mode: 0o600, resourceFieldRef: {containerName: c, resource: limits.memory, divisor: 1Mi}},
               {path: cpu, resourceFieldRef: {containerName: c, resource: limits.cpu}}]}",
            &[("a", 0o644, b"x \"y\""), ("cpu", 0o644, b"4"), ("mem", 0o600, b"64"), ("name", 0o644, b"web")],
        );
    }

    #[test]
    fn what_is_missing_names_volume_object_key_and_sources() {
        let objects = view(&[("a", Some(OBJECTS))]);
        for (volume, expected) in [
            ("secret: {secretName: none}", "secret \"none\" not found in namespace \"default\" (looked in source a)"),
            ("configMap: {name: m, items: [{key: z, path: z}]}", "couldn't find key z in ConfigMap default/m of source a"),
            (
                "projected: {sources: [{configMap: {name: m}}, {configMap: {name: m, items: [{key: a, path: b/c}]}}]}",
                "\"b/c\" is below another path that is a file",
            ),
        ] {
            let error = of(volume, &objects).unwrap_err().to_string();
            assert_eq!(error, format!("MountVolume.SetUp failed for volume \"v\" : {expected}"));
        }
    }

    #[test]
    fn an_optional_object_that_may_still_come_leaves_the_files_unsure() {
        let projection = of("configMap: {name: none, optional: true}", &view(&[("a", Some(OBJECTS)), ("b", None)])).unwrap();
        assert!(!projection.is_sure);
    }

    #[test]
    fn debug_shows_no_content() {
        let projection = of("secret: {secretName: s}", &view(&[("a", Some(OBJECTS))])).unwrap();
        assert!(!format!("{projection:?}").contains("secret"), "{projection:?}");
    }
}
