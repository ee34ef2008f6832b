//! Names of pods and the workloads that want them (W9).

use super::rank_of;
use podstead_manifest::ObjectKey;
use podstead_workload::object::{Workload, WorkloadKind};
use std::collections::{BTreeMap, BTreeSet};

/// A workload in the order in which names are given.
type Holder = (WorkloadKind, ObjectKey);

/// Names of pods by the workloads that want them. Those that come later in order skip names of earlier ones.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Workloads that want a pod of this namespace and name.
    holders: BTreeMap<(String, String), BTreeSet<Holder>>,
    /// The names of each workload.
    names: BTreeMap<ObjectKey, BTreeSet<String>>,
}

impl Names {
    /// Replaces the names of a workload. Returns the workloads that have one of them and come later: they have to look again.
    pub(super) fn replace(&mut self, key: &ObjectKey, names: BTreeSet<String>) -> BTreeSet<ObjectKey> {
        self.release(key);
        let own = rank_of(key);
        let mut later = BTreeSet::new();
        for name in &names {
            let holders = self.holders.entry((key.namespace.to_string(), name.clone())).or_default();
            later.extend(holders.iter().filter(|holder| **holder > own).map(|(_, key)| key.clone()));
            holders.insert(own.clone());
        }
        self.names.insert(key.clone(), names);
        later
    }

    /// Forgets the names of a workload.
    pub(super) fn release(&mut self, key: &ObjectKey) {
        let own = rank_of(key);
        for name in self.names.remove(key).unwrap_or_default() {
            let name = (key.namespace.to_string(), name);
            if let Some(holders) = self.holders.get_mut(&name) {
                holders.remove(&own);
                if holders.is_empty() {
                    self.holders.remove(&name);
                }
            }
        }
    }

    /// Reports whether a workload that comes before `key` has the name.
    pub(super) fn is_taken(&self, key: &ObjectKey, name: &str) -> bool {
        let own = rank_of(key);
        let holders = self.holders.get(&(key.namespace.to_string(), name.to_owned()));
        holders.is_some_and(|holders| holders.iter().any(|holder| *holder < own))
    }
}

/// The names that a StatefulSet has or will have: an ordinal cannot be skipped when a name is taken.
pub(super) fn ordinal_names(workload: &Workload) -> Vec<String> {
    let Workload::StatefulSet(set) = workload else { return Vec::new() };
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let spec = set.spec.as_ref();
    let start = spec.and_then(|spec| spec.ordinals.as_ref()?.start).unwrap_or(0);
    let replicas = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    (start..start.saturating_add(replicas)).map(|ordinal| format!("{name}-{ordinal}")).collect()
}
