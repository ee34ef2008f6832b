//! Addresses of Services.

use super::{Allocation, Grants, Pool, RefusalReason, candidates};
use crate::definition::{Definition, FamilyPolicy, Role};
use crate::name::ObjectName;
use crate::range::{Family, Subnet};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A Service that wants addresses.
struct Wish<'a> {
    name: &'a ObjectName,
    /// Its families, in its order.
    families: Vec<Family>,
    /// Addresses that it asks for.
    asked: &'a [IpAddr],
}

type Holders<'a> = BTreeMap<IpAddr, &'a ObjectName>;

/// The lowest addresses of a range, which are given only to those who ask for them (S5).
fn reserved(range: Subnet) -> u64 {
    let size = u64::try_from(range.usable()).unwrap_or(u64::MAX);
    (size / 16).clamp(16, 256)
}

/// Gives addresses: first to those who have them, then to those who ask for certain ones, then to the others.
pub(super) fn allocate(services: &[&Definition], recorded: &Grants, pool: &Pool, allocation: &mut Allocation) {
    let wishes: Vec<Wish<'_>> = services.iter().filter_map(|service| wish(service, pool, allocation)).collect();
    let mut holders = Holders::new();
    let mut held = BTreeMap::new();
    let mut by_name: Vec<&Wish<'_>> = wishes.iter().collect();
    by_name.sort_by_key(|wish| wish.name);
    for wish in &by_name {
        held.insert(wish.name, keep(wish, recorded, pool, &mut holders));
    }
    give_asked(&wishes, pool, &mut held, &mut holders, allocation);
    let refused: BTreeSet<ObjectName> = allocation.refusals.iter().map(|refusal| refusal.service.clone()).collect();
    for wish in by_name {
        let addresses = held.entry(wish.name).or_default();
        // A Service that asks in vain keeps what it had, and gets nothing that it did not ask for.
        if addresses.is_empty() && refused.contains(wish.name) {
            continue;
        }
        for family in &wish.families {
            let is_of_family = |address: &IpAddr| Family::of(*address) == *family;
            if addresses.iter().any(is_of_family) || wish.asked.iter().any(is_of_family) {
                continue;
            }
            match choose(wish.name, *family, pool, &holders) {
                Some(address) => {
                    holders.insert(address, wish.name);
                    addresses.push(address);
                }
                None => {
                    let range = pool.range(*family).map_or_else(String::new, |range| range.to_string());
                    let message = format!("all addresses of {range} are in use");
                    allocation.refuse(wish.name, "spec.clusterIPs", RefusalReason::AddressNotInRange, message);
                }
            }
        }
        addresses.sort_by_key(|address| wish.families.iter().position(|family| *family == Family::of(*address)));
    }
    for (name, addresses) in held {
        if !addresses.is_empty() {
            allocation.grant(name).cluster_ips = addresses;
        }
    }
}

/// The families that a Service gets (S8); `None` without address.
fn wish<'a>(service: &'a Definition, pool: &Pool, allocation: &mut Allocation) -> Option<Wish<'a>> {
    let Role::Cluster { families, asked, .. } = &service.role else { return None };
    let there = pool.families();
    let mut wanted = families.written.to_vec();
    match families.policy {
        FamilyPolicy::Single => {
            wanted.extend(there.first().filter(|_| families.written.is_empty()));
            wanted.truncate(1);
        }
        FamilyPolicy::PreferDual | FamilyPolicy::RequireDual => {
            wanted.extend(there.iter().filter(|family| !families.written.contains(family)));
        }
    }
    if families.policy == FamilyPolicy::PreferDual {
        wanted.retain(|family| there.contains(family));
    }
    let missing = Family::ALL.into_iter().find(|family| {
        let is_needed = wanted.contains(family) || families.policy == FamilyPolicy::RequireDual;
        is_needed && !there.contains(family)
    });
    if let Some(missing) = missing {
        let message = format!("this host has no {missing} addresses for Services");
        let field = if families.policy == FamilyPolicy::RequireDual { "spec.ipFamilyPolicy" } else { "spec.ipFamilies" };
        allocation.refuse(&service.name, field, RefusalReason::NoFamily, message);
        return None;
    }
    if wanted.is_empty() {
        let message = "this host has no addresses for Services";
        allocation.refuse(&service.name, "spec.ipFamilies", RefusalReason::NoFamily, message);
        return None;
    }
    Some(Wish { name: &service.name, families: wanted, asked })
}

/// The recorded addresses that a Service keeps: those of its families, of the ranges, that no other one has.
fn keep<'a>(wish: &Wish<'a>, recorded: &Grants, pool: &Pool, holders: &mut Holders<'a>) -> Vec<IpAddr> {
    let mut kept: Vec<IpAddr> = Vec::new();
    for address in recorded.get(wish.name).map(|grant| grant.cluster_ips.as_slice()).unwrap_or_default() {
        let family = Family::of(*address);
        let is_wanted = wish.families.contains(&family) && !kept.iter().any(|other| Family::of(*other) == family);
        if is_wanted && is_usable(*address, pool) && !holders.contains_key(address) {
            holders.insert(*address, wish.name);
            kept.push(*address);
        }
    }
    kept
}

fn is_usable(address: IpAddr, pool: &Pool) -> bool {
    let is_last_of_ipv4 = |range: Subnet| range.family() == Family::V4 && address == range.last();
    pool.range(Family::of(address))
        .is_some_and(|range| range.contains(address) && address != range.first() && !is_last_of_ipv4(range))
}

/// Gives addresses to those who ask for them. Who moves makes place for others, so that all are asked again.
fn give_asked<'a>(
    wishes: &[Wish<'a>],
    pool: &Pool,
    held: &mut BTreeMap<&'a ObjectName, Vec<IpAddr>>,
    holders: &mut Holders<'a>,
    allocation: &mut Allocation,
) {
    while wishes.iter().any(|wish| wish.asked.iter().any(|address| give(wish, *address, pool, held, holders) == Some(true))) {}
    for wish in wishes {
        for (index, address) in wish.asked.iter().enumerate() {
            let field = format!("spec.clusterIPs[{index}]");
            match (holders.get(address), pool.range(Family::of(*address))) {
                (Some(holder), _) if *holder == wish.name => {}
                (Some(holder), _) => {
                    let message = format!("{address} belongs to Service {holder}");
                    allocation.refuse(wish.name, field, RefusalReason::AddressTaken, message);
                }
                (None, Some(range)) => {
                    let message = format!("{address} is not in the range of Services, {range}");
                    allocation.refuse(wish.name, field, RefusalReason::AddressNotInRange, message);
                }
                (None, None) => {
                    let message = format!("this host has no {} addresses for Services", Family::of(*address));
                    allocation.refuse(wish.name, field, RefusalReason::NoFamily, message);
                }
            }
        }
    }
}

/// Gives an address if it is free. `Some(true)` if another one became free thereby.
fn give<'a>(
    wish: &Wish<'a>,
    address: IpAddr,
    pool: &Pool,
    held: &mut BTreeMap<&'a ObjectName, Vec<IpAddr>>,
    holders: &mut Holders<'a>,
) -> Option<bool> {
    if holders.contains_key(&address) || !is_usable(address, pool) || !wish.families.contains(&Family::of(address)) {
        return None;
    }
    let own = held.entry(wish.name).or_default();
    let before = own.iter().position(|other| Family::of(*other) == Family::of(address)).map(|at| own.remove(at));
    if let Some(before) = before {
        holders.remove(&before);
    }
    own.push(address);
    holders.insert(address, wish.name);
    Some(before.is_some())
}

fn choose(name: &ObjectName, family: Family, pool: &Pool, holders: &Holders<'_>) -> Option<IpAddr> {
    let range = pool.range(family)?;
    // More than 2^63 addresses are not tried.
    let count = u64::try_from(range.usable()).unwrap_or(u64::MAX).min(u64::MAX >> 1);
    candidates(&name.to_string(), count, reserved(range))
        .map(|number| range.nth(u128::from(number) + 1))
        .find(|address| !holders.contains_key(address))
}
