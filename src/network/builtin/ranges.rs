//! Which ranges pods get their addresses from.

use super::names::{Names, RANGES_V4, RANGES_V6};
use super::record::ChosenRanges;
use crate::config::{AddressRange, NetworkConfig};
use crate::sys::netlink::rtnetlink::{self, Reached};
use crate::sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request};

/// Why there is no range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("every default range of IPv{family} addresses is in use on this host: name a free one in network.ipv{family}Range")]
pub(super) struct NoFreeRange {
    /// 4 or 6.
    pub(super) family: u8,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// The ranges, IPv4 first.
    pub(super) ranges: Vec<AddressRange>,
    /// To be recorded.
    pub(super) chosen: ChosenRanges,
    /// What is in use elsewhere nevertheless: ranges that are configured, or in which pods have addresses.
    pub(super) collisions: Vec<Collision>,
}

/// A range of pods that overlaps something else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Collision {
    /// The pods' range.
    pub(super) range: AddressRange,
    /// What it overlaps.
    pub(super) with: AddressRange,
    /// Name of the interface that this is reached by, or empty.
    pub(super) interface: String,
}

impl std::fmt::Display for Collision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the range of pods {} overlaps {}", self.range, self.with)?;
        if self.interface.is_empty() { Ok(()) } else { write!(f, " behind interface {}", self.interface) }
    }
}

/// A network that is not podstead's.
pub(super) type Used = (AddressRange, String);

/// Decides (pure). `earlier` was chosen before; it stays while pods have addresses in it, and while nothing else uses it.
pub(super) fn decide(
    config: &NetworkConfig,
    earlier: &ChosenRanges,
    has_leases: bool,
    with_ipv6: bool,
    used: &[Used],
) -> Result<Decision, NoFreeRange> {
    let [earlier_v4, earlier_v6] = earlier.parsed();
    let mut decision = Decision { ranges: Vec::new(), chosen: earlier.clone(), collisions: Vec::new() };
    let v4 = one(config.ipv4, earlier_v4, &RANGES_V4, has_leases, used).ok_or(NoFreeRange { family: 4 })?;
    if config.ipv4.is_none() {
        decision.chosen.ipv4 = Some(v4.to_string());
    }
    decision.ranges.push(v4);
    if with_ipv6 {
        let v6 = one(config.ipv6, earlier_v6, &RANGES_V6, has_leases, used).ok_or(NoFreeRange { family: 6 })?;
        if config.ipv6.is_none() {
            decision.chosen.ipv6 = Some(v6.to_string());
        }
        decision.ranges.push(v6);
    }
    decision.collisions = collisions(&decision.ranges, used);
    Ok(decision)
}

fn one(
    configured: Option<AddressRange>,
    earlier: Option<AddressRange>,
    defaults: &[&str],
    has_leases: bool,
    used: &[Used],
) -> Option<AddressRange> {
    let is_free = |range: &AddressRange| !used.iter().any(|(network, _)| network.overlaps(range));
    let kept = configured.or_else(|| earlier.filter(|range| has_leases || is_free(range)));
    kept.or_else(|| defaults.iter().filter_map(|text| text.parse().ok()).find(is_free))
}

/// Where ranges overlap something else's (pure).
pub(super) fn collisions(ranges: &[AddressRange], used: &[Used]) -> Vec<Collision> {
    let overlapping = |range: &AddressRange| {
        let found = used.iter().find(|(network, _)| network.overlaps(range));
        found.map(|(network, interface)| Collision { range: *range, with: *network, interface: interface.clone() })
    };
    ranges.iter().filter_map(overlapping).collect()
}

/// The networks that this host reaches by interfaces that are not podstead's. Default routes are none.
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
    let foreign = reached.into_iter().filter_map(|Reached { network, prefix, interface }| {
        let link = links.iter().find(|link| link.index == interface);
        let is_own = link.is_some_and(|link| link.group == names.group && link.name.starts_with(&names.prefix));
        let range = AddressRange::of(network, prefix).filter(|_| !is_own)?;
        Some((range, link.map(|link| link.name.clone()).unwrap_or_default()))
    });
    Ok(foreign.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(texts: &[&str]) -> Vec<Used> {
        texts.iter().map(|text| (text.parse().unwrap(), "eth0".to_owned())).collect()
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
            "the range of pods 10.201.0.0/20 overlaps 10.201.4.0/24 behind interface eth0"
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
    fn no_free_range_is_an_error_that_says_what_to_do() {
        let busy = used(&["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]);
        let error = decide(&NetworkConfig::default(), &ChosenRanges::default(), false, false, &busy).unwrap_err();
        assert!(error.to_string().contains("network.ipv4Range"), "{error}");
    }
}
