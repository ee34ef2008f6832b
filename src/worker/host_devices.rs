//! Lookup of devices on this host: by a path below `/dev`, or by USB identity in sysfs.
//!
//! Links in `/dev/serial/by-id` are made by udev. On a host without it, their names are derived from sysfs by udev's rules.

use nix::sys::stat::{SFlag, major, minor, stat};
use podstead_pod::devices::{Selector, UsbSelector};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Root of sysfs.
pub(super) const SYSFS: &str = "/sys";
const BY_ID: &str = "/dev/serial/by-id";
/// Matches that are named in a message.
const SHOWN: usize = 4;

/// Number of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) block: bool,
    pub(super) major: u32,
    pub(super) minor: u32,
}

/// Reason why a device cannot be given. All end when a device is plugged in or unplugged.
#[derive(Debug, thiserror::Error)]
pub(super) enum Absent {
    /// The host does not have it.
    #[error("{0} is not plugged in")]
    Missing(Selector),
    /// The path is something else.
    #[error("{} is not a device", _0.display())]
    NoDevice(PathBuf),
    /// More than one device fits.
    #[error("{selector} is ambiguous: {} fit; {hint}", names.join(", "))]
    Ambiguous {
        /// The selector.
        selector: UsbSelector,
        /// Names of some that fit.
        names: Vec<String>,
        /// A way to tell them apart.
        hint: &'static str,
    },
    /// The host does not say.
    #[error("look up {0}")]
    Io(Selector, #[source] io::Error),
}

/// Looks a device up. Blocks.
pub(super) fn find(selector: &Selector, sysfs: &Path) -> Result<Found, Absent> {
    let failed = |error| Absent::Io(selector.clone(), error);
    match selector {
        Selector::Usb(usb) => one_of(usb_nodes(usb, sysfs).map_err(failed)?, usb),
        Selector::Path(path) => match at_path(path) {
            Ok(found) => found.ok_or_else(|| Absent::NoDevice(path.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let by_id = path.strip_prefix(BY_ID).ok().and_then(Path::to_str);
                let found = by_id.map(|name| serial_by_id(name, sysfs)).transpose().map_err(failed)?.flatten();
                found.ok_or_else(|| Absent::Missing(selector.clone()))
            }
            Err(error) => Err(failed(error)),
        },
    }
}

fn at_path(path: &Path) -> io::Result<Option<Found>> {
    let found = stat(path)?;
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let device = |block| Found { block, major: number(major(found.st_rdev)), minor: number(minor(found.st_rdev)) };
    Ok(match SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFBLK => Some(device(true)),
        SFlag::S_IFCHR => Some(device(false)),
        _ => None,
    })
}

/// A device node in sysfs that belongs to a USB device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UsbNode {
    name: String,
    found: Found,
    /// Directory of the USB device.
    device: PathBuf,
    /// Directory of its interface; none for the node of the USB device itself.
    interface: Option<PathBuf>,
    /// Directory of its port, which serial converters with several ports have.
    port: Option<PathBuf>,
}

fn one_of(mut nodes: Vec<UsbNode>, selector: &UsbSelector) -> Result<Found, Absent> {
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    match nodes.as_slice() {
        [] => Err(Absent::Missing(Selector::Usb(selector.clone()))),
        [only] => Ok(only.found),
        [first, rest @ ..] => {
            let hint = if rest.iter().all(|other| other.device == first.device) {
                "name one by its interface or by its path in /dev/serial/by-id"
            } else {
                "name one by its serial number or by its path"
            };
            let names = nodes.iter().take(SHOWN).map(|node| node.name.clone()).collect();
            Err(Absent::Ambiguous { selector: selector.clone(), names, hint })
        }
    }
}

fn usb_nodes(selector: &UsbSelector, sysfs: &Path) -> io::Result<Vec<UsbNode>> {
    let is_id = |directory: &Path, name: &str, wanted: u16| {
        attribute(directory, name).and_then(|text| u16::from_str_radix(&text, 16).ok()) == Some(wanted)
    };
    let is_wanted = |node: &UsbNode| {
        let interface = node.interface.as_ref().and_then(|directory| attribute(directory, "bInterfaceNumber"));
        is_id(&node.device, "idVendor", selector.vendor)
            && is_id(&node.device, "idProduct", selector.product)
            && selector.serial.as_ref().is_none_or(|serial| attribute(&node.device, "serial").as_ref() == Some(serial))
            && selector.interface.is_none_or(|wanted| interface.and_then(|text| u8::from_str_radix(&text, 16).ok()) == Some(wanted))
    };
    Ok(nodes(&selector.subsystem, sysfs)?.into_iter().filter(is_wanted).collect())
}

/// Device nodes of a subsystem that belong to USB devices.
fn nodes(subsystem: &str, sysfs: &Path) -> io::Result<Vec<UsbNode>> {
    let directory = match subsystem {
        "usb" => sysfs.join("bus/usb/devices"),
        class => sysfs.join("class").join(class),
    };
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        // What goes meanwhile is not there.
        found.extend(fs::canonicalize(entry.path()).ok().and_then(|path| node(&path, subsystem)));
    }
    Ok(found)
}

fn node(path: &Path, subsystem: &str) -> Option<UsbNode> {
    let device = path.ancestors().find(|directory| has(directory, "idVendor"))?;
    let (major, minor) = attribute(path, "dev")?.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)))?;
    let below = || path.ancestors().take_while(|directory| *directory != device);
    Some(UsbNode {
        name: path.file_name()?.to_string_lossy().into_owned(),
        found: Found { block: subsystem == "block", major, minor },
        device: device.to_owned(),
        interface: below().find(|directory| has(directory, "bInterfaceNumber")).map(Path::to_owned),
        port: below().find(|directory| has(directory, "port_number")).map(Path::to_owned),
    })
}

/// A device that goes meanwhile has nothing any more.
fn has(directory: &Path, name: &str) -> bool {
    directory.join(name).try_exists().unwrap_or(false)
}

fn attribute(directory: &Path, name: &str) -> Option<String> {
    Some(fs::read_to_string(directory.join(name)).ok()?.trim().to_owned())
}

/// The serial device whose link udev would call so.
fn serial_by_id(name: &str, sysfs: &Path) -> io::Result<Option<Found>> {
    let nodes = nodes("tty", sysfs)?;
    Ok(nodes.iter().find(|node| link_name(node).as_deref() == Some(name)).map(|node| node.found))
}

/// As udev's rules 60-serial build it: `usb-<vendor>_<model>[_<serial>]-if<interface>[-port<port>]`.
fn link_name(node: &UsbNode) -> Option<String> {
    let word = |name: &str, number: &str| {
        let text = attribute(&node.device, name).map(|text| escaped(&text)).filter(|text| !text.is_empty());
        text.or_else(|| attribute(&node.device, number))
    };
    let mut link = format!("usb-{}_{}", word("manufacturer", "idVendor")?, word("product", "idProduct")?);
    let is_plain = |text: &String| !text.is_empty() && text.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b',');
    if let Some(serial) = attribute(&node.device, "serial").filter(is_plain) {
        link.push_str(&format!("_{}", escaped(&serial)));
    }
    link.push_str(&format!("-if{}", attribute(node.interface.as_ref()?, "bInterfaceNumber")?));
    if let Some(port) = node.port.as_ref().and_then(|directory| attribute(directory, "port_number")) {
        link.push_str(&format!("-port{port}"));
    }
    Some(link)
}

/// As udev: a run of spaces becomes one underscore, and so does each other character that is not allowed.
fn escaped(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "#+-.:=@_".contains(c) || !c.is_ascii();
    words.join("_").chars().map(|c| if is_allowed(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::devices::requested;
    use std::os::unix::fs::symlink;

    /// A host with USB devices, as sysfs shows them.
    struct Host(tempfile::TempDir);

    impl Host {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, path: &str, value: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{value}\n")).unwrap();
        }

        /// A converter with one serial port.
        fn serial(&self, place: &str, ids: (&str, &str), serial: &str, tty: (&str, &str)) {
            let device = format!("devices/pci0/usb1/{place}");
            self.write(&format!("{device}/idVendor"), ids.0);
            self.write(&format!("{device}/idProduct"), ids.1);
            self.write(&format!("{device}/manufacturer"), "Silicon Labs");
            self.write(&format!("{device}/product"), "CP2102  USB/UART");
            self.write(&format!("{device}/serial"), serial);
            self.write(&format!("{device}/dev"), "189:3");
            self.link(&format!("bus/usb/devices/{place}"), &device);
            self.port(place, "00", tty);
        }

        fn port(&self, place: &str, interface: &str, (name, number): (&str, &str)) {
            let interface_directory = format!("devices/pci0/usb1/{place}/{place}:1.{}", interface.trim_start_matches('0'));
            let tty = format!("{interface_directory}/{name}/tty/{name}");
            self.write(&format!("{interface_directory}/bInterfaceNumber"), interface);
            self.write(&format!("{interface_directory}/{name}/port_number"), "0");
            self.write(&format!("{tty}/dev"), number);
            self.link(&format!("class/tty/{name}"), &tty);
        }

        fn link(&self, path: &str, target: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(self.0.path().join(target), path).unwrap();
        }

        fn find(&self, value: &str) -> String {
            let annotations = [("devices.podstead.dev/x".to_owned(), value.to_owned())].into();
            let request = requested(Some(&annotations)).unwrap().remove(0);
            match find(&request.selector, self.0.path()) {
                Ok(Found { block, major, minor }) => format!("{} {major}:{minor}", if block { 'b' } else { 'c' }),
                Err(absent) => absent.to_string(),
            }
        }
    }

    #[test]
    fn usb_devices_are_found_by_identity() {
        let host = Host::new();
        assert_eq!(host.find("{usb: '10c4:ea60'}"), "USB device 10c4:ea60 (tty) is not plugged in");
        host.serial("1-1", ("10c4", "ea60"), "0001", ("ttyUSB0", "188:0"));
        host.serial("1-2", ("0403", "6001"), "A1", ("ttyUSB1", "188:1"));
        host.write("devices/virtual/tty/tty0/dev", "4:0");
        host.link("class/tty/tty0", "devices/virtual/tty/tty0");
        host.link("class/tty/ttyGone", "devices/nowhere");
        assert_eq!(host.find("{usb: '10C4:ea60'}"), "c 188:0");
        assert_eq!(host.find("{usb: '0403:6001', serial: A1, interface: 0}"), "c 188:1");
        assert_eq!(host.find("{usb: '0403:6001', subsystem: usb}"), "c 189:3");
        assert!(host.find("{usb: '0403:6001', serial: A2}").contains("with serial number A2 (tty) is not plugged in"));
        assert!(host.find("{usb: '0403:6001', interface: 1}").contains("interface 1 (tty) is not plugged in"));
        assert!(host.find("{usb: '0403:6001', subsystem: hidraw}").contains("is not plugged in"));
    }

    #[test]
    fn more_than_one_fit_is_told_and_none_is_taken() {
        let host = Host::new();
        host.serial("1-1", ("10c4", "ea60"), "0001", ("ttyUSB0", "188:0"));
        host.port("1-1", "01", ("ttyUSB1", "188:1"));
        let told = host.find("{usb: '10c4:ea60'}");
        assert!(told.contains("is ambiguous: ttyUSB0, ttyUSB1 fit; name one by its interface"), "{told}");
        assert_eq!(host.find("{usb: '10c4:ea60', interface: 1}"), "c 188:1");
        host.serial("1-2", ("10c4", "ea60"), "0002", ("ttyUSB2", "188:2"));
        assert!(host.find("{usb: '10c4:ea60'}").contains("by its serial number"));
        assert_eq!(host.find("{usb: '10c4:ea60', serial: '0002'}"), "c 188:2");
    }

    #[test]
    fn links_of_udev_are_derived_where_udev_is_not() {
        let host = Host::new();
        host.serial("1-1", ("10c4", "ea60"), "0001", ("ttyUSB7", "188:7"));
        let name = "usb-Silicon_Labs_CP2102_USB_UART_0001-if00-port0";
        assert_eq!(host.find(&format!("/dev/serial/by-id/{name}")), "c 188:7");
        assert_eq!(host.find("/dev/serial/by-id/usb-other-if00"), "/dev/serial/by-id/usb-other-if00 is not plugged in");
        host.write("devices/pci0/usb1/1-1/serial", "0001,2");
        assert_eq!(host.find("/dev/serial/by-id/usb-Silicon_Labs_CP2102_USB_UART-if00-port0"), "c 188:7");
    }

    #[test]
    fn paths_are_those_of_devices() {
        let host = Host::new();
        assert_eq!(host.find("{path: /dev/null, containerPath: /dev/x}"), "c 1:3");
        assert_eq!(host.find("{path: /dev/fd, containerPath: /dev/x}"), "/dev/fd is not a device");
        assert_eq!(host.find("/dev/no-such-device"), "/dev/no-such-device is not plugged in");
    }
}
