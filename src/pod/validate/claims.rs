//! PersistentVolumeClaims, as the API server checks them, and their fields without a meaning on a single host.

use super::names::{dns_label, dns_subdomain};
use crate::claims::{BLOCK_DEVICE_ANNOTATION, RECLAIM_POLICY_ANNOTATION};
use crate::containers::{list, text};
use crate::devices;
use crate::field::{FieldPath, Problems};
use crate::quantity::Amount;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec};

const ACCESS_MODES: [&str; 4] = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];

/// Reports what is wrong with a claim.
pub(crate) fn check(claim: &PersistentVolumeClaim, problems: &mut Problems) {
    let metadata = FieldPath::root("metadata");
    problems.required_text(&metadata.child("name"), text(&claim.metadata.name), dns_subdomain);
    problems.optional_text(&metadata.child("namespace"), text(&claim.metadata.namespace), dns_label);
    let policy = claim.metadata.annotations.as_ref().and_then(|annotations| annotations.get(RECLAIM_POLICY_ANNOTATION));
    if let Some(policy) = policy {
        problems.one_of(&metadata.child("annotations").key(RECLAIM_POLICY_ANNOTATION), policy, &["Retain", "Delete"]);
    }
    check_device(claim, &metadata.child("annotations").key(BLOCK_DEVICE_ANNOTATION), problems);
    match &claim.spec {
        Some(spec) => check_spec(spec, &FieldPath::root("spec"), problems),
        None => problems.required(&FieldPath::root("spec"), ""),
    }
}

/// A block device is named exactly with `volumeMode: Block`.
fn check_device(claim: &PersistentVolumeClaim, path: &FieldPath, problems: &mut Problems) {
    let is_block = claim.spec.as_ref().is_some_and(|spec| text(&spec.volume_mode) == "Block");
    let device = claim.metadata.annotations.as_ref().and_then(|annotations| annotations.get(BLOCK_DEVICE_ANNOTATION));
    match (is_block, device) {
        (true, Some(device)) => {
            if let Err(rule) = devices::host_path(device) {
                problems.invalid(path, device, rule);
            }
        }
        (true, None) => {
            problems.required(path, "the path of the block device, such as /dev/disk/by-id/..., with volumeMode: Block")
        }
        (false, Some(_)) => problems.forbidden(path, "needs volumeMode: Block"),
        (false, None) => {}
    }
}

fn check_spec(spec: &PersistentVolumeClaimSpec, path: &FieldPath, problems: &mut Problems) {
    // Destructured in full, so that a new field has to be placed here.
    let PersistentVolumeClaimSpec {
        access_modes,
        data_source,
        data_source_ref,
        resources,
        selector,
        storage_class_name: _,
        volume_attributes_class_name,
        volume_mode,
        volume_name,
    } = spec;
    let modes = list(access_modes);
    let place = path.child("accessModes");
    if modes.is_empty() {
        problems.required(&place, "at least one, e.g. ReadWriteOnce");
    }
    for (index, mode) in modes.iter().enumerate() {
        problems.one_of(&place.index(index), mode, &ACCESS_MODES);
    }
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        problems.forbidden(&place, "ReadWriteOncePod may not be used with other access modes");
    }
    let place = path.child("resources.requests").key("storage");
    let request = resources.as_ref().and_then(|resources| resources.requests.as_ref()?.get("storage"));
    match request.map(|request| (request, Amount::read(request))) {
        None => problems.required(&place, ""),
        Some((_, Ok(amount))) if !amount.is_zero() && !amount.is_negative() => {}
        Some((request, Ok(_))) => problems.invalid(&place, &request.0, "must be greater than 0"),
        Some((request, Err(error))) => problems.invalid(&place, &request.0, error),
    }
    if !text(volume_mode).is_empty() {
        problems.one_of(&path.child("volumeMode"), text(volume_mode), &["Filesystem", "Block"]);
    }
    if data_source.is_some() || data_source_ref.is_some() {
        let instead = Some("fill the volume in an init container");
        problems.unsupported(&path.child("dataSource"), "data sources are not supported", instead);
    }
    for (name, is_set) in [
        ("selector", selector.is_some()),
        ("volumeName", !text(volume_name).is_empty()),
        ("volumeAttributesClassName", !text(volume_attributes_class_name).is_empty()),
    ] {
        if is_set {
            problems.ignored(&path.child(name), "each claim has its own directory");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_claim(fields: &str, expected: &[&str]) {
        let claim: PersistentVolumeClaim = serde_yaml::from_str(&format!("{{metadata: {{name: a}}, {fields}}}")).unwrap();
        let mut problems = Problems::default();
        check(&claim, &mut problems);
        let told: Vec<String> =
            problems.into_vec().iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect();
        assert_eq!(told, expected, "{fields}");
    }

    #[test]
    fn a_claim_has_a_mode_and_a_size() {
        check_claim("spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: fast}", &[]);
        check_claim(
            "spec: {}",
            &["spec.accessModes: is required: at least one, e.g. ReadWriteOnce", "spec.resources.requests[storage]: is required"],
        );
        check_claim(
            "spec: {accessModes: [ReadWriteOncePod, ReadWriteOnce], resources: {requests: {storage: '0'}}}",
            &[
                "spec.accessModes: forbidden: ReadWriteOncePod may not be used with other access modes",
                "spec.resources.requests[storage]: invalid value \"0\": must be greater than 0",
            ],
        );
    }

    #[test]
    fn block_device_is_named_with_its_mode() {
        let check = |device: &str, mode: &str, expected: &[&str]| {
            let spec = format!("{{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}, volumeMode: {mode}}}");
            let claim = format!("{{metadata: {{name: a, annotations: {{{device}}}}}, spec: {spec}}}");
            let claim: PersistentVolumeClaim = serde_yaml::from_str(&claim).unwrap();
            let mut problems = Problems::default();
            super::check(&claim, &mut problems);
            let told: Vec<String> = problems.into_vec().iter().map(|problem| problem.message.clone()).collect();
            assert_eq!(told, expected, "{device} {mode}");
        };
        check("podstead.dev/block-device: /dev/disk/by-id/x", "Block", &[]);
        check("", "Block", &["is required: the path of the block device, such as /dev/disk/by-id/..., with volumeMode: Block"]);
        check("podstead.dev/block-device: /dev/sdb", "Filesystem", &["forbidden: needs volumeMode: Block"]);
        check(
            "podstead.dev/block-device: /etc/passwd",
            "Block",
            &["invalid value \"/etc/passwd\": must be an absolute path below /dev, without '..'"],
        );
    }

    #[test]
    fn what_needs_a_cluster_is_reported() {
        let plain = "accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}";
        check_claim(
            &format!("spec: {{{plain}, volumeName: pv-1}}"),
            &["spec.volumeName: has no effect: each claim has its own directory"],
        );
    }
}
