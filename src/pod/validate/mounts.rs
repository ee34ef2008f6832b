//! Volume mounts and block devices of a container.

use super::names::{Rule, inner_path, no_nul, no_steps_back};
use crate::containers::{list, text};
use crate::devices;
use crate::field::{FieldPath, Problems, did_you_mean};
use k8s_openapi::api::core::v1::{Container, Volume, VolumeMount};
use std::collections::HashSet;

/// File systems of the kernel that every container has. A volume may be on `/dev` itself.
const OWN: [&str; 2] = ["proc", "sys"];

/// Mounts and devices of one container.
pub(super) fn check(container: &Container, volumes: &[Volume], path: &FieldPath, problems: &mut Problems) {
    let privileged = container.security_context.as_ref().and_then(|context| context.privileged) == Some(true);
    let mut places = HashSet::new();
    for (index, mount) in list(&container.volume_mounts).iter().enumerate() {
        let path = path.child("volumeMounts").index(index);
        check_volume(&mount.name, volumes, &path, problems);
        check_mount_path(&mount.mount_path, &mut places, &path.child("mountPath"), problems);
        check_sub_path(mount, &path, problems);
        check_propagation(mount, privileged, &path, problems);
    }
    let mut names: HashSet<&str> = list(&container.volume_mounts).iter().map(|mount| mount.name.as_str()).collect();
    for (index, device) in list(&container.volume_devices).iter().enumerate() {
        let path = path.child("volumeDevices").index(index);
        check_volume(&device.name, volumes, &path, problems);
        if !names.insert(&device.name) {
            problems.duplicate(&path.child("name"), &device.name);
        }
        check_mount_path(&device.device_path, &mut places, &path.child("devicePath"), problems);
        if container_path(&device.device_path).is_ok() {
            problems.rule(&path.child("devicePath"), &device.device_path, devices::container_path(&device.device_path));
        }
        check_device(&device.name, volumes, &path.child("name"), problems);
    }
}

/// Block devices come from claims, and from paths of the host of that type.
fn check_device(name: &str, volumes: &[Volume], path: &FieldPath, problems: &mut Problems) {
    let Some(volume) = volumes.iter().find(|volume| volume.name == name) else { return };
    match &volume.host_path {
        Some(source) if devices::is_block_device(source) => {
            if let Err(rule) = devices::host_path(&source.path) {
                problems.forbidden(path, format_args!("the path of volume {name} {rule}"));
            }
        }
        None if volume.persistent_volume_claim.is_some() => {}
        Some(_) | None => {
            problems
                .forbidden(path, "volumeDevices needs a persistentVolumeClaim volume, or a hostPath volume of type BlockDevice");
        }
    }
}

fn check_volume(name: &str, volumes: &[Volume], path: &FieldPath, problems: &mut Problems) {
    let path = path.child("name");
    if name.is_empty() {
        problems.required(&path, "");
    } else if !volumes.iter().any(|volume| volume.name == name) {
        problems.invalid(&path, name, "the pod has no volume of that name");
        problems.hint(did_you_mean(name, volumes.iter().map(|volume| volume.name.as_str())));
    }
}

/// `/a//b/` and `/a/b` are one place.
fn check_mount_path(text: &str, places: &mut HashSet<Vec<String>>, path: &FieldPath, problems: &mut Problems) {
    if text.is_empty() {
        problems.required(path, "");
        return;
    }
    let rule = container_path(text);
    problems.rule(path, text, rule);
    if rule.is_ok() && !places.insert(parts(text).map(str::to_owned).collect()) {
        problems.duplicate(path, text);
    }
}

/// A place in a container's file system where something can be mounted.
pub(super) fn container_path(text: &str) -> Rule {
    if !text.starts_with('/') {
        Err("must be an absolute path")
    } else if parts(text).next().is_none() {
        Err("must not be the container's root")
    } else if OWN.iter().any(|own| parts(text).eq([*own])) {
        Err("must not be /proc or /sys, since every container has its own: use a path below, or another one such as /host/proc")
    } else {
        no_steps_back(text).and_then(|()| no_nul(text))
    }
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

fn check_sub_path(mount: &VolumeMount, path: &FieldPath, problems: &mut Problems) {
    let sub_path = text(&mount.sub_path);
    let expression = text(&mount.sub_path_expr);
    problems.optional_text(&path.child("subPath"), sub_path, |text| inner_path(text).and_then(|()| no_nul(text)));
    problems.optional_text(&path.child("subPathExpr"), expression, |text| inner_path(text).and_then(|()| no_nul(text)));
    if !sub_path.is_empty() && !expression.is_empty() {
        problems.forbidden(&path.child("subPathExpr"), "may not be set together with subPath");
    }
}

fn check_propagation(mount: &VolumeMount, privileged: bool, path: &FieldPath, problems: &mut Problems) {
    let propagation = text(&mount.mount_propagation);
    if !propagation.is_empty() {
        problems.one_of(&path.child("mountPropagation"), propagation, &["None", "HostToContainer", "Bidirectional"]);
    }
    if propagation == "Bidirectional" && !privileged {
        problems.forbidden(&path.child("mountPropagation"), "Bidirectional is for privileged containers only");
    }
    if propagation == "Bidirectional" && parts(&mount.mount_path).eq(["dev"]) {
        problems
            .forbidden(&path.child("mountPropagation"), "on /dev, the container's own /dev/pts would hide the host's terminals");
        problems.hint(Some("use HostToContainer to show the container what the host mounts there".to_owned()));
    }
    let recursive = text(&mount.recursive_read_only);
    let path = path.child("recursiveReadOnly");
    if recursive.is_empty() {
        return;
    }
    problems.one_of(&path, recursive, &["Disabled", "IfPossible", "Enabled"]);
    if recursive == "IfPossible" || recursive == "Enabled" {
        if mount.read_only != Some(true) {
            problems.forbidden(&path, "may be set only where readOnly is true");
        }
        if !matches!(propagation, "" | "None") {
            problems.forbidden(&path, "may be set only where mountPropagation is None");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::check_container;

    #[track_caller]
    fn check(mounts: &str, expected: &[&str]) {
        check_container(&format!("volumeMounts: [{mounts}]"), "volumes: [{name: cache}, {name: logs}]", expected);
    }

    #[test]
    fn a_mount_names_a_volume_and_a_place() {
        check("{name: cache, mountPath: /c}, {name: cache, mountPath: /d}, {name: logs, mountPath: /c/d}", &[]);
        check(
            "{name: cache, mountPath: /proc/x}, {name: cache, mountPath: /sys/fs/cgroup}, {name: logs, mountPath: /process}",
            &[],
        );
        check("{}", &["{P}.volumeMounts[0].name: is required", "{P}.volumeMounts[0].mountPath: is required"]);
        check(
            "{name: cash, mountPath: /c}",
            &["{P}.volumeMounts[0].name: invalid value \"cash\": the pod has no volume of that name"],
        );
        for (mount_path, message) in [
            ("data", "must be an absolute path"),
            ("/", "must not be the container's root"),
            ("/./", "must not be the container's root"),
            ("/a/../b", "must not contain '..'"),
            (
                "/proc",
                "must not be /proc or /sys, since every container has its own: use a path below, or another one such as /host/proc",
            ),
            (
                "//sys/.",
                "must not be /proc or /sys, since every container has its own: use a path below, or another one such as /host/proc",
            ),
        ] {
            check(
                &format!("{{name: cache, mountPath: {mount_path}}}"),
                &[&format!("{{P}}.volumeMounts[0].mountPath: invalid value {mount_path:?}: {message}")],
            );
        }
    }

    #[test]
    fn nothing_travels_back_from_dev() {
        check("{name: cache, mountPath: /dev}, {name: logs, mountPath: /dev/shm}, {name: logs, mountPath: /dev/ttyUSB0}", &[]);
        let privileged = |place: &str, propagation: &str, expected: &[&str]| {
            let mount = format!("{{name: cache, mountPath: {place}, mountPropagation: {propagation}}}");
            let container = format!("securityContext: {{privileged: true}}, volumeMounts: [{mount}]");
            check_container(&container, "volumes: [{name: cache}]", expected);
        };
        for place in ["/dev", "/dev/", "//./dev"] {
            let refused = "on /dev, the container's own /dev/pts would hide the host's terminals";
            privileged(place, "Bidirectional", &[&format!("{{P}}.volumeMounts[0].mountPropagation: forbidden: {refused}")]);
            privileged(place, "HostToContainer", &[]);
        }
        privileged("/dev/bus", "Bidirectional", &[]);
    }

    #[test]
    fn a_place_is_taken_once_however_it_is_written() {
        check(
            "{name: cache, mountPath: /c}, {name: logs, mountPath: /c}",
            &["{P}.volumeMounts[1].mountPath: duplicate value \"/c\""],
        );
        check(
            "{name: cache, mountPath: /a/b}, {name: logs, mountPath: /a//b/}",
            &["{P}.volumeMounts[1].mountPath: duplicate value \"/a//b/\""],
        );
    }

    #[test]
    fn a_sub_path_stays_inside() {
        check("{name: cache, mountPath: /c, subPath: a/b}, {name: cache, mountPath: /d, subPathExpr: $(POD)}", &[]);
        check(
            "{name: cache, mountPath: /c, subPath: /a}",
            &["{P}.volumeMounts[0].subPath: invalid value \"/a\": must be a relative path"],
        );
        check(
            "{name: cache, mountPath: /c, subPath: a/../..}",
            &["{P}.volumeMounts[0].subPath: invalid value \"a/../..\": must not contain '..'"],
        );
        check(
            "{name: cache, mountPath: /c, subPathExpr: ../$(A)}",
            &["{P}.volumeMounts[0].subPathExpr: invalid value \"../$(A)\": must not contain '..'"],
        );
        check(
            "{name: cache, mountPath: /c, subPath: a, subPathExpr: b}",
            &["{P}.volumeMounts[0].subPathExpr: forbidden: may not be set together with subPath"],
        );
    }

    #[test]
    fn mounts_propagate_back_from_privileged_containers_only() {
        check("{name: cache, mountPath: /c, mountPropagation: HostToContainer}", &[]);
        check(
            "{name: cache, mountPath: /c, mountPropagation: Bidirectional}",
            &["{P}.volumeMounts[0].mountPropagation: forbidden: Bidirectional is for privileged containers only"],
        );
        check_container(
            "securityContext: {privileged: true}, volumeMounts: [{name: cache, mountPath: /c, mountPropagation: Bidirectional}]",
            "volumes: [{name: cache}]",
            &[],
        );
        check(
            "{name: cache, mountPath: /c, mountPropagation: shared}",
            &[
                "{P}.volumeMounts[0].mountPropagation: invalid value \"shared\": must be one of \"None\", \"HostToContainer\", \"Bidirectional\"",
            ],
        );
    }

    #[test]
    fn recursive_read_only_needs_read_only() {
        check(
            "{name: cache, mountPath: /c, readOnly: true, recursiveReadOnly: Enabled}, {name: cache, mountPath: /d, recursiveReadOnly: Disabled}",
            &[],
        );
        check(
            "{name: cache, mountPath: /c, mountPropagation: HostToContainer, recursiveReadOnly: IfPossible}",
            &[
                "{P}.volumeMounts[0].recursiveReadOnly: forbidden: may be set only where readOnly is true",
                "{P}.volumeMounts[0].recursiveReadOnly: forbidden: may be set only where mountPropagation is None",
            ],
        );
        check(
            "{name: cache, mountPath: /c, recursiveReadOnly: yes please}",
            &[
                "{P}.volumeMounts[0].recursiveReadOnly: invalid value \"yes please\": must be one of \"Disabled\", \"IfPossible\", \"Enabled\"",
            ],
        );
    }

    #[test]
    fn a_device_takes_a_name_and_a_place_of_its_own() {
        check_container(
            "volumeMounts: [{name: cache, mountPath: /dev/c}], volumeDevices: [{name: cache, devicePath: /dev/c}, {name: logs}]",
            "volumes: [{name: cache, persistentVolumeClaim: {claimName: c}}, {name: logs, hostPath: {path: /dev/sdb, type: BlockDevice}}]",
            &[
                "{P}.volumeDevices[0].name: duplicate value \"cache\"",
                "{P}.volumeDevices[0].devicePath: duplicate value \"/dev/c\"",
                "{P}.volumeDevices[1].devicePath: is required",
            ],
        );
        check_container(
            "volumeDevices: [{name: a, devicePath: /c}, {name: b, devicePath: /dev/null}, {name: d, devicePath: /dev/d}]",
            "volumes: [{name: a, persistentVolumeClaim: {claimName: c}}, {name: b, hostPath: {path: /var/disk, type: BlockDevice}}, {name: d, emptyDir: {}}]",
            &[
                "{P}.volumeDevices[0].devicePath: invalid value \"/c\": must be an absolute path below /dev, without '..'",
                "{P}.volumeDevices[1].devicePath: invalid value \"/dev/null\": is taken: every container has its own there",
                "{P}.volumeDevices[1].name: forbidden: the path of volume b must be an absolute path below /dev, without '..'",
                "{P}.volumeDevices[2].name: forbidden: volumeDevices needs a persistentVolumeClaim volume, or a hostPath volume of type BlockDevice",
            ],
        );
    }
}
