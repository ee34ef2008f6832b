//! Order of the built objects.

use super::id::{Gvk, Id};
use super::resource::Resource;
use std::cmp::Ordering;

const FIRST: &[&str] = &[
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];

const LAST: &[&str] = &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Sorts objects. Without options the order is upstream's legacy one.
pub(super) fn sort(resources: &mut [Resource], options: Option<&SortOptions>) {
    let owned;
    let (first, last) = match options {
        Some(SortOptions::Fifo) => return,
        Some(SortOptions::Legacy(Some((first, last)))) => {
            owned = (first.iter().map(String::as_str).collect(), last.iter().map(String::as_str).collect());
            owned
        }
        Some(SortOptions::Legacy(None)) | None => (FIRST.to_vec(), LAST.to_vec()),
    };
    let rank = |kind: &str| rank(&first, &last, kind);
    resources.sort_by_cached_key(|resource| Key::of(&resource.id(), rank(resource.kind())));
}

/// Place of a kind: before all others, among them, or behind them.
fn rank(first: &[&str], last: &[&str], kind: &str) -> i64 {
    let place = |kinds: &[&str]| kinds.iter().rposition(|known| *known == kind).map(|at| at as i64);
    place(last).map(|at| at + 1).or_else(|| place(first).map(|at| at - first.len() as i64)).unwrap_or(0)
}

#[derive(Debug, PartialEq, Eq)]
struct Key {
    rank: i64,
    is_namespace: bool,
    has_group: bool,
    gvk: String,
    id: String,
}

impl Key {
    fn of(id: &Id, rank: i64) -> Self {
        let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
        Self {
            rank,
            is_namespace: id.gvk.kind == "Namespace",
            has_group: !id.gvk.group.is_empty(),
            gvk: gvk_text(&id.gvk),
            id: format!("{}|{}|{}", id.gvk.text(), or(&id.namespace, "~X"), or(&id.name, "~N")),
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let gvk = if self.gvk == other.gvk {
            Ordering::Equal
        } else if self.is_namespace && other.is_namespace && !(self.has_group && other.has_group) {
            // The core Namespace comes before any other Namespace.
            other.gvk.cmp(&self.gvk)
        } else {
            self.gvk.cmp(&other.gvk)
        };
        self.rank.cmp(&other.rank).then(gvk).then_with(|| self.id.cmp(&other.id))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn gvk_text(gvk: &Gvk) -> String {
    let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
    format!("{}_{}_{}", or(&gvk.group, "~G"), or(&gvk.version, "~V"), or(&gvk.kind, "~K"))
}

/// Upstream's order of kinds.
pub(super) fn order_of(gvk: &Gvk) -> (i64, String) {
    (rank(FIRST, LAST, &gvk.kind), gvk_text(gvk))
}

/// `sortOptions`.
#[derive(Debug)]
pub(super) enum SortOptions {
    Fifo,
    Legacy(Option<(Vec<String>, Vec<String>)>),
}
