//! Records of each pod's CNI attachments, in the pod's state directory.

use super::plan::Attachment;
use super::routes::Lead;
use crate::record::{self, Found, Proof, RecordError};
use podstead_pod::host_ports::HostPort;
use podstead_pod::{PodFullName, PodUid};
use podstead_sys::layout::Paths;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Record of a pod's network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodRecord {
    /// The pod's name, for messages.
    pub(super) pod: PodFullName,
    /// Ports of the host that are its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ports: Vec<HostPort>,
    /// In the order in which they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) attachments: Vec<Attachment>,
    /// The interface that its default routes were given to, if that is not the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lead: Option<Lead>,
    /// Address of podstead's resolver for the pod, if it uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) resolver: Option<IpAddr>,
}

impl PodRecord {
    /// Of a pod that has nothing.
    pub(super) const fn new(pod: PodFullName) -> Self {
        Self { pod, ports: Vec::new(), attachments: Vec::new(), lead: None, resolver: None }
    }

    /// Returns true if there is nothing to record.
    pub(super) fn is_empty(&self) -> bool {
        self.ports.is_empty() && self.attachments.is_empty() && self.lead.is_none()
    }

    /// Finds the attachment with this interface.
    pub(super) fn find(&mut self, interface: &str) -> Option<&mut Attachment> {
        self.attachments.iter_mut().find(|attachment| attachment.interface() == interface)
    }
}

/// Reads the records of all pods that have a directory.
pub(super) fn read_all(paths: &Paths) -> Result<Found<PodRecord>, RecordError> {
    record::read_all(paths, |uid| paths.pod_cni(uid))
}

/// Writes a record, durably: plugins keep addresses on disk, and a power cut must not make podstead forget whose they are. One that has
/// nothing in it goes. A configuration in it may hold a password. Blocks.
pub(super) fn write(paths: &Paths, uid: &PodUid, record: &PodRecord) -> Result<(), RecordError> {
    match record.is_empty() {
        true => record::remove(paths.pod_cni(uid)),
        false => record::write_of_pod(paths, uid, paths.pod_cni(uid), record, Proof::PowerCut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn records_are_found_again_and_what_is_damaged_is_told_apart() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().into(), run: root.path().into(), logs: root.path().into() };
        assert!(read_all(&paths).unwrap().0.is_empty(), "no pods yet");
        let (good, bad) = (PodUid::new("good"), PodUid::new("bad"));
        let ports = serde_json::from_str(r#"[{"protocol": "TCP", "hostPort": 8080, "containerPort": 80}]"#).unwrap();
        let record = PodRecord { ports, ..PodRecord::new(PodFullName { namespace: "default".into(), name: "a".into() }) };
        write(&paths, &good, &record).unwrap();
        write(&paths, &bad, &record).unwrap();
        fs::write(paths.pod_cni(&bad), "{").unwrap();
        let (found, unreadable) = read_all(&paths).unwrap();
        assert_eq!(found, [(good.clone(), record.clone())]);
        assert_eq!(unreadable[0].0, bad);
        fs::write(paths.pod_cni(&bad), r#"{"version": 2, "pod": {"name": "a", "namespace": "b"}}"#).unwrap();
        assert!(read_all(&paths).unwrap().1[0].1.to_string().ends_with("it has the unsupported version 2"));
        let empty = PodRecord { ports: Vec::new(), ..record };
        write(&paths, &good, &empty).unwrap();
        write(&paths, &good, &empty).unwrap();
        assert!(read_all(&paths).unwrap().0.is_empty());
    }

    #[test]
    fn a_records_form_on_disk_is_what_daemons_before_and_after_this_one_read() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().into(), run: root.path().into(), logs: root.path().into() };
        let uid = PodUid::new("uid");
        let form = concat!(
            r#"{"version":1,"pod":{"name":"a","namespace":"default"},"#,
            r#""ports":[{"protocol":"TCP","hostIp":"10.0.0.1","hostPort":8080,"containerPort":80}],"#,
            r#""attachments":[{"stage":"added","network":{"cniVersion":"1.0.0","name":"n","plugins":[{"mtu":1500,"type":"bridge"}]},"#,
            r#""version":"1.0.0","ask":{"place":{"containerId":"uid","interface":"eth0","arguments":[["K8S_POD_NAME","a"]]},"#,
            r#""capabilities":{}},"result":{"ips":[{"address":"10.1.0.2/16"}]}}],"#,
            r#""lead":{"interface":"net1","gateways":["10.1.0.1"]}}"#
        );
        fs::create_dir_all(paths.pod(&uid)).unwrap();
        fs::write(paths.pod_cni(&uid), form).unwrap();
        let (mut found, unreadable) = read_all(&paths).unwrap();
        assert!(unreadable.is_empty(), "{unreadable:?}");
        let (_, record) = found.remove(0);
        assert_eq!(record.attachments[0].network["plugins"][0]["mtu"], 1500);
        write(&paths, &uid, &record).unwrap();
        assert_eq!(fs::read_to_string(paths.pod_cni(&uid)).unwrap(), form);
    }
}
