//! Changing the devices of a container that runs.

use super::control::write;
use super::tree::below;
use super::{CgroupError, CgroupVersion, Cgroups};
use crate::GivenDevice;
use podstead_sys::device_filter::{self, Rule};
use std::path::Path;

/// Character devices that libcontainer allows to every container: null, zero, full, tty, random, urandom, console, ptmx, tun.
const OWN: [(u32, u32); 9] = [(1, 3), (1, 5), (1, 7), (5, 0), (1, 8), (1, 9), (5, 1), (5, 2), (10, 200)];
/// Major number of terminals in `/dev/pts`.
const TERMINALS: u32 = 136;

/// Devices of a container, but those that every container has.
#[derive(Clone, Copy, Debug)]
pub struct DeviceChange<'a> {
    /// Those that it has as long as it runs.
    pub fixed: &'a [GivenDevice],
    /// Those that it may have had so far, beside these.
    pub before: &'a [GivenDevice],
    /// Those that it shall have, beside the fixed ones.
    pub after: &'a [GivenDevice],
}

impl Cgroups {
    /// Lets the group of a running container, which is not privileged, open other devices.
    pub fn change_devices(&self, path: &Path, change: &DeviceChange<'_>) -> Result<(), CgroupError> {
        let Some(root) = self.hierarchies.controller("devices") else { return Ok(()) };
        let group = below(root, path);
        match self.version() {
            CgroupVersion::V2 => device_filter::replace(&group, &rules(change)).map_err(|source| CgroupError::Write {
                path: group,
                value: "a device filter".to_owned(),
                source,
            }),
            CgroupVersion::V1 => {
                for entry in denied(change) {
                    write(&group.join("devices.deny"), &entry)?;
                }
                change.after.iter().try_for_each(|device| write(&group.join("devices.allow"), &entry(device, &device.permissions)))
            }
        }
    }
}

/// Rules to deny on v1, where each stays in force until then.
fn denied(change: &DeviceChange<'_>) -> Vec<String> {
    let is_own = |device: &GivenDevice| !device.block && OWN.contains(&(device.major, device.minor));
    let stays = |device: &&GivenDevice| {
        let same = |other: &GivenDevice| other.has_number_of(device);
        change.fixed.iter().any(same)
            || is_own(device)
            || change.after.iter().any(|after| same(after) && after.permissions == device.permissions)
    };
    change.before.iter().filter(|device| !stays(device)).map(|device| entry(device, "rw")).collect()
}

fn entry(device: &GivenDevice, permissions: &str) -> String {
    format!("{} {}:{} {permissions}", if device.block { 'b' } else { 'c' }, device.major, device.minor)
}

/// All that the container may open on v2, where a filter is replaced as a whole.
fn rules(change: &DeviceChange<'_>) -> Vec<Rule> {
    let rule = |block, major, minor, permissions: &str| Rule { block, major, minor, permissions: permissions.to_owned() };
    let own = OWN.into_iter().map(|(major, minor)| rule(false, Some(major), Some(minor), "rwm"));
    let given = change.fixed.iter().chain(change.after);
    let given = given.map(|device| rule(device.block, Some(device.major), Some(device.minor), &device.permissions));
    // Nodes may be made, but not opened.
    let make = [false, true].map(|block| rule(block, None, None, "m"));
    make.into_iter().chain([rule(false, Some(TERMINALS), None, "rwm")]).chain(own).chain(given).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(major: u32, minor: u32, permissions: &str) -> GivenDevice {
        GivenDevice {
            path: "/dev/x".into(),
            block: false,
            major,
            minor,
            mode: 0o660,
            uid: 0,
            gid: 0,
            permissions: permissions.to_owned(),
        }
    }

    #[test]
    fn only_what_is_not_wanted_otherwise_is_denied() {
        let (fixed, null) = (device(188, 0, "r"), device(1, 3, "rw"));
        let before = [fixed.clone(), device(188, 1, "rw"), device(188, 2, "rw"), device(188, 3, "rw"), null];
        let after = [device(188, 2, "rw"), device(188, 3, "r")];
        let change = DeviceChange { fixed: &[fixed], before: &before, after: &after };
        assert_eq!(denied(&change), ["c 188:1 rw", "c 188:3 rw"]);
    }

    #[test]
    fn filter_has_defaults_and_devices() {
        let (fixed, after) = (device(10, 7, "rwm"), device(188, 2, "r"));
        let rules = rules(&DeviceChange { fixed: &[fixed], before: &[device(188, 1, "rw")], after: &[after] });
        let shown: Vec<String> =
            rules.iter().skip(12).map(|rule| format!("{:?}:{:?} {}", rule.major, rule.minor, rule.permissions)).collect();
        assert_eq!(shown, ["Some(10):Some(7) rwm", "Some(188):Some(2) r"]);
    }
}
