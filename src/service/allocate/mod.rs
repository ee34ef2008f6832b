//! Addresses of Services and ports of the host that lead to them (S4 to S9, S11).
//!
//! The same Services and the same grants give the same result in any order, but where two new Services ask for one thing: the first one gets
//! it. What was granted stays with its holder; the caller records the grants before anything else tells of them (S6).

mod addresses;
mod candidates;
mod grant;
mod place;
mod ports;

#[cfg(test)]
mod tests;

use crate::definition::Definition;
use candidates::candidates;
pub use grant::{Allocation, Grant, Grants, HostSocket, NodePort, Pool, Refusal, RefusalReason};

/// Gives what Services ask for. `services` are those of all sources, the first of two that ask for the same goes first (S7).
pub fn allocate(services: &[&Definition], recorded: &Grants, pool: &Pool) -> Allocation {
    let mut allocation = Allocation::default();
    addresses::allocate(services, recorded, pool, &mut allocation);
    ports::allocate(services, recorded, pool, &mut allocation);
    allocation.refusals.sort();
    // A map that is filled in order is half empty; one that is made of another is not.
    allocation.grants = std::mem::take(&mut allocation.grants).into_iter().collect();
    allocation
}
