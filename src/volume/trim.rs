//! Taking away what an earlier definition of a pod had and the present one has not. Only for when no container runs that was made from the
//! earlier one: a container has the directory itself mounted, and would see its files go.

use super::host_files::termination_run;
use super::{claims, empty_dir, image_volume, nfs, removal};
use k8s_openapi::api::core::v1::Volume;
use podstead_pod::DesiredPod;
use podstead_pod::claims::claim_of;
use podstead_pod::containers::{self, list, spec};
use podstead_pod::files::is_projected;
use podstead_sys::layout::Paths;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Removes volumes, pins and termination logs that nothing in the pod names. Returns what could not be done; the rest was.
pub(super) fn trim(paths: &Paths, desired: &DesiredPod) -> Vec<String> {
    let DesiredPod { uid, pod, .. } = desired;
    let volumes = list(&spec(pod).volumes);
    let names = |is_wanted: fn(&Volume) -> bool| -> BTreeSet<String> {
        volumes.iter().filter(|volume| is_wanted(volume)).map(|volume| volume.name.clone()).collect()
    };
    let empty_dirs = names(|volume| volume.empty_dir.is_some());
    let mut left = keep_only(&paths.empty_dirs(uid), &empty_dirs.iter().flat_map(|volume| empty_dir::entries(volume)).collect());
    let projected = names(is_projected);
    if projected.is_empty() {
        left.extend(removal::remove(&paths.projected(uid)));
    } else {
        left.extend(keep_only(&paths.projected(uid), &projected));
    }
    let images = names(|volume| volume.image.is_some());
    left.extend(keep_only(&paths.image_volumes(uid), &images.iter().flat_map(|volume| image_volume::entries(volume)).collect()));
    let exports = names(|volume| volume.nfs.is_some());
    left.extend(keep_only(&paths.nfs_volumes(uid), &exports.iter().flat_map(|volume| nfs::entries(volume)).collect()));
    let marks = volumes.iter().filter_map(|volume| Some(claims::mark(&volume.name, &claim_of(pod, volume)?)));
    left.extend(keep_only(&paths.claim_marks(uid), &marks.collect()));
    let mut containers = BTreeSet::new();
    for (_, container) in containers::all(pod) {
        let mounts = list(&container.volume_mounts).iter().enumerate();
        let has_path = |path: &Option<String>| path.as_ref().is_some_and(|path| !path.is_empty());
        let pins = mounts.filter(|(_, mount)| has_path(&mount.sub_path) || has_path(&mount.sub_path_expr));
        let pins: BTreeSet<String> = pins.map(|(index, _)| index.to_string()).collect();
        left.extend(keep_only(&paths.sub_paths(uid).join(&container.name), &pins));
        containers.insert(container.name.clone());
    }
    left.extend(keep_only(&paths.sub_paths(uid), &containers));
    let is_kept = |name: &str| termination_run(name).is_none_or(|(container, _)| containers.contains(container));
    left.extend(keep_only_if(&paths.host_files(uid), is_kept));
    left
}

/// Removes all entries of `directory` but those of these names.
fn keep_only(directory: &Path, names: &BTreeSet<String>) -> Vec<String> {
    keep_only_if(directory, |name| names.contains(name))
}

/// Removes all entries of `directory` but those whose names are to be kept.
fn keep_only_if(directory: &Path, is_kept: impl Fn(&str) -> bool) -> Vec<String> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![format!("list {directory:?}: {error}")],
    };
    let is_kept = |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(&is_kept);
    entries.flatten().filter(|entry| !is_kept(entry)).flat_map(|entry| removal::remove(&entry.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::desired;

    #[test]
    fn what_the_pod_no_longer_names_goes_and_the_rest_stays() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
        let pod = desired(
            "{containers: [{name: c, image: x, volumeMounts: [{name: kept, mountPath: /a}, {name: kept, mountPath: /b, subPath: s}]}],
              volumes: [{name: kept, emptyDir: {}}, {name: other, hostPath: {path: /x}}, {name: share, nfs: {server: s, path: /p}}]}",
        );
        let uid = &pod.uid;
        let places = [
            (paths.empty_dir(uid, "kept"), true),
            (paths.empty_dir(uid, "kept.ready"), true),
            (paths.empty_dir(uid, "gone"), false),
            (paths.empty_dir(uid, "gone.ready"), false),
            (paths.empty_dir(uid, "other"), false),
            (paths.projected(uid), false),
            (paths.nfs_volume(uid, "share"), true),
            (paths.nfs_volume(uid, "share.json"), true),
            (paths.nfs_volume(uid, "gone"), false),
            (paths.sub_paths(uid).join("c/0"), false),
            (paths.sub_paths(uid).join("c/1"), true),
            (paths.sub_paths(uid).join("d/0"), false),
            (paths.host_files(uid).join("termination.c.0"), true),
            (paths.host_files(uid).join("termination.d.0"), false),
            (paths.host_files(uid).join("hosts"), true),
        ];
        for (place, _) in &places {
            fs::create_dir_all(place.join("deep")).unwrap();
            fs::write(place.join("deep/file"), "x").unwrap();
        }
        assert_eq!(trim(&paths, &pod), Vec::<String>::new());
        for (place, stays) in &places {
            assert_eq!(place.join("deep/file").is_file(), *stays, "{place:?}");
        }
    }
}
