//! The packet rules: one table of fixed rules, and sets and maps that say which pods there are. **Pure**.
//!
//! A pod that comes or goes changes elements of sets, whatever the number of pods; no rule is about one pod.

use super::guests::Guest;
use super::lease::Lease;
use super::names::{Names, macs, name_bytes};
use super::sets::{Elements, FAMILIES, PodRules, Port, VIRTUAL, Whole};
use super::{bridged, fixed_rules, guests};
use podstead_service::range;
use podstead_settings::NetworkMode;
use podstead_sys::netlink::Request;
use podstead_sys::netlink::nftables::{BRIDGE, Batch, Element, INET, SetSpec};
use podstead_sys::netlink::rtnetlink::octets;
use std::collections::BTreeSet;

const VIRTUAL_KINDS: [&str; 6] = ["bridge", "veth", "tun", "wireguard", "vxlan", "vrf"];

/// The elements that stand for a pod.
pub(super) fn elements(pod: &PodRules) -> Elements {
    let mut elements = Elements::new();
    for address in &pod.addresses {
        let Some(family) = FAMILIES.iter().find(|family| family.is_ipv4 == address.is_ipv4()) else { continue };
        let address = octets(*address);
        let mut add = |set: SetSpec<'static>, key: Vec<u8>, value: Option<Vec<u8>>| {
            elements.entry(set.name).or_default().push((key, value));
        };
        add(family.pods, address.clone(), None);
        add(family.sources, [name_bytes(&pod.interface).to_vec(), address.clone()].concat(), None);
        add(family.selves, address.repeat(2), None);
        if pod.is_isolated {
            add(family.isolated, address.clone(), None);
        }
        for port in &pod.ports {
            let to = [address.clone(), padded(&port.container_port.to_be_bytes())].concat();
            let at = [padded(&[port.protocol.number()]), padded(&port.host_port.to_be_bytes())].concat();
            match port.host_ip {
                None => add(family.ports, at, Some(to)),
                Some(ip) if ip.is_ipv4() != family.is_ipv4 => {}
                Some(ip) if ip.is_unspecified() => add(family.ports, at, Some(to)),
                Some(ip) => add(family.ports_at, [octets(ip), at].concat(), Some(to)),
            }
        }
    }
    elements
}

/// A transaction that replaces what `before` stands for by what `after` does.
pub(super) fn change(names: &Names, before: Option<&PodRules>, after: Option<&PodRules>) -> Request {
    let mut batch = Batch::new(&names.table);
    let of = |pod: Option<&PodRules>, elements: fn(&PodRules) -> Elements| pod.map(elements).unwrap_or_default();
    replace(&mut batch, &of(before, elements), &of(after, elements));
    batch.turn_to(BRIDGE);
    replace(&mut batch, &of(before, bridged::elements), &of(after, bridged::elements));
    batch.end()
}

fn replace(batch: &mut Batch<'_>, before: &Elements, after: &Elements) {
    let without = |elements: &Elements, others: &Elements| -> Elements {
        let is_other = |set: &str, element: &Element| others.get(set).is_some_and(|list| list.contains(element));
        let kept = |(set, list): (&&'static str, &Vec<Element>)| {
            (*set, list.iter().filter(|element| !is_other(set, element)).cloned().collect())
        };
        elements.iter().map(kept).collect()
    };
    for (set, list) in without(before, after) {
        let keys: Vec<Element> = list.into_iter().map(|(key, _)| (key, None)).collect();
        batch.delete_elements(set, &keys);
    }
    for (set, list) in without(after, before) {
        batch.add_elements(set, &list);
    }
}

/// A transaction that replaces pods that plugins connected by others.
pub(super) fn change_guests(names: &Names, before: &BTreeSet<Guest>, after: &BTreeSet<Guest>) -> Request {
    let mut batch = Batch::new(&names.table);
    for family in range::Family::ALL {
        batch.delete_elements(guests::set(family).name, &guests::elements(before.difference(after), family));
        batch.add_elements(guests::set(family).name, &guests::elements(after.difference(before), family));
    }
    batch.end()
}

/// A transaction that removes the table of the bridge.
pub(super) fn without_bridge(names: &Names) -> Request {
    let mut batch = Batch::new(&names.table);
    batch.turn_to(BRIDGE);
    batch.add_table();
    batch.delete_table();
    batch.end()
}

/// A transaction that leaves nothing of podstead.
pub(super) fn nothing(names: &Names) -> Request {
    let mut batch = Batch::new(&names.table);
    batch.add_table();
    batch.delete_table();
    batch.turn_to(BRIDGE);
    batch.add_table();
    batch.delete_table();
    batch.end()
}

fn begin_table(batch: &mut Batch<'_>) {
    // Removing a table that is not there would be an error.
    batch.add_table();
    batch.delete_table();
    batch.add_table();
}

/// Transactions that recreate the whole table, to be made in order. Tracked connections continue.
///
/// The kernel has the elements of a set of ranges a moment after the rules of the same transaction (R15): a rule would find nothing in it and deny what it
/// allows. So sets and what rules lead to come first, without a chain that packets come to by themselves, and those chains come with the second
/// transaction. Something else has to stand in meanwhile: the first one removes what was there.
pub(super) fn in_steps<'a>(names: &Names, parts: Whole<'_>, pods: impl Iterator<Item = &'a PodRules> + Clone) -> [Request; 2] {
    let (mut sets, mut chains) = (Batch::new(&names.table), Batch::new(&names.table));
    add_sets(&mut sets, names, parts, pods.clone());
    add_chains(&mut chains, names, parts, pods);
    [sets.end(), chains.end()]
}

/// The same in one transaction, where there is no pod whose packets a rule could deny.
pub(super) fn whole<'a>(names: &Names, parts: Whole<'_>, pods: impl Iterator<Item = &'a PodRules> + Clone) -> Request {
    let mut batch = Batch::new(&names.table);
    add_sets(&mut batch, names, parts, pods.clone());
    add_chains(&mut batch, names, parts, pods);
    batch.end()
}

/// A new table with all sets, and with the chains that rules lead to.
fn add_sets<'a>(batch: &mut Batch<'_>, names: &Names, parts: Whole<'_>, pods: impl Iterator<Item = &'a PodRules>) {
    begin_table(batch);
    for family in &FAMILIES {
        for set in [family.pods, family.sources, family.selves, family.isolated, family.ports, family.ports_at] {
            batch.add_set(set);
        }
    }
    batch.add_set(VIRTUAL);
    let kinds: Vec<Element> = VIRTUAL_KINDS.iter().map(|kind| (name_bytes(kind).to_vec(), None)).collect();
    batch.add_elements(VIRTUAL.name, &kinds);
    let mut all = Elements::new();
    for pod in pods {
        for (set, list) in elements(pod) {
            all.entry(set).or_default().extend(list);
        }
    }
    for (set, list) in &all {
        batch.add_elements(set, list);
    }
    for family in range::Family::ALL {
        batch.add_set(guests::set(family));
        batch.add_elements(guests::set(family).name, &guests::elements(parts.guests, family));
    }
    parts.services.add_maps(batch);
    parts.policies.add_sets(batch, &names.group.to_ne_bytes());
}

/// The chains that packets come to, and all of the bridge.
fn add_chains<'a>(batch: &mut Batch<'_>, names: &Names, parts: Whole<'_>, pods: impl Iterator<Item = &'a PodRules>) {
    fixed_rules::add_all(batch, &names.group.to_ne_bytes(), parts);
    if parts.switches.is_bridged {
        batch.turn_to(BRIDGE);
        begin_table(batch);
        bridged::add_all(batch, names.group, pods);
    }
}

/// Family of the table.
pub(super) const TABLE_FAMILY: u8 = INET;

/// A key's part takes whole registers.
fn padded(part: &[u8]) -> Vec<u8> {
    let mut bytes = part.to_vec();
    bytes.resize(part.len().next_multiple_of(4), 0);
    bytes
}

pub(super) fn rules_of(names: &Names, mode: NetworkMode, lease: &Lease) -> Option<PodRules> {
    let slot = lease.slot?;
    let interface = names.interface(slot);
    let (interface, port) = match mode {
        NetworkMode::Routed => (interface, None),
        NetworkMode::Bridge => (names.bridge(), Some(Port { interface, mac: macs(slot).1 })),
    };
    Some(PodRules {
        interface,
        port,
        addresses: lease.addresses.clone(),
        ports: lease.ports.clone(),
        is_isolated: lease.is_isolated,
    })
}

#[cfg(test)]
mod tests {
    use super::super::policies::PolicyRules;
    use super::super::services::ServiceRules;
    use super::super::sets::Switches;
    use super::*;
    use podstead_pod::host_ports::HostPort;
    use podstead_pod::host_ports::Protocol;
    use podstead_sys::netlink::answers;

    fn pod(slot: u8, ports: &[(Option<&str>, u16)]) -> PodRules {
        PodRules {
            interface: format!("ps-{slot}"),
            addresses: vec![format!("10.0.0.{slot}").parse().unwrap(), format!("fd00::{slot}").parse().unwrap()],
            ports: ports
                .iter()
                .map(|(ip, port)| HostPort {
                    protocol: Protocol::Tcp,
                    host_ip: ip.map(|ip| ip.parse().unwrap()),
                    host_port: *port,
                    container_port: 80,
                })
                .collect(),
            is_isolated: false,
            port: None,
        }
    }

    fn count(elements: &Elements, set: &str) -> usize {
        elements.get(set).map_or(0, Vec::len)
    }

    #[test]
    fn ports_are_in_the_maps_of_the_families_that_they_are_for() {
        let ports = [(None, 1), (Some("192.0.2.1"), 2), (Some("::1"), 3), (Some("0.0.0.0"), 4), (Some("::"), 5)];
        let elements = elements(&pod(1, &ports));
        assert_eq!(["ports4", "ports6", "ports_at4", "ports_at6"].map(|set| count(&elements, set)), [2, 2, 1, 1]);
        let (key, value) = &elements["ports4"][0];
        assert_eq!(key, &[6, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(value.as_deref(), Some(&[10, 0, 0, 1, 0, 80, 0, 0][..]));
        assert_eq!(elements["sources4"][0].0, b"ps-1\0\0\0\0\0\0\0\0\0\0\0\0\x0a\0\0\x01");
    }

    #[test]
    fn a_change_of_one_pod_is_as_big_with_one_pod_as_with_many() {
        let names = Names::new(None);
        let (before, after) = (pod(1, &[(None, 80)]), pod(1, &[(None, 81)]));
        let request = change(&names, Some(&before), Some(&after));
        // The begin and the end, and a port of each family that goes and one that comes.
        assert_eq!(answers(request.bytes()).count(), 6);
        assert_eq!(answers(change(&names, Some(&before), Some(&before)).bytes()).count(), 2);
    }

    #[test]
    fn a_thousand_pods_fit_into_messages() {
        let pods: Vec<PodRules> = (0..1000_u32)
            .map(|number| PodRules {
                addresses: vec![std::net::Ipv4Addr::from(0x0a00_0000 + number).into()],
                ..pod(1, &[(None, 1), (Some("192.0.2.1"), 2)])
            })
            .collect();
        let (services, policies, guests) = (&ServiceRules::default(), &PolicyRules::default(), &BTreeSet::new());
        let parts = Whole { switches: Switches::default(), services, policies, guests };
        let request = whole(&Names::new(None), parts, pods.iter());
        assert!(!request.is_too_long());
        let none = whole(&Names::new(None), parts, std::iter::empty());
        assert!(request.acknowledged() - none.acknowledged() < 20, "rules do not depend on the number of pods");
    }
}
