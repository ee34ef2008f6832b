//! News of the links of this host, among the messages of rtnetlink: a way to other hosts that was not there before. **Pure**.

use super::message::{Answer, attributes, text_of, u32_at};
use super::rtnetlink::{NEW_ADDRESS, NEW_LINK, default_route};
use std::collections::BTreeSet;

/// Notifications of links, addresses and routes of both families, as a mask.
pub const NEWS_OF_LINKS: u32 = 1 | 0x10 | 0x40 | 0x100 | 0x400;

const DELETE_LINK: u16 = 17;
const LINK_HEADER: usize = 16;
/// `IFF_LOWER_UP`: there is a carrier.
const CARRIER: u32 = 1 << 16;
const LINK_INFO: u16 = 18;
const INFO_KIND: u16 = 1;

/// The links that are known to have no carrier.
#[derive(Clone, Debug, Default)]
pub struct LinkNews {
    down: BTreeSet<u32>,
}

impl LinkNews {
    /// Returns true if the message may mean a new way to other hosts: a default route, an address that others can reach, or a carrier that is back.
    pub fn is_a_way(&mut self, message: &Answer<'_>) -> bool {
        match message.kind {
            NEW_LINK => self.link(message).unwrap_or_default(),
            DELETE_LINK => {
                if let Some(index) = u32_at(message.body, 4) {
                    self.down.remove(&index);
                }
                false
            }
            // Scope RT_SCOPE_UNIVERSE.
            NEW_ADDRESS => message.body.get(3) == Some(&0),
            _ => default_route(message).is_some(),
        }
    }

    fn link(&mut self, message: &Answer<'_>) -> Option<bool> {
        let (index, flags) = (u32_at(message.body, 4)?, u32_at(message.body, 8)?);
        // Those of pods come and go.
        if flags & CARRIER == 0 && !is_of_pod(message.body.get(LINK_HEADER..)?) {
            self.down.insert(index);
            return Some(false);
        }
        Some(flags & CARRIER != 0 && self.down.remove(&index))
    }
}

fn is_of_pod(of_link: &[u8]) -> bool {
    let info = attributes(of_link).find(|(kind, _)| *kind == LINK_INFO).map(|(_, info)| info).unwrap_or_default();
    attributes(info).any(|(kind, name)| kind == INFO_KIND && text_of(name) == "veth")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Answer<'_> {
        Answer { kind, flags: 0, sequence: 0, port: 0, body }
    }

    fn link(index: u8, carrier: bool, kind: &str) -> Vec<u8> {
        let mut body = vec![0, 0, 1, 0, index, 0, 0, 0, 1, 0, u8::from(carrier), 0, 0, 0, 0, 0];
        // The kind in IFLA_INFO_KIND in IFLA_LINKINFO, each padded to four bytes.
        let inner = 4 + kind.len();
        let padded = inner.next_multiple_of(4);
        body.extend([u8::try_from(4 + padded).unwrap(), 0, 18, 0, u8::try_from(inner).unwrap(), 0, 1, 0]);
        body.extend(kind.bytes());
        body.resize(body.len() + padded - inner, 0);
        body
    }

    #[test]
    fn carrier_that_is_back_is_news() {
        let mut news = LinkNews::default();
        let mut hear = |index, carrier, kind: &str| news.is_a_way(&message(NEW_LINK, &link(index, carrier, kind)));
        assert!(!hear(2, true, "dummy"), "it had one");
        assert!(!hear(2, false, "dummy") && !hear(3, false, "veth"));
        assert!(hear(2, true, "dummy") && !hear(2, true, "dummy") && !hear(3, true, "veth"));
        assert!(!hear(2, false, "dummy"));
        assert!(!news.is_a_way(&message(DELETE_LINK, &link(2, false, "dummy"))));
        assert!(!news.is_a_way(&message(NEW_LINK, &link(2, true, "dummy"))), "another link");
    }

    #[test]
    fn addresses_and_default_routes_are_news() {
        let mut news = LinkNews::default();
        let mut hear = |kind, body: &[u8]| news.is_a_way(&message(kind, body));
        assert!(hear(NEW_ADDRESS, &[2, 24, 0, 0, 2, 0, 0, 0]));
        assert!(!hear(NEW_ADDRESS, &[10, 64, 0, 253, 2, 0, 0, 0]), "of the link alone");
        // RTA_OIF of a unicast route of the main table.
        let route = |prefix| [2, prefix, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0, 8, 0, 4, 0, 2, 0, 0, 0];
        assert!(hear(24, &route(0)) && !hear(24, &route(32)));
        assert!(!hear(16, &[]) && !hear(17, &[]) && !hear(20, &[]) && !hear(24, &[]));
    }
}
