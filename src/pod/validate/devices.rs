//! Devices that a pod names by annotations, against its containers. The annotations themselves are checked with the metadata.

use crate::Pod;
use crate::containers::{self, list};
use crate::devices::{self, DeviceRequest, PREFIX};
use crate::field::{FieldPath, Problems};
use k8s_openapi::api::core::v1::Container;
use std::path::Path;

/// Checks that the named containers are there, and that no volume covers the place of a device.
pub(super) fn check(pod: &Pod, path: &FieldPath, problems: &mut Problems) {
    let of_annotations = devices::of_pod(pod);
    // The device of a claim does not matter here.
    let of_volumes = devices::all_of(pod, |_| Some("/dev/x".into())).split_off(of_annotations.len());
    for (device, other) in of_volumes.iter().flat_map(|device| of_annotations.iter().map(move |other| (device, other))) {
        if devices::overlap(device, other) {
            let path = path.key(&format!("{PREFIX}{}", other.name));
            problems.forbidden(&path, format_args!("{} is also the devicePath of volume {}", other.path.display(), device.name));
        }
    }
    for request in of_annotations {
        let path = path.key(&format!("{PREFIX}{}", request.name));
        let names: Vec<&str> = containers::all(pod).map(|(_, container)| container.name.as_str()).collect();
        for name in request.containers.iter().flatten().filter(|name| !names.contains(&name.as_str())) {
            problems.not_one_of(&path, name, &names);
        }
        for (_, container) in containers::all(pod).filter(|(_, container)| request.is_for(&container.name)) {
            if let Some(mount) = covering(&request, container) {
                let (place, name) = (request.path.display(), &container.name);
                problems.forbidden(&path, format_args!("container {name} mounts a volume on {mount}, where it would have {place}"));
            }
        }
    }
}

/// The mount that the device would be in, or that would hide it.
fn covering<'c>(request: &DeviceRequest, container: &'c Container) -> Option<&'c str> {
    let places = list(&container.volume_mounts).iter().map(|mount| mount.mount_path.as_str());
    places.into_iter().find(|place| {
        let path = Path::new(place);
        request.path.starts_with(path) && path.starts_with("/dev") || path.starts_with(&request.path)
    })
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::problems_of;

    #[track_caller]
    fn check(value: &str, mounts: &str, expected: &[&str]) {
        let pod = format!(
            "{{metadata: {{name: a, annotations: {{devices.podstead.dev/x: \"{value}\"}}}},
              spec: {{volumes: [{{name: v, emptyDir: {{}}}}], containers: [{{name: main, image: x, volumeMounts: [{mounts}]}}]}}}}"
        );
        let path = "metadata.annotations[devices.podstead.dev/x]: ";
        let found: Vec<String> =
            problems_of(&pod).into_iter().filter_map(|problem| problem.strip_prefix(path).map(str::to_owned)).collect();
        assert_eq!(found, expected, "{value} {mounts}");
    }

    #[test]
    fn containers_of_a_device_exist() {
        check("{path: /dev/x, containers: [main]}", "", &[]);
        check("{path: /dev/x, containers: [man]}", "", &["invalid value \"man\": must be one of \"main\""]);
    }

    #[test]
    fn volumes_do_not_cover_devices() {
        check("/dev/radio/x", "{name: v, mountPath: /data}, {name: v, mountPath: /dev/shm}", &[]);
        for place in ["/dev", "/dev/radio", "/dev/radio/x", "/dev/radio/x/y"] {
            let expected = format!("forbidden: container main mounts a volume on {place}, where it would have /dev/radio/x");
            check("/dev/radio/x", &format!("{{name: v, mountPath: {place}}}"), &[&expected]);
        }
    }
}
