//! Defaults inside a volume.

use super::container::{default_field_reference, pull_policy};
use super::{set, set_number};
use crate::containers::text;
use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, EmptyDirVolumeSource, Volume, VolumeProjection};

/// 0644.
const FILE_MODE: i32 = 0o644;

pub(super) fn default_volume(volume: &mut Volume) {
    if without_source(volume) {
        volume.empty_dir = Some(EmptyDirVolumeSource::default());
    }
    if let Some(source) = &mut volume.host_path {
        source.type_.get_or_insert_default();
    }
    if let Some(source) = &mut volume.config_map {
        source.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(source) = &mut volume.secret {
        source.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(source) = &mut volume.downward_api {
        source.default_mode.get_or_insert(FILE_MODE);
        default_files(&mut source.items);
    }
    if let Some(source) = &mut volume.projected {
        source.default_mode.get_or_insert(FILE_MODE);
        source.sources.iter_mut().flatten().for_each(default_projection);
    }
    if let Some(source) = &mut volume.image {
        let policy = pull_policy(text(&source.reference));
        set(&mut source.pull_policy, policy);
    }
    if let Some(template) = volume.ephemeral.as_mut().and_then(|source| source.volume_claim_template.as_mut()) {
        set(&mut template.spec.volume_mode, "Filesystem");
    }
    network_storage(volume);
}

fn default_projection(projection: &mut VolumeProjection) {
    if let Some(source) = &mut projection.downward_api {
        default_files(&mut source.items);
    }
    if let Some(source) = &mut projection.service_account_token {
        source.expiration_seconds.get_or_insert(60 * 60);
    }
    if let Some(source) = &mut projection.pod_certificate {
        set_number(&mut source.max_expiration_seconds, 24 * 60 * 60);
    }
}

fn default_files(files: &mut Option<Vec<DownwardAPIVolumeFile>>) {
    files.iter_mut().flatten().filter_map(|file| file.field_ref.as_mut()).for_each(default_field_reference);
}

/// Volume types of old, refused here; defaulted all the same, so that the validation of their fields sees what a server sees.
fn network_storage(volume: &mut Volume) {
    if let Some(source) = &mut volume.iscsi {
        set(&mut source.iscsi_interface, "default");
    }
    if let Some(source) = &mut volume.rbd {
        set(&mut source.pool, "rbd");
        set(&mut source.user, "admin");
        set(&mut source.keyring, "/etc/ceph/keyring");
    }
    if let Some(source) = &mut volume.azure_disk {
        set(&mut source.caching_mode, "ReadWrite");
        set(&mut source.kind, "Shared");
        set(&mut source.fs_type, "ext4");
        source.read_only.get_or_insert(false);
    }
    if let Some(source) = &mut volume.scale_io {
        set(&mut source.storage_mode, "ThinProvisioned");
        set(&mut source.fs_type, "xfs");
    }
}

/// Returns true if the volume has no source; it is an emptyDir then.
fn without_source(volume: &Volume) -> bool {
    *volume == Volume { name: volume.name.clone(), ..Volume::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn each_source_gets_its_defaults() {
        for (written, expected) in [
            ("", "emptyDir: {}"),
            ("hostPath: {path: /x}", "hostPath: {path: /x, type: ''}"),
            ("hostPath: {path: /x, type: File}", "hostPath: {path: /x, type: File}"),
            ("configMap: {name: m}", "configMap: {name: m, defaultMode: 420}"),
            ("secret: {secretName: s, defaultMode: 0}", "secret: {secretName: s, defaultMode: 0}"),
            ("secret: {secretName: s}", "secret: {secretName: s, defaultMode: 420}"),
            (
                "downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}",
                "downwardAPI: {defaultMode: 420, items: [{path: p, fieldRef: {fieldPath: metadata.name, apiVersion: v1}}]}",
            ),
            (
                "projected: {sources: [{serviceAccountToken: {path: t}}, {downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}}]}",
                "projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}},
                    {downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name, apiVersion: v1}}]}}]}",
            ),
            ("image: {reference: x}", "image: {reference: x, pullPolicy: Always}"),
            ("image: {reference: 'x:1'}", "image: {reference: 'x:1', pullPolicy: IfNotPresent}"),
            (
                "azureDisk: {diskName: d, diskURI: u}",
                "azureDisk: {diskName: d, diskURI: u, cachingMode: ReadWrite, kind: Shared, fsType: ext4, readOnly: false}",
            ),
        ] {
            let mut volume: Volume = serde_yaml::from_str(&format!("{{name: v, {written}}}")).unwrap();
            default_volume(&mut volume);
            let expected: Value = serde_yaml::from_str(&format!("{{name: v, {expected}}}")).unwrap();
            assert_eq!(serde_json::to_value(&volume).unwrap(), expected, "{written}");
        }
    }
}
