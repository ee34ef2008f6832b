//! Devices of one container that may be unplugged: what it has, what an interrupted change may have left, and the difference to what it shall have.
//! **Pure**.

use podstead_container::{ContainerSpec, GivenDevice};
use podstead_sys::device_node::Changes;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const DEV: &str = "/dev";

/// Devices of one container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plugged {
    /// Devices that may be unplugged, as the container has them.
    pub(super) devices: Vec<GivenDevice>,
    /// Those that an interrupted change may have given it.
    leftover: Vec<GivenDevice>,
    /// Devices that it has as long as it runs.
    pub(super) fixed: Vec<GivenDevice>,
    /// No device is refused to it.
    pub(super) is_privileged: bool,
}

impl Plugged {
    /// Those of a container that is about to start, if it has such devices.
    pub(super) fn of(spec: &ContainerSpec) -> Option<Self> {
        let devices = spec.devices.plugged.clone()?;
        let (fixed, is_privileged) = (spec.devices.nodes.clone(), spec.security.privileged);
        Some(Self { devices, leftover: Vec::new(), fixed, is_privileged })
    }

    /// All that it may have.
    pub(super) fn before(&self) -> Vec<GivenDevice> {
        self.devices.iter().chain(&self.leftover).cloned().collect()
    }

    /// While the change is made.
    pub(super) fn changing(&self, wanted: &[GivenDevice]) -> Self {
        Self { leftover: self.leftover.iter().chain(wanted).cloned().collect(), ..self.clone() }
    }

    /// The node after a change of the devices.
    pub(super) fn changed(&self, wanted: &[GivenDevice]) -> Self {
        Self { devices: wanted.to_vec(), leftover: Vec::new(), ..self.clone() }
    }

    /// Changes below the container's `/dev`.
    pub(super) fn nodes(&self, wanted: &[GivenDevice], first_host_id: Option<u32>) -> Changes {
        let place = |device: &GivenDevice| device.path.strip_prefix(DEV).map(PathBuf::from).ok();
        let is_in_place = |device: &GivenDevice| self.leftover.is_empty() && self.devices.contains(device);
        let is_wanted = |device: &GivenDevice| wanted.iter().any(|wanted| wanted.path == device.path);
        let removed = self.before().iter().filter(|device| !is_wanted(device)).filter_map(place).collect();
        let placed = wanted.iter().filter(|device| !is_in_place(device));
        Changes { removed, placed: placed.filter_map(|device| Some((place(device)?, device.node(first_host_id)))).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(path: &str, minor: u32) -> GivenDevice {
        let permissions = "rw".to_owned();
        GivenDevice { path: path.into(), block: false, major: 188, minor, mode: 0o660, uid: 1, gid: 2, permissions }
    }

    fn shown(changes: &Changes) -> String {
        let removed: Vec<String> = changes.removed.iter().map(|place| format!("-{}", place.display())).collect();
        let placed = changes.placed.iter().map(|(place, node)| format!("+{}:{} of {}", place.display(), node.minor, node.uid));
        removed.into_iter().chain(placed).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_what_differs_is_changed() {
        let plugged = Plugged { devices: vec![device("/dev/a", 0), device("/dev/b", 1)], ..Plugged::default() };
        let nodes = |wanted: &[GivenDevice]| shown(&plugged.nodes(wanted, Some(1000)));
        assert_eq!(nodes(&[device("/dev/a", 0), device("/dev/b", 1)]), "");
        assert_eq!(nodes(&[device("/dev/a", 5), device("/dev/c", 6)]), "-b +a:5 of 1001 +c:6 of 1001");
    }

    #[test]
    fn interrupted_change_is_made_anew_and_its_rest_goes() {
        let plugged = Plugged { devices: vec![device("/dev/a", 0)], ..Plugged::default() };
        let interrupted = plugged.changing(&[device("/dev/a", 1), device("/dev/b", 2)]);
        assert_eq!(interrupted.devices, plugged.devices, "not taken for done");
        assert_eq!(shown(&interrupted.nodes(&[device("/dev/a", 0)], None)), "-b +a:0 of 1");
        assert_eq!(interrupted.before().len(), 3);
        let done = interrupted.changed(&[device("/dev/a", 0)]);
        assert_eq!((done.devices.len(), done.leftover.len()), (1, 0));
    }
}
