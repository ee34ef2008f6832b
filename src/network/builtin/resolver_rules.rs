//! The packet rules of the resolver: its clients, and the redirection of DNS queries. **Pure**.

use super::names::{RESOLVER_ON_HOST, name_bytes};
use super::sets::FAMILIES;
use podstead_sys::netlink::expressions::{DESTINATION_PORT, IPV4_DESTINATION, Meta, REGISTER, Verdict};
use podstead_sys::netlink::nftables::{Batch, IPV4};
use podstead_sys::netlink::rtnetlink::octets;

/// TCP and UDP.
const OF_RESOLVER: [u8; 2] = [6, 17];

/// Only pods and this host may query the resolver, on any of its ports.
pub(super) fn add_guard_of_resolver(batch: &mut Batch<'_>, pod: &[u8], port: u16) {
    for (family, protocol) in FAMILIES.iter().flat_map(|family| OF_RESOLVER.map(|protocol| (family, protocol))) {
        batch.add_rule("from_pods", |rule| {
            rule.is_not(Meta::InputGroup, pod);
            rule.is_not(Meta::InputName, &name_bytes("lo"));
            rule.is(Meta::Family, &[family.number]);
            rule.field_is(family.destination, &octets(family.gateway));
            rule.is(Meta::Protocol, &[protocol]);
            rule.field_is(DESTINATION_PORT, &port.to_be_bytes());
            rule.count();
            rule.verdict(Verdict::Drop);
        });
    }
}

/// Questions to port 53 of the host, as pods see it, go to the resolver before anything else is tried with them: whoever else has that port,
/// a service of the host or a pod that serves names to the site, has it still.
pub(super) fn add_resolver(batch: &mut Batch<'_>, pod: &[u8], port: u16) {
    const DOMAIN: u16 = 53;
    for (family, protocol) in FAMILIES.iter().flat_map(|family| OF_RESOLVER.map(|protocol| (family, protocol))) {
        batch.add_rule("incoming", |rule| {
            rule.is(Meta::InputGroup, pod);
            rule.is(Meta::Family, &[family.number]);
            rule.field_is(family.destination, &octets(family.gateway));
            rule.is(Meta::Protocol, &[protocol]);
            rule.field_is(DESTINATION_PORT, &DOMAIN.to_be_bytes());
            let words = family.destination.length / 4;
            rule.load_constant(&octets(family.gateway), REGISTER);
            rule.load_constant(&port.to_be_bytes(), REGISTER + words);
            rule.rewrite_destination(family.number, REGISTER, REGISTER + words);
        });
    }
    batch.add_rule("own", |rule| {
        rule.is(Meta::Family, &[IPV4]);
        rule.field_is(IPV4_DESTINATION, &RESOLVER_ON_HOST.octets());
        rule.verdict(Verdict::Return);
    });
}
