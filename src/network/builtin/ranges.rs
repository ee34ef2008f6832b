//! Choice of the ranges of pod addresses.

use super::names::{Names, RANGES_V4, RANGES_V6, SERVICE_RANGES_V4, SERVICE_RANGES_V6};
use super::record::ChosenRanges;
use super::services::ServiceRanges;
use podstead_service::range::Subnet;
use podstead_settings::{AddressRange, NetworkConfig};
use podstead_sys::netlink::rtnetlink::{self, Link, Reached};
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request};
use std::net::IpAddr;

/// Reason why there is no range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all default IPv4 address ranges are in use on this host: set a free range in network.ipv4Range")]
pub(super) struct NoFreeRange;

/// The decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// The ranges, IPv4 first.
    pub(super) ranges: Vec<AddressRange>,
    /// To be recorded.
    pub(super) chosen: ChosenRanges,
    /// Ranges that overlap others nevertheless: ranges that are configured, in which pods have addresses, or that are the best there is.
    pub(super) collisions: Vec<Collision>,
    /// Pods could have addresses of IPv6 if a range were free.
    pub(super) lacks_ipv6: bool,
}

/// A range of pods that overlaps something else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Collision {
    /// The pods' range.
    pub(super) range: AddressRange,
    /// The overlapped range.
    pub(super) with: AddressRange,
    /// Name of the interface that this is reached by, or empty.
    pub(super) interface: String,
}

impl std::fmt::Display for Collision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the pod address range {} overlaps {}", self.range, self.with)?;
        if self.interface.is_empty() { Ok(()) } else { write!(f, " behind interface {}", self.interface) }
    }
}

/// A network that is not podstead's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Used {
    network: AddressRange,
    /// Name of the interface that it is reached by, or empty.
    interface: String,
    /// This host has neighbours there. What is behind a router or in a tunnel, pods can have at a pinch.
    is_on_link: bool,
}

/// Decides (pure). `earlier` was chosen before; it stays while pods have addresses in it, and while nothing else uses it.
pub(super) fn decide(
    config: &NetworkConfig,
    earlier: &ChosenRanges,
    has_leases: bool,
    with_ipv6: bool,
    used: &[Used],
) -> Result<Decision, NoFreeRange> {
    let [earlier_v4, earlier_v6] = earlier.parsed();
    let mut decision = Decision { ranges: Vec::new(), chosen: earlier.clone(), collisions: Vec::new(), lacks_ipv6: false };
    let v4 = one(config.ipv4, earlier_v4, &RANGES_V4, has_leases, used).ok_or(NoFreeRange)?;
    if config.ipv4.is_none() {
        decision.chosen.ipv4 = Some(v4.to_string());
    }
    decision.ranges.push(v4);
    if with_ipv6 {
        let v6 = one(config.ipv6, earlier_v6, &RANGES_V6, has_leases, used);
        if config.ipv6.is_none() {
            decision.chosen.ipv6 = v6.map(|range| range.to_string());
        }
        decision.lacks_ipv6 = v6.is_none();
        decision.ranges.extend(v6);
    }
    decision.collisions = collisions(&decision.ranges, used);
    Ok(decision)
}

/// The ranges of Services that an earlier daemon used, if the configuration is the same.
pub(super) fn of_services(config: &NetworkConfig, earlier: &ChosenRanges) -> ServiceRanges {
    let recorded = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<AddressRange>().ok());
    let subnet = |range: AddressRange| Subnet::of(range.network(), range.prefix());
    ServiceRanges {
        ipv4: config.service_ipv4.or_else(|| recorded(&earlier.service_ipv4)).and_then(subnet),
        ipv6: config.service_ipv6.or_else(|| recorded(&earlier.service_ipv6)).and_then(subnet),
    }
}

/// Decides on the ranges of Services (pure, S4). Those of pods count as used; what was chosen before stays, since addresses were given from it.
pub(super) fn decide_of_services(
    config: &NetworkConfig,
    earlier: &ChosenRanges,
    of_pods: &[AddressRange],
    used: &[Used],
) -> (ChosenRanges, [Option<AddressRange>; 2]) {
    let mut used = used.to_vec();
    used.extend(of_pods.iter().map(|range| Used { network: *range, interface: String::new(), is_on_link: true }));
    let parse = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
    let is_apart = |range: &AddressRange| !of_pods.iter().any(|pods| pods.overlaps(range));
    let earlier_v4 = parse(&earlier.service_ipv4).filter(is_apart);
    let v4 = one(config.service_ipv4, earlier_v4, &SERVICE_RANGES_V4, true, &used);
    let has_ipv6 = of_pods.iter().any(|range| !range.is_ipv4());
    let earlier_v6 = parse(&earlier.service_ipv6).filter(is_apart);
    let v6 = has_ipv6.then(|| one(config.service_ipv6, earlier_v6, &SERVICE_RANGES_V6, true, &used)).flatten();
    let mut chosen = earlier.clone();
    if config.service_ipv4.is_none() {
        chosen.service_ipv4 = v4.map(|range| range.to_string());
    }
    if config.service_ipv6.is_none() && has_ipv6 {
        chosen.service_ipv6 = v6.map(|range| range.to_string());
    }
    (chosen, [v4, v6])
}

/// A range that nothing else uses, or else one without neighbours of this host in it.
fn one(
    configured: Option<AddressRange>,
    earlier: Option<AddressRange>,
    defaults: &[&str],
    has_leases: bool,
    used: &[Used],
) -> Option<AddressRange> {
    if let Some(kept) = configured.or(earlier.filter(|_| has_leases)) {
        return Some(kept);
    }
    let choice = || earlier.into_iter().chain(defaults.iter().filter_map(|text| text.parse().ok()));
    let is_free = |range: &AddressRange| !used.iter().any(|used| used.network.overlaps(range));
    let is_bearable = |range: &AddressRange| !used.iter().any(|used| used.is_on_link && used.network.overlaps(range));
    choice().find(is_free).or_else(|| choice().find(is_bearable))
}

/// Overlaps of ranges with those of others (pure).
pub(super) fn collisions(ranges: &[AddressRange], used: &[Used]) -> Vec<Collision> {
    let overlapping = |range: &AddressRange| {
        let found = used.iter().find(|used| used.network.overlaps(range));
        found.map(|used| Collision { range: *range, with: used.network, interface: used.interface.clone() })
    };
    ranges.iter().filter_map(overlapping).collect()
}

/// The networks that this host reaches by interfaces that are not podstead's. Default routes are none, in whatever form.
pub(super) fn used_networks(names: &Names) -> Result<Vec<Used>, NetlinkError> {
    let mut socket = NetlinkSocket::open(Protocol::Route)?;
    let (mut links, mut reached) = (Vec::new(), Vec::<Reached>::new());
    let mut request = Request::new();
    rtnetlink::list_links(&mut request);
    socket.dump(&request, |answer| links.extend(rtnetlink::link(&answer)))?;
    let mut request = Request::new();
    rtnetlink::list_addresses(&mut request);
    socket.dump(&request, |answer| reached.extend(rtnetlink::address(&answer)))?;
    let mut request = Request::new();
    rtnetlink::list_routes(&mut request);
    socket.dump(&request, |answer| reached.extend(rtnetlink::route(&answer)))?;
    Ok(reached.iter().filter_map(|reached| foreign(names, &links, reached)).collect())
}

/// Returns the network of a route if it does not belong to podstead (pure).
fn foreign(names: &Names, links: &[Link], reached: &Reached) -> Option<Used> {
    let Reached { network, prefix, interface, is_on_link } = *reached;
    let link = links.iter().find(|link| link.index == interface);
    if link.is_some_and(|link| link.group == names.group && link.name.starts_with(&names.prefix)) {
        return None;
    }
    let network = AddressRange::of(network, prefix).filter(|_| prefix >= least_prefix(network))?;
    Some(Used { network, interface: link.map(|link| link.name.clone()).unwrap_or_default(), is_on_link })
}

/// Shortest prefix of a network in use. A shorter one is a default route in another form, such as the halves of the Internet that VPNs have
/// routes to.
const fn least_prefix(network: IpAddr) -> u8 {
    if network.is_ipv4() { 8 } else { 16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(texts: &[&str]) -> Vec<Used> {
        let one = |text: &&str| Used { network: text.parse().unwrap(), interface: "eth0".to_owned(), is_on_link: true };
        texts.iter().map(one).collect()
    }

    fn routed(texts: &[&str]) -> Vec<Used> {
        used(texts).into_iter().map(|used| Used { is_on_link: false, ..used }).collect()
    }

    fn texts(decision: &Decision) -> Vec<String> {
        decision.ranges.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_first_default_that_nothing_else_uses_is_chosen_and_kept() {
        let config = NetworkConfig::default();
        let none = ChosenRanges::default();
        let first = decide(&config, &none, false, true, &used(&["192.0.2.0/24"])).unwrap();
        assert_eq!(texts(&first), ["10.201.0.0/20", "fd70:6f64:7374:1::/64"]);
        assert!(first.collisions.is_empty());
        let busy = used(&["10.0.0.0/8", "fd70:6f64:7374:1::5/128"]);
        let other = decide(&config, &none, false, true, &busy).unwrap();
        assert_eq!(texts(&other), ["172.29.240.0/20", "fd70:6f64:7374:2::/64"]);
        let kept = decide(&config, &other.chosen, false, true, &[]).unwrap();
        assert_eq!(kept.ranges, other.ranges, "what was chosen once stays");
    }

    #[test]
    fn a_range_that_is_taken_by_an_uplink_stays_as_long_as_pods_are_in_it() {
        let config = NetworkConfig::default();
        let chosen = ChosenRanges { ipv4: Some("10.201.0.0/20".into()), ..ChosenRanges::default() };
        let uplink = used(&["10.201.4.0/24"]);
        let with_pods = decide(&config, &chosen, true, false, &uplink).unwrap();
        assert_eq!(texts(&with_pods), ["10.201.0.0/20"]);
        assert_eq!(
            with_pods.collisions[0].to_string(),
            "the pod address range 10.201.0.0/20 overlaps 10.201.4.0/24 behind interface eth0"
        );
        let without = decide(&config, &chosen, false, false, &uplink).unwrap();
        assert_eq!((texts(&without), without.collisions.len()), (vec!["10.213.0.0/20".to_owned()], 0));
    }

    #[test]
    fn a_configured_range_counts_and_its_collision_is_told() {
        let config = NetworkConfig { ipv4: "10.0.0.0/24".parse().ok(), ..NetworkConfig::default() };
        let decision = decide(&config, &ChosenRanges::default(), false, false, &used(&["10.0.0.0/16"])).unwrap();
        assert_eq!((texts(&decision), decision.collisions.len()), (vec!["10.0.0.0/24".to_owned()], 1));
        assert_eq!(decision.chosen, ChosenRanges::default());
    }

    #[test]
    fn a_host_with_neighbours_everywhere_is_told_what_to_do() {
        let busy = used(&["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]);
        let error = decide(&NetworkConfig::default(), &ChosenRanges::default(), false, false, &busy).unwrap_err();
        assert!(error.to_string().contains("network.ipv4Range"), "{error}");
    }

    #[test]
    fn range_of_services_keeps_away_from_others() {
        let config = NetworkConfig::default();
        let pods: Vec<AddressRange> = ["10.201.0.0/20", "fd70:6f64:7374:1::/64"].iter().map(|text| text.parse().unwrap()).collect();
        let (chosen, [v4, v6]) = decide_of_services(&config, &ChosenRanges::default(), &pods, &used(&["10.202.0.0/16"]));
        assert_eq!(v4.unwrap().to_string(), "10.214.0.0/20");
        assert_eq!(v6.unwrap().to_string(), "fd70:6f64:7374:5001::/112");
        let again = decide_of_services(&config, &chosen, &pods, &[]);
        assert_eq!(again.1, [v4, v6], "what was chosen once stays");
        let moved = [v4.unwrap()];
        let (_, [other, none]) = decide_of_services(&config, &chosen, &moved, &[]);
        assert_eq!((other.unwrap().to_string(), none), ("10.202.0.0/20".to_owned(), None));
    }

    #[test]
    fn routes_to_all_private_addresses_leave_the_first_range_without_neighbours() {
        let mut busy = routed(&["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fd70::/16"]);
        busy.extend(used(&["10.201.0.0/24", "fd70:6f64:7374:1::/64"]));
        let config = NetworkConfig::default();
        let decision = decide(&config, &ChosenRanges::default(), false, true, &busy).unwrap();
        assert_eq!(texts(&decision), ["10.213.0.0/20", "fd70:6f64:7374:2::/64"]);
        let told: Vec<String> = decision.collisions.iter().map(|collision| collision.with.to_string()).collect();
        assert_eq!(told, ["10.0.0.0/8", "fd70::/16"]);
        let again = decide(&config, &decision.chosen, false, true, &busy[..4]).unwrap();
        assert_eq!(again.ranges, decision.ranges, "what was chosen once stays");
    }

    #[test]
    fn without_a_range_of_ipv6_pods_have_ipv4() {
        let busy = used(&["fd70:6f64:7374::/48"]);
        let chosen = ChosenRanges { ipv6: Some("fd70:6f64:7374:1::/64".into()), ..ChosenRanges::default() };
        let decision = decide(&NetworkConfig::default(), &chosen, false, true, &busy).unwrap();
        assert_eq!((texts(&decision), decision.lacks_ipv6), (vec!["10.201.0.0/20".to_owned()], true));
        assert_eq!(decision.chosen.ipv6, None);
    }

    #[test]
    fn what_is_nearly_a_default_route_is_in_nobodys_way() {
        let names = Names::new(None);
        let link = |index, name: &str, group| Link { index, name: name.into(), group, ..Link::default() };
        let links = [link(1, "tun0", 0), link(2, "ps-1", names.group)];
        let reached = |text: &str, interface| {
            let range: AddressRange = text.parse().unwrap();
            Reached { network: range.network(), prefix: range.prefix(), interface, is_on_link: false }
        };
        let found = |text, interface| foreign(&names, &links, &reached(text, interface));
        for text in ["0.0.0.0/1", "128.0.0.0/1", "10.0.0.0/7", "fc00::/7", "fd00::/8"] {
            assert_eq!(found(text, 1), None, "{text}");
        }
        for text in ["10.0.0.0/8", "fd70::/16"] {
            assert_eq!(found(text, 1).unwrap().interface, "tun0", "{text}");
        }
        assert_eq!(found("10.201.0.1/32", 2), None, "podstead's own");
    }
}
