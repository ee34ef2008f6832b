//! Devices that may be unplugged and come back, named by annotations, and block devices of volumes, which are handled in the same way. **Pure**.
//!
//! ```yaml
//! metadata:
//!   annotations:
//!     devices.podstead.dev/zigbee: /dev/serial/by-id/usb-Acme_Radio_0001-if00-port0
//!     devices.podstead.dev/meter: "{usb: '10c4:ea60', serial: '0002', containerPath: /dev/ttyUSB0, containers: [reader]}"
//! ```

use crate::Pod;
use crate::claims::{ClaimName, claim_of};
use crate::containers::{self, list};
use k8s_openapi::api::core::v1::{HostPathVolumeSource, Volume};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// Annotations that name devices begin so.
pub const PREFIX: &str = "devices.podstead.dev/";

/// Devices of one pod, at most.
const MAX_DEVICES: usize = 32;
/// Bytes of one annotation, at most.
const MAX_VALUE: usize = 4096;
/// Entries of `/dev` that every container has.
const OWN: [&str; 16] = [
    "console", "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
    "urandom", "zero",
];

/// A device that a pod asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRequest {
    /// The part of the annotation's key after the prefix.
    pub name: String,
    /// Way to find it on the host.
    pub selector: Selector,
    /// Path in the containers, below `/dev`.
    pub path: PathBuf,
    /// Permitted operations: `r`, `w` or `rw`.
    pub permissions: String,
    /// Containers that get it; `None` for all.
    pub containers: Option<Vec<String>>,
}

/// Way to find a device on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// By a path below `/dev` that stays the same, such as a link in `/dev/serial/by-id`.
    Path(PathBuf),
    /// By its USB identity.
    Usb(UsbSelector),
}

/// USB identity of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsbSelector {
    /// `idVendor`.
    pub vendor: u16,
    /// `idProduct`.
    pub product: u16,
    /// Serial number; `None` for any.
    pub serial: Option<String>,
    /// Number of the interface (`bInterfaceNumber`); `None` for any.
    pub interface: Option<u8>,
    /// Subsystem of the device node: `tty` for serial devices, `usb` for the node of the USB device itself.
    pub subsystem: String,
}

/// Annotation that names no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("annotation {annotation}: {rule}")]
pub struct DeviceError {
    /// The annotation.
    pub annotation: String,
    /// The rule that it breaks.
    pub rule: String,
}

/// The long form of an annotation's value.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    path: Option<PathBuf>,
    usb: Option<String>,
    serial: Option<String>,
    interface: Option<u8>,
    subsystem: Option<String>,
    container_path: Option<PathBuf>,
    permissions: Option<String>,
    containers: Option<Vec<String>>,
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Usb(usb) => write!(f, "{usb}"),
        }
    }
}

impl fmt::Display for UsbSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "USB device {:04x}:{:04x}", self.vendor, self.product)?;
        if let Some(serial) = &self.serial {
            write!(f, " with serial number {serial}")?;
        }
        if let Some(interface) = self.interface {
            write!(f, ", interface {interface}")?;
        }
        write!(f, " ({})", self.subsystem)
    }
}

impl DeviceRequest {
    /// Reports whether the container of this name gets it.
    pub fn is_for(&self, container: &str) -> bool {
        self.containers.as_ref().is_none_or(|names| names.iter().any(|name| name == container))
    }

    /// The selected device, as `allow.devices` of a source names it: an absolute path, or `usb:vendor:product`.
    pub fn permission(&self) -> String {
        match &self.selector {
            Selector::Path(path) => path.display().to_string(),
            Selector::Usb(usb) => format!("usb:{:04x}:{:04x}", usb.vendor, usb.product),
        }
    }
}

/// The devices that the annotations of a pod name, by name.
pub fn requested(annotations: Option<&BTreeMap<String, String>>) -> Result<Vec<DeviceRequest>, DeviceError> {
    let mut requests: Vec<DeviceRequest> = Vec::new();
    for (key, value) in annotations.into_iter().flatten() {
        let Some(name) = key.strip_prefix(PREFIX) else { continue };
        let broken = |rule: String| DeviceError { annotation: key.clone(), rule };
        let request = read(name, value).map_err(broken)?;
        if let Some(other) = requests.iter().find(|other| overlap(other, &request)) {
            return Err(broken(format!("{} is also the path of device {}", request.path.display(), other.name)));
        }
        if requests.len() == MAX_DEVICES {
            return Err(broken(format!("a pod may name at most {MAX_DEVICES} devices")));
        }
        requests.push(request);
    }
    Ok(requests)
}

/// The devices of a pod that was validated.
pub fn of_pod(pod: &Pod) -> Vec<DeviceRequest> {
    requested(pod.metadata.annotations.as_ref()).unwrap_or_default()
}

/// The devices of a pod that was validated: those that its annotations name, and those of its volumes. `of_claim` knows the device of a claim.
pub fn all_of(pod: &Pod, of_claim: impl Fn(&ClaimName) -> Option<PathBuf>) -> Vec<DeviceRequest> {
    let mut requests = of_pod(pod);
    for (_, container) in containers::all(pod) {
        for device in list(&container.volume_devices) {
            let volume = list(&containers::spec(pod).volumes).iter().find(|volume| volume.name == device.name);
            let Some((volume, path)) = volume.and_then(|volume| Some((volume, host_device(pod, volume, &of_claim)?))) else {
                continue;
            };
            let is_read_only = volume.persistent_volume_claim.as_ref().and_then(|source| source.read_only) == Some(true);
            requests.push(DeviceRequest {
                name: device.name.clone(),
                selector: Selector::Path(path),
                path: PathBuf::from(&device.device_path),
                permissions: if is_read_only { "r" } else { "rw" }.to_owned(),
                containers: Some(vec![container.name.clone()]),
            });
        }
    }
    requests
}

/// The device on the host behind a volume.
fn host_device(pod: &Pod, volume: &Volume, of_claim: impl Fn(&ClaimName) -> Option<PathBuf>) -> Option<PathBuf> {
    match &volume.host_path {
        Some(source) => is_block_device(source).then(|| PathBuf::from(&source.path)),
        None => of_claim(&claim_of(pod, volume)?),
    }
}

/// Reports whether a volume is a block device of the host.
pub(crate) fn is_block_device(source: &HostPathVolumeSource) -> bool {
    source.type_.as_deref() == Some("BlockDevice")
}

/// Checks a path of the host, below `/dev`.
pub(crate) fn host_path(text: &str) -> Result<(), &'static str> {
    below_dev("path", text.into()).map(drop).map_err(|_| "must be an absolute path below /dev, without '..'")
}

/// Checks the place of a device in a container.
pub(crate) fn container_path(text: &str) -> Result<(), &'static str> {
    let path = below_dev("devicePath", text.into()).map_err(|_| "must be an absolute path below /dev, without '..'")?;
    free_path(path).map(drop).map_err(|_| "is taken: every container has its own there")
}

/// One lies at or below the other in a container that gets both.
pub(crate) fn overlap(one: &DeviceRequest, other: &DeviceRequest) -> bool {
    let shares = match (&one.containers, &other.containers) {
        (Some(names), _) => names.iter().any(|name| other.is_for(name)),
        (None, Some(names)) => !names.is_empty(),
        (None, None) => true,
    };
    shares && (one.path.starts_with(&other.path) || other.path.starts_with(&one.path))
}

fn read(name: &str, value: &str) -> Result<DeviceRequest, String> {
    if value.len() > MAX_VALUE {
        return Err(format!("must be at most {MAX_VALUE} bytes"));
    }
    let value = value.trim();
    let written = if value.starts_with('/') {
        Written { path: Some(value.into()), ..nothing() }
    } else if value.starts_with('{') || value.contains(": ") {
        serde_yaml::from_str(value).map_err(|error| format!("{error}"))?
    } else {
        return Err(
            "must be a path such as /dev/serial/by-id/usb-Acme_Radio_0001-if00-port0, or a mapping such as {usb: '10c4:ea60'}"
                .to_owned(),
        );
    };
    let Written { path, usb, serial, interface, subsystem, container_path, permissions, containers } = written;
    let selector = match (path, usb) {
        (Some(path), None) if serial.is_none() && interface.is_none() && subsystem.is_none() => {
            Selector::Path(below_dev("path", path)?)
        }
        (Some(_), None) => return Err("serial, interface and subsystem need usb instead of path".to_owned()),
        (None, Some(usb)) => Selector::Usb(usb_selector(&usb, serial, interface, subsystem)?),
        (None, None) | (Some(_), Some(_)) => return Err("must have either path or usb".to_owned()),
    };
    let path = match (container_path, &selector) {
        (Some(path), _) => path,
        (None, Selector::Path(path)) => path.clone(),
        (None, Selector::Usb(_)) => Path::new("/dev").join(name),
    };
    let path = free_path(below_dev("containerPath", path)?)?;
    let permissions = permissions.unwrap_or_else(|| "rw".to_owned());
    if !["r", "w", "rw"].contains(&permissions.as_str()) {
        return Err("permissions must be r, w or rw".to_owned());
    }
    if containers.as_ref().is_some_and(Vec::is_empty) {
        return Err("containers must name at least one container, or be left out for all".to_owned());
    }
    Ok(DeviceRequest { name: name.to_owned(), selector, path, permissions, containers })
}

const fn nothing() -> Written {
    Written {
        path: None,
        usb: None,
        serial: None,
        interface: None,
        subsystem: None,
        container_path: None,
        permissions: None,
        containers: None,
    }
}

fn usb_selector(
    usb: &str,
    serial: Option<String>,
    interface: Option<u8>,
    subsystem: Option<String>,
) -> Result<UsbSelector, String> {
    let number = |text: &str| {
        let is_hex = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u16::from_str_radix(text, 16).ok()).flatten()
    };
    let ids = usb.split_once(':').and_then(|(vendor, product)| Some((number(vendor)?, number(product)?)));
    let Some((vendor, product)) = ids else {
        return Err(format!("usb {usb:?} must be vendor:product, four hexadecimal digits each, as lsusb shows them"));
    };
    if serial.as_ref().is_some_and(String::is_empty) {
        return Err("serial must not be empty".to_owned());
    }
    let subsystem = subsystem.unwrap_or_else(|| "tty".to_owned());
    let is_name = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if !is_name(&subsystem) {
        return Err(format!("subsystem {subsystem:?} must be the name of a subsystem, such as tty, hidraw or usb"));
    }
    Ok(UsbSelector { vendor, product, serial, interface, subsystem })
}

fn below_dev(field: &str, path: PathBuf) -> Result<PathBuf, String> {
    let inner = path.strip_prefix("/dev");
    let is_clean = |inner: &Path| {
        inner.components().next().is_some() && inner.components().all(|component| matches!(component, Component::Normal(_)))
    };
    let text = path.as_os_str().as_encoded_bytes();
    match inner {
        // Components alone would not see these.
        Ok(inner)
            if is_clean(inner) && !text.ends_with(b"/") && !text.contains(&0) && !path.display().to_string().contains("//") =>
        {
            let has_dots = path.display().to_string().split('/').any(|part| part == ".");
            if has_dots { Err(format!("{field} {path:?} must not contain '.'")) } else { Ok(path) }
        }
        _ => Err(format!("{field} {path:?} must be an absolute path below /dev, without '..'")),
    }
}

fn free_path(path: PathBuf) -> Result<PathBuf, String> {
    let first = path.components().nth(2).map(|component| component.as_os_str().to_owned());
    match first.and_then(|first| first.into_string().ok()).filter(|first| OWN.contains(&first.as_str())) {
        Some(taken) => Err(format!("containerPath {path:?} is taken: every container has a /dev/{taken} of its own")),
        None => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Result<DeviceRequest, String> {
        named(&[("zigbee", value)]).map(|mut requests| requests.remove(0))
    }

    fn named(devices: &[(&str, &str)]) -> Result<Vec<DeviceRequest>, String> {
        let annotations = devices.iter().map(|(name, value)| (format!("{PREFIX}{name}"), (*value).to_owned())).collect();
        requested(Some(&annotations)).map_err(|error| error.rule)
    }

    #[test]
    fn path_is_the_same_in_the_container() {
        let request = of("/dev/serial/by-id/usb-A_B_1-if00").unwrap();
        assert_eq!(request.path, Path::new("/dev/serial/by-id/usb-A_B_1-if00"));
        assert_eq!((request.selector.to_string(), request.permissions.as_str()), (request.path.display().to_string(), "rw"));
        assert!(request.is_for("any"));
    }

    #[test]
    fn long_form_names_everything() {
        let request = of(
            "{usb: '10c4:EA60', serial: '7', interface: 1, subsystem: hidraw, containerPath: /dev/radio, permissions: r, containers: [a]}",
        )
        .unwrap();
        assert_eq!(request.selector.to_string(), "USB device 10c4:ea60 with serial number 7, interface 1 (hidraw)");
        assert_eq!((request.path.as_path(), request.permissions.as_str()), (Path::new("/dev/radio"), "r"));
        assert!(request.is_for("a") && !request.is_for("b"));
        assert_eq!(request.permission(), "usb:10c4:ea60");
        assert_eq!(of("usb: '10c4:ea60'\nserial: '7'").unwrap().path, Path::new("/dev/zigbee"));
    }

    #[test]
    fn mistakes_are_explained() {
        for (value, part) in [
            ("ttyUSB0", "must be a path such as"),
            ("/etc/passwd", "must be an absolute path below /dev"),
            ("/dev/../etc/passwd", "must be an absolute path below /dev"),
            ("/dev", "must be an absolute path below /dev"),
            ("/dev/./x", "must not contain '.'"),
            ("/dev/x/", "must be an absolute path below /dev"),
            ("{path: /dev/x, containerPath: /etc/x}", "containerPath \"/etc/x\" must be an absolute path below /dev"),
            ("{path: /dev/x, containerPath: /dev/pts/0}", "every container has a /dev/pts of its own"),
            ("/dev/null", "every container has a /dev/null of its own"),
            ("{path: /dev/x, usb: '1234:5678'}", "must have either path or usb"),
            ("{serial: '1'}", "must have either path or usb"),
            ("{path: /dev/x, serial: '1'}", "need usb instead of path"),
            ("{usb: 10c4}", "four hexadecimal digits"),
            ("{usb: '10c4:+a60'}", "four hexadecimal digits"),
            ("{usb: '10c4:ea60', subsystem: ../x}", "must be the name of a subsystem"),
            ("{usb: '10c4:ea60', permissions: rwm}", "permissions must be r, w or rw"),
            ("{usb: '10c4:ea60', containers: []}", "at least one container"),
            ("{usb: '10c4:ea60', vendor: x}", "unknown field `vendor`"),
        ] {
            let error = of(value).unwrap_err();
            assert!(error.contains(part), "{value}: {error}");
        }
        assert!(of(&format!("/dev/{}", "x".repeat(MAX_VALUE))).is_err());
    }

    #[test]
    fn two_devices_cannot_have_one_place() {
        let error = named(&[("a", "/dev/x"), ("b", "{path: /dev/y, containerPath: /dev/x}")]).unwrap_err();
        assert_eq!(error, "/dev/x is also the path of device a");
        assert!(named(&[("a", "/dev/x"), ("b", "/dev/x/y")]).is_err());
        let apart = [("a", "{path: /dev/x, containers: [one]}"), ("b", "{path: /dev/y, containerPath: /dev/x, containers: [two]}")];
        assert_eq!(named(&apart).unwrap().len(), 2);
        let many: Vec<(String, String)> =
            (0..=MAX_DEVICES).map(|number| (format!("d{number}"), format!("/dev/x{number}"))).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert!(named(&many).unwrap_err().contains("at most 32 devices"));
    }
}
