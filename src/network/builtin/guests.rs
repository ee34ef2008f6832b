//! Pods that CNI plugins connected and whose router is this host. Their packets to Services come to the rules, which treat them as those of pods of
//! podstead's own network; these rules know them by interface and address, since their interfaces are not podstead's.

use super::names::{Names, name_bytes};
use podstead_service::range::Family;
use podstead_sys::netlink::nftables::{Datatype, Element, SetSpec};
use podstead_sys::netlink::rtnetlink::octets;
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request, maps};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Bytes of the name of an interface in rules.
const NAME_BYTES: usize = 16;

/// An address of such a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Guest {
    /// Interface of the host by which packets of the pod come: the one that has the address of its router.
    pub(crate) interface: String,
    /// The address.
    pub(crate) address: IpAddr,
}

/// The set of a family: interface and address.
pub(super) const fn set(family: Family) -> SetSpec<'static> {
    match family {
        Family::V4 => SetSpec { name: "guests4", key: &[Datatype::Interface, Datatype::Ipv4], value: &[] },
        Family::V6 => SetSpec { name: "guests6", key: &[Datatype::Interface, Datatype::Ipv6], value: &[] },
    }
}

/// Elements of the set of a family (pure).
pub(super) fn elements<'a>(guests: impl IntoIterator<Item = &'a Guest>, family: Family) -> Vec<Element> {
    let of_family = guests.into_iter().filter(|guest| Family::of(guest.address) == family);
    of_family.map(|guest| ([&name_bytes(&guest.interface)[..], &octets(guest.address)].concat(), None)).collect()
}

/// The guests that an earlier daemon left in the table; none without a table.
pub(super) fn read(names: &Names) -> Result<BTreeSet<Guest>, NetlinkError> {
    let mut socket = NetlinkSocket::open(Protocol::Netfilter)?;
    let mut found = BTreeSet::new();
    for family in Family::ALL {
        let mut request = Request::new();
        maps::list_elements(&mut request, &names.table, set(family).name);
        let listed = socket.dump(&request, |answer| {
            found.extend(maps::elements(&answer).iter().filter_map(|element| guest(&element.key)));
        });
        match listed {
            Err(error) if error.is_not_found() => return Ok(found),
            listed => listed?,
        }
    }
    Ok(found)
}

/// The guest of an element (pure); `None` for a key that nothing here makes.
fn guest(key: &[u8]) -> Option<Guest> {
    let (name, address) = key.split_at_checked(NAME_BYTES)?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
    let interface = str::from_utf8(&name[..end]).ok()?.to_owned();
    let v4 = <[u8; 4]>::try_from(address).map(IpAddr::from).ok();
    let address = v4.or_else(|| <[u8; 16]>::try_from(address).map(IpAddr::from).ok())?;
    Some(Guest { interface, address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_as_they_were_written() {
        let guests: BTreeSet<Guest> = [("lan0", "10.77.0.2"), ("vethfifteenchar", "10.77.0.3"), ("lan0", "fd00::2")]
            .map(|(interface, address)| Guest { interface: interface.into(), address: address.parse().unwrap() })
            .into();
        let all = Family::ALL.into_iter().flat_map(|family| elements(&guests, family));
        assert_eq!(all.filter_map(|(key, _)| guest(&key)).collect::<BTreeSet<Guest>>(), guests);
        assert_eq!(guest(&[0; 17]), None);
    }
}
