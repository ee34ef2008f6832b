//! Check that firewalld accepts pods. To it, pods are in the zone of all interfaces that it was told nothing about, from which nothing is
//! passed on. It does not say so by a policy: its chain accepts at its end, after its zones have rejected. **Pure**.

use podstead_settings::AddressRange;
use podstead_sys::netlink::sources::{Outcome, Source, SourceRule};

/// Its table, of the family inet.
pub(super) const TABLE: &str = "firewalld";
/// Prefix of the names of its chains that dispatch forwarded packets to zones.
const ZONES: &str = "filter_FORWARD";

/// Pod ranges from which it rejects forwarded packets: no accepting zone contains them, by a source or by the interfaces' name. `rules` are
/// those of its table; without any, it does not run.
pub(super) fn rejected(rules: &[SourceRule], prefix: &str, ranges: &[AddressRange]) -> Vec<AddressRange> {
    if rules.is_empty() {
        return Vec::new();
    }
    let accepts_all =
        |chain: &str| rules.iter().any(|rule| rule.chain == chain && rule.source == Source::Any && rule.outcome == Outcome::Accept);
    let is_told_of = |source: &Source, range: &AddressRange| match source {
        Source::Network(address, length) => *length <= range.prefix() && contains(*address, *length, range),
        Source::Interfaces(name) => !name.is_empty() && prefix.starts_with(name.as_str()),
        Source::Any | Source::Other => false,
    };
    // The first zone that is told of it has it.
    let zone_of = |range: &AddressRange| rules.iter().find(|rule| rule.chain.starts_with(ZONES) && is_told_of(&rule.source, range));
    let is_accepted = |range: &AddressRange| match zone_of(range).map(|rule| &rule.outcome) {
        Some(Outcome::Accept) => true,
        Some(Outcome::Chain(chain)) => accepts_all(chain),
        Some(Outcome::Other) | None => false,
    };
    ranges.iter().filter(|range| !is_accepted(range)).copied().collect()
}

fn contains(address: std::net::IpAddr, length: u8, range: &AddressRange) -> bool {
    AddressRange::of(address, length).is_some_and(|network| network.contains(range.network()))
}

/// Commands that make firewalld accept the ranges.
pub(super) fn remedy(ranges: &[AddressRange]) -> String {
    let mut commands: Vec<String> =
        ranges.iter().map(|range| format!("firewall-cmd --permanent --zone=trusted --add-source={range}")).collect();
    commands.push("firewall-cmd --reload".to_owned());
    commands.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(chain: &str, source: Source, outcome: Outcome) -> SourceRule {
        SourceRule { chain: chain.into(), source, outcome }
    }

    fn zone(source: Source, chain: &str) -> SourceRule {
        rule("filter_FORWARD_ZONES", source, Outcome::Chain(chain.into()))
    }

    fn network(text: &str, length: u8) -> Source {
        Source::Network(text.parse().unwrap(), length)
    }

    /// The rejected ranges with these zones for forwarded packets; `trusted` accepts, `public` does not.
    fn rejected_with(zones: &[SourceRule]) -> Vec<String> {
        let ranges: Vec<AddressRange> = ["10.201.0.0/20", "fd70::/64"].iter().map(|text| text.parse().unwrap()).collect();
        let mut rules = vec![
            rule("filter_FORWARD", Source::Other, Outcome::Accept),
            rule("filter_FWD_trusted", Source::Any, Outcome::Accept),
            rule("filter_FWD_public", Source::Any, Outcome::Other),
        ];
        rules.extend(zones.iter().cloned());
        rejected(&rules, "ps-", &ranges).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn pods_pass_where_a_zone_that_accepts_is_told_of_all_their_addresses() {
        let other = zone(Source::Any, "filter_FWD_public");
        assert_eq!(rejected_with(std::slice::from_ref(&other)), ["10.201.0.0/20", "fd70::/64"]);
        let ipv4 = zone(network("10.201.0.0", 20), "filter_FWD_trusted");
        assert_eq!(rejected_with(&[ipv4.clone(), other.clone()]), ["fd70::/64"]);
        let ipv6 = zone(network("fd00::", 8), "filter_FWD_trusted");
        assert!(rejected_with(&[ipv4, ipv6.clone(), other.clone()]).is_empty());
        let half = zone(network("10.201.0.0", 21), "filter_FWD_trusted");
        let refused = zone(network("10.0.0.0", 8), "filter_FWD_public");
        assert_eq!(rejected_with(&[half, ipv6, refused, other.clone()]), ["10.201.0.0/20"]);
        assert!(rejected_with(&[zone(Source::Interfaces("ps-".into()), "filter_FWD_trusted"), other.clone()]).is_empty());
        assert_eq!(rejected_with(&[zone(Source::Interfaces("eth".into()), "filter_FWD_trusted"), other]).len(), 2);
    }

    #[test]
    fn nothing_is_rejected_where_firewalld_does_not_run() {
        assert!(rejected(&[], "ps-", &["10.201.0.0/20".parse().unwrap()]).is_empty());
    }
}
