//! Claims that pods of workloads mount.

use super::unit::Unit;
use super::{Expander, Now};
use podstead_manifest::ObjectKey;

impl Expander {
    /// Only one pod at a time may mount a claim of this name (W82).
    pub(super) fn is_exclusive_claim(&self, namespace: &str, name: &str) -> bool {
        let of_sets = self.sets.values().flat_map(|set| &set.claims);
        let mut claims = of_sets.filter(|(key, _)| key.namespace == namespace && key.name == name).map(|(_, claim)| claim);
        claims.any(|claim| {
            let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_ref());
            modes.is_some_and(|modes| modes.iter().any(|mode| mode == "ReadWriteOncePod"))
        })
    }

    /// The data of a claim that nothing wants are about to be deleted (W43).
    pub(super) fn is_claim_leaving(&self, namespace: &str, name: &str, now: &Now<'_>) -> bool {
        let is_named = |key: &ObjectKey| key.namespace == namespace && key.name == name;
        let is_declared = || self.sets.values().flat_map(|set| set.claims.keys()).any(is_named);
        let is_made = |(key, unit): (&ObjectKey, &Unit)| {
            key.namespace == namespace && unit.live().is_some_and(|live| live.claims.contains_key(name))
        };
        !is_declared() && !self.units.iter().any(is_made) && (now.is_disposable)(namespace, name)
    }
}
