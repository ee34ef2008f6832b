//! The packet rules of NetworkPolicies: fixed rules, a chain for each class of pods, and sets. **Pure**, but for tracked connections.
//!
//! In: classes of `podstead_policy`, through [`super::rules::Rules::police`]. Out: parts of the transaction that makes the whole table, and
//! transactions of what differs (R12). The table has nothing of policies before there is one.

pub(super) mod cut;
pub(super) mod denied;
pub(super) mod force;
pub(super) mod objects;
pub(super) mod policing;
mod table;

#[cfg(test)]
mod tests;

use super::names::Names;
use podstead_policy::compile::Classes;
use podstead_policy::table::{Operation, SetName, Table, difference};
use podstead_sys::netlink::Request;
use podstead_sys::netlink::nftables::Batch;
use std::collections::BTreeSet;

pub(crate) use objects::policed;
pub use objects::{NoPolicies, PolicyObjects, PolicySource, ScopedPolicy};

/// Policies in the table of packet rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PolicyRules {
    /// Classes of pods.
    classes: Classes,
    /// Their sets and chains; `None` before there is a policy.
    table: Option<Table>,
}

impl PolicyRules {
    /// The classes that are in force.
    pub(super) const fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Returns true if there is, or was, a policy.
    pub(super) const fn are_there(&self) -> bool {
        self.table.is_some()
    }

    /// The rules for other classes. A table that has had a policy keeps its fixed rules.
    pub(super) fn next(&self, classes: Classes) -> Self {
        let table = match &self.table {
            None if classes.pods.is_empty() => None,
            table => Some(table.as_ref().unwrap_or(&Table::default()).next(&classes)),
        };
        Self { classes, table }
    }

    /// Transactions that lead from these rules to those that [`PolicyRules::next`] made of them; `None` if the whole table has to be made.
    ///
    /// New chains come first, in a transaction of their own: a packet that is on its way through the table during a transaction sees the rules from
    /// before it and the elements from after it. Led to a chain of the same transaction, it would find no rules there, and pass.
    pub(super) fn change(&self, names: &Names, after: &Self) -> Option<Vec<Request>> {
        let (Some(before), Some(after)) = (&self.table, &after.table) else { return None };
        let operations = difference(before, after);
        let new_sets: BTreeSet<SetName> = operations
            .iter()
            .filter_map(|operation| match operation {
                Operation::AddSet(set) => Some(*set),
                _ => None,
            })
            .collect();
        let (preparing, switching): (Vec<Operation>, Vec<Operation>) =
            operations.into_iter().partition(|operation| match operation {
                Operation::AddSet(_) | Operation::AddChain(..) => true,
                Operation::Add(set, _) => new_sets.contains(set),
                Operation::Remove(..) | Operation::RemoveChain(_) | Operation::RemoveSet(_) => false,
            });
        let parts = [preparing, switching].into_iter().filter(|operations| !operations.is_empty());
        let requests = parts.map(|operations| {
            let mut batch = Batch::new(&names.table);
            add_operations(&mut batch, &operations);
            batch.end()
        });
        Some(requests.collect())
    }

    /// Sets and chains that rules refer to, with all elements.
    pub(super) fn add_sets(&self, batch: &mut Batch<'_>, pod: &[u8]) {
        if let Some(table) = &self.table {
            table::add_fixed_chains(batch, pod);
            add_operations(batch, &table.operations());
        }
    }

    /// Rules for questions of pods to the resolver at this port. They come after those that check where packets are from.
    pub(super) fn add_resolver_rules(&self, batch: &mut Batch<'_>, pod: &[u8], port: u16) {
        if self.table.is_some() {
            table::add_resolver_rules(batch, pod, port);
        }
    }

    /// Rules for packets that are passed on, after those of connections that go on.
    pub(super) fn add_passing_rules(&self, batch: &mut Batch<'_>, pod: &[u8]) {
        if self.table.is_some() {
            table::add_passing_rules(batch, pod);
        }
    }
}

fn add_operations(batch: &mut Batch<'_>, operations: &[Operation]) {
    for operation in operations {
        match operation {
            Operation::AddSet(set) => table::add_set(batch, *set),
            Operation::Add(set, elements) => batch.add_map_elements(&set.name(), &table::elements(elements)),
            Operation::Remove(set, elements) => batch.delete_map_elements(&set.name(), &table::elements(elements)),
            Operation::AddChain(chain, lines) => table::add_chain(batch, *chain, lines),
            Operation::RemoveChain(chain) => batch.delete_chain(&chain.name()),
            Operation::RemoveSet(set) => batch.delete_set(&set.name()),
        }
    }
}
