//! Assignment of addresses and host ports to pods. **Pure**.

use podstead_pod::host_ports::{HostPort, Protocol};
use podstead_pod::identity::ANNOTATION_CONFIG_SOURCE;
use podstead_pod::{Pod, PodFullName, PodUid};
use podstead_policy::compile::PolicedPod;
use podstead_service::name::ObjectName;
use podstead_settings::AddressRange;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Lease of a pod. Recorded in the pod's state directory before any of it is used, and kept until the pod is gone: a new sandbox, a restart
/// of the daemon and one of the host find the same addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lease {
    /// The pod's name, for messages.
    pub(super) pod: PodFullName,
    /// Number of its interface; `None` for a pod on the host's network, which has ports at most.
    pub(super) slot: Option<u32>,
    /// Its addresses, primary first.
    pub(super) addresses: Vec<IpAddr>,
    /// Ports of the host that lead to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ports: Vec<HostPort>,
    /// Other pods are kept away from it.
    #[serde(default)]
    pub(super) is_isolated: bool,
    /// Its properties that NetworkPolicies depend on (R14).
    #[serde(default)]
    pub(super) facts: Facts,
    /// Its ports are its own at the moment: its sandbox lives, or is being made.
    #[serde(skip)]
    pub(super) holds_ports: bool,
}

/// The properties of a pod that NetworkPolicies depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Facts {
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) labels: BTreeMap<String, String>,
    /// Ports of its containers that have names: name, protocol, number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ports: Vec<(String, Protocol, u16)>,
    /// Its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
}

impl Facts {
    /// Those of a manifest.
    pub(super) fn of(pod: &Pod) -> Self {
        let PolicedPod { labels, ports, .. } = PolicedPod::of(pod);
        let annotations = pod.metadata.annotations.as_ref();
        Self {
            labels,
            ports: ports.into_iter().map(|((name, protocol), number)| (name, protocol, number)).collect(),
            source: annotations.and_then(|annotations| annotations.get(ANNOTATION_CONFIG_SOURCE)).cloned(),
        }
    }

    /// The pod as policies see it.
    pub(super) fn policed(&self, pod: &PodFullName, addresses: Vec<IpAddr>) -> PolicedPod {
        PolicedPod {
            name: ObjectName { namespace: (&pod.namespace).into(), name: (&pod.name).into() },
            source: self.source.clone(),
            labels: self.labels.clone(),
            addresses,
            ports: self.ports.iter().map(|(name, protocol, number)| ((name.clone(), *protocol), *number)).collect(),
        }
    }
}

/// Request of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) pod: PodFullName,
    pub(super) ports: Vec<HostPort>,
    pub(super) is_isolated: bool,
    pub(super) facts: Facts,
}

/// Reason why a pod cannot have the requested lease.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum LeaseError {
    /// Another pod has the port.
    #[error("hostPort {port} is in use by pod {by}")]
    PortTaken { port: HostPort, by: PodFullName },
    /// All addresses are given out.
    #[error("no free address in {}", ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "))]
    Exhausted { ranges: Vec<AddressRange> },
}

/// All leases.
#[derive(Debug, Default)]
pub(super) struct Leases {
    leases: BTreeMap<PodUid, Lease>,
    /// The slot given out last: addresses of pods that are gone rest as long as possible.
    last: u32,
    /// Slots of interfaces of unknown pods: they are in use.
    reserved: BTreeSet<u32>,
}

impl Leases {
    /// Takes in a recorded lease.
    pub(super) fn recover(&mut self, uid: PodUid, lease: Lease) {
        self.last = self.last.max(lease.slot.unwrap_or(0));
        self.leases.insert(uid, lease);
    }

    /// Keeps slots from being given out, and no others.
    pub(super) fn reserve(&mut self, slots: impl Iterator<Item = u32>) {
        self.reserved = slots.collect();
    }

    /// Lease of a pod.
    pub(super) fn get(&self, uid: &PodUid) -> Option<&Lease> {
        self.leases.get(uid)
    }

    /// Leases of all pods.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&PodUid, &Lease)> {
        self.leases.iter()
    }

    /// Gives ports, and an address of each range, to a pod. One that has addresses keeps them while they are in the ranges, and in any
    /// case while it is connected. Without ranges, the pod is on the host's network.
    pub(super) fn grant(
        &mut self,
        uid: &PodUid,
        wish: &Wish,
        ranges: &[AddressRange],
        is_connected: bool,
    ) -> Result<Lease, LeaseError> {
        let Wish { pod, ports, is_isolated, facts } = wish;
        for (other, lease) in self.leases.iter().filter(|(other, lease)| *other != uid && lease.holds_ports) {
            let taken = ports.iter().find(|port| lease.ports.iter().any(|held| held.collides(port)));
            if let Some(port) = taken {
                tracing::debug!(pod_uid = %uid, %other, %port, "port is in use");
                return Err(LeaseError::PortTaken { port: *port, by: lease.pod.clone() });
            }
        }
        let kept = self.leases.get(uid).filter(|lease| is_connected || fits(lease, ranges));
        let (slot, addresses) = match kept {
            _ if ranges.is_empty() => (None, Vec::new()),
            Some(lease) => (lease.slot, lease.addresses.clone()),
            None => self.free(uid, ranges).map(|(slot, addresses)| (Some(slot), addresses))?,
        };
        let lease = Lease {
            pod: pod.clone(),
            slot,
            addresses,
            ports: ports.clone(),
            is_isolated: *is_isolated,
            facts: facts.clone(),
            holds_ports: true,
        };
        self.leases.insert(uid.clone(), lease.clone());
        Ok(lease)
    }

    /// The next free slot with unused addresses.
    fn free(&mut self, uid: &PodUid, ranges: &[AddressRange]) -> Result<(u32, Vec<IpAddr>), LeaseError> {
        let exhausted = || LeaseError::Exhausted { ranges: ranges.to_vec() };
        let capacity = ranges.iter().map(AddressRange::capacity).min().ok_or_else(exhausted)?;
        let others = || self.leases.iter().filter(|(other, _)| *other != uid).map(|(_, lease)| lease);
        // One more than there are leases: one of them is free, or all are taken. With leases of other ranges, each can block one more.
        let tries = u32::try_from(self.leases.len().saturating_add(self.reserved.len()))
            .unwrap_or(u32::MAX)
            .saturating_mul(4)
            .saturating_add(2)
            .min(capacity);
        for step in 1..=tries {
            let slot = u32::try_from((u64::from(self.last) + u64::from(step) - 1) % u64::from(capacity)).unwrap_or(0) + 1;
            let addresses: Vec<IpAddr> = ranges.iter().filter_map(|range| range.nth(slot)).collect();
            let is_free = addresses.len() == ranges.len()
                && !self.reserved.contains(&slot)
                && others()
                    .all(|lease| lease.slot != Some(slot) && lease.addresses.iter().all(|address| !addresses.contains(address)));
            if is_free {
                self.last = slot;
                return Ok((slot, addresses));
            }
        }
        Err(exhausted())
    }

    /// The pod's ports are free for others, its addresses are not. Whether it was on the host's network: then nothing of it is left.
    pub(super) fn rest(&mut self, uid: &PodUid) -> bool {
        let Some(lease) = self.leases.get_mut(uid) else { return false };
        lease.holds_ports = false;
        let is_over = lease.slot.is_none();
        if is_over {
            self.leases.remove(uid);
        }
        is_over
    }

    /// Other properties of a pod. Returns its lease if they are others than before.
    pub(super) fn renew(&mut self, uid: &PodUid, facts: Facts) -> Option<Lease> {
        let lease = self.leases.get_mut(uid).filter(|lease| lease.facts != facts)?;
        lease.facts = facts;
        Some(lease.clone())
    }

    /// The pod's sandbox lives: its ports are its own.
    pub(super) fn hold(&mut self, uid: &PodUid) {
        if let Some(lease) = self.leases.get_mut(uid) {
            lease.holds_ports = true;
        }
    }

    /// The pod is gone.
    pub(super) fn release(&mut self, uid: &PodUid) -> Option<Lease> {
        self.leases.remove(uid)
    }

    /// Takes back a grant that did not come into force.
    pub(super) fn restore(&mut self, uid: &PodUid, before: Option<Lease>) {
        match before {
            Some(lease) => drop(self.leases.insert(uid.clone(), lease)),
            None => drop(self.leases.remove(uid)),
        }
    }
}

/// Returns true if a lease equals the one that would be granted now.
fn fits(lease: &Lease, ranges: &[AddressRange]) -> bool {
    lease.slot.is_some()
        && lease.addresses.len() == ranges.len()
        && lease.addresses.iter().zip(ranges).all(|(address, range)| range.contains(*address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranges(texts: &[&str]) -> Vec<AddressRange> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn slots_of_interfaces_whose_pods_are_not_known_are_not_given_out() {
        let mut leases = Leases::default();
        leases.reserve([1, 2].into_iter());
        let lease = leases.grant(&PodUid::new("a"), &wish("a", &[]), &ranges(&["10.0.0.0/24"]), false).unwrap();
        assert_eq!(lease.slot, Some(3));
        leases.reserve(std::iter::empty());
        let again = leases.grant(&PodUid::new("b"), &wish("b", &[]), &ranges(&["10.0.0.0/29"]), false);
        assert_eq!(again.unwrap().slot, Some(4));
    }

    fn wish(name: &str, ports: &[u16]) -> Wish {
        let port = |port: &u16| HostPort { protocol: Protocol::Tcp, host_ip: None, host_port: *port, container_port: 80 };
        let pod = PodFullName { namespace: "default".into(), name: name.into() };
        Wish { pod, ports: ports.iter().map(port).collect(), is_isolated: false, facts: Facts::default() }
    }

    fn texts(lease: &Lease) -> Vec<String> {
        lease.addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_pod_has_addresses_of_its_own_and_keeps_them_until_it_is_gone() {
        let ranges = ranges(&["10.0.0.0/24", "fd00::/64"]);
        let (a, b) = (PodUid::new("a"), PodUid::new("b"));
        let mut leases = Leases::default();
        assert_eq!(texts(&leases.grant(&a, &wish("a", &[]), &ranges, false).unwrap()), ["10.0.0.1", "fd00::1"]);
        assert_eq!(texts(&leases.grant(&b, &wish("b", &[]), &ranges, false).unwrap()), ["10.0.0.2", "fd00::2"]);
        assert!(!leases.rest(&a), "its sandbox is gone, its addresses are kept");
        assert_eq!(texts(&leases.grant(&a, &wish("a", &[]), &ranges, false).unwrap()), ["10.0.0.1", "fd00::1"]);
        leases.release(&a);
        assert_eq!(texts(&leases.grant(&a, &wish("a", &[]), &ranges, false).unwrap()), ["10.0.0.3", "fd00::3"], "the other rests");
    }

    #[test]
    fn other_ranges_give_other_addresses_with_the_next_sandbox_and_not_before() {
        let (old, new) = (ranges(&["10.0.0.0/24"]), ranges(&["10.0.0.0/29", "fd00::/64"]));
        let a = PodUid::new("a");
        let mut leases = Leases::default();
        leases.grant(&a, &wish("a", &[]), &old, false).unwrap();
        assert_eq!(texts(&leases.grant(&a, &wish("a", &[]), &new, true).unwrap()), ["10.0.0.1"]);
        assert_eq!(leases.grant(&a, &wish("a", &[]), &new, false).unwrap().addresses.len(), 2);
    }

    #[test]
    fn a_port_is_held_by_one_pod_as_long_as_its_sandbox_lives() {
        let ranges = ranges(&["10.0.0.0/24"]);
        let (a, b) = (PodUid::new("a"), PodUid::new("b"));
        let mut leases = Leases::default();
        leases.grant(&a, &wish("a", &[8080]), &ranges, false).unwrap();
        let refused = leases.grant(&b, &wish("b", &[1, 8080]), &ranges, false).unwrap_err();
        assert_eq!(refused.to_string(), "hostPort 8080/TCP is in use by pod a_default");
        assert_eq!(leases.get(&b), None, "a refused pod has nothing");
        leases.grant(&a, &wish("a", &[8080]), &ranges, false).unwrap();
        leases.rest(&a);
        leases.grant(&b, &wish("b", &[8080]), &[], false).unwrap();
        leases.grant(&a, &wish("a", &[8080]), &ranges, false).unwrap_err();
        assert!(leases.rest(&b), "on the host's network");
        leases.grant(&a, &wish("a", &[8080]), &ranges, false).unwrap();
    }

    #[test]
    fn a_full_range_is_an_error_that_names_it() {
        let ranges = ranges(&["10.0.0.0/30"]);
        let mut leases = Leases::default();
        for name in ["a", "b"] {
            leases.grant(&PodUid::new(name), &wish(name, &[]), &ranges, false).unwrap();
        }
        let error = leases.grant(&PodUid::new("c"), &wish("c", &[]), &ranges, false).unwrap_err();
        assert_eq!(error.to_string(), "no free address in 10.0.0.0/30");
        leases.release(&PodUid::new("a"));
        assert_eq!(texts(&leases.grant(&PodUid::new("c"), &wish("c", &[]), &ranges, false).unwrap()), ["10.0.0.1"]);
    }

    proptest! {
        #[test]
        fn no_two_pods_ever_share_an_address_or_an_interface(
            steps in proptest::collection::vec((0_u8..12, 0_u8..4, any::<bool>()), 1..120)
        ) {
            let choices = [ranges(&["10.0.0.0/28"]), ranges(&["10.0.0.8/29", "fd00::/64"])];
            let mut leases = Leases::default();
            for (pod, step, other) in steps {
                let name = format!("p{pod}");
                let uid = PodUid::new(name.clone());
                match step {
                    0 => drop(leases.release(&uid)),
                    1 => drop(leases.rest(&uid)),
                    _ => drop(leases.grant(&uid, &wish(&name, &[]), &choices[usize::from(other)], step == 2)),
                }
                let mut seen = BTreeSet::new();
                let mut slots = BTreeSet::new();
                for (_, lease) in leases.iter() {
                    prop_assert!(lease.addresses.iter().all(|address| seen.insert(*address)));
                    prop_assert!(slots.insert(lease.slot));
                }
            }
        }
    }
}
