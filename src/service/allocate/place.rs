//! Addresses of the host at which a Service has its own ports (S3, S11).

use super::{Allocation, Pool, RefusalReason};
use crate::definition::{Definition, Exposure, Role};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Addresses at which a Service has its own ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// None.
    Nowhere,
    /// All addresses of the host.
    Everywhere,
    /// These, at least one.
    At(BTreeSet<IpAddr>),
}

/// The addresses that a Service asks for and this host has. Others are refused: nobody may take connections to addresses of others (CVE-2020-8554).
pub(super) fn place(service: &Definition, pool: &Pool, allocation: &mut Allocation) -> Place {
    let Role::Cluster { external_ips, exposure, .. } = &service.role else { return Place::Nowhere };
    let mut asked: Vec<(String, IpAddr)> = Vec::new();
    if let Exposure::LoadBalancer(balancer) = exposure
        && balancer.is_served
    {
        match balancer.address {
            // Ports on all addresses: those in `externalIPs` are among them.
            None => return Place::Everywhere,
            Some(_) if !balancer.source_ranges.is_empty() => {
                let message =
                    "cannot be served together with spec.loadBalancerIP: the Service gets no port of this host; remove one of both";
                allocation.refuse(&service.name, "spec.loadBalancerSourceRanges", RefusalReason::Unserved, message);
                return Place::Nowhere;
            }
            Some(address) => asked.push(("spec.loadBalancerIP".to_owned(), address)),
        }
    }
    asked.extend(external_ips.iter().map(|address| ("spec.externalIPs".to_owned(), *address)));
    let mut given = BTreeSet::new();
    for (field, address) in asked {
        if pool.host.contains(&address) {
            given.insert(address);
        } else {
            let message = format!("{address} is no address of this host, which has {}", list(&pool.host));
            allocation.refuse(&service.name, field, RefusalReason::NotOfHost, message);
        }
    }
    if given.is_empty() { Place::Nowhere } else { Place::At(given) }
}

fn list(addresses: &BTreeSet<IpAddr>) -> String {
    /// More are of no help.
    const MOST: usize = 8;
    let text = addresses.iter().take(MOST).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match addresses.len() {
        0 => "none".to_owned(),
        count if count > MOST => format!("{text} and {} more", count - MOST),
        _ => text,
    }
}
