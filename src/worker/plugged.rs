//! Devices of a pod that may be unplugged: what its containers get at their start, and the difference to what is there while they run.

use super::backoff::Failure;
use super::host_devices::{self, Absent, Found};
use podstead_container::{ContainerStatus, GivenDevice, ProcessUser};
use podstead_pod::devices::DeviceRequest;
use podstead_pod::{ContainerId, ContainerName};
use podstead_status::PluggedDevices;
use std::path::Path;

/// Permission bits of a node: for the user and the group of the container.
const MODE: u32 = 0o660;

/// Reason why a container cannot start: a device that it names is not there.
#[derive(Debug, thiserror::Error)]
#[error("device {name}")]
pub(super) struct MissingDevice {
    name: String,
    #[source]
    absent: Absent,
}

/// Work on the devices of a pod, between turns.
#[derive(Debug, Default)]
pub(super) struct DeviceWork {
    /// Changes on the host that were seen.
    pub(super) seen: u64,
    /// State for the status; `None` of a pod that names no devices.
    pub(super) shown: Option<PluggedDevices>,
    /// Reason why a container did not get its devices.
    pub(super) failure: Option<Failure>,
}

/// Devices of a container that is about to start; `None` of one that names none. Blocks.
pub(super) fn at_start(
    requests: &[DeviceRequest],
    container: &ContainerName,
    user: &ProcessUser,
) -> Result<Option<Vec<GivenDevice>>, MissingDevice> {
    let requests: Vec<&DeviceRequest> = requests.iter().filter(|request| request.is_for(container.as_str())).collect();
    if requests.is_empty() {
        return Ok(None);
    }
    let found = requests.iter().map(|request| match host_devices::find(&request.selector, Path::new(host_devices::SYSFS)) {
        Ok(found) => Ok(given(request, found, user)),
        Err(absent) => Err(MissingDevice { name: request.name.clone(), absent }),
    });
    found.collect::<Result<_, _>>().map(Some)
}

fn given(request: &DeviceRequest, Found { block, major, minor }: Found, user: &ProcessUser) -> GivenDevice {
    let (path, permissions) = (request.path.clone(), request.permissions.clone());
    GivenDevice { path, block, major, minor, mode: MODE, uid: user.uid, gid: user.gid, permissions }
}

/// Change of one container's devices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) id: ContainerId,
    pub(super) container: ContainerName,
    pub(super) wanted: Vec<GivenDevice>,
    pub(super) attached: Vec<String>,
    pub(super) detached: Vec<String>,
}

/// Compares what a running container has with what is there. `None` if that is the same.
pub(super) fn change(
    run: &ContainerStatus,
    present: &[GivenDevice],
    requests: &[DeviceRequest],
    found: &[Result<Found, Absent>],
) -> Option<Change> {
    let user = run.user.clone().unwrap_or(ProcessUser { uid: 0, gid: 0, additional_gids: Vec::new() });
    let of_run = || requests.iter().zip(found).filter(|(request, _)| request.is_for(run.name.as_str()));
    let wanted: Vec<GivenDevice> =
        of_run().filter_map(|(request, found)| Some(given(request, *found.as_ref().ok()?, &user))).collect();
    if wanted == present {
        return None;
    }
    let had = |request: &DeviceRequest| present.iter().find(|device| device.path == request.path);
    let has = |request: &DeviceRequest| wanted.iter().find(|device| device.path == request.path);
    let name = |(request, _): (&DeviceRequest, _)| request.name.clone();
    let attached = of_run().filter(|(request, _)| has(request).is_some() && has(request) != had(request)).map(name).collect();
    let detached = of_run().filter(|(request, _)| has(request).is_none() && had(request).is_some()).map(name).collect();
    Some(Change { id: run.id.clone(), container: run.name.clone(), wanted, attached, detached })
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::devices::requested;

    fn requests() -> Vec<DeviceRequest> {
        let annotations = [("devices.podstead.dev/a", "/dev/a"), ("devices.podstead.dev/b", "{path: /dev/b, containers: [other]}")];
        requested(Some(&annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).into())).unwrap()
    }

    fn run() -> ContainerStatus {
        serde_json::from_value(serde_json::json!({
            "id": "1", "name": "main", "kind": "Main", "attempt": 0, "sandbox_attempt": 0, "hash": "", "image_ref": "", "image_id": "",
            "user": {"uid": 7, "gid": 8, "additional_gids": []}, "stop_signal": 15, "created_at": "2026-01-01T00:00:00Z", "log_path": "/x",
            "state": {"state": "created"}
        }))
        .unwrap()
    }

    fn change_of(present: &[GivenDevice], minor: Option<u32>) -> Option<Change> {
        let path = |name: &str| podstead_pod::devices::Selector::Path(name.into());
        let a = minor.map(|minor| Found { block: false, major: 188, minor }).ok_or_else(|| Absent::Missing(path("/dev/a")));
        change(&run(), present, &requests(), &[a, Ok(Found { block: false, major: 9, minor: 9 })])
    }

    #[test]
    fn containers_follow_what_is_plugged_in() {
        assert_eq!(change_of(&[], None), None);
        let came = change_of(&[], Some(0)).unwrap();
        assert_eq!((came.attached.as_slice(), came.detached.len()), (["a".to_owned()].as_slice(), 0));
        let [device] = came.wanted.as_slice() else { panic!("{came:?}") };
        assert_eq!((device.uid, device.gid, device.minor, device.permissions.as_str()), (7, 8, 0, "rw"));
        assert_eq!(change_of(&came.wanted, Some(0)), None);
        let renumbered = change_of(&came.wanted, Some(1)).unwrap();
        assert_eq!((renumbered.attached.len(), renumbered.detached.len(), renumbered.wanted[0].minor), (1, 0, 1));
        let gone = change_of(&came.wanted, None).unwrap();
        assert_eq!((gone.attached.len(), gone.detached.as_slice(), gone.wanted.len()), (0, ["a".to_owned()].as_slice(), 0));
    }
}
