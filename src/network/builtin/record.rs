//! The network's records on disk: leases, ranges, switches.

use super::lease::Lease;
use super::policies::PolicyObjects;
use crate::record::{self, Found, Proof, RecordError};
use podstead_pod::PodUid;
use podstead_settings::{AddressRange, NetworkMode};
use podstead_sys::layout::Paths;
use podstead_sys::write_ahead::{Change, WriteAheadLog};
use serde::{Deserialize, Serialize};

/// Ranges that were chosen where the configuration names none: they stay, so that pods' addresses do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChosenRanges {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ipv4: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ipv6: Option<String>,
    /// Range of Services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) service_ipv4: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) service_ipv6: Option<String>,
    /// Mode in which pods are connected; `None` for routed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<NetworkMode>,
}

impl ChosenRanges {
    /// The ranges, as far as they can be read.
    pub(super) fn parsed(&self) -> [Option<AddressRange>; 2] {
        [&self.ipv4, &self.ipv6].map(|text| text.as_ref().and_then(|text| text.parse().ok()))
    }
}

/// Sysctls that podstead has set since the host started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ThrownSwitches {
    #[serde(default)]
    pub(super) ipv4: bool,
    #[serde(default)]
    pub(super) ipv6: bool,
}

/// Reads the leases of all pods that have a directory.
pub(super) fn read_leases(paths: &Paths) -> Result<Found<Lease>, RecordError> {
    record::read_all(paths, |uid| paths.pod_network(uid))
}

/// Reads a pod's lease; `None` if it has none.
pub(super) fn read_lease(paths: &Paths, uid: &PodUid) -> Result<Option<Lease>, RecordError> {
    record::read(&paths.pod_network(uid))
}

/// Keeps a lease that cannot be understood out of the way of a new one.
pub(super) fn set_lease_aside(paths: &Paths, uid: &PodUid) -> Result<(), RecordError> {
    record::set_aside(paths.pod_network(uid))
}

/// Writes a lease so that a daemon that starts after a crash of this one finds it. It is not yet proof against a power cut.
pub(super) fn write_lease(paths: &Paths, uid: &PodUid, lease: &Lease) -> Result<(), RecordError> {
    record::write_of_pod(paths, uid, paths.pod_network(uid), lease, Proof::Crash)
}

/// Makes a lease proof against a power cut. The interfaces that it is about do not outlive one: what is at stake is that the pod keeps
/// its addresses. A lease that is not there any more is success.
pub(super) fn sync_lease(paths: &Paths, uid: &PodUid, log: &WriteAheadLog) -> Result<(), RecordError> {
    let path = paths.pod_network(uid);
    log.secure(&path).map_err(|source| RecordError::Io { operation: "sync", path, source })
}

/// Removes a lease, durably. One that is not there is success.
pub(super) fn remove_lease(paths: &Paths, uid: &PodUid, log: &WriteAheadLog) -> Result<(), RecordError> {
    let path = paths.pod_network(uid);
    let removed = log.write(&[Change::Remove { path: path.clone() }]);
    removed.map_err(|source| RecordError::Io { operation: "remove", path, source })
}

/// Reads the ranges chosen earlier; none if there is no record.
pub(super) fn read_ranges(paths: &Paths) -> Result<ChosenRanges, RecordError> {
    Ok(record::read(&paths.network_record())?.unwrap_or_default())
}

/// Records the ranges, durably.
pub(super) fn write_ranges(paths: &Paths, ranges: &ChosenRanges) -> Result<(), RecordError> {
    record::write(paths.network_record(), ranges, 0o644, Proof::PowerCut)
}

/// Reads the policies that were in force; none if there is no record.
pub(super) fn read_policies(paths: &Paths) -> Result<PolicyObjects, RecordError> {
    Ok(record::read(&paths.network_policies())?.unwrap_or_default())
}

/// Records the policies that are to be in force, durably.
pub(super) fn write_policies(paths: &Paths, objects: &PolicyObjects) -> Result<(), RecordError> {
    record::write(paths.network_policies(), objects, 0o600, Proof::PowerCut)
}

/// Reads which switches were thrown; none if there is no record.
pub(super) fn read_switches(paths: &Paths) -> Result<ThrownSwitches, RecordError> {
    Ok(record::read(&paths.network_switches())?.unwrap_or_default())
}

/// Records which switches are being thrown. A power cut throws them all back.
pub(super) fn write_switches(paths: &Paths, switches: ThrownSwitches) -> Result<(), RecordError> {
    record::write(paths.network_switches(), &switches, 0o644, Proof::Crash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::lease::Facts;
    use podstead_pod::PodFullName;
    use std::fs;

    #[test]
    fn leases_are_found_again_and_what_is_damaged_is_told_apart() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().into(), run: root.path().into(), logs: root.path().into() };
        let (good, bad) = (PodUid::new("good"), PodUid::new("bad"));
        let pod = PodFullName { namespace: "default".into(), name: "a".into() };
        let lease = Lease {
            pod,
            slot: Some(3),
            addresses: vec!["10.0.0.3".parse().unwrap()],
            ports: Vec::new(),
            is_isolated: true,
            facts: Facts::default(),
            holds_ports: false,
        };
        let log = WriteAheadLog::none();
        assert!(read_leases(&paths).unwrap().0.is_empty(), "no pods yet");
        for uid in [&good, &bad] {
            write_lease(&paths, uid, &lease).unwrap();
            sync_lease(&paths, uid, &log).unwrap();
        }
        fs::write(paths.pod_network(&bad), "{\"version\":1,").unwrap();
        fs::create_dir(paths.pod(&PodUid::new("without"))).unwrap();
        let (leases, unreadable) = read_leases(&paths).unwrap();
        assert_eq!(leases, [(good.clone(), lease)]);
        assert_eq!(unreadable[0].0, bad);
        remove_lease(&paths, &good, &log).unwrap();
        remove_lease(&paths, &good, &log).unwrap();
        fs::write(paths.pod_network(&bad), "{\"version\":2,\"pod\":{\"name\":\"a\",\"namespace\":\"b\"},\"addresses\":[]}")
            .unwrap();
        let (leases, unreadable) = read_leases(&paths).unwrap();
        assert!(leases.is_empty());
        assert!(unreadable[0].1.to_string().ends_with("it has the unsupported version 2"), "{}", unreadable[0].1);
    }

    #[test]
    fn ranges_and_switches_are_none_before_they_are_written() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().into(), run: root.path().into(), logs: root.path().into() };
        assert_eq!(read_ranges(&paths).unwrap().parsed(), [None, None]);
        assert_eq!(read_switches(&paths).unwrap(), ThrownSwitches::default());
        write_ranges(&paths, &ChosenRanges { ipv4: Some("10.0.0.0/24".into()), ..ChosenRanges::default() }).unwrap();
        write_switches(&paths, ThrownSwitches { ipv4: true, ipv6: false }).unwrap();
        assert_eq!(read_ranges(&paths).unwrap().parsed(), ["10.0.0.0/24".parse().ok(), None]);
        assert!(read_switches(&paths).unwrap().ipv4);
    }
}
