//! Pods as names show them, and the names that they have at one moment. **Pure**.

use jiff::Timestamp;
use podstead_pod::SourceId;
use podstead_pod::sharing::Sharing;
use podstead_service::name::ObjectName;
use podstead_service::shared_map::SharedMap;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// The zone's entry for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct ZonePod {
    /// The source that it comes from.
    pub(in super::super) source: SourceId,
    /// The time at which it was first seen; `None` if it does not say so.
    pub(in super::super) seen: Option<Timestamp>,
    /// Its namespace.
    pub(in super::super) namespace: String,
    /// Names that it is found by in its namespace; the first one is what its addresses lead back to.
    pub(in super::super) names: Vec<String>,
    /// `spec.hostname` or what stands for it.
    pub(in super::super) hostname: String,
    /// `spec.subdomain`.
    pub(in super::super) subdomain: Option<String>,
    /// Its addresses.
    pub(in super::super) addresses: Vec<IpAddr>,
    /// Its condition `Ready`.
    pub(in super::super) is_ready: bool,
    /// The addresses are its own, not those of the host.
    pub(in super::super) owns_addresses: bool,
}

/// The names of all pods. Copies share what they have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NamesOfPods {
    /// Names of pods, and their subdomains.
    by_name: SharedMap<ObjectName, Arc<NameOfPods>>,
    by_address: SharedMap<IpAddr, Arc<Owned>>,
    /// Number of pods of each namespace.
    namespaces: SharedMap<String, usize>,
}

/// A name that pods have, or have as their subdomain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NameOfPods {
    /// Destinations of the name.
    pub(super) addresses: BTreeSet<IpAddr>,
    /// Pods of the subdomain by their names below it.
    pub(super) members: BTreeMap<String, BTreeSet<IpAddr>>,
}

/// An address that is a pod's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Owned {
    /// Namespaces of the pods that have it: one, but for a moment.
    pub(super) namespaces: BTreeSet<String>,
    /// The absolute name that it leads back to.
    pub(super) pointer: Option<String>,
}

impl NamesOfPods {
    /// A name.
    pub(super) fn named(&self, namespace: &str, name: &str) -> Option<&NameOfPods> {
        self.at(&ObjectName { namespace: namespace.into(), name: name.into() })
    }

    /// The same.
    pub(super) fn at(&self, name: &ObjectName) -> Option<&NameOfPods> {
        self.by_name.get(name).map(|found| &**found)
    }

    /// The absolute name that an address leads back to.
    pub(super) fn pointer(&self, address: IpAddr) -> Option<String> {
        self.by_address.get(&address)?.pointer.clone()
    }

    /// Returns true if a pod of the namespace has an address of its own.
    pub(super) fn has_address(&self, namespace: &str, address: IpAddr) -> bool {
        self.by_address.get(&address).is_some_and(|owned| owned.namespaces.contains(namespace))
    }

    /// Returns true if a pod is in the namespace.
    pub(super) fn has_namespace(&self, namespace: &str) -> bool {
        self.namespaces.contains_key(namespace)
    }

    /// Counts a pod of a namespace.
    pub(super) fn enter(&mut self, namespace: &str) {
        let count = self.namespaces.get(namespace).copied().unwrap_or_default();
        self.namespaces.insert(namespace.to_owned(), count + 1);
    }

    /// Counts it no more.
    pub(super) fn leave(&mut self, namespace: &str) {
        match self.namespaces.get(namespace).copied() {
            Some(count) if count > 1 => drop(self.namespaces.insert(namespace.to_owned(), count - 1)),
            Some(_) | None => drop(self.namespaces.remove(namespace)),
        }
    }

    /// Sets what is at a name.
    pub(super) fn set_name(&mut self, name: &ObjectName, found: Option<NameOfPods>) {
        if self.at(name) != found.as_ref() {
            match found {
                Some(found) => drop(self.by_name.insert(name.clone(), Arc::new(found))),
                None => drop(self.by_name.remove(name)),
            }
        }
    }

    /// Sets who has an address; nobody if `owned` has no namespace.
    pub(super) fn set_address(&mut self, address: IpAddr, owned: Owned) {
        let owned = (!owned.namespaces.is_empty()).then_some(owned);
        if self.by_address.get(&address).map(|known| &**known) != owned.as_ref() {
            match owned {
                Some(owned) => drop(self.by_address.insert(address, Arc::new(owned))),
                None => drop(self.by_address.remove(&address)),
            }
        }
    }
}

/// The pods that want a name of a namespace.
#[derive(Debug, Default)]
pub(super) struct Claims<'a> {
    /// It is theirs.
    pub(super) named: Vec<&'a ZonePod>,
    /// It is their subdomain.
    pub(super) members: Vec<&'a ZonePod>,
}

impl Claims<'_> {
    /// The pods that the name stands for; `None` if nobody wants it.
    pub(super) fn decide(&self, name: &str, sharing: &Sharing) -> Option<NameOfPods> {
        let all = || self.named.iter().chain(&self.members);
        // Unrestricted sources first: the order of precedence among restricted ones does not matter, for what is there stays.
        let holder = all().min_by_key(|pod| (sharing.is_restricted(&pod.source), pod.seen, &pod.source))?;
        let is_of_realm = |pod: &&&ZonePod| !sharing.are_apart(&pod.source, &holder.source);
        let owners: BTreeSet<&SourceId> = all().filter(is_of_realm).map(|pod| &pod.source).collect();
        let is_joined =
            |pod: &&&ZonePod| !is_of_realm(pod) && owners.iter().any(|owner| sharing.may_join(&pod.source, owner, name));

        let mut found = NameOfPods::default();
        for pod in self.members.iter().filter(is_of_realm) {
            found.add_member(pod, |_| true);
        }
        let taken: BTreeSet<String> = found.members.keys().cloned().collect();
        for pod in self.members.iter().filter(is_joined) {
            found.add_member(pod, |member| !taken.contains(member));
        }
        let named: BTreeSet<IpAddr> = self.named.iter().filter(is_of_realm).flat_map(|pod| pod.addresses.clone()).collect();
        if !named.is_empty() {
            found.addresses = named;
        }
        Some(found)
    }
}

impl NameOfPods {
    /// Adds a pod of the subdomain, under those of its names that it may have there.
    fn add_member(&mut self, pod: &ZonePod, may_have: impl Fn(&str) -> bool) {
        if pod.is_ready {
            self.addresses.extend(&pod.addresses);
        }
        let dashed = pod.addresses.iter().map(|address| dashed(*address));
        let names = pod.labels().chain([pod.hostname.as_str()]).map(str::to_owned).chain(dashed);
        for member in names.filter(|name| may_have(name)) {
            self.members.entry(member).or_default().extend(&pod.addresses);
        }
    }
}

impl ZonePod {
    /// Its names that can be labels.
    pub(super) fn labels(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(|name| is_label(name))
    }

    /// The names that it wants, its subdomain included.
    pub(super) fn wants(&self) -> BTreeSet<ObjectName> {
        let names = self.labels().chain(self.subdomain.as_deref());
        names.map(|name| ObjectName { namespace: (&self.namespace).into(), name: name.into() }).collect()
    }

    /// The addresses that are its own.
    pub(super) fn own_addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().copied().filter(|_| self.owns_addresses)
    }
}

fn is_label(name: &str) -> bool {
    !name.is_empty() && name.len() <= 63 && !name.contains('.')
}

fn dashed(address: IpAddr) -> String {
    address.to_string().replace(['.', ':'], "-")
}
