//! Devices of containers. **Pure**.

use super::model::{Device, Service};

/// Directories of nodes. What they contain is known on the host alone.
const DIRECTORIES: [&str; 5] = ["/dev/dri", "/dev/snd", "/dev/bus/usb", "/dev/input", "/dev/mapper"];

/// Adds a device that is written as `/dev/a`, `/dev/a:/dev/b` or `/dev/a:/dev/b:rw`, or a note. Names of the Container Device Interface, such as
/// `nvidia.com/gpu=all`, are noted, too.
pub(super) fn add_device(service: &mut Service, written: &str) {
    let mut parts = written.split(':');
    let path = parts.next().unwrap_or_default().trim_end_matches('/').to_owned();
    let (target, permissions) = match (parts.next(), parts.next()) {
        (Some(target), None) if !target.starts_with('/') => (None, Some(target)),
        (target, permissions) => (target, permissions),
    };
    if !path.starts_with("/dev/") {
        service.note(format!(
            "device {written} is not below /dev: if a CDI specification of the host describes it, name it in an annotation cdi.k8s.io/NAME"
        ));
        return;
    }
    if DIRECTORIES.contains(&path.as_str()) {
        service.note(format!(
            "device {path} is a directory: name each node in an annotation devices.podstead.dev/NAME, or use a CDI specification"
        ));
        return;
    }
    if ["/dev/ttyUSB", "/dev/ttyACM"].iter().any(|prefix| path.starts_with(prefix)) {
        service.note(format!(
            "device {path} may have another number after the next boot: its link in /dev/serial/by-id stays the same"
        ));
    }
    let container_path = target.map(|target| target.trim_end_matches('/').to_owned()).filter(|target| *target != path);
    let read_only = permissions.is_some_and(|permissions| !permissions.contains('w'));
    service.devices.push(Device { path, container_path, read_only });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_or_noted() {
        let mut service = Service::default();
        for written in
            ["/dev/ttyUSB0", "/dev/serial/by-id/a:/dev/ttyACM0:rwm", "/dev/kmsg:r", "/dev/dri:/dev/dri", "nvidia.com/gpu=all"]
        {
            add_device(&mut service, written);
        }
        let device = |path: &str, container_path: Option<&str>, read_only| Device {
            path: path.to_owned(),
            container_path: container_path.map(str::to_owned),
            read_only,
        };
        let expected = [
            device("/dev/ttyUSB0", None, false),
            device("/dev/serial/by-id/a", Some("/dev/ttyACM0"), false),
            device("/dev/kmsg", None, true),
        ];
        assert_eq!(service.devices, expected);
        let notes = service.notes.join("\n");
        assert!(
            notes.contains("by-id stays") && notes.contains("/dev/dri is a directory") && notes.contains("cdi.k8s.io/NAME"),
            "{notes}"
        );
    }
}
