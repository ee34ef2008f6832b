//! Services for pods that plugins connected: those whose router is this host reach them by the packet rules of podstead's own network, and others are
//! told that they do not.

use super::names::first;
use super::record::PodRecord;
use super::{Shared, lock};
use crate::builtin::Guest;
use crate::host_addresses::assigned_to;
use podstead_pod::PodUid;
use podstead_telemetry::error_chain;
use podstead_telemetry::events::{EventType, Subject};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Interfaces of the host, by their addresses.
type Interfaces = BTreeMap<IpAddr, String>;

impl Shared {
    /// Has the pods of all records whose router is this host reach addresses of Services. Blocks.
    pub(super) fn admit_guests(&self) {
        let Some(builtin) = &self.links.builtin else { return };
        // One at a time: the last one is to see all records.
        let _admitting = lock(&self.admitting);
        let interfaces = match assigned_to() {
            Ok(interfaces) => interfaces,
            Err(error) => return tracing::warn!(%error, "cannot list the addresses of the host"),
        };
        let guests = lock(&self.records).values().flat_map(|record| guests(record, &interfaces)).collect();
        if let Err(error) = builtin.admit(guests) {
            tracing::warn!(error = %error_chain(&error), "pods that CNI plugins connect do not reach Services");
        }
    }

    /// Tells pods that do not reach addresses of Services, once each while there are Services. Blocks.
    pub(super) fn tell_unreached(&self) {
        if !self.links.builtin.as_ref().is_some_and(|builtin| builtin.has_services()) {
            return;
        }
        let Ok(interfaces) = assigned_to() else { return };
        let records: Vec<(PodUid, PodRecord)> =
            lock(&self.records).iter().map(|(uid, record)| (uid.clone(), record.clone())).collect();
        for (uid, record) in records {
            let Some(network) = unreached(&record, &interfaces) else { continue };
            let message = format!(
                "addresses of Services lead nowhere from this pod, since this host is not the router of its network {network}: use a network whose default \
                 route leads to this host (of the plugins bridge with isGateway, or ptp), or podstead's own"
            );
            if lock(&self.told).insert(format!("{uid} {message}")) {
                let subject = Subject::Pod { uid, full_name: record.pod, field_path: None };
                self.links.events.record(&subject, EventType::Warning, "ServicesNotReached", &message);
            }
        }
    }
}

/// The addresses of a pod whose packets to Services pass this host (pure).
fn guests(record: &PodRecord, interfaces: &Interfaces) -> BTreeSet<Guest> {
    let Some(first) = first(&record.attachments) else { return BTreeSet::new() };
    let gained = first.gained();
    let interface = |address: IpAddr| {
        let router = gained.default_gateways().into_iter().find(|router| router.is_ipv4() == address.is_ipv4())?;
        interfaces.get(&router).cloned()
    };
    let addresses = gained.pod_ips().into_iter();
    addresses.filter_map(|address| Some(Guest { interface: interface(address)?, address })).collect()
}

/// The network of a pod that plugins connected and whose packets to Services do not pass this host (pure).
fn unreached(record: &PodRecord, interfaces: &Interfaces) -> Option<String> {
    let first = first(&record.attachments)?;
    let is_connected = !first.gained().pod_ips().is_empty();
    (is_connected && guests(record, interfaces).is_empty()).then(|| first.network_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(result: &str) -> PodRecord {
        let attachment = format!(
            r#"{{"stage": "added", "network": {{"name": "lan"}}, "version": "1.0.0",
                "ask": {{"place": {{"containerId": "uid", "interface": "eth0", "arguments": []}}, "capabilities": {{}}}}, "result": {result}}}"#
        );
        serde_json::from_str(&format!(r#"{{"pod": {{"name": "a", "namespace": "default"}}, "attachments": [{attachment}]}}"#))
            .unwrap()
    }

    #[test]
    fn guests_are_those_whose_router_is_the_host() {
        let interfaces: Interfaces = [("10.77.0.1".parse().unwrap(), "lan0".to_owned())].into();
        let pod = r#""ips": [{"address": "10.77.0.2/24", "gateway": "10.77.0.1"}]"#;
        let routed = record(&format!(r#"{{{pod}, "routes": [{{"dst": "0.0.0.0/0"}}]}}"#));
        let guest = Guest { interface: "lan0".into(), address: "10.77.0.2".parse().unwrap() };
        assert_eq!((guests(&routed, &interfaces), unreached(&routed, &interfaces)), ([guest].into(), None));
        // Without a default route, or with one that leads elsewhere.
        let elsewhere = record(&format!(r#"{{{pod}, "routes": [{{"dst": "0.0.0.0/0", "gw": "10.77.0.9"}}]}}"#));
        for record in [record(&format!("{{{pod}}}")), elsewhere] {
            assert_eq!((guests(&record, &interfaces).len(), unreached(&record, &interfaces).as_deref()), (0, Some("lan")));
        }
    }
}
