//! Indexes of Services and pods, so that a change of one finds the others that it concerns. **Pure**.
//!
//! Keys are hashes: they take little memory, and two that are the same by accident cost one look at an object.

use super::backends::{Pods, PublishedPod};
use super::plan::SourcedService;
use podstead_pod::PodUid;
use podstead_service::endpoints::Backend;
use podstead_service::name::ObjectName;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

/// The hash of a key. It is the same within one life of the daemon.
pub(super) fn hashed(key: impl Hash) -> u32 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let [.., a, b, c, d] = hasher.finish().to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// The places of a key in a list in the order of keys.
fn places<K: Ord + Copy, T: Copy>(list: &[(K, T)], key: K) -> impl Iterator<Item = T> {
    let from = list.partition_point(|(known, _)| *known < key);
    list[from..].iter().take_while(move |(known, _)| *known == key).map(|(_, place)| *place)
}

/// Services by their names and by the labels of their pods.
#[derive(Debug, Default)]
pub(super) struct ServiceIndex {
    services: Arc<Vec<Arc<SourcedService>>>,
    /// Hashes of names.
    by_name: Vec<(u32, u32)>,
    /// Hashes of the namespace and the first label of the selector.
    by_label: Vec<(u32, u32)>,
}

impl ServiceIndex {
    pub(super) fn new(services: Arc<Vec<Arc<SourcedService>>>) -> Self {
        let placed = || (0_u32..).zip(services.iter());
        let mut by_name: Vec<(u32, u32)> = placed().map(|(place, service)| (hashed(&service.definition.name), place)).collect();
        let label = |(place, service): (u32, &Arc<SourcedService>)| {
            let definition = &service.definition;
            let first = definition.selector.iter().next().filter(|_| definition.selects_pods());
            first.map(|(key, value)| (hashed((&*definition.name.namespace, &**key, &**value)), place))
        };
        let mut by_label: Vec<(u32, u32)> = placed().filter_map(label).collect();
        by_label.shrink_to_fit();
        by_name.sort_unstable();
        by_label.sort_unstable();
        Self { services, by_name, by_label }
    }

    /// All Services, in the order of precedence.
    pub(super) const fn all(&self) -> &Arc<Vec<Arc<SourcedService>>> {
        &self.services
    }

    fn at(&self, place: u32) -> Option<&Arc<SourcedService>> {
        self.services.get(place as usize)
    }

    /// The Service of a name.
    pub(super) fn named(&self, name: &ObjectName) -> Option<&Arc<SourcedService>> {
        let found = self.with_hash(hashed(name));
        found.into_iter().find(|service| service.definition.name == *name)
    }

    /// The Services whose names have a hash.
    pub(super) fn with_hash(&self, hash: u32) -> Vec<&Arc<SourcedService>> {
        places(&self.by_name, hash).filter_map(|place| self.at(place)).collect()
    }

    /// The Services that select a pod.
    pub(super) fn selecting(&self, pod: &Backend) -> impl Iterator<Item = &Arc<SourcedService>> {
        let hashes = pod.labels.iter().map(move |(key, value)| hashed((&*pod.name.namespace, &**key, &**value)));
        let found = hashes.flat_map(move |hash| places(&self.by_label, hash)).filter_map(move |place| self.at(place));
        found.filter(move |service| pod.is_selected_by(&service.definition))
    }
}

/// A pod that came, went or changed, before and after.
type Change = (Option<Arc<PublishedPod>>, Option<Arc<PublishedPod>>);

/// Pods by their labels and addresses.
#[derive(Debug, Default)]
pub(super) struct PodIndex {
    pods: Pods,
    /// Hashes of the namespace and one label.
    by_label: BTreeSet<(u32, PodUid)>,
    by_address: BTreeSet<(IpAddr, PodUid)>,
}

impl PodIndex {
    /// All pods.
    pub(super) const fn all(&self) -> &Pods {
        &self.pods
    }

    /// Takes other pods in the place of those that are there. Returns those that differ, before and after.
    pub(super) fn replace(&mut self, pods: &Pods) -> Vec<Change> {
        let before = std::mem::replace(&mut self.pods, pods.clone());
        let mut changed = Vec::new();
        for (uid, old, new) in before.differences(pods) {
            if let Some(old) = old {
                for hash in labels(old) {
                    self.by_label.remove(&(hash, uid.clone()));
                }
                for address in &old.backend.addresses {
                    self.by_address.remove(&(*address, uid.clone()));
                }
            }
            if let Some(new) = new {
                self.by_label.extend(labels(new).map(|hash| (hash, uid.clone())));
                self.by_address.extend(new.backend.addresses.iter().map(|address| (*address, uid.clone())));
            }
            changed.push((old.cloned(), new.cloned()));
        }
        changed
    }

    /// The pods that a Service selects, in the order of their names.
    pub(super) fn selected(&self, service: &SourcedService) -> Vec<&PublishedPod> {
        let definition = &service.definition;
        let Some((key, value)) = definition.selector.iter().next() else { return Vec::new() };
        let hash = hashed((&*definition.name.namespace, &**key, &**value));
        let labelled = self.by_label.range((hash, PodUid::new(""))..).take_while(|(known, _)| *known == hash);
        let pods = labelled.filter_map(|(_, uid)| self.pods.get(uid)).map(|pod| &**pod);
        let mut selected: Vec<&PublishedPod> = pods.filter(|pod| pod.backend.is_selected_by(definition)).collect();
        selected.sort_by_key(|pod| (&pod.backend.name, &pod.backend.uid));
        selected
    }

    /// The pods that have an address.
    pub(super) fn at(&self, address: IpAddr) -> impl Iterator<Item = &PublishedPod> {
        let there = self.by_address.range((address, PodUid::new(""))..).take_while(move |(known, _)| *known == address);
        there.filter_map(move |(_, uid)| self.pods.get(uid)).map(|pod| &**pod)
    }
}

fn labels(pod: &PublishedPod) -> impl Iterator<Item = u32> {
    let Backend { name, labels, .. } = &pod.backend;
    labels.iter().map(move |(key, value)| hashed((&*name.namespace, &**key, &**value)))
}

/// The Services whose slices list an address, by hashes of both.
#[derive(Debug, Default)]
pub(super) struct ListedAddresses(Vec<(u32, u32)>);

impl ListedAddresses {
    /// Replaces the addresses of one Service.
    pub(super) fn replace(&mut self, service: u32, addresses: impl Iterator<Item = IpAddr>) {
        self.0.retain(|(_, known)| *known != service);
        self.0.extend(addresses.map(|address| (hashed(address), service)));
    }

    /// Has an order again, after addresses of Services were replaced.
    pub(super) fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.dedup();
        self.0.shrink_to_fit();
    }

    /// The hashes of the Services with an address.
    pub(super) fn with(&self, address: IpAddr) -> impl Iterator<Item = u32> {
        places(&self.0, hashed(address))
    }
}
