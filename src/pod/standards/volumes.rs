//! Controls about types of volumes.

use super::Findings;
use super::subject::Subject;
use crate::containers::list;
use k8s_openapi::api::core::v1::Volume;

pub(super) fn host_paths(subject: &Subject<'_>, findings: &mut Findings) {
    for (index, volume) in list(&subject.spec.volumes).iter().enumerate() {
        if volume.host_path.is_some() {
            let message = "hostPath volumes are not allowed";
            findings.push(format!("spec.volumes[{index}].hostPath"), message, "use an emptyDir or a persistentVolumeClaim");
        }
    }
}

/// `restricted` has a list of types. A volume without one is an emptyDir.
pub(super) fn types(subject: &Subject<'_>, findings: &mut Findings) {
    for (index, volume) in list(&subject.spec.volumes).iter().enumerate() {
        for name in refused_types(volume) {
            let message = format!("volumes of type {name} are not allowed");
            let fix = "use configMap, csi, downwardAPI, emptyDir, ephemeral, image, persistentVolumeClaim, projected or secret";
            findings.push(format!("spec.volumes[{index}].{name}"), message, fix);
        }
    }
}

fn refused_types(volume: &Volume) -> Vec<&'static str> {
    let Volume {
        name: _,
        // Allowed.
        config_map: _,
        csi: _,
        downward_api: _,
        empty_dir: _,
        ephemeral: _,
        image: _,
        persistent_volume_claim: _,
        projected: _,
        secret: _,
        // Not allowed.
        aws_elastic_block_store,
        azure_disk,
        azure_file,
        cephfs,
        cinder,
        fc,
        flex_volume,
        flocker,
        gce_persistent_disk,
        git_repo,
        glusterfs,
        host_path,
        iscsi,
        nfs,
        photon_persistent_disk,
        portworx_volume,
        quobyte,
        rbd,
        scale_io,
        storageos,
        vsphere_volume,
    } = volume;
    let types = [
        ("awsElasticBlockStore", aws_elastic_block_store.is_some()),
        ("azureDisk", azure_disk.is_some()),
        ("azureFile", azure_file.is_some()),
        ("cephfs", cephfs.is_some()),
        ("cinder", cinder.is_some()),
        ("fc", fc.is_some()),
        ("flexVolume", flex_volume.is_some()),
        ("flocker", flocker.is_some()),
        ("gcePersistentDisk", gce_persistent_disk.is_some()),
        ("gitRepo", git_repo.is_some()),
        ("glusterfs", glusterfs.is_some()),
        ("hostPath", host_path.is_some()),
        ("iscsi", iscsi.is_some()),
        ("nfs", nfs.is_some()),
        ("photonPersistentDisk", photon_persistent_disk.is_some()),
        ("portworxVolume", portworx_volume.is_some()),
        ("quobyte", quobyte.is_some()),
        ("rbd", rbd.is_some()),
        ("scaleIO", scale_io.is_some()),
        ("storageos", storageos.is_some()),
        ("vsphereVolume", vsphere_volume.is_some()),
    ];
    types.into_iter().filter_map(|(name, is_set)| is_set.then_some(name)).collect()
}
