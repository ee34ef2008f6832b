//! Volumes. Types that `support` refuses as a whole and that no later release will honour are not looked into.

use super::env::{check_resource_ref, check_volume_field_ref};
use super::names::{Rule, config_key, dns_label, dns_subdomain, file_mode, inner_path, no_nul, no_steps_back};
use crate::Pod;
use crate::containers::{self, list, text};
use crate::field::{FieldPath, Problems};
use crate::nfs;
use crate::quantity::Amount;
use k8s_openapi::api::core::v1::{
    DownwardAPIVolumeFile, EmptyDirVolumeSource, HostPathVolumeSource, KeyToPath, PodSpec, ProjectedVolumeSource, Volume,
    VolumeProjection,
};
use std::collections::HashSet;

const HOST_PATH_TYPES: [&str; 7] =
    ["DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"];

/// A kubelet accepts it without a message.
pub(super) const UNUSED: &str = "no container mounts it";

/// All volumes of a pod.
pub(super) fn check(volumes: &[Volume], path: &FieldPath, problems: &mut Problems) {
    let mut names = HashSet::new();
    for (index, volume) in volumes.iter().enumerate() {
        let path = path.index(index);
        problems.required_text(&path.child("name"), &volume.name, dns_label);
        if !volume.name.is_empty() && !names.insert(&volume.name) {
            problems.duplicate(&path.child("name"), &volume.name);
        }
        check_one_source(volume, &path, problems);
        check_source(volume, &path, problems);
    }
}

/// Volumes that are there for nothing.
pub(super) fn check_use(pod: &Pod, spec: &PodSpec, path: &FieldPath, problems: &mut Problems) {
    let variables = containers::all(pod).flat_map(|(_, container)| list(&container.env));
    let files = variables.filter_map(|variable| variable.value_from.as_ref()?.file_key_ref.as_ref());
    let read: HashSet<&str> = files.map(|file| file.volume_name.as_str()).collect();
    for (index, Volume { name, .. }) in list(&spec.volumes).iter().enumerate() {
        if !name.is_empty() && !containers::has_volume(pod, name) && !read.contains(name.as_str()) {
            problems.suspicious(&path.index(index), UNUSED);
        }
    }
}

/// Annotations with mount options, each for a volume that takes them.
pub(super) fn check_mount_options(pod: &Pod, path: &FieldPath, problems: &mut Problems) {
    let volumes = list(&containers::spec(pod).volumes);
    for (key, value) in pod.metadata.annotations.iter().flatten() {
        let Some(name) = key.strip_prefix(nfs::PREFIX) else { continue };
        let path = path.key(key);
        if !volumes.iter().any(|volume| volume.name == name && volume.nfs.is_some()) {
            problems.forbidden(&path, format_args!("the pod has no nfs volume {name:?}"));
        } else if let Err(rule) = nfs::NfsOptions::parse(value) {
            problems.invalid(&path, value, &rule);
        }
    }
}

/// A volume is of one type. The types are counted on the volume's JSON, where each is a member beside the name.
fn check_one_source(volume: &Volume, path: &FieldPath, problems: &mut Problems) {
    let Ok(serde_json::Value::Object(members)) = serde_json::to_value(volume) else { return };
    let types: Vec<_> = members.keys().map(String::as_str).filter(|member| *member != "name").collect();
    if types.len() > 1 {
        problems.forbidden(path, format_args!("a volume must have exactly one type, this one has {}", types.join(" and ")));
    }
}

fn check_source(volume: &Volume, path: &FieldPath, problems: &mut Problems) {
    if let Some(source) = &volume.empty_dir {
        check_empty_dir(source, &path.child("emptyDir"), problems);
    }
    if let Some(source) = &volume.host_path {
        check_host_path(source, &path.child("hostPath"), problems);
    }
    if let Some(source) = &volume.config_map {
        let path = path.child("configMap");
        problems.required_text(&path.child("name"), &source.name, dns_subdomain);
        check_mode(source.default_mode, &path.child("defaultMode"), problems);
        check_items(list(&source.items), &path.child("items"), problems);
    }
    if let Some(source) = &volume.secret {
        let path = path.child("secret");
        problems.required_text(&path.child("secretName"), text(&source.secret_name), dns_subdomain);
        check_mode(source.default_mode, &path.child("defaultMode"), problems);
        check_items(list(&source.items), &path.child("items"), problems);
    }
    if let Some(source) = &volume.downward_api {
        let path = path.child("downwardAPI");
        check_mode(source.default_mode, &path.child("defaultMode"), problems);
        check_files(list(&source.items), &path.child("items"), problems);
    }
    if let Some(source) = &volume.projected {
        check_projected(source, &path.child("projected"), problems);
    }
    if let Some(source) = &volume.image {
        let path = path.child("image");
        if text(&source.reference).is_empty() {
            problems.required(&path.child("reference"), "");
        }
        problems.one_of(&path.child("pullPolicy"), text(&source.pull_policy), &["Always", "IfNotPresent", "Never"]);
    }
    if let Some(source) = &volume.nfs {
        let path = path.child("nfs");
        problems.required_text(&path.child("server"), &source.server, nfs::check_server);
        problems.required_text(&path.child("path"), &source.path, nfs::check_path);
    }
    if let Some(source) = &volume.persistent_volume_claim {
        problems.required_text(&path.child("persistentVolumeClaim.claimName"), &source.claim_name, dns_subdomain);
    }
}

fn check_empty_dir(source: &EmptyDirVolumeSource, path: &FieldPath, problems: &mut Problems) {
    if let Some(limit) = &source.size_limit {
        match Amount::read(limit) {
            Ok(amount) if amount.is_negative() => problems.invalid(&path.child("sizeLimit"), &limit.0, "must not be negative"),
            Ok(_) => {}
            Err(error) => problems.invalid(&path.child("sizeLimit"), &limit.0, error),
        }
    }
    let medium = text(&source.medium);
    let hugepages = medium == "HugePages" || medium.strip_prefix("HugePages-").is_some_and(|size| size.parse::<Amount>().is_ok());
    if !hugepages && !medium.is_empty() && medium != "Memory" {
        problems.not_one_of(&path.child("medium"), medium, &["Memory", "HugePages", "HugePages-<size>"]);
    }
}

fn check_host_path(source: &HostPathVolumeSource, path: &FieldPath, problems: &mut Problems) {
    problems.required_text(&path.child("path"), &source.path, |text| {
        if !text.starts_with('/') {
            return Err("must be an absolute path");
        }
        no_steps_back(text).and_then(|()| no_nul(text))
    });
    let kind = text(&source.type_);
    if !kind.is_empty() {
        problems.one_of(&path.child("type"), kind, &HOST_PATH_TYPES);
    }
}

fn check_mode(mode: Option<i32>, path: &FieldPath, problems: &mut Problems) {
    if let Some(mode) = mode {
        problems.rule(path, mode, file_mode(mode));
    }
}

/// The path of a file in a volume; names that start with `..` are the kubelet's own.
fn file_path(text: &str) -> Rule {
    inner_path(text).and_then(|()| no_nul(text))?;
    if text.starts_with("..") { Err("must not start with '..'") } else { Ok(()) }
}

fn check_items(items: &[KeyToPath], path: &FieldPath, problems: &mut Problems) {
    for (index, item) in items.iter().enumerate() {
        let path = path.index(index);
        problems.required_text(&path.child("key"), &item.key, config_key);
        problems.required_text(&path.child("path"), &item.path, file_path);
        check_mode(item.mode, &path.child("mode"), problems);
    }
}

fn check_files(files: &[DownwardAPIVolumeFile], path: &FieldPath, problems: &mut Problems) {
    for (index, file) in files.iter().enumerate() {
        let path = path.index(index);
        problems.required_text(&path.child("path"), &file.path, file_path);
        check_mode(file.mode, &path.child("mode"), problems);
        match (&file.field_ref, &file.resource_field_ref) {
            (None, None) => problems.required(&path, "one of fieldRef, resourceFieldRef"),
            (Some(_), Some(_)) => problems.forbidden(&path, "may have only one of fieldRef and resourceFieldRef"),
            (Some(selector), None) => check_volume_field_ref(selector, &path.child("fieldRef"), problems),
            (None, Some(selector)) => check_resource_ref(selector, None, &path.child("resourceFieldRef"), problems),
        }
    }
}

fn check_projected(source: &ProjectedVolumeSource, path: &FieldPath, problems: &mut Problems) {
    check_mode(source.default_mode, &path.child("defaultMode"), problems);
    let mut paths = HashSet::new();
    for (index, projection) in list(&source.sources).iter().enumerate() {
        let path = path.child("sources").index(index);
        check_projection(projection, &path, problems);
        for file in projected_paths(projection) {
            if !paths.insert(file) {
                problems.duplicate(&path, file);
            }
        }
    }
}

fn check_projection(projection: &VolumeProjection, path: &FieldPath, problems: &mut Problems) {
    let VolumeProjection { cluster_trust_bundle, config_map, downward_api, pod_certificate, secret, service_account_token } =
        projection;
    let set = [
        cluster_trust_bundle.is_some(),
        config_map.is_some(),
        downward_api.is_some(),
        pod_certificate.is_some(),
        secret.is_some(),
        service_account_token.is_some(),
    ];
    match set.iter().filter(|set| **set).count() {
        0 => problems.required(path, "one of configMap, secret, downwardAPI"),
        1 => {}
        _ => problems.forbidden(path, "may have only one kind of source"),
    }
    if let Some(source) = config_map {
        problems.required_text(&path.child("configMap.name"), &source.name, dns_subdomain);
        check_items(list(&source.items), &path.child("configMap.items"), problems);
    }
    if let Some(source) = secret {
        problems.required_text(&path.child("secret.name"), &source.name, dns_subdomain);
        check_items(list(&source.items), &path.child("secret.items"), problems);
    }
    if let Some(source) = downward_api {
        check_files(list(&source.items), &path.child("downwardAPI.items"), problems);
    }
}

fn projected_paths(projection: &VolumeProjection) -> impl Iterator<Item = &str> {
    let config_map = projection.config_map.iter().flat_map(|source| list(&source.items)).map(|item| item.path.as_str());
    let secret = projection.secret.iter().flat_map(|source| list(&source.items)).map(|item| item.path.as_str());
    let downward = projection.downward_api.iter().flat_map(|source| list(&source.items)).map(|file| file.path.as_str());
    config_map.chain(secret).chain(downward)
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::{check_spec, problems_of};

    #[track_caller]
    fn check(volumes: &str, expected: &[&str]) {
        check_spec(&format!("containers: [{{name: a, image: x}}], volumes: [{volumes}]"), expected);
    }

    #[test]
    fn volumes_have_a_unique_name_and_one_type() {
        check("{name: a}, {name: b, emptyDir: {}}, {name: c, hostPath: {path: /x}}", &[]);
        check("{emptyDir: {}}", &["spec.volumes[0].name: is required"]);
        check(
            "{name: A}",
            &[
                "spec.volumes[0].name: invalid value \"A\": must be 1 to 63 lower-case letters, digits or '-', starting and ending with a letter or digit",
            ],
        );
        check("{name: a}, {name: a}", &["spec.volumes[1].name: duplicate value \"a\""]);
        check(
            "{name: a, emptyDir: {}, hostPath: {path: /x}}",
            &["spec.volumes[0]: forbidden: a volume must have exactly one type, this one has emptyDir and hostPath"],
        );
    }

    #[test]
    fn what_no_container_has_is_told() {
        let env = "env: [{name: A, valueFrom: {fileKeyRef: {volumeName: read, path: p, key: k}}}]";
        let mount = |name: &str| format!("volumeMounts: [{{name: {name}, mountPath: /m}}]");
        let spec = format!(
            "initContainers: [{{name: i, image: x, {}}}], containers: [{{name: a, image: x, {env}, {}}}],
             volumes: [{{name: mounted, emptyDir: {{}}}}, {{name: unused, emptyDir: {{}}}}, {{name: read, emptyDir: {{}}}}, {{name: early, emptyDir: {{}}}}]",
            mount("early"),
            mount("mounted")
        );
        check_spec(&spec, &["spec.volumes[1]: no container mounts it"]);
        check_spec(
            &spec.replace("name: unused", "name: early2").replace("name: mounted, mountPath", "name: early2, mountPath"),
            &["spec.volumes[0]: no container mounts it"],
        );
    }

    #[test]
    fn an_empty_dir_has_a_medium_and_a_size() {
        check("{name: a, emptyDir: {medium: Memory, sizeLimit: 64Mi}}, {name: b, emptyDir: {medium: HugePages-2Mi}}", &[]);
        check(
            "{name: a, emptyDir: {sizeLimit: -1}}",
            &["spec.volumes[0].emptyDir.sizeLimit: invalid value \"-1\": must not be negative"],
        );
        check(
            "{name: a, emptyDir: {sizeLimit: 64MB}}",
            &["spec.volumes[0].emptyDir.sizeLimit: invalid value \"64MB\": must be a quantity such as 500m, 2, 64Mi or 1.5G"],
        );
        check(
            "{name: a, emptyDir: {medium: memory}}",
            &[
                "spec.volumes[0].emptyDir.medium: invalid value \"memory\": must be one of \"Memory\", \"HugePages\", \"HugePages-<size>\"",
            ],
        );
    }

    #[test]
    fn nfs_volume_has_server_and_path() {
        check("{name: a, nfs: {server: nas.lan, path: /export/a, readOnly: true}}", &[]);
        check(
            "{name: a, nfs: {server: 'a,b', path: export}}",
            &[
                "spec.volumes[0].nfs.server: invalid value \"a,b\": must be a host name or an IP address",
                "spec.volumes[0].nfs.path: invalid value \"export\": must be an absolute path",
            ],
        );
        check(
            "{name: a, nfs: {server: '', path: ''}}",
            &["spec.volumes[0].nfs.server: is required", "spec.volumes[0].nfs.path: is required"],
        );
    }

    #[test]
    fn mount_options_belong_to_nfs_volume() {
        let problems = |name: &str, options: &str| {
            problems_of(&format!(
                "{{metadata: {{name: a, annotations: {{nfs.podstead.dev/{name}: '{options}'}}}}, spec: {{containers: [{{name: a, image: x, volumeMounts: \
                 [{{name: n, mountPath: /n}}, {{name: e, mountPath: /e}}]}}], volumes: [{{name: n, nfs: {{server: s, path: /p}}}}, {{name: e, emptyDir: {{}}}}]}}}}"
            ))
        };
        assert_eq!(problems("n", "vers=3,soft"), [""; 0]);
        let field = "metadata.annotations[nfs.podstead.dev/";
        assert_eq!(problems("n", "fast"), [format!("{field}n]: invalid value \"fast\": \"fast\" is not a supported option")]);
        for other in ["e", "none"] {
            assert_eq!(problems(other, "soft"), [format!("{field}{other}]: forbidden: the pod has no nfs volume {other:?}")]);
        }
    }

    #[test]
    fn a_host_path_is_absolute_and_of_a_known_type() {
        check("{name: a, hostPath: {path: /var/lib, type: DirectoryOrCreate}}", &[]);
        check("{name: a, hostPath: {}}", &["spec.volumes[0].hostPath.path: is required"]);
        check(
            "{name: a, hostPath: {path: var}}",
            &["spec.volumes[0].hostPath.path: invalid value \"var\": must be an absolute path"],
        );
        check(
            "{name: a, hostPath: {path: /a/../b}}",
            &["spec.volumes[0].hostPath.path: invalid value \"/a/../b\": must not contain '..'"],
        );
        check(
            "{name: a, hostPath: {path: /a, type: directory}}",
            &[
                "spec.volumes[0].hostPath.type: invalid value \"directory\": must be one of \"DirectoryOrCreate\", \"Directory\", \"FileOrCreate\", \"File\", \"Socket\", \"CharDevice\", \"BlockDevice\"",
            ],
        );
    }

    #[test]
    fn files_of_a_config_map_or_secret_stay_inside() {
        check("{name: a, configMap: {name: m, defaultMode: 0, items: [{key: k, path: a/b, mode: 511}]}}", &[]);
        check(
            "{name: a, configMap: {defaultMode: 512, items: [{key: ., path: ../b, mode: -1}]}}",
            &[
                "spec.volumes[0].configMap.name: is required",
                "spec.volumes[0].configMap.defaultMode: invalid value 512: must be between 0 and 0777 (octal)",
                "spec.volumes[0].configMap.items[0].key: invalid value \".\": must be 1 to 253 letters, digits, '-', '_' or '.', not '.' and not starting with '..'",
                "spec.volumes[0].configMap.items[0].path: invalid value \"../b\": must not contain '..'",
                "spec.volumes[0].configMap.items[0].mode: invalid value -1: must be between 0 and 0777 (octal)",
            ],
        );
        check(
            "{name: a, secret: {items: [{key: k, path: ..b}]}}",
            &[
                "spec.volumes[0].secret.secretName: is required",
                "spec.volumes[0].secret.items[0].path: invalid value \"..b\": must not start with '..'",
            ],
        );
    }

    #[test]
    fn a_file_of_the_downward_api_has_one_reference_to_metadata_or_a_resource() {
        check(
            "{name: a, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}, {path: c, resourceFieldRef: {containerName: a, resource: limits.cpu}}]}}",
            &[],
        );
        check(
            "{name: a, downwardAPI: {items: [{path: a}, {path: b, fieldRef: {fieldPath: status.podIP}}, {path: c, resourceFieldRef: {resource: limits.cpu}}]}}",
            &[
                "spec.volumes[0].downwardAPI.items[0]: is required: one of fieldRef, resourceFieldRef",
                "spec.volumes[0].downwardAPI.items[1].fieldRef.fieldPath: invalid value \"status.podIP\": must be a field of metadata when used in a volume",
                "spec.volumes[0].downwardAPI.items[2].resourceFieldRef.containerName: is required",
            ],
        );
    }

    #[test]
    fn projections_have_one_source_each_and_do_not_collide() {
        check(
            "{name: a, projected: {sources: [{configMap: {name: m, items: [{key: a, path: a}]}}, {secret: {name: s, items: [{key: a, path: b}]}}]}}",
            &[],
        );
        check(
            "{name: a, projected: {sources: [{}, {configMap: {name: m}, secret: {name: s}}]}}",
            &[
                "spec.volumes[0].projected.sources[0]: is required: one of configMap, secret, downwardAPI",
                "spec.volumes[0].projected.sources[1]: forbidden: may have only one kind of source",
            ],
        );
        check(
            "{name: a, projected: {sources: [{configMap: {name: m, items: [{key: a, path: a}]}}, {secret: {name: s, items: [{key: a, path: a}]}}]}}",
            &["spec.volumes[0].projected.sources[1]: duplicate value \"a\""],
        );
    }

    #[test]
    fn images_and_claims_are_named() {
        check(
            "{name: a, image: {}}, {name: b, persistentVolumeClaim: {}}",
            &["spec.volumes[0].image.reference: is required", "spec.volumes[1].persistentVolumeClaim.claimName: is required"],
        );
    }
}
