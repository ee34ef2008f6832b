//! Objects that a pod refers to.

use super::{ObjectKind, ObjectName};
use crate::containers::{self, list, spec, text};
use crate::{Pod, pull_secrets};
use k8s_openapi::api::core::v1::{Container, Volume};
use std::collections::BTreeSet;

/// The namespace that a pod's references are looked up in.
pub(crate) fn namespace_of(pod: &Pod) -> &str {
    match text(&pod.metadata.namespace) {
        "" => "default",
        namespace => namespace,
    }
}

/// Every object that the pod's environment or volumes name, optional or not, or that its images are pulled with.
pub fn references(pod: &Pod) -> BTreeSet<ObjectName> {
    let named = containers::all(pod).flat_map(|(_, container)| of_environment(container));
    let named = named.chain(list(&spec(pod).volumes).iter().flat_map(of_volume));
    let name = |(kind, name): (ObjectKind, &str)| ObjectName { kind, namespace: namespace_of(pod).into(), name: name.into() };
    named.map(name).chain(pull_secrets::names(pod)).collect()
}

fn of_environment(container: &Container) -> impl Iterator<Item = (ObjectKind, &str)> {
    let whole = list(&container.env_from).iter().flat_map(|source| {
        let config_map = source.config_map_ref.as_ref().map(|reference| (ObjectKind::ConfigMap, reference.name.as_str()));
        config_map.into_iter().chain(source.secret_ref.as_ref().map(|reference| (ObjectKind::Secret, reference.name.as_str())))
    });
    let keys = list(&container.env).iter().filter_map(|variable| variable.value_from.as_ref()).flat_map(|from| {
        let config_map = from.config_map_key_ref.as_ref().map(|selector| (ObjectKind::ConfigMap, selector.name.as_str()));
        config_map.into_iter().chain(from.secret_key_ref.as_ref().map(|selector| (ObjectKind::Secret, selector.name.as_str())))
    });
    whole.chain(keys)
}

fn of_volume(volume: &Volume) -> impl Iterator<Item = (ObjectKind, &str)> {
    let config_map = volume.config_map.as_ref().map(|source| (ObjectKind::ConfigMap, source.name.as_str()));
    let secret = volume.secret.as_ref().map(|source| (ObjectKind::Secret, text(&source.secret_name)));
    let sources = volume.projected.iter().flat_map(|projected| list(&projected.sources));
    let projected = sources.flat_map(|source| {
        let config_map = source.config_map.as_ref().map(|source| (ObjectKind::ConfigMap, source.name.as_str()));
        config_map.into_iter().chain(source.secret.as_ref().map(|source| (ObjectKind::Secret, source.name.as_str())))
    });
    let claim = volume.persistent_volume_claim.as_ref();
    let claim = claim.map(|source| (ObjectKind::PersistentVolumeClaim, source.claim_name.as_str()));
    config_map.into_iter().chain(secret).chain(projected).chain(claim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_reference_is_found() {
        let pod: Pod = serde_yaml::from_str(
            "{metadata: {namespace: shop}, spec: {imagePullSecrets: [{name: i}],
               initContainers: [{name: i, envFrom: [{configMapRef: {name: a}}]}],
               containers: [{name: c, envFrom: [{secretRef: {name: b}}], env: [{name: A, value: a},
                 {name: B, valueFrom: {configMapKeyRef: {name: c, key: k}}}, {name: C, valueFrom: {secretKeyRef: {name: d, key: k}}}]}],
               volumes: [{name: a, emptyDir: {}}, {name: b, configMap: {name: e}}, {name: c, secret: {secretName: f}},
                 {name: d, projected: {sources: [{configMap: {name: g}}, {secret: {name: h}}, {downwardAPI: {}}]}}]}}",
        )
        .unwrap();
        let found: Vec<String> = references(&pod).iter().map(ToString::to_string).collect();
        let config_maps = ["a", "c", "e", "g"].map(|name| format!("ConfigMap shop/{name}"));
        let secrets = ["b", "d", "f", "h", "i"].map(|name| format!("Secret shop/{name}"));
        assert_eq!(found, [&config_maps[..], &secrets[..]].concat());
    }
}
