//! The difference of two sets of frontends, as operations on elements.

use super::Frontends;
use super::elements::{Chain, Elements, Key, Value, chains, of};
use std::collections::BTreeSet;

/// One operation on an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Adds an element that is not there.
    Add(Key, Value),
    /// Removes an element that is there.
    Remove(Key),
}

/// The operations of one transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Chains that the new elements lead to, each after the one that it needs. Those that are there stay as they are.
    pub chains: Vec<Chain>,
    /// Operations, in order. Where an element gets another value, it is removed and added at once.
    pub operations: Vec<Operation>,
}

impl Change {
    /// Returns true if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

/// The change that makes `after` of `before`: first endpoints that come or take another's place, then what leads to them, then endpoints that go
/// (R1, R2). Frontends that both share cost nothing.
pub fn difference(before: &Frontends, after: &Frontends) -> Change {
    let (mut old, mut new) = (Elements::new(), Elements::new());
    for (frontend, one, other) in before.frontends.differences(&after.frontends) {
        old.extend(one.map(|backing| of(frontend, backing)).into_iter().flatten());
        new.extend(other.map(|backing| of(frontend, backing)).into_iter().flatten());
    }
    for (socket, one, other) in before.elsewhere.differences(&after.elsewhere) {
        let element = (Key::Elsewhere(*socket), Value::Present);
        old.extend(one.map(|_| element));
        new.extend(other.map(|_| element));
    }
    of_elements(&old, &new)
}

/// The same for elements, such as those that were read from the kernel.
pub fn of_elements(old: &Elements, new: &Elements) -> Change {
    let mut change = Change::default();
    let keys: BTreeSet<Key> = old.keys().chain(new.keys()).copied().collect();
    let (entries, data): (Vec<Key>, Vec<Key>) = keys.into_iter().partition(Key::is_entry);
    let differs = |key: &&Key| old.get(key) != new.get(key);
    let is_new = |key: &&Key| !old.contains_key(key);
    let is_gone = |key: &&Key| !new.contains_key(key);
    let mut put = |key: &Key| {
        if old.contains_key(key) {
            change.operations.push(Operation::Remove(*key));
        }
        change.operations.extend(new.get(key).map(|value| Operation::Add(*key, *value)));
    };
    data.iter().filter(is_new).for_each(&mut put);
    data.iter().filter(|key| !is_new(key) && !is_gone(key)).filter(differs).for_each(&mut put);
    entries.iter().filter(differs).for_each(&mut put);
    data.iter().filter(is_gone).for_each(&mut put);
    change.chains = chains(change.operations.iter().filter_map(|operation| match operation {
        Operation::Add(_, value) => Some(*value),
        Operation::Remove(_) => None,
    }));
    change
}
