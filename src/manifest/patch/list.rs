//! The order of merged lists: the patch's items in the patch's order, the others in their own, and those that only the patch has before
//! those that it says nothing of, as Kubernetes has it.

use super::directive::PATCH;
use super::merge_keys::ListRule;
use super::tree::{find, same};
use crate::node::Node;
use std::collections::VecDeque;

/// An item and where it comes from.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) node: Node,
    /// Its index in the original list.
    pub(super) original: Option<usize>,
    /// Its index in the patch.
    pub(super) patch: Option<usize>,
}

impl Merged {
    /// Of a list that took the original's place.
    pub(super) fn alone(node: Node) -> Self {
        Self { node, original: None, patch: None }
    }

    pub(super) fn of_original(items: Vec<Node>) -> Vec<Self> {
        let known = |(index, node)| Self { node, original: Some(index), patch: None };
        items.into_iter().enumerate().map(known).collect()
    }
}

pub(super) fn nodes(merged: Vec<Merged>) -> Vec<Node> {
    merged.into_iter().map(|merged| merged.node).collect()
}

/// In the order of the patch's items, and of the original list.
pub(super) fn by_patch_and_original(merged: Vec<Merged>) -> Vec<Node> {
    let (mut patched, others): (Vec<Merged>, Vec<Merged>) = merged.into_iter().partition(|merged| merged.patch.is_some());
    patched.sort_by_key(|merged| merged.patch);
    interleaved(others, patched)
}

/// In the order that `$setElementOrder` gives, and of the original list.
pub(super) fn by_order(merged: Vec<Merged>, order: &[Node], rule: ListRule) -> Vec<Node> {
    let place = |node: &Node| order.iter().position(|wanted| is_same_item(wanted, node, rule));
    let (listed, others): (Vec<_>, Vec<_>) =
        merged.into_iter().map(|merged| (place(&merged.node), merged)).partition(|(place, _)| place.is_some());
    let mut listed = listed;
    listed.sort_by_key(|(place, _)| *place);
    let without = |list: Vec<(Option<usize>, Merged)>| list.into_iter().map(|(_, merged)| merged).collect();
    interleaved(without(others), without(listed))
}

/// Reports whether the items of a patch are in the order that it gives.
pub(super) fn follows(patch: &[Node], order: &[Node], rule: ListRule) -> bool {
    let mut order = order.iter();
    let items = patch.iter().filter(|item| find(item.entries(), PATCH).is_none());
    patch.is_empty() || order.len() == 0 || items.into_iter().all(|item| order.any(|wanted| is_same_item(wanted, item, rule)))
}

fn is_same_item(wanted: &Node, node: &Node, rule: ListRule) -> bool {
    match rule {
        ListRule::Replace | ListRule::Union => same(wanted, node),
        ListRule::ByKey(key) => key.position(std::iter::once(node), wanted).is_some(),
    }
}

/// Both lists, each in its order. An item of `others` comes before one of `first` only where it did in the original list.
fn interleaved(others: Vec<Merged>, first: Vec<Merged>) -> Vec<Node> {
    let (mut others, mut first) = (VecDeque::from(others), VecDeque::from(first));
    let mut nodes = Vec::with_capacity(others.len() + first.len());
    loop {
        let is_before = match (others.front(), first.front()) {
            (None, None) => return nodes,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(first)) => other.original.zip(first.original).is_some_and(|(other, first)| other < first),
        };
        let next = if is_before { others.pop_front() } else { first.pop_front() };
        nodes.extend(next.map(|merged| merged.node));
    }
}
