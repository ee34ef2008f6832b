//! Layers that somebody was given or counts on. They stay, although nothing has mounted them yet and no reference may name them.

use podstead_container::ImageLease;
use podstead_container::digest::Digest;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError, Weak};

/// The leases that are out.
#[derive(Debug, Default)]
pub(super) struct Leases(Mutex<Vec<Held>>);

#[derive(Debug)]
struct Held {
    is_alive: Weak<()>,
    chains: Vec<Digest>,
}

impl Leases {
    /// A lease on these layers.
    pub(super) fn give(&self, chains: Vec<Digest>) -> ImageLease {
        let lease = ImageLease::default();
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|held| held.is_alive.strong_count() > 0);
        held.push(Held { is_alive: lease.watch(), chains });
        lease
    }

    /// The layers of all leases that live.
    pub(super) fn layers(&self) -> BTreeSet<Digest> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().filter(|held| held.is_alive.strong_count() > 0).flat_map(|held| held.chains.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_with_its_last_copy() {
        let leases = Leases::default();
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        let lease = leases.give(vec![one]);
        let copy = lease.clone();
        drop(lease);
        drop(leases.give(vec![two]));
        assert_eq!(leases.layers(), [one].into());
        drop(copy);
        assert_eq!(leases.layers(), [].into());
    }
}
